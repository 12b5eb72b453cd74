/**
 * An attempt on this machine. It can do without us: its output goes to a file and its input comes from a FIFO that any
 * later runner opens again, so the same class serves one that we started and one that an earlier runner left behind.
 */
import type { ProcessIdentity } from '../core/event.ts';
import { ok, type Result } from '../core/failure.ts';
import type { Attempt } from '../core/session-state.ts';
import type { ExitStatus, FifoWriter, RunningProcess, SpawnOptions, World } from '../system/world.ts';
import { endSilently, judgeUnfinished, silentForMs } from './adopt.ts';
import { AttemptProcesses } from './attempt-processes.ts';
import type { HostedAttempt, Remains, TakeOver } from './host.ts';
import type { Whose } from './noted-processes.ts';
import { patiently, reap } from './reap.ts';
import { nameTranscript, tidyUp } from './session-files.ts';
import { lastStderrLine } from './stderr-tail.ts';
import { unloggedWorkers } from './unlogged-workers.ts';

export class LocalAttempt implements HostedAttempt {
  readonly #world: World;
  readonly #whose: Whose;
  readonly #processes: AttemptProcesses;
  #process: RunningProcess | null = null;
  #fifo: FifoWriter | null = null;
  #stderrOffset = 0;
  #hasLeft = false;

  constructor(world: World, whose: Whose) {
    this.#world = world;
    this.#whose = whose;
    this.#processes = new AttemptProcesses(world, whose);
  }

  async endUnlogged(): Promise<'none' | 'ended' | 'left'> {
    const { attemptId, paths } = this.#whose;
    const workers = unloggedWorkers(this.#world, paths);
    if (workers.length === 0) return 'none';
    return (await reap(this.#world, attemptId, workers)) < 0 ? 'left' : 'ended';
  }

  async start(spawn: SpawnOptions, offset: number): Promise<Result<ProcessIdentity>> {
    const { paths } = this.#whose;
    this.#stderrOffset = this.#world.files.info(paths.stderr)?.size ?? 0;
    nameTranscript(this.#world, paths, offset);
    this.#world.fifos.create(paths.fifo);
    const spawned = this.#world.processes.spawn(spawn);
    if (!spawned.ok) return spawned;
    this.#follow(spawned.value);
    return ok(spawned.value.identity);
  }

  async takeOver(attempt: Attempt): Promise<TakeOver> {
    const { transcript } = this.#whose.paths;
    const found = judgeUnfinished(this.#world, attempt, transcript);
    const { signalled } = found;
    if (found.do === 'restart' && (await endSilently(this.#world, attempt, transcript))) return { do: 'restart' };
    this.#processes.recall();
    // One that spoke while it was being ended had begun to work, and what it printed decides as for any that is gone.
    const wasInterrupted = found.do === 'restart';
    if (found.do !== 'adopt') return { do: 'finalizeDead', signalled: wasInterrupted || signalled, wasInterrupted };
    const { process } = found;
    const silentMs = silentForMs(this.#world, attempt, transcript);
    this.#follow(process);
    return { do: 'adopt', process: process.identity, silentMs, signalled };
  }

  #follow(process: RunningProcess): void {
    this.#process = process;
    this.#processes.worker = process.identity;
    this.#fifo = this.#world.fifos.openWriter(this.#whose.paths.fifo);
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
    this.#processes.look();
  }

  noteOwn(): void {
    this.#processes.noteOwn();
  }

  endIdle(): void {
    this.#processes.endIdle();
  }

  terminate(): void {
    this.#processes.terminate();
  }

  halt(isHalted: boolean): void {
    const signal = isHalted ? 'SIGSTOP' : 'SIGCONT';
    for (const process of this.#processes.look()) this.#world.processes.signal(process, signal);
  }

  async reap(): Promise<Remains> {
    this.#letGo();
    const { paths } = this.#whose;
    const ended = await this.#processes.reap();
    tidyUp(this.#world, paths);
    const readStderr = (): string => lastStderrLine(this.#world.files, paths.stderr, this.#stderrOffset);
    return {
      leftover: ended < 0,
      limitsHit: this.#processes.limitsHit,
      lastStderrLine: await patiently(this.#world, readStderr),
    };
  }

  async endNow(): Promise<boolean> {
    const known = this.#processes.look();
    this.#letGo();
    return (await reap(this.#world, this.#whose.attemptId, known)) >= 0;
  }

  leave(): void {
    this.#hasLeft = true;
    this.#letGo();
  }

  #letGo(): void {
    this.#processes.leave();
    this.#fifo?.close();
    this.#fifo = null;
  }
}
