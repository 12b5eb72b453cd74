/**
 * The smallest program that does what subreaper-exec.ts does with `become` and `release`: a file of a few instructions.
 * Starting Bun for as much takes 20 ms of CPU for every worker, this a twentieth of one.
 *
 * Usage: IMAGE MANNER PROGRAM ARGUMENT... (an absolute path). It becomes the program.
 */
import { chmodSync, lstatSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';

/** First argument: the orphans of what it becomes come to it. */
export const becomeManner = '1';
/** Or: it leaves the session and the environment of its keeper (keeper.ts), and has that which was kept for it. */
export const releaseManner = '0';

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
 * setsid(); prctl(PR_SET_CHILD_SUBREAPER, argv[1][0] & 1, 0, 0, 0); signals 1 to 31 as usual, and none blocked; with
 * `release` what follows the first `=` of each variable that begins with KEPT becomes a variable, and nothing else is
 * one; execve(argv[2], argv + 2, envp); write(2, complaint); exit(127). The stack begins with argc, then argv, a zero,
 * envp (the System V ABI of both machines).
 */
const machines: Readonly<Record<string, Machine>> = {
  x64: {
    number: 62,
    instructions: Buffer.from(
      [
        '4989e4', // mov r12, rsp
        '498b0c24', // mov rcx, [r12]
        '83f903', // cmp ecx, 3
        '0f8cab000000', // jl complain
        '4d8d6ccc10', // lea r13, [r12+rcx*8+16]
        '4d8b742410', // mov r14, [r12+16]
        'b870000000', // mov eax, 112
        '0f05', // syscall
        'bf24000000', // mov edi, 36
        '410fb636', // movzx esi, byte [r14]
        '83e601', // and esi, 1
        '31d2', // xor edx, edx
        '4531d2', // xor r10d, r10d
        '4531c0', // xor r8d, r8d
        'b89d000000', // mov eax, 157
        '0f05', // syscall
        '6a00', // push 0
        '6a00', // push 0
        '6a00', // push 0
        '6a00', // push 0
        'bb1f000000', // mov ebx, 31
        // signals:
        '89df', // mov edi, ebx
        '4889e6', // mov rsi, rsp
        '31d2', // xor edx, edx
        '41ba08000000', // mov r10d, 8
        'b80d000000', // mov eax, 13
        '0f05', // syscall
        'ffcb', // dec ebx
        '75e8', // jne signals
        'bf02000000', // mov edi, 2
        '4889e6', // mov rsi, rsp
        '31d2', // xor edx, edx
        'b80e000000', // mov eax, 14
        '0f05', // syscall
        '41f60601', // test byte [r14], 1
        '752f', // jne execute
        '4c89ef', // mov rdi, r13
        '4c89ee', // mov rsi, r13
        // variable:
        '488b06', // mov rax, [rsi]
        '4883c608', // add rsi, 8
        '4885c0', // test rax, rax
        '741a', // je last
        '81384b455054', // cmp [rax], 'KEPT'
        '75ec', // jne variable
        // name:
        '48ffc0', // inc rax
        '8078ff3d', // cmp byte [rax-1], 61
        '75f7', // jne name
        '488907', // mov [rdi], rax
        '4883c708', // add rdi, 8
        'ebda', // jmp variable
        // last:
        '488907', // mov [rdi], rax
        // execute:
        '498b7c2418', // mov rdi, [r12+24]
        '498d742418', // lea rsi, [r12+24]
        '4c89ea', // mov rdx, r13
        'b83b000000', // mov eax, 59
        '0f05', // syscall
        // complain:
        'bf02000000', // mov edi, 2
        '488d3518000000', // lea rsi, [rip + 24]: the complaint
        `ba${complaint.length.toString(16)}000000`, // mov edx, its length
        'b801000000', // mov eax, 1
        '0f05', // syscall
        'bf7f000000', // mov edi, 127
        'b83c000000', // mov eax, 60
        '0f05', // syscall
      ].join(''),
      'hex',
    ),
  },
  arm64: {
    number: 183,
    instructions: words([
      0xf94003e9, // ldr x9, [sp]
      0xf1000d3f, // cmp x9, #3
      0x540006ab, // b.lt complain
      0x910063f3, // add x19, sp, #24
      0x8b296ff4, // add x20, sp, x9, lsl #3
      0x91004294, // add x20, x20, #16
      0xf9400bf5, // ldr x21, [sp, #16]
      0x394002b5, // ldrb w21, [x21]
      0xd28013a8, // mov x8, #157
      0xd4000001, // svc #0
      0xd2800480, // mov x0, #36
      0x924002a1, // and x1, x21, #1
      0xd2800002, // mov x2, #0
      0xd2800003, // mov x3, #0
      0xd2800004, // mov x4, #0
      0xd28014e8, // mov x8, #167
      0xd4000001, // svc #0
      0xd10083ff, // sub sp, sp, #32
      0xa9007fff, // stp xzr, xzr, [sp]
      0xa9017fff, // stp xzr, xzr, [sp, #16]
      0xd28003f6, // mov x22, #31
      // signals:
      0xaa1603e0, // mov x0, x22
      0x910003e1, // mov x1, sp
      0xd2800002, // mov x2, #0
      0xd2800103, // mov x3, #8
      0xd28010c8, // mov x8, #134
      0xd4000001, // svc #0
      0xf10006d6, // subs x22, x22, #1
      0x54ffff21, // b.ne signals
      0xd2800040, // mov x0, #2
      0x910003e1, // mov x1, sp
      0xd2800002, // mov x2, #0
      0xd28010e8, // mov x8, #135
      0xd4000001, // svc #0
      0x37000215, // tbnz w21, #0, execute
      0xaa1403e0, // mov x0, x20
      0xaa1403e1, // mov x1, x20
      0x5288a964, // mov w4, #17739
      0x72aa8a04, // movk w4, #21584, lsl #16
      // variable:
      0xf8408422, // ldr x2, [x1], #8
      0xb4000122, // cbz x2, last
      0xb9400043, // ldr w3, [x2]
      0x6b04007f, // cmp w3, w4
      0x54ffff81, // b.ne variable
      // name:
      0x38401443, // ldrb w3, [x2], #1
      0x7100f47f, // cmp w3, #61
      0x54ffffc1, // b.ne name
      0xf8008402, // str x2, [x0], #8
      0x17fffff7, // b variable
      // last:
      0xf900001f, // str xzr, [x0]
      // execute:
      0xf9400260, // ldr x0, [x19]
      0xaa1303e1, // mov x1, x19
      0xaa1403e2, // mov x2, x20
      0xd2801ba8, // mov x8, #221
      0xd4000001, // svc #0
      // complain:
      0xd2800040, // mov x0, #2
      0x100000e1, // adr x1, complaint
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
