/**
 * The smallest program that does what subreaper-exec.ts does with `become`: a file of a few instructions. Starting Bun
 * for as much takes 8 ms of CPU for every worker, this a tenth of one.
 *
 * On x64 it does not become the program, but its parent, to which the orphans come: it waits for them, which claude
 * never does. claude, asked to end, waits up to 1.5 s for the processes of a tool that it has killed, and one that
 * nobody has waited for is still there. The parent passes on every signal and ends as the program ends.
 */
import { chmodSync, lstatSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';

/** What its file is to be called: a process of that name is the parent of the program. */
export const subreaperName = 'subreaper';

/** What the program answers when it was told no program, or one that cannot be executed. */
const cannotExecute = 127;
const fileMode = 0o700;

/** Where the image is put in its process, and where in it the instructions begin: behind the two headers of elf(5). */
const address = 0x400000;
const fileHeaderBytes = 64;
const headerBytes = fileHeaderBytes + 56;

interface Machine {
  /** e_machine of elf(5). */
  readonly number: number;
  readonly instructions: Uint8Array;
}

/** Follows the instructions; from 16 to 255 bytes long, as they are written down here. */
const complaint = Buffer.from('cannot execute the program\n');

/**
 * arm64: prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); execve(argv[1], argv + 1, envp); write(2, complaint); exit(127).
 * x64: the same from execve on in a child that a SIGKILL takes along (PR_SET_PDEATHSIG), or at once when none can be
 * made; the parent blocks all signals, SIGCHLD with its usual meaning, and takes them one by one. It spoils the names
 * of its variables, so that it is not found by a mark. The stack begins with argc, then argv, a zero, envp (the System
 * V ABI of both machines).
 */
const machines: Readonly<Record<string, Machine>> = {
  x64: {
    number: 62,
    instructions: Buffer.from(
      [
        '4989e4', // mov r12, rsp
        'bf24000000', // mov edi, 36
        'be01000000', // mov esi, 1
        '31d2', // xor edx, edx
        '4531d2', // xor r10d, r10d
        '4531c0', // xor r8d, r8d
        'b89d000000', // mov eax, 157
        '0f05', // syscall: prctl
        '6aff', // push -1
        '6a00', // push 0
        '6a00', // push 0
        '6a00', // push 0
        '6a00', // push 0
        'bf11000000', // mov edi, 17
        '4889e6', // mov rsi, rsp
        '41ba08000000', // mov r10d, 8
        'b80d000000', // mov eax, 13
        '0f05', // syscall: rt_sigaction
        'bf02000000', // mov edi, 2
        '488d742420', // lea rsi, [rsp + 32]
        '4889e2', // mov rdx, rsp
        'b80e000000', // mov eax, 14
        '0f05', // syscall: rt_sigprocmask
        'b839000000', // mov eax, 57
        '0f05', // syscall: fork
        '85c0', // test eax, eax
        '0f88c5000000', // js execute
        '0f84ae000000', // jz program
        '89c3', // mov ebx, eax
        '498b0c24', // mov rcx, [r12]
        '498d54cc10', // lea rdx, [r12 + rcx * 8 + 16]
        // forget:
        '488b0a', // mov rcx, [rdx]
        '4885c9', // test rcx, rcx
        '7409', // jz next
        'c60100', // mov [rcx], 0
        '4883c208', // add rdx, 8
        'ebef', // jmp forget
        // next:
        '488d7c2420', // lea rdi, [rsp + 32]
        '31f6', // xor esi, esi
        '31d2', // xor edx, edx
        '41ba08000000', // mov r10d, 8
        'b880000000', // mov eax, 128
        '0f05', // syscall: rt_sigtimedwait
        '85c0', // test eax, eax
        '7ee6', // jle next
        '83f811', // cmp eax, 17
        '740d', // je collect
        '89df', // mov edi, ebx
        '89c6', // mov esi, eax
        'b83e000000', // mov eax, 62
        '0f05', // syscall: kill
        'ebd4', // jmp next
        // collect:
        '4883cfff', // or rdi, -1
        '488d742408', // lea rsi, [rsp + 8]
        'ba01000000', // mov edx, 1
        '4531d2', // xor r10d, r10d
        'b83d000000', // mov eax, 61
        '0f05', // syscall: wait4
        '39d8', // cmp eax, ebx
        '7406', // je ended
        '85c0', // test eax, eax
        '7fe0', // jg collect
        'ebb2', // jmp next
        // ended:
        '0fb67c2409', // movzx edi, [rsp + 9]
        '8b5c2408', // mov ebx, [rsp + 8]
        '83e37f', // and ebx, 127
        '742f', // jz leave
        'b827000000', // mov eax, 39
        '0f05', // syscall: getpid
        '89c7', // mov edi, eax
        '89de', // mov esi, ebx
        'b83e000000', // mov eax, 62
        '0f05', // syscall: kill
        'bf02000000', // mov edi, 2
        '4889e6', // mov rsi, rsp
        '31d2', // xor edx, edx
        '41ba08000000', // mov r10d, 8
        'b80e000000', // mov eax, 14
        '0f05', // syscall: rt_sigprocmask
        '8dbb80000000', // lea edi, [rbx + 128]
        // leave:
        'b83c000000', // mov eax, 60
        '0f05', // syscall: exit
        // program:
        'bf01000000', // mov edi, 1
        'be09000000', // mov esi, 9
        'b89d000000', // mov eax, 157
        '0f05', // syscall: prctl
        // execute:
        'bf02000000', // mov edi, 2
        '4889e6', // mov rsi, rsp
        '31d2', // xor edx, edx
        '41ba08000000', // mov r10d, 8
        'b80e000000', // mov eax, 14
        '0f05', // syscall: rt_sigprocmask
        '498b0424', // mov rax, [r12]
        '498b7c2410', // mov rdi, [r12 + 16]
        '498d742410', // lea rsi, [r12 + 16]
        '498d54c410', // lea rdx, [r12 + rax * 8 + 16]
        'b83b000000', // mov eax, 59
        '0f05', // syscall: execve
        'bf02000000', // mov edi, 2
        '488d3518000000', // lea rsi, [rip + 24]: the complaint
        `ba${complaint.length.toString(16)}000000`, // mov edx, its length
        'b801000000', // mov eax, 1
        '0f05', // syscall: write
        'bf7f000000', // mov edi, 127
        'b83c000000', // mov eax, 60
        '0f05', // syscall: exit
      ].join(''),
      'hex',
    ),
  },
  arm64: {
    number: 183,
    instructions: words([
      0xd2800480, // mov x0, #36
      0xd2800021, // mov x1, #1
      0xd2800002, // mov x2, #0
      0xd2800003, // mov x3, #0
      0xd2800004, // mov x4, #0
      0xd28014e8, // mov x8, #167
      0xd4000001, // svc #0
      0xf94003e2, // ldr x2, [sp]
      0x910043e1, // add x1, sp, #16
      0xf9400020, // ldr x0, [x1]
      0x8b020c22, // add x2, x1, x2, lsl #3
      0xd2801ba8, // mov x8, #221
      0xd4000001, // svc #0
      0xd2800040, // mov x0, #2
      0x100000e1, // adr x1, pc + 28: the complaint
      0xd2800002 + complaint.length * 32, // mov x2, its length
      0xd2800808, // mov x8, #64
      0xd4000001, // svc #0
      0xd2800fe0, // mov x0, #127
      0xd2800ba8, // mov x8, #93
      0xd4000001, // svc #0
    ]),
  },
};

/** Executable file for a machine as `process.arch` names it, both of them little-endian; null for any other machine. */
export function subreaperImage(arch: string): Uint8Array | null {
  const machine = machines[arch];
  if (machine === undefined) return null;
  const content = Buffer.concat([machine.instructions, complaint]);
  const size = BigInt(headerBytes + content.length);
  const header = Buffer.alloc(headerBytes);
  // e_ident: 64 bits, little-endian, version 1, System V.
  header.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]);
  header.writeUInt16LE(2, 16); // e_type: executable
  header.writeUInt16LE(machine.number, 18);
  header.writeUInt32LE(1, 20); // e_version
  header.writeBigUInt64LE(BigInt(address + headerBytes), 24); // e_entry
  header.writeBigUInt64LE(BigInt(fileHeaderBytes), 32); // e_phoff
  header.writeUInt16LE(fileHeaderBytes, 52);
  header.writeUInt16LE(headerBytes - fileHeaderBytes, 54);
  header.writeUInt16LE(1, 56); // e_phnum
  header.writeUInt32LE(1, fileHeaderBytes); // p_type: to be loaded
  header.writeUInt32LE(5, fileHeaderBytes + 4); // p_flags: readable, executable
  header.writeBigUInt64LE(BigInt(address), fileHeaderBytes + 16); // p_vaddr
  header.writeBigUInt64LE(BigInt(address), fileHeaderBytes + 24); // p_paddr
  header.writeBigUInt64LE(size, fileHeaderBytes + 32); // p_filesz
  header.writeBigUInt64LE(size, fileHeaderBytes + 40); // p_memsz
  header.writeBigUInt64LE(0x10000n, fileHeaderBytes + 48); // p_align: the largest page of either
  return Buffer.concat([header, content]);
}

/**
 * Puts the image where nothing of that name is, or something else; true when programs can be started by it. They cannot
 * on another system or machine, on a disk that nothing is executed from, or where nothing can be written.
 */
export function installSubreaper(path: string): boolean {
  const image = process.platform === 'linux' ? subreaperImage(process.arch) : null;
  if (image === null) return false;
  try {
    if (!isThere(path, image)) write(path, image);
    const tried = Bun.spawnSync([path], { env: {}, stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' });
    return tried.exitCode === cannotExecute;
  } catch {
    // Whatever forbids it, there is another way.
    return false;
  }
}

function isThere(path: string, image: Uint8Array): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found?.isFile() === true && (found.mode & 0o777) === fileMode && readFileSync(path).equals(image);
}

/** As a whole or not at all. A group has one runner at a time, so nobody else is writing. */
function write(path: string, image: Uint8Array): void {
  const temporary = `${path}.tmp`;
  rmSync(temporary, { force: true });
  try {
    writeFileSync(temporary, image, { flag: 'wx', mode: fileMode });
    chmodSync(temporary, fileMode);
    renameSync(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
}

function words(values: readonly number[]): Uint8Array {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [index, value] of values.entries()) bytes.writeUInt32LE(value, 4 * index);
  return bytes;
}
