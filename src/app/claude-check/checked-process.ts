/** One claude that is checked, seen as the runner sees a worker: its output is a file, its input a FIFO. */
import { type ClaudeMessage, parseLine } from '../../claude/messages.ts';
import { type AttemptStream, foldMessage } from '../../claude/stream.ts';
import type { SessionPaths } from '../../store/paths.ts';
import { delay } from '../../system/clock.ts';
import type { ExitStatus, FifoWriter, RunningProcess, World } from '../../system/world.ts';

const lookMs = 20;
/** An idle claude ends within a second and a half after SIGTERM. */
const endMs = 10_000;

export interface CheckedProcessOptions {
  readonly process: RunningProcess;
  readonly fifo: FifoWriter | null;
  readonly paths: SessionPaths;
  readonly stream: AttemptStream;
  readonly stop: AbortSignal;
}

type MessageOf<Kind extends ClaudeMessage['kind']> = Extract<ClaudeMessage, { readonly kind: Kind }>;

export class CheckedProcess {
  readonly messages: ClaudeMessage[] = [];
  readonly stream: AttemptStream;
  readonly ended: Promise<void>;
  readonly #world: World;
  readonly #options: CheckedProcessOptions;
  #exit: ExitStatus | null = null;

  constructor(world: World, options: CheckedProcessOptions) {
    this.#world = world;
    this.#options = options;
    this.stream = options.stream;
    this.ended = new Promise((resolve) => {
      options.process.onExit((status) => {
        this.#exit = status;
        resolve();
      });
    });
  }

  send(lines: string): void {
    this.#options.fifo?.writeLine(lines);
  }

  /** Whether `condition` came true before the end of the process and within `ms`. */
  async wait(condition: () => boolean, ms: number): Promise<boolean> {
    for (let waited = 0; ; waited += lookMs) {
      // Everything that was printed before the end is read once more after it.
      const isOver = this.#exit !== null;
      this.#read();
      if (condition()) return true;
      if (isOver || waited >= ms || this.#options.stop.aborted) return false;
      await delay(this.#world.clock, lookMs);
    }
  }

  message<Kind extends ClaudeMessage['kind']>(kind: Kind): MessageOf<Kind> | undefined {
    return this.messages.find((one): one is MessageOf<Kind> => one.kind === kind);
  }

  async end(): Promise<void> {
    this.#world.processes.signal(this.#options.process.identity, 'SIGTERM');
    await this.wait(() => this.#exit !== null, endMs);
    this.kill();
    await this.ended;
    this.#read();
  }

  kill(): void {
    this.#options.fifo?.close();
    if (this.#exit === null) this.#world.processes.signal(this.#options.process.identity, 'SIGKILL');
  }

  describe(): string {
    const error = (this.#world.files.readText(this.#options.paths.stderr) ?? '').trim().split('\n').at(-1) ?? '';
    const result = this.message('result');
    const text = error === '' ? (result?.result ?? result?.subtype ?? '') : error;
    const tail = text === '' ? '' : `: ${text.slice(0, 200)}`;
    if (this.#exit?.kind === 'exited') return `claude ended with exit code ${this.#exit.code}${tail}`;
    return `claude was ended${this.#exit?.kind === 'signalled' ? ` by ${this.#exit.signal}` : ''}${tail}`;
  }

  #read(): void {
    const lines = (this.#world.files.readText(this.#options.paths.transcript) ?? '').split('\n').slice(0, -1);
    for (const line of lines.slice(this.messages.length)) {
      const message = parseLine(line);
      this.messages.push(message);
      foldMessage(this.stream, message);
    }
  }
}
