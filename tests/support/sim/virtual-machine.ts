/** The machine of a simulation: time, disk, processes, pipes, locks, faults, and the books. */
import { basename, dirname, join } from 'node:path';
import type { LockHolder, SpawnOptions } from '../../../src/system/world.ts';
import { ClaudeBook, type CommandBook } from './books.ts';
import type { SimulationChecks } from './checks.ts';
import { Coverage, type CrashPoint, type DecisionKind } from './coverage.ts';
import { LogWatch } from './log-watch.ts';
import type { GuestBook } from './person.ts';
import type { Behaviour, CommandBehaviour, Scenario } from './scenario.ts';
import { type Seeded, seededFor } from './seeded.ts';
import { VirtualClaude } from './virtual-claude.ts';
import { Timeline } from './virtual-clock.ts';
import { runVirtualCommand } from './virtual-command.ts';
import { Disk, FifoNode, FolderNode } from './virtual-disk.ts';
import { type DiskTrouble, Watchers } from './virtual-files.ts';
import { ProcessTable, type VirtualProcess } from './virtual-processes.ts';
import type { VirtualRunner } from './virtual-runner.ts';

const goodBehaviour: Behaviour = {
  messages: 1,
  tools: false,
  ending: 'success',
  slowness: 1,
  interrupt: 'obeyed',
  term: 'obeyed',
  tool: 'tame',
  pieces: false,
  forgets: false,
  nearLimit: false,
};

const goodCommand: CommandBehaviour = { ending: 'succeeds', workMs: 200, term: 'obeyed', child: 'none' };

/** A broken promise. */
export interface Violation {
  readonly invariant: string;
  readonly message: string;
}

/** One machine among several. */
export interface Among {
  readonly timeline: Timeline;
  readonly host: string;
}

/** The pending crashes, and how often their cell was passed. */
interface PendingCrash {
  readonly point: CrashPoint;
  readonly decision: DecisionKind;
  readonly how: 'kill' | 'power-cut';
  left: number;
}

export class VirtualMachine {
  readonly timeline: Timeline;
  readonly disk = new Disk();
  readonly trouble: DiskTrouble = { full: false, low: false, failed: 0 };
  /** Hardly any memory is free. */
  isMemoryShort = false;
  /** The login's usage limit lasts until then, virtual milliseconds. */
  #limitUntilMs = 0;
  readonly watchers: Watchers;
  readonly table: ProcessTable;
  readonly luck: Seeded;
  readonly claudes: ClaudeBook[] = [];
  readonly commands: CommandBook[] = [];
  readonly guests: GuestBook[] = [];
  readonly locks = new Map<string, { readonly owner: VirtualProcess; readonly holder: LockHolder }>();
  readonly coverage = new Coverage();
  readonly log: LogWatch;
  readonly scenario: Scenario;
  readonly trace: string[] | null;
  checks!: SimulationChecks;
  runners: VirtualRunner[] = [];
  violation: Violation | null = null;
  /** The one promise to check; null for all of them. */
  only: string | null = null;
  #logins = 0;
  readonly #crashes: PendingCrash[];
  readonly #behavioursUsed = new Map<string, number>();
  readonly #commandsUsed = new Map<string, number>();

  constructor(scenario: Scenario, eventsPath: string, trace: string[] | null, among?: Among) {
    const { timeline = new Timeline(), host } = among ?? {};
    const named = (name: string) => seededFor(scenario.seed, host === undefined ? name : `${host} ${name}`);
    this.timeline = timeline;
    this.scenario = scenario;
    this.trace = trace;
    this.luck = named('machine');
    this.watchers = new Watchers(timeline, named('watchers'));
    this.table = new ProcessTable(timeline, named('processes'), host);
    this.log = new LogWatch(this.disk, eventsPath, (violation) => this.violate(violation.invariant, violation.message));
    this.#crashes = scenario.crashes.map(({ point, decision, nth, how }) => ({ point, decision, how, left: nth }));
  }

  /** Half of all machines have a claude whose totals continue in a resumed conversation. */
  get hasLastingTotals(): boolean {
    return this.scenario.seed % 2 === 0;
  }

  say(line: string): void {
    this.trace?.push(`${(this.timeline.nowMs / 1_000).toFixed(3).padStart(9)}  ${line}`);
  }

  violate(invariant: string, message: string): void {
    if (this.only !== null && this.only !== invariant) return;
    if (this.violation === null) this.say(`BROKEN ${invariant}: ${message}`);
    this.violation ??= { invariant, message };
  }

  /** Whether a runner that passes here with these decisions dies now, and how. */
  crashAt(point: CrashPoint, decisions: readonly DecisionKind[]): 'kill' | 'power-cut' | null {
    for (const crash of this.#crashes) {
      if (crash.point !== point || crash.left === 0 || !decisions.includes(crash.decision)) continue;
      crash.left -= 1;
      if (crash.left > 0) continue;
      for (const decision of new Set(decisions)) this.coverage.crash({ point, decision });
      this.coverage.note(crash.how);
      this.say(`CRASH (${crash.how}) ${point}, ${decisions.join(', ')}`);
      return crash.how;
    }
    for (const decision of decisions) this.coverage.pass({ point, decision });
    return null;
  }

  /** Whether a crash at that point is pending. */
  crashesWhile(point: CrashPoint): boolean {
    return this.#crashes.some((crash) => crash.point === point && crash.left > 0);
  }

  /** Cancels the pending crashes. */
  callOffCrashes(): void {
    for (const crash of this.#crashes) crash.left = 0;
  }

  startClaude(runner: VirtualProcess, options: SpawnOptions): VirtualProcess {
    const { args, env } = options;
    const after = (flag: string) => (args.includes(flag) ? args[args.indexOf(flag) + 1] : undefined);
    const resumed = after('--resume');
    const claudeSessionId = resumed ?? after('--session-id') ?? '';
    const cap = after('--max-budget-usd');
    const attemptId = env.CLAUDE_CODE_AGENT_ATTEMPT ?? '';
    const process = this.table.start('claude', runner, attemptId);
    const config = env.CLAUDE_CONFIG_DIR ?? '';
    const book = new ClaudeBook({
      process,
      attemptId,
      sessionId: basename(dirname(options.stdoutFile)),
      claudeSessionId,
      transcript: options.stdoutFile,
      conversation: join(config, 'projects', this.slugOf(options.cwd), `${claudeSessionId}.jsonl`),
      resumes: resumed !== undefined,
      capUsd: cap === undefined ? undefined : Number(cap),
    });
    this.claudes.push(book);
    this.checks.spawned(book);
    this.checks.supervision.spawned(book.sessionId, args);
    const claude = new VirtualClaude(this, book, options, seededFor(this.scenario.seed, process.name));
    const fifo = this.disk.find(options.stdinFifo ?? '');
    if (fifo?.kind === 'fifo') fifo.reader = (line) => claude.take(line);
    // stdout is opened by the spawn: the file exists from now on.
    this.appendQuietly(options.stdoutFile, new Uint8Array(0));
    return process;
  }

  /** The name of claude's folder for conversations of `cwd`. */
  slugOf(_cwd: string): string {
    return 'p';
  }

  /** A tool of the claude has changed its working directory. */
  worked(_book: ClaudeBook, _cwd: string): void {}

  /** The account has reached a usage limit; another one does not extend it. */
  reachLimit(forMs: number): void {
    if (!this.isLimited) this.#limitUntilMs = this.timeline.nowMs + forMs;
  }

  get isLimited(): boolean {
    return this.timeline.nowMs < this.#limitUntilMs;
  }

  /** When the limit is lifted by the wall clock, in whole seconds as claude reports it. */
  get limitResetsAtS(): number {
    return Math.ceil((this.timeline.wall() + this.#limitUntilMs - this.timeline.nowMs) / 1_000);
  }

  /** A user's acceptance command. */
  startCommand(runner: VirtualProcess, options: SpawnOptions): VirtualProcess {
    const attemptId = options.env.CLAUDE_CODE_AGENT_ATTEMPT ?? '';
    const process = this.table.start('command', runner, attemptId);
    const book = { process, runner, attemptId, sessionId: basename(dirname(options.stdoutFile)) };
    this.commands.push(book);
    this.checks.acceptance.commanded(book);
    runVirtualCommand(this, book, options.stdoutFile, this.#nextCommand(book));
    return process;
  }

  /** `parent` is a claude or a command. */
  startTool(parent: VirtualProcess, tool: Behaviour['tool'] | 'wiped-stubborn'): VirtualProcess {
    const isWiped = tool === 'wiped' || tool === 'wiped-stubborn';
    const leavesTree = tool === 'marked' || tool === 'stubborn';
    const process = this.table.start('tool', parent, isWiped ? undefined : parent.mark, { leavesTree });
    if (tool !== 'stubborn' && tool !== 'wiped-stubborn') {
      process.onSignal = (signal) => {
        if (signal === 'SIGTERM') this.table.end(process, { kind: 'signalled', signal });
      };
    }
    return process;
  }

  /** The behaviour of the session's next claude; the same for every seed, however often its runner dies. */
  nextBehaviour({ sessionId }: ClaudeBook): Behaviour {
    const index = this.#behavioursUsed.get(sessionId) ?? 0;
    this.#behavioursUsed.set(sessionId, index + 1);
    const sketch = this.scenario.sessions[Number.parseInt(sessionId, 10) - 1];
    return sketch?.behaviours[index] ?? goodBehaviour;
  }

  #nextCommand({ sessionId }: CommandBook): CommandBehaviour {
    const index = this.#commandsUsed.get(sessionId) ?? 0;
    this.#commandsUsed.set(sessionId, index + 1);
    const sketch = this.scenario.sessions[Number.parseInt(sessionId, 10) - 1];
    return sketch?.acceptance?.behaviours[index] ?? goodCommand;
  }

  nextLogin(): 'in' | 'out' | 'silent' {
    this.#logins += 1;
    return this.scenario.logins[this.#logins - 1] ?? 'in';
  }

  /** Appends for a process that ignores errors; the file's size afterwards, null when incomplete. */
  appendQuietly(path: string, bytes: Uint8Array, isSynced = false): number | null {
    const place = this.disk.place(path);
    if (place === null) {
      if (path === '' || this.trouble.full) return null;
      this.disk.makeFolder(dirname(path), this.timeline.wall());
      return this.appendQuietly(path, bytes, isSynced);
    }
    let node = this.disk.file(path);
    if (node === null) {
      if (this.trouble.full) return null;
      node = this.disk.createFile(path, this.timeline.wall());
    }
    // Never everything except the newline: such a line is readable, so its loss could not be detected.
    const most = this.trouble.full ? this.luck.int(0, Math.max(0, bytes.length - 2)) : bytes.length;
    const written = bytes.subarray(0, most);
    if (written.length > 0) node.append(written, this.timeline.wall());
    if (isSynced) node.durableSize = node.size;
    this.watchers.changed(path);
    return written.length === bytes.length ? node.size : null;
  }

  closeFifo(path: string, process: VirtualProcess): void {
    const node = this.disk.find(path);
    const isOurs = !this.claudes.some(
      (book) => book.process !== process && book.process.alive && book.transcript.startsWith(dirname(path)),
    );
    if (node?.kind === 'fifo' && isOurs) node.reader = null;
  }

  forget(path: string): void {
    const place = this.disk.place(path);
    place?.folder.drop(place.name);
  }

  makeFifo(path: string): void {
    const place = this.disk.place(path);
    if (place === null) throw new Error(`no folder for ${path}`);
    place.folder.put(place.name, new FifoNode(this.timeline.wall()));
  }

  /** All processes are gone, and unsynced data may be. */
  cutPower(): void {
    this.say('POWER CUT');
    for (const runner of this.runners) runner.die('the power cut');
    for (const process of [...this.table.living.values()]) {
      process.alive = false;
      process.status = { kind: 'signalled', signal: 'SIGKILL' };
    }
    this.table.living.clear();
    for (const guest of this.guests) guest.isUnsure = true;
    // Output is no longer read.
    for (const { transcript, process } of this.claudes)
      this.closeFifo(join(dirname(transcript), 'stdin.fifo'), process);
    this.table.bootId = `boot-${Number(this.table.bootId.slice(5)) + 1}`;
    this.locks.clear();
    this.disk.root.losePower(this.luck);
    for (const book of this.claudes) {
      const node = this.disk.file(book.transcript);
      // A last line without its newline is still readable, unless zeros follow it.
      if (node === null) book.keepOnly(0);
      else book.keepOnly(node.intactSize < node.size ? node.intactSize : node.size + 1);
    }
    this.log.forget();
    this.watchers.changed(this.log.path);
  }

  /** A folder with all its parents, as if made long ago. */
  makeOldFolder(path: string): void {
    this.disk.makeFolder(path, this.timeline.wall());
    const folder = this.disk.find(path);
    if (!(folder instanceof FolderNode)) throw new Error(`${path} is no folder`);
  }

  /** Live claudes of the group. */
  livingClaudes(): ClaudeBook[] {
    return this.claudes.filter(({ process }) => process.alive);
  }
}
