/** Runs scripts on another host with the system's ssh, in batch mode. */
import { shellWord } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { sshOptions } from '../../git/worktrees/snapshot.ts';
import type { AppContext } from '../app-context.ts';

const usualMs = 60_000;
const sentenceMax = 300;
/** The exit code of ssh if it cannot connect. */
const notConnected = 255;

export interface SshScript {
  readonly script: string;
  /** The next step if the script fails. */
  readonly next: string;
  /** For secrets, because arguments are visible to other users. */
  readonly input?: Uint8Array;
  readonly timeoutMs?: number;
  readonly onStderrLine?: (line: string) => void;
}

/** `destination`: `[user@]host`, a name from the ssh configuration, or ssh://user@host:port. */
export async function runBySsh(
  { world, env }: Pick<AppContext, 'world' | 'env'>,
  destination: string,
  { script, next, input = new Uint8Array(), timeoutMs = usualMs, onStderrLine }: SshScript,
): Promise<Result<{ readonly stdout: string; readonly stderr: string }>> {
  const ran = await world.processes.run({
    program: 'ssh',
    args: [...sshOptions, '--', destination, `sh -c ${shellWord(morePath + script)}`],
    cwd: '/',
    env: defined(env) as Record<string, string>,
    ...{ timeoutMs, input, ...defined({ onStderrLine }) },
  });
  if (!ran.ok) {
    const isMissing = ran.failure.reason === 'not-found';
    return isMissing ? fail('usage', 'There is no ssh on this machine.', 'Install an ssh client.') : ran;
  }
  const { exitCode, stdout, stderr } = ran.value;
  if (exitCode === 0) return ok({ stdout, stderr });
  const message = lastLine(stderr);
  if (stderr.includes('Host key verification failed')) {
    const next = `Connect once by hand and accept its key: ssh ${shellWord(destination)}`;
    return fail('usage', `ssh does not know ${destination} yet.`, next);
  }
  const tryIt = `Fix what this reports: ssh -o BatchMode=yes ${shellWord(destination)} true`;
  if (exitCode === null) return fail('usage', `${destination} did not answer in time.`, tryIt);
  if (exitCode === notConnected) return fail('usage', `ssh could not connect to ${destination}: ${message}.`, tryIt);
  return fail('usage', `On ${destination}: ${message.replace(/^[\w.-]+: /, '')}.`, next);
}

/** Folders that a login shell usually adds to PATH, but a command over ssh does not. */
const morePath =
  'PATH="$PATH:$HOME/.local/bin:$HOME/.bun/bin:$HOME/.claude/local:/usr/local/bin:/opt/homebrew/bin"; export PATH\n';

/** Refuses text that ssh could take as an option. */
export function checkDestination(text: string): Result<string> {
  if (/^[A-Za-z0-9_][^\s]*$/.test(text)) return ok(text);
  return fail('usage', 'The value of --ssh is not a destination of ssh.', 'Give it as user@host.');
}

export function lastLine(text: string): string {
  const line = text.trim().split('\n').at(-1)?.trim() ?? '';
  return (line === '' ? 'no message' : line).replace(/\.$/, '').slice(0, sentenceMax);
}
