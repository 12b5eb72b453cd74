/**
 * A claude that does exactly what a test says, for cases that the real one cannot produce on demand. The runner starts
 * it like the real one. It connects to the rig's socket, reports its start, forwards its input by line, and then only
 * obeys. Tests start thousands of it, so it uses only what Bun brings: node's streams and sockets load four times as
 * slowly.
 */
import { closeSync, writeSync } from 'node:fs';
import { lineSplitter } from './lines.ts';

type Command =
  | { do: 'print'; text: string }
  | { do: 'stderr'; text: string }
  | { do: 'exit'; code: number }
  | { do: 'die'; signal: NodeJS.Signals }
  | { do: 'ignore'; signal: NodeJS.Signals }
  | { do: 'close-output' }
  | { do: 'spawn'; command: string[]; env: 'kept' | 'wiped' };

/** Accepts UTF-8 in pieces. */
function pieces(onLine: (line: string) => void): (chunk: Uint8Array) => void {
  const split = lineSplitter(onLine);
  const decoder = new TextDecoder();
  return (chunk) => split(decoder.decode(chunk, { stream: true }));
}

function writeAll(descriptor: number, text: string): void {
  let rest = Buffer.from(text);
  while (rest.length > 0) rest = rest.subarray(writeSync(descriptor, rest));
}

function obey(command: Command): void {
  switch (command.do) {
    case 'print':
      writeAll(1, command.text);
      tell({ done: 'print' });
      return;
    case 'stderr':
      writeAll(2, command.text);
      tell({ done: 'stderr' });
      return;
    case 'exit':
      process.exit(command.code);
      return;
    case 'die':
      process.kill(process.pid, command.signal);
      return;
    case 'ignore':
      process.on(command.signal, () => tell({ ignored: command.signal }));
      tell({ done: 'ignore' });
      return;
    case 'close-output':
      closeSync(1);
      tell({ done: 'close-output' });
      return;
    case 'spawn': {
      const env = command.env === 'wiped' ? { PATH: process.env.PATH } : process.env;
      const stdio = ['ignore', 'ignore', 'ignore'] as const;
      const child = Bun.spawn(command.command, { detached: true, stdio: [...stdio], env });
      child.unref();
      tell({ done: 'spawn', pid: child.pid });
      return;
    }
  }
}

/** Data that the socket has not accepted yet. */
let untold = Buffer.alloc(0);

function tell(message: object): void {
  untold = Buffer.concat([untold, Buffer.from(`${JSON.stringify(message)}\n`)]);
  tellRest();
}

function tellRest(): void {
  untold = untold.subarray(socket.write(untold));
}

const commands = pieces((line) => obey(JSON.parse(line) as Command));
// A fake must not outlive its test run.
const leave = () => process.exit(99);
const socket = await Bun.connect({
  unix: process.env.FAKE_CLAUDE_SOCKET ?? '',
  socket: { data: (_, chunk) => commands(chunk), drain: tellRest, close: leave, error: leave },
}).catch(leave);

tell({ hello: { pid: process.pid, args: process.argv.slice(2), cwd: process.cwd(), env: process.env } });
const inputs = pieces((line) => tell({ input: line }));
for await (const chunk of Bun.stdin.stream()) inputs(chunk);
