/**
 * A claude that does exactly what a test tells it, for what the real one cannot be made to do on cue. Started by the
 * runner like the real one; it connects to the rig's socket, says how it was started, forwards its input line by line
 * and then only obeys. `auth status` is answered without the rig.
 */
import { spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { connect } from 'node:net';
import { onLines } from './lines.ts';

const args = process.argv.slice(2);
if (args[0] === 'auth') {
  const loggedIn = process.env.FAKE_CLAUDE_LOGGED_OUT === undefined;
  console.log(JSON.stringify({ loggedIn, authMethod: loggedIn ? 'api_key' : 'none' }));
  process.exit(loggedIn ? 0 : 1);
}

const socket = connect(process.env.FAKE_CLAUDE_SOCKET ?? '');
const tell = (message: object) => socket.write(`${JSON.stringify(message)}\n`);
// Without its test a fake has no reason to live: it must not outlive the test run.
socket.on('close', () => process.exit(99));
socket.on('error', () => process.exit(99));

tell({ hello: { pid: process.pid, args, cwd: process.cwd(), env: process.env } });
onLines(process.stdin, (line) => tell({ input: line }));

type Command =
  | { do: 'print'; text: string }
  | { do: 'stderr'; text: string }
  | { do: 'exit'; code: number }
  | { do: 'die'; signal: NodeJS.Signals }
  | { do: 'ignore'; signal: NodeJS.Signals }
  | { do: 'close-output' }
  | { do: 'spawn'; command: string[]; env: 'kept' | 'wiped' };

function obey(command: Command): void {
  switch (command.do) {
    case 'print':
      process.stdout.write(command.text, () => tell({ done: 'print' }));
      return;
    case 'stderr':
      process.stderr.write(command.text, () => tell({ done: 'stderr' }));
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
      const [program = '', ...rest] = command.command;
      const env = command.env === 'wiped' ? { PATH: process.env.PATH } : process.env;
      const child = spawn(program, rest, { detached: true, stdio: 'ignore', env });
      child.unref();
      tell({ done: 'spawn', pid: child.pid });
      return;
    }
  }
}

onLines(socket, (line) => obey(JSON.parse(line) as Command));
