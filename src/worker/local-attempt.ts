/** An attempt on this machine. */
import { dirname } from 'node:path';
import type { ProcessIdentity } from '../core/event.ts';
import { ok, type Result } from '../core/failure.ts';
import type { Attempt } from '../core/session-state.ts';
import type { SessionPaths } from '../store/paths.ts';
import type {
  ExitStatus,
  FifoWriter,
  Files,
  RunningProcess,
  SignalName,
  SpawnOptions,
  World,
} from '../system/world.ts';
import { classifyUnfinished, endUnstarted, silenceMs } from './adopt.ts';
import type { AdoptionPlan, AttemptSubject, CleanupResult, HostedAttempt } from './host.ts';
import { gatherProcesses, reap } from './reap.ts';

/** Longer than SessionEnd hooks may take (CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS is 5 s for our workers). */
const termGraceMs = 8_000;

export class LocalAttempt implements HostedAttempt {
  readonly #world: World;
  readonly #subject: AttemptSubject;
  #process: RunningProcess | null = null;
  #worker: ProcessIdentity | undefined;
  #fifo: FifoWriter | null = null;
  #stderrOffset = 0;
  #hasLeft = false;
  #isEnding = false;
  #timers: (() => void)[] = [];

  constructor(world: World, subject: AttemptSubject) {
    this.#world = world;
    this.#subject = subject;
  }

  async start(spawn: SpawnOptions, offset: number): Promise<Result<ProcessIdentity>> {
    const { paths } = this.#subject;
    this.#stderrOffset = this.#world.files.info(paths.stderr)?.size ?? 0;
    nameTranscript(this.#world, paths, offset);
    this.#world.fifos.create(paths.fifo);
    const spawned = this.#world.processes.spawn(spawn);
    if (!spawned.ok) return spawned;
    this.#follow(spawned.value);
    return ok(spawned.value.identity);
  }

  async takeOver(attempt: Attempt): Promise<AdoptionPlan> {
    const { transcript } = this.#subject.paths;
    const found = classifyUnfinished(this.#world, attempt, transcript);
    const { signalled } = found;
    this.#worker = attempt.process;
    if (found.do === 'restart' && (await endUnstarted(this.#world, attempt, transcript))) return { do: 'restart' };
    // A worker that printed while it was being ended had started, so its output decides.
    const wasInterrupted = found.do === 'restart';
    if (found.do !== 'adopt') return { do: 'finalizeDead', signalled: wasInterrupted || signalled, wasInterrupted };
    const { process } = found;
    const silentMs = silenceMs(this.#world, attempt, transcript);
    this.#follow(process);
    return { do: 'adopt', process: process.identity, silentMs, signalled };
  }

  #follow(process: RunningProcess): void {
    this.#process = process;
    this.#worker = process.identity;
    this.#fifo = this.#world.fifos.openWriter(this.#subject.paths.fifo);
  }

  onExit(action: (status: ExitStatus) => void): void {
    this.#process?.onExit((status) => {
      if (!this.#hasLeft) action(status);
    });
  }

  get listens(): boolean {
    return this.#fifo !== null;
  }

  write(lines: string): void {
    this.#fifo?.writeLine(lines);
  }

  look(): void {
    const { processes } = this.#world;
    const { attemptId } = this.#subject;
    if (!processes.isGrouped(attemptId)) processes.findContained(attemptId);
  }

  terminate(): void {
    if (this.#isEnding || this.#process === null) return;
    this.#isEnding = true;
    this.look();
    this.#signal('SIGTERM');
    const cancel = this.#world.clock.after(termGraceMs, () => {
      this.look();
      this.#signal('SIGKILL');
    });
    this.#timers.push(cancel);
  }

  #signal(signal: SignalName): void {
    if (this.#process !== null) this.#world.processes.signal(this.#process.identity, signal);
  }

  halt(isHalted: boolean): void {
    const signal = isHalted ? 'SIGSTOP' : 'SIGCONT';
    const found = gatherProcesses(this.#world, this.#subject.attemptId, this.#known);
    for (const process of found) this.#world.processes.signal(process, signal);
  }

  /** Used to find its process session even after it has ended. */
  get #known(): ProcessIdentity[] {
    return this.#worker === undefined ? [] : [this.#worker];
  }

  async reap(): Promise<CleanupResult> {
    this.#letGo();
    const { paths, attemptId } = this.#subject;
    // Read before the control group is removed.
    const limitsHit = this.#world.processes.limitsHit(attemptId);
    const ended = await reap(this.#world, attemptId, this.#known);
    try {
      this.#world.files.remove(paths.fifo);
    } catch {}
    return {
      leftover: ended < 0,
      limitsHit,
      stderrTail: stderrTail(this.#world.files, paths.stderr, this.#stderrOffset),
    };
  }

  async endNow(): Promise<boolean> {
    this.#letGo();
    return (await reap(this.#world, this.#subject.attemptId, this.#known)) >= 0;
  }

  leave(): void {
    this.#hasLeft = true;
    this.#letGo();
  }

  #letGo(): void {
    for (const cancel of this.#timers) cancel();
    this.#timers = [];
    this.#fifo?.close();
    this.#fifo = null;
  }
}

const tailBytes = 4_096;

/** The last lines of the file after byte `from`, at most 4 KB. */
export function stderrTail(files: Files, path: string, from: number): string {
  const size = files.info(path)?.size ?? 0;
  if (size <= from) return '';
  const bytes = files.readBytes(path, Math.max(from, size - tailBytes), tailBytes);
  return new TextDecoder().decode(bytes).trimEnd();
}

/**
 * Syncs the transcript's directory entry, without which a power cut would lose claude's synced output. Needed at the
 * first attempt only (`offset` 0).
 */
export function nameTranscript({ files }: World, { transcript, folder }: SessionPaths, offset: number): void {
  if (offset > 0) return;
  files.openAppend(transcript).close();
  for (const path of [folder, dirname(folder)]) files.syncFolder(path);
}

/** Terminates a partial last line; returns the transcript's size. */
export function terminatePartialLine(world: World, { transcript, folder }: SessionPaths): number {
  const { size, kind } = world.files.info(transcript) ?? { size: 0, kind: 'file' };
  // Starting the worker will report the problem.
  if (kind !== 'file') return 0;
  // Never write through a symlink.
  if (world.files.entryKind(transcript) === 'link') return size;
  if (size === 0 || world.files.readBytes(transcript, size - 1, 1)[0] === 10) return size;
  world.files.makeFolder(folder);
  const file = world.files.openAppend(transcript);
  file.append('\n');
  file.close();
  return size + 1;
}
