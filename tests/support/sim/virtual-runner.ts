/**
 * One process of the program under test: its World over the virtual machine. After its death nothing it does has an
 * effect, so the code may run to its next pause and then waits for ever, as if the process were gone.
 */
import { dirname } from 'node:path';
import type { ProcessIdentity } from '../../../src/core/event.ts';
import { fail, ok } from '../../../src/core/failure.ts';
import type {
  AppendFile,
  CommandOptions,
  Fifos,
  Files,
  Locks,
  Processes,
  RunOutput,
  SpawnOptions,
  World,
} from '../../../src/system/world.ts';
import type { CrashPoint, DecisionKind } from './coverage.ts';
import { decisionsIn } from './log-watch.ts';
import { cores } from './scenario.ts';
import { type Seeded, seededFor } from './seeded.ts';
import { clockOf } from './virtual-clock.ts';
import { SystemError, VirtualFiles } from './virtual-files.ts';
import type { VirtualMachine } from './virtual-machine.ts';
import type { VirtualProcess } from './virtual-processes.ts';

export class VirtualRunner {
  readonly machine: VirtualMachine;
  readonly process: VirtualProcess;
  readonly world: World;
  readonly #luck: Seeded;
  readonly #files: VirtualFiles;
  /** Decisions logged since the group's last snapshot. */
  #unsaved: DecisionKind[] = [];
  /** Decisions of the batch that is being logged. */
  #batch: readonly DecisionKind[] = [];
  /** What it read makes it die at its next step. */
  #doom: { readonly point: CrashPoint; readonly decisions: readonly DecisionKind[] } | null = null;

  /** The last observation of each attempt. */
  readonly #seen = new Map<string, readonly VirtualProcess[]>();
  readonly #failedBefore: number;

  constructor(machine: VirtualMachine) {
    this.machine = machine;
    this.#failedBefore = machine.trouble.failed;
    this.process = machine.table.start('runner', null);
    this.#luck = seededFor(machine.scenario.seed, this.process.name);
    const { disk, timeline, watchers, trouble } = machine;
    this.#files = new VirtualFiles({ disk, timeline, watchers, trouble, owner: this.process });
    this.world = {
      clock: clockOf(timeline, this.process, this.#luck),
      files: this.#guardedFiles(),
      processes: this.#processes(),
      fifos: this.#fifos(),
      locks: this.#locks(),
      random: { uuid: () => this.#luck.uuid(), fraction: () => this.#luck.next() },
      machine: {
        host: this.process.identity.host,
        bootId: machine.table.bootId,
        cores,
        freeMemoryBytes: () => (machine.isMemoryShort ? 1 : 8) * 1024 ** 3,
        isPortFree: () => true,
        self: this.process.identity,
      },
    };
    machine.runners.push(this);
  }

  /** Every write since it started succeeded. */
  get metNoFault(): boolean {
    return this.machine.trouble.failed === this.#failedBefore;
  }

  get alive(): boolean {
    return this.process.alive;
  }

  /** From now on nothing it does has an effect; its locks are free. */
  die(how: string): void {
    if (!this.alive) return;
    this.machine.say(`${this.process.name} dies by ${how}`);
    this.machine.table.end(this.process, { kind: 'signalled', signal: 'SIGKILL' });
    this.leaveBehind();
  }

  /** Ends like a process that has finished its work. */
  exit(): void {
    this.machine.table.end(this.process, { kind: 'exited', code: 0 });
    this.leaveBehind();
  }

  private leaveBehind(): void {
    const { locks, runners } = this.machine;
    for (const [path, { owner }] of locks) if (owner === this.process) locks.delete(path);
    this.machine.runners = runners.filter((other) => other !== this);
  }

  /** Passes a point at which it may die; false when it is dead afterwards. */
  #pass(point: CrashPoint, decisions: readonly DecisionKind[]): boolean {
    if (!this.alive) return false;
    const how = this.machine.crashAt(point, decisions);
    if (how === null) return true;
    this.#fall(how);
    return false;
  }

  #fall(how: 'kill' | 'power-cut'): void {
    if (how === 'kill') this.die('kill -9');
    else this.machine.cutPower();
  }

  /** Checks for requests, as it does constantly, and may be idle otherwise. */
  #waits(): void {
    const { log, timeline, trouble, isMemoryShort } = this.machine;
    if (!this.machine.crashesWhile('while-waiting')) return;
    log.catchUp();
    const waits = log.waits(timeline.wall());
    if (isMemoryShort && log.state?.status === 'running') waits.push('wait-memory');
    if ((trouble.low || trouble.full) && log.state?.status === 'running') waits.push('wait-disk');
    if (waits.length > 0) this.#pass('while-waiting', waits);
  }

  /** Called first by everything that has an effect or reports something. */
  #lives(): boolean {
    const doom = this.#doom;
    this.#doom = null;
    if (doom !== null) this.#pass(doom.point, doom.decisions);
    return this.alive;
  }

  #guardedFiles(): Files {
    const files = this.#files;
    const { log } = this.machine;
    const requests = `${dirname(log.path)}/requests`;
    return {
      readText: (path) => files.readText(path),
      readBytes: (path, offset, most) => this.#read(path, most, () => files.readBytes(path, offset, most)),
      match: () => [],
      link: () => {},
      list: (path) => {
        // Answers of a dead process stay where they are, and would be delivered for ever.
        if (path === requests && !this.alive) return [];
        if (path === requests) this.#waits();
        return files.list(path);
      },
      info: (path) => files.info(path),
      entryKind: (path) => files.entryKind(path),
      realPath: (path) => files.realPath(path),
      freeBytes: () => files.freeBytes(),
      writeAtomic: (path, text, options) => {
        if (!this.#lives()) return;
        this.machine.checks.tells(path, text);
        const isSnapshot = path === log.metaPath;
        if (isSnapshot && !this.#pass('before-snapshot', this.#unsaved)) return;
        files.writeAtomic(path, text, options);
        if (isSnapshot && this.#pass('after-snapshot', this.#unsaved)) this.#unsaved = [];
      },
      writeBytes: (path, bytes, options) => void (this.#lives() && files.writeBytes(path, bytes, options)),
      openRead: (path) => {
        const file = files.openRead(path);
        const read = (offset: number, most: number) => this.#read(path, most, () => file?.read(offset, most) ?? none);
        return file && { read, close: () => file.close() };
      },
      openAppend: (path) => (this.#lives() ? this.#appendFile(path) : deadFile),
      truncate: (path, size) => void (this.#lives() && files.truncate(path, size)),
      makeFolder: (path) => this.#lives() && files.makeFolder(path),
      syncFolder: (path) => void (this.#lives() && files.syncFolder(path)),
      rename: (from, to) => void (this.#lives() && files.rename(from, to)),
      remove: (path) => void (this.#lives() && files.remove(path)),
      watch: (path, onChange) => files.watch(path, onChange),
    };
  }

  #read(path: string, most: number, read: () => Uint8Array): Uint8Array {
    const bytes = read();
    if (!this.#lives() || bytes.length === 0 || !path.endsWith('/transcript.jsonl')) return bytes;
    if (most > 1 && bytesInclude(bytes, resultMark)) {
      const decisions = this.machine.log.decisionsOfSession(path.slice(0, path.lastIndexOf('/')));
      if (!this.#pass('before-result-read', decisions)) return none;
      this.#doom = { point: 'after-result-read', decisions };
    }
    return bytes;
  }

  #appendFile(path: string): AppendFile {
    const file = this.#files.openAppend(path);
    if (path !== this.machine.log.path) {
      return {
        get size() {
          return file.size;
        },
        append: (text) => {
          this.machine.checks.tells(path, text);
          if (this.#lives()) file.append(text);
        },
        appendBytes: (bytes) => void (this.#lives() && file.appendBytes(bytes)),
        sync: () => void (this.#lives() && file.sync()),
        close: () => file.close(),
      };
    }
    return {
      get size() {
        return file.size;
      },
      append: (text) => {
        if (!this.#lives()) return;
        this.machine.checks.appends(this);
        this.machine.checks.tells(path, text);
        this.#batch = decisionsIn(text, this.machine.log.state);
        if (!this.#pass('before-append', this.#batch)) return;
        file.append(text);
        if (!this.#pass('after-append', this.#batch)) return;
      },
      appendBytes: () => {
        throw new Error('The log consists of lines');
      },
      sync: () => {
        if (!this.#lives()) return;
        file.sync();
        this.#unsaved.push(...this.#batch);
        this.#pass('after-fsync', this.#batch);
      },
      close: () => file.close(),
    };
  }

  #processes(): Processes {
    const { table } = this.machine;
    return {
      spawn: (options) => this.#spawn(options),
      run: (options) => this.#run(options),
      attach: (identity) => {
        const process = this.#lives() ? table.find(identity) : null;
        const decisions = this.machine.log.decisionsOfAttempt(this.#attemptOf(identity));
        if (process?.halted) decisions.push('freeze');
        if (!this.#pass('during-adopt', decisions) || process === null) return null;
        this.machine.checks.attached(this, process);
        return table.followed(process, this.process, false);
      },
      identify: (pid) => table.living.get(pid)?.identity ?? null,
      isAlive: (identity) => this.#lives() && table.find(identity) !== null,
      isHalted: (identity) => table.find(identity)?.halted === true,
      findMarked: (_name, value) => {
        if (!this.#lives()) return [];
        const point = this.#reapingPoint(value);
        if (point !== null && !this.#pass(point, this.machine.log.decisionsOfAttempt(value))) return [];
        return table.marked(value).map(({ identity }) => identity);
      },
      findDescendants: (roots) => {
        if (!this.#lives()) return [];
        const found = roots.flatMap(({ pid }) => table.descendants(pid));
        for (const process of found) this.machine.checks.gathered(this, process);
        return found.map(({ identity }) => identity);
      },
      containment: () => 'tree',
      isGrouped: () => false,
      limits: () => new Set(),
      findContained: (name) => this.#held(name).map(({ identity }) => identity),
      endContained: (name) => {
        const held = this.#held(name);
        for (const { identity } of held) table.signal(this.process, identity, 'SIGKILL');
        return held.length === 0;
      },
      limitsHit: () => [],
      signal: (identity, signal) => {
        if (!this.#lives()) return false;
        if (signal === 'SIGTERM' || signal === 'SIGKILL') this.machine.checks.ends(this, identity);
        return table.signal(this.process, identity, signal);
      },
    };
  }

  /** The live processes of an attempt, as far as this process can know. */
  #held(name: string): VirtualProcess[] {
    if (!this.#lives()) return [];
    const { table, checks } = this.machine;
    const marked = table.marked(name);
    const below = marked.flatMap(({ identity }) => table.descendants(identity.pid));
    const came = table.orphansOf(this.process).filter((process) => attemptThatStarted(process) === name);
    const seen = [...(this.#seen.get(name) ?? [])].filter(({ alive }) => alive);
    const held = [...new Set([...marked, ...below, ...came, ...seen])];
    this.#seen.set(name, held);
    for (const process of held) checks.gathered(this, process);
    return held;
  }

  /** Why it looks for processes with the attempt's mark; null for information only. */
  #reapingPoint(attemptId: string): 'while-accepting' | 'during-reap' | null {
    const isOf = (book: { readonly attemptId: string }) => book.attemptId === attemptId;
    const { claudes, commands } = this.machine;
    if (claudes.some((book) => isOf(book) && book.process.alive)) return null;
    if (commands.some((book) => isOf(book) && book.process.alive)) return 'while-accepting';
    return claudes.some(isOf) || commands.some(isOf) ? 'during-reap' : null;
  }

  #attemptOf(identity: ProcessIdentity): string {
    return this.machine.claudes.find(({ process }) => process.identity.pid === identity.pid)?.attemptId ?? '';
  }

  #spawn(options: SpawnOptions): ReturnType<Processes['spawn']> {
    const { machine } = this;
    if (!this.#lives()) return ok({ identity: this.process.identity, onExit: () => {} });
    if (machine.trouble.full && machine.disk.file(options.stdoutFile) === null) {
      return fail('spawn-failed', 'Cannot write the transcript: ENOSPC.', 'Free some disk space.');
    }
    machine.checks.tells('a command line', options.args.join(' '));
    const isCommand = options.program === '/bin/sh';
    const process = isCommand
      ? machine.startCommand(this.process, options)
      : machine.startClaude(this.process, options);
    this.#pass('after-spawn', machine.log.decisionsOfAttempt(process.mark ?? ''));
    return ok(machine.table.followed(process, this.process, true));
  }

  #run({ args }: CommandOptions): ReturnType<Processes['run']> {
    this.machine.checks.tells('a command line', args.join(' '));
    const login = this.machine.nextLogin();
    return new Promise((resolve) => {
      const answer = (output: RunOutput) => resolve(ok(output));
      this.machine.timeline.schedule(this.#luck.delay(600, 9_000), 'auth status ends', this.process, () => {
        if (login === 'silent') answer({ exitCode: null, stdout: '', stderr: '' });
        else
          answer({
            exitCode: 0,
            stdout: JSON.stringify({ loggedIn: login === 'in', authMethod: 'api_key' }),
            stderr: '',
          });
      });
    });
  }

  #fifos(): Fifos {
    const { machine } = this;
    return {
      create: (path) => {
        if (!this.#lives()) return;
        this.#files.writing('mkfifo', path);
        if (machine.disk.place(path) === null) throw new SystemError('ENOENT', 'mkfifo', path);
        machine.makeFifo(path);
      },
      openWriter: (path) => {
        const node = machine.disk.find(path);
        if (!this.#lives() || node?.kind !== 'fifo' || node.reader === null) return null;
        return {
          writeLine: (text) => {
            if (!this.#lives()) return;
            let attemptId = '';
            for (const line of text.split('\n')) {
              machine.checks.tells(path, line);
              attemptId = machine.checks.writesToClaude(path, line);
              node.reader?.(line);
            }
            if (/^{"type":"user"/m.test(text)) this.#pass('after-prompt', machine.log.decisionsOfAttempt(attemptId));
          },
          close: () => {},
        };
      },
    };
  }

  #locks(): Locks {
    const { locks } = this.machine;
    return {
      tryLock: (path, holder) => {
        if (!this.#lives() || locks.has(path)) return null;
        locks.set(path, { owner: this.process, holder });
        return { release: () => void (locks.get(path)?.owner === this.process && locks.delete(path)) };
      },
      holder: (path) => locks.get(path)?.holder ?? null,
    };
  }
}

function attemptThatStarted({ mark, origin }: VirtualProcess): string | undefined {
  return mark ?? (origin === null ? undefined : attemptThatStarted(origin));
}

const none = new Uint8Array(0);

const deadFile: AppendFile = {
  size: 0,
  append: () => {},
  appendBytes: () => {},
  sync: () => {},
  close: () => {},
};

const resultMark = new TextEncoder().encode('"type":"result"');

function bytesInclude(bytes: Uint8Array, mark: Uint8Array): boolean {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).includes(mark);
}
