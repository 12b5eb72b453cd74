/** Another machine by the system's ssh, which asks nobody anything: whoever may log in by a key may do what is here. */
import { shellWord } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { AppContext } from '../app-context.ts';

const connectSeconds = 15;
const sentenceMax = 300;
/** ssh says so itself; a script of ours ends with something else. */
const notConnected = 255;

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export class SshTarget {
  readonly #place: Pick<AppContext, 'world' | 'env'>;
  readonly #cwd: string;
  /** What ssh is asked for: `[user@]host`, a name of its own configuration, or ssh://user@host:port. */
  readonly destination: string;

  constructor(place: Pick<AppContext, 'world' | 'env'>, destination: string) {
    this.#place = place;
    this.#cwd = '/';
    this.destination = destination;
  }

  /** Runs a script of sh. Secrets go by `input`, because arguments are visible in the list of processes. */
  async run(
    script: string,
    input: Uint8Array = new Uint8Array(),
    timeoutMs = 60_000,
    onStderrLine?: (line: string) => void,
  ): Promise<Result<Ran>> {
    const { world, env } = this.#place;
    const given: Record<string, string> = {};
    for (const [name, value] of Object.entries(env)) if (value !== undefined) given[name] = value;
    const options = ['BatchMode=yes', `ConnectTimeout=${connectSeconds}`].flatMap((option) => ['-o', option]);
    const ran = await world.processes.run({
      program: 'ssh',
      args: [...options, '--', this.destination, `sh -c ${shellWord(wayThere + script)}`],
      cwd: this.#cwd,
      env: given,
      timeoutMs,
      input,
      ...defined({ onStderrLine }),
    });
    if (!ran.ok) {
      const isMissing = ran.failure.reason === 'not-found';
      return isMissing ? fail('usage', 'There is no ssh on this machine.', 'Install an ssh client.') : ran;
    }
    const { exitCode, stdout, stderr } = ran.value;
    const tryIt = `Cure what this reports: ssh -o BatchMode=yes ${shellWord(this.destination)} true`;
    if (exitCode === null) return fail('usage', `${this.destination} did not answer in time.`, tryIt);
    if (exitCode === notConnected) {
      return fail('usage', `ssh did not come to ${this.destination}: ${lastLine(stderr)}.`, tryIt);
    }
    return ok({ code: exitCode, stdout, stderr });
  }
}

/** What a login there usually has on its PATH, which is more than a command over ssh gets. */
const wayThere =
  'PATH="$PATH:$HOME/.local/bin:$HOME/.bun/bin:$HOME/.claude/local:/usr/local/bin:/opt/homebrew/bin"; export PATH\n';

/** Nothing that could be an option of ssh. */
export function checkDestination(text: string): Result<string> {
  if (/^[A-Za-z0-9_][^\s]*$/.test(text)) return ok(text);
  return fail('usage', 'The value of --ssh is nothing that ssh could be asked for.', 'Give it as user@host.');
}

export function lastLine(text: string): string {
  const line = text.trim().split('\n').at(-1)?.trim() ?? '';
  return (line === '' ? 'it said nothing' : line).replace(/\.$/, '').slice(0, sentenceMax);
}
