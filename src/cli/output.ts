/**
 * The two output streams. Writing never blocks the program and never fails: when the reader of a pipe goes away
 * (`| head -1`), what follows is dropped, and whoever cares is told once.
 */
import type { WriteStream } from 'node:tty';
import { colourStyle, plainStyle, type Style } from '../report/format.ts';

export interface Output {
  /** Appends text. What is already harmless for terminals is up to the caller. */
  write(text: string): void;
  /** Writes one line. */
  line(text?: string): void;
  /** Bytes as they are. */
  bytes(bytes: Uint8Array): void;
  /** Adds colour when the stream is a terminal that shows it and nobody asked for plain text. */
  readonly style: Style;
  readonly isTerminal: boolean;
  /** Columns of the terminal, 80 when it is none. */
  readonly columns: number;
  /** True once nobody reads any more. */
  readonly isClosed: boolean;
  /** Calls `action` once when the reader is gone. */
  onClosed(action: () => void): void;
  /** Resolves when everything was handed to the system, or nobody reads any more. */
  flush(): Promise<void>;
}

type Env = Readonly<Record<string, string | undefined>>;

/** `stream` is one of the process's own; it is used by nothing else. */
export function createOutput(stream: NodeJS.WriteStream | WriteStream, env: Env): Output {
  const closedActions: (() => void)[] = [];
  let closed = false;
  stream.on('error', () => {
    if (closed) return;
    closed = true;
    for (const action of closedActions.splice(0)) action();
  });
  const isTerminal = stream.isTTY === true;
  const write = (data: string | Uint8Array): void => {
    if (!closed && data.length > 0) stream.write(data);
  };
  return {
    write,
    line: (text = '') => write(`${text}\n`),
    bytes: write,
    style: isTerminal && showsColour(env) ? colourStyle : plainStyle,
    isTerminal,
    columns: isTerminal ? ((stream as WriteStream).columns ?? 80) : 80,
    get isClosed() {
      return closed;
    },
    onClosed: (action) => {
      if (closed) action();
      else closedActions.push(action);
    },
    flush: () =>
      new Promise((resolve) => {
        if (closed) return resolve();
        closedActions.push(resolve);
        stream.write('', () => resolve());
      }),
  };
}

/** See https://no-color.org: any value but the empty one turns colours off. */
function showsColour(env: Env): boolean {
  return (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb';
}
