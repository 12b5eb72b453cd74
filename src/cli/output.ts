/** The two output streams. Writing never blocks and never fails: output that cannot be delivered is dropped. */

import { isRegularFile, mayBeTerminal } from '../system/terminal.ts';
import { colourStyle, plainStyle, type Style } from '../view/format.ts';
import { fitColumns, safeJson } from '../view/terminal-text.ts';
import { endsInLineBegin, withoutCommands } from '../view/text-reporter.ts';

export interface Output {
  write(text: string): void;
  line(text?: string): void;
  lines(texts: Iterable<string>): void;
  json(value: unknown): void;
  readonly isWorkflowLog: boolean;
  /** Writes without making it harmless for a build server. */
  raw(data: string | Uint8Array): void;
  /** On a terminal, shows a line until the next output; null removes it. */
  passing(text: string | null): void;
  readonly style: Style;
  readonly isTerminal: boolean;
  readonly columns: number;
  readonly isClosed: boolean;
  readonly trouble: string | null;
  onClosed(action: () => void): void;
  /** Resolves when the system has taken all output, or the reader has closed the pipe. */
  flush(): Promise<void>;
}

/** Erases the current line. */
const eraseLine = '\r\u001b[2K';

type Env = Readonly<Record<string, string | undefined>>;

export interface OutputStream {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  /** The output is a regular file. */
  readonly isFile?: boolean | undefined;
  on(event: 'error', listener: (error: Error) => void): unknown;
  /** Calls `done` when the system has taken the data, or with the error. */
  write(data: string | Uint8Array, done: (error?: Error | null) => void): unknown;
}

export function createOutput(stream: OutputStream, env: Env): Output {
  const closedActions: (() => void)[] = [];
  const flushed: (() => void)[] = [];
  let pending = 0;
  let closed = false;
  let trouble: string | null = null;
  const tell = (actions: (() => void)[]): void => {
    for (const action of actions.splice(0)) action();
  };
  const close = (error: Error): void => {
    if (closed) return;
    closed = true;
    const { code } = error as { code?: string };
    if (code !== 'EPIPE') trouble = code ?? error.message;
    tell(closedActions);
    tell(flushed);
  };
  stream.on('error', close);
  const isTerminal = stream.isTTY === true;
  const columns = (): number => (isTerminal ? (stream.columns ?? 80) : 80);
  const send = (data: string | Uint8Array): void => {
    if (closed || data.length === 0) return;
    // Wait for each write: Bun calls back for an empty write although earlier ones wait for a full pipe.
    pending += 1;
    stream.write(data, (error) => {
      if (error) close(error);
      pending -= 1;
      if (pending === 0) tell(flushed);
    });
  };
  // A dumb terminal cannot erase a line.
  const { write: writeRaw, passing } = withPassingLine(send, isTerminal && env.TERM !== 'dumb' ? columns : null);
  const isWorkflowLog = env.GITHUB_ACTIONS === 'true' && stream.isFile !== true;
  const write = isWorkflowLog ? defused(writeRaw) : writeRaw;
  const line = (text = ''): void => write(`${text}\n`);
  return {
    write,
    line,
    lines(texts) {
      for (const text of texts) line(text);
    },
    json: (value) => line(safeJson(value, 2)),
    isWorkflowLog,
    raw: writeRaw,
    passing,
    style: isTerminal && showsColour(env) ? colourStyle : plainStyle,
    isTerminal,
    get columns() {
      return columns();
    },
    get isClosed() {
      return closed;
    },
    get trouble() {
      return trouble;
    },
    onClosed: (action) => {
      if (closed) action();
      else closedActions.push(action);
    },
    flush: () =>
      new Promise((resolve) => {
        if (closed || pending === 0) resolve();
        else flushed.push(resolve);
      }),
  };
}

/** Most output contains text of models and repositories, so remove terminal and build-server commands from it. */
function defused(write: (text: string) => void): (text: string) => void {
  let isLineBegin = true;
  return (text) => {
    write(withoutCommands(text, isLineBegin));
    isLineBegin = endsInLineBegin(text, isLineBegin);
  };
}

function withPassingLine(send: (data: string | Uint8Array) => void, columns: (() => number) | null) {
  let isShown = false;
  const clear = (): void => {
    if (isShown) send(eraseLine);
    isShown = false;
  };
  return {
    write(data: string | Uint8Array): void {
      clear();
      send(data);
    },
    passing(text: string | null): void {
      clear();
      if (text === null || columns === null) return;
      send(fitColumns(text, columns() - 1));
      isShown = true;
    },
  };
}

/** See https://no-color.org: any non-empty value turns colours off. */
function showsColour(env: Env): boolean {
  return (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb';
}

// The standard streams. Loading `process.stdout` takes as long as a short command, so it is used for terminals only.

export function standardInputIsTerminal(): boolean {
  return mayBeTerminal(0) && process.stdin.isTTY === true;
}

export function standardOutput(): OutputStream {
  return mayBeTerminal(1) ? process.stdout : plainStream(Bun.stdout.writer(), isRegularFile(1));
}

export function standardError(): OutputStream {
  return mayBeTerminal(2) ? process.stderr : plainStream(Bun.stderr.writer(), isRegularFile(2));
}

/** Reports write errors to the callback of the write. */
function plainStream(sink: Bun.FileSink, isFile: boolean): OutputStream {
  return {
    isFile,
    on: () => {},
    write(data, done) {
      try {
        // Each is a promise if the system does not take everything at once; the promise fails if it never will.
        const [taken, flushed] = [sink.write(data), sink.flush()];
        if (typeof taken === 'number' && typeof flushed === 'number') queueMicrotask(done);
        else Promise.all([taken, flushed]).then(() => done(), done);
      } catch (error) {
        done(error as Error);
      }
    },
  };
}
