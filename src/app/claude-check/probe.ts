/**
 * One claude of the trial, seen as the runner sees a worker: its stream is a file, its input a FIFO.
 */
import { type ClaudeMessage, parseLine } from '../../claude/messages.ts';
import type { Earlier } from '../../claude/spending.ts';
import type { AttemptStream } from '../../claude/stream.ts';
import type { SessionPaths } from '../../store/paths.ts';
import type { ExitStatus, FifoWriter, RunningProcess, World } from '../../system/world.ts';
import type { Launch } from './launch.ts';

const lookMs = 10;
const readBytes = 1 << 20;
/** An idle claude needs a second and a half at most from SIGTERM to its end. */
const endMs = 10_000;

export interface ProbeOptions {
  readonly process: RunningProcess;
  readonly fifo: FifoWriter | null;
  readonly paths: SessionPaths;
  readonly launch: Launch;
  /** Ends every wait. */
  readonly stop: AbortSignal;
  /** See AttemptStream. */
  readonly earlier?: Earlier;
}

export class Probe {
  readonly process: RunningProcess;
  /** All that was printed so far. */
  readonly messages: ClaudeMessage[] = [];
  /** What the runner makes of it. */
  readonly stream: AttemptStream;
  /** Resolves with the end of the process. */
  readonly gone: Promise<void>;
  exit: ExitStatus | null = null;
  readonly #world: World;
  readonly #options: ProbeOptions;
  #offset = 0;
  #rest = Buffer.alloc(0);

  constructor(world: World, options: ProbeOptions) {
    this.#world = world;
    this.#options = options;
    this.process = options.process;
    this.stream = options.launch.empty({}, options.earlier);
    this.gone = new Promise((resolve) => {
      options.process.onExit((status) => {
        this.exit = status;
        resolve();
      });
    });
  }

  /** Writes the first lines, the prompt among them. */
  open(prompt: string): void {
    this.send(this.#options.launch.opening(prompt).join('\n'));
  }

  send(lines: string): void {
    this.#options.fifo?.writeLine(lines);
  }

  /** The first message for which `wanted` holds; null when it ended, or `ms` passed, without one. */
  async until(wanted: (message: ClaudeMessage) => boolean, ms: number): Promise<ClaudeMessage | null> {
    let found: ClaudeMessage | undefined;
    await this.wait(() => {
      found ??= this.messages.find(wanted);
      return found !== undefined;
    }, ms);
    return found ?? null;
  }

  /** Whether `condition` came true before the end of the process and within `ms`. */
  async wait(condition: () => boolean, ms: number): Promise<boolean> {
    for (let waited = 0; ; waited += lookMs) {
      // What was printed before the end is then read for certain.
      const isOver = this.exit !== null;
      this.#read();
      if (condition()) return true;
      if (isOver || waited >= ms || this.#options.stop.aborted) return false;
      await this.#pause();
    }
  }

  /** Ends it as the runner does when it is idle; false when it had to be killed. */
  async end(): Promise<boolean> {
    this.#world.processes.signal(this.process.identity, 'SIGTERM');
    const isClean = await this.wait(() => this.exit !== null, endMs);
    this.kill();
    await this.gone;
    this.#read();
    return isClean;
  }

  kill(): void {
    this.#options.fifo?.close();
    if (this.exit === null) this.#world.processes.signal(this.process.identity, 'SIGKILL');
  }

  /** How it ended and what it said last, for people. */
  describe(): string {
    const said = (this.#world.files.readText(this.#options.paths.stderr) ?? '').trim().split('\n').at(-1) ?? '';
    const tail = said === '' ? '' : `, and said: ${said.slice(0, 200)}`;
    if (this.exit === null) return `it did not end${tail}`;
    if (this.exit.kind === 'exited') return `it ended with exit code ${this.exit.code}${tail}`;
    return `it was ended${this.exit.kind === 'signalled' ? ` by ${this.exit.signal}` : ''}${tail}`;
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#world.clock.after(lookMs, resolve);
    });
  }

  #read(): void {
    for (;;) {
      const bytes = this.#world.files.readBytes(this.#options.paths.transcript, this.#offset, readBytes);
      if (bytes.length === 0) return;
      this.#offset += bytes.length;
      this.#rest = Buffer.concat([this.#rest, bytes]);
      for (let end = this.#rest.indexOf(10); end !== -1; end = this.#rest.indexOf(10)) {
        const message = parseLine(this.#rest.subarray(0, end).toString());
        this.#rest = this.#rest.subarray(end + 1);
        this.messages.push(message);
        this.#options.launch.fold(this.stream, message);
      }
    }
  }
}
