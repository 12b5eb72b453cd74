/** The process table of the virtual machine: live processes, their parents, their marks, and how each one ended. */
import type { ProcessIdentity } from '../../../src/core/event.ts';
import type { ExitStatus, RunningProcess, SignalName } from '../../../src/system/world.ts';
import type { Seeded } from './seeded.ts';
import type { Owner, Timeline } from './virtual-clock.ts';

export class VirtualProcess implements Owner {
  readonly name: string;
  readonly identity: ProcessIdentity;
  readonly kind: 'runner' | 'claude' | 'command' | 'tool';
  /** The attempt whose mark is in its environment; absent when it has wiped that. */
  readonly mark: string | undefined;
  /** Its parent, while that is alive. */
  parent: VirtualProcess | null;
  /** Its original parent. */
  readonly origin: VirtualProcess | null;
  /** The runner that last recorded it as a worker's process. */
  gatheredBy: VirtualProcess | null = null;
  /** The runner that asked it to end. */
  toldToEndBy: VirtualProcess | null = null;
  /** The runner whose SIGTERM came before its only success. */
  dyingSuccessFor: VirtualProcess | null = null;
  alive = true;
  timers = 0;
  /** Stopped by SIGSTOP. */
  halted = false;
  /** Virtual milliseconds. */
  readonly bornMs: number;
  endedMs = Number.POSITIVE_INFINITY;
  /** A runner that was alive then had asked it to end. */
  wasEnded = false;
  /** How long it has been halted, and since when; virtual milliseconds. */
  haltedForMs = 0;
  haltedSinceMs: number | null = null;
  status: ExitStatus | null = null;
  /** Its reaction to a signal; SIGKILL never gets there. */
  onSignal: (signal: SignalName) => void = () => {};
  onDeath: () => void = () => {};
  readonly followers: { readonly owner: Owner; readonly isParent: boolean; tell(status: ExitStatus): void }[] = [];

  constructor(
    name: string,
    identity: ProcessIdentity,
    kind: VirtualProcess['kind'],
    parent: VirtualProcess | null,
    bornMs: number,
    mark?: string,
  ) {
    this.name = name;
    this.bornMs = bornMs;
    this.identity = identity;
    this.kind = kind;
    this.parent = parent;
    this.origin = parent;
    this.mark = mark;
  }
}

/** The name of the machine if there is only one. */
export const onlyHost = 'virtual';
/** How often a runner looks for processes that are not its children, milliseconds. */
const exitPollMs = 200;

export class ProcessTable {
  bootId = 'boot-1';
  readonly living = new Map<number, VirtualProcess>();
  readonly #timeline: Timeline;
  readonly #luck: Seeded;
  readonly #host: string;
  #lastPid = 100;

  constructor(timeline: Timeline, luck: Seeded, host = onlyHost) {
    this.#timeline = timeline;
    this.#luck = luck;
    this.#host = host;
  }

  /** `leavesTree`: only its mark, and the subreaper, show its owner. */
  start(
    kind: VirtualProcess['kind'],
    parent: VirtualProcess | null,
    mark?: string,
    { leavesTree = false } = {},
  ): VirtualProcess {
    this.#lastPid += 1;
    const pid = this.#lastPid;
    const identity = { pid, startTime: String(1_000 + pid), host: this.#host, bootId: this.bootId };
    const place = this.#host === onlyHost ? '' : `${this.#host} `;
    const process = new VirtualProcess(`${place}${kind} ${pid}`, identity, kind, parent, this.#timeline.nowMs, mark);
    if (leavesTree) process.parent = null;
    this.living.set(pid, process);
    return process;
  }

  find(identity: ProcessIdentity): VirtualProcess | null {
    if (identity.host !== this.#host || identity.bootId !== this.bootId) return null;
    const process = this.living.get(identity.pid);
    return process?.identity.startTime === identity.startTime ? process : null;
  }

  firstHalted(): VirtualProcess | null {
    for (const process of this.living.values()) if (process.halted) return process;
    return null;
  }

  marked(attemptId: string): VirtualProcess[] {
    return [...this.living.values()].filter((process) => process.mark === attemptId);
  }

  descendants(pid: number): VirtualProcess[] {
    const found: VirtualProcess[] = [];
    for (const process of this.living.values()) {
      for (let above = process.parent; above !== null; above = above.parent) {
        if (above.identity.pid === pid) found.push(process);
      }
    }
    return found;
  }

  /** Called when all processes between the two have ended. */
  orphansOf(process: VirtualProcess): VirtualProcess[] {
    const keeper = ({ origin }: VirtualProcess): VirtualProcess | null =>
      origin === null || origin.alive ? origin : keeper(origin);
    return [...this.living.values()].filter((one) => one.origin !== process && keeper(one) === process);
  }

  /** Sends a signal; it arrives a little later. */
  signal(sender: VirtualProcess, identity: ProcessIdentity, signal: SignalName): boolean {
    const process = this.find(identity);
    if (process === null) return false;
    if (signal === 'SIGTERM' || signal === 'SIGKILL') process.toldToEndBy = sender;
    // The kernel handles these by itself and in order; all others reach the process when it next runs.
    if (signal === 'SIGSTOP' || signal === 'SIGCONT') this.#deliver(process, signal);
    else
      this.#timeline.schedule(this.#luck.delay(2, 60), `${process.name}: gets ${signal}`, null, () => {
        if (process.alive) this.#deliver(process, signal);
      });
    return true;
  }

  /** A halted process receives only SIGKILL until it continues. */
  #deliver(process: VirtualProcess, signal: SignalName): void {
    if (signal === 'SIGKILL') this.end(process, { kind: 'signalled', signal });
    else if (signal === 'SIGSTOP') {
      process.halted = true;
      process.haltedSinceMs ??= this.#timeline.nowMs;
    } else if (signal === 'SIGCONT') {
      noteHalt(process, this.#timeline.nowMs);
      this.#timeline.goOn(process);
    } else if (process.halted) this.#timeline.schedule(0, `gets ${signal}`, process, () => process.onSignal(signal));
    else process.onSignal(signal);
  }

  /** The process is gone; its children become orphans, and its followers are notified. */
  end(process: VirtualProcess, status: ExitStatus): void {
    if (!process.alive) return;
    process.alive = false;
    process.status = status;
    process.endedMs = this.#timeline.nowMs;
    process.wasEnded = process.toldToEndBy?.alive === true;
    noteHalt(process, process.endedMs);
    this.living.delete(process.identity.pid);
    for (const other of this.living.values()) if (other.parent === process) other.parent = null;
    process.onDeath();
    for (const follower of process.followers) this.#tell(follower, status);
  }

  /** A view of the process for one of its followers. */
  followed(process: VirtualProcess, owner: Owner, isParent: boolean): RunningProcess {
    return {
      identity: process.identity,
      onExit: (action) => {
        const follower = { owner, isParent, tell: action };
        if (process.status === null) process.followers.push(follower);
        else this.#tell(follower, process.status);
      },
    };
  }

  #tell({ owner, isParent, tell }: VirtualProcess['followers'][number], status: ExitStatus): void {
    const delayMs = isParent ? this.#luck.delay(5, 800) : this.#luck.next() * exitPollMs;
    const told: ExitStatus = isParent ? status : { kind: 'unknown' };
    this.#timeline.schedule(delayMs, `hears of an exit (${describeStatus(told)})`, owner, () => tell(told));
  }
}

function noteHalt(process: VirtualProcess, nowMs: number): void {
  if (process.haltedSinceMs !== null) process.haltedForMs += nowMs - process.haltedSinceMs;
  process.haltedSinceMs = null;
}

export function describeStatus(status: ExitStatus): string {
  if (status.kind === 'exited') return `code ${status.code}`;
  return status.kind === 'signalled' ? status.signal : 'unknown';
}
