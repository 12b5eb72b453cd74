/** Shared by the tests of system/: an awkward temporary folder, children that report when they are ready, waiting. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ProcessIdentity } from '../../../src/core/event.ts';
import type { Result } from '../../../src/core/failure.ts';
import type { ExitStatus, Processes, RunningProcess } from '../../../src/system/world.ts';

export const basePath = '/usr/bin:/bin';
export const sourceFolder = join(import.meta.dir, '../../../src/system');

/** Every path in these tests has spaces, quotes and non-ASCII letters. */
export function makeTempFolder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), `cca world "ü" it's `));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Repeats `probe` until it returns a value; the test's own timeout ends a hopeless wait. */
export async function eventually<T>(probe: () => T | null | undefined | false): Promise<T> {
  for (;;) {
    const found = probe();
    if (found !== null && found !== undefined && found !== false) return found;
    await Bun.sleep(5);
  }
}

export function expectOk<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.failure.message);
  return result.value;
}

export function exitOf(running: RunningProcess): Promise<ExitStatus> {
  return new Promise((resolve) => running.onExit(resolve));
}

/** The first `count` lines that a child wrote into a file, once they are complete. */
export function writtenLines(path: string, count: number): Promise<string[]> {
  return eventually(() => {
    const lines = readFileSync(path, 'utf8').split('\n');
    return lines.length > count && lines.slice(0, count);
  });
}

/** Starts `sh -c script` in `folder` with its output in `folder/out`; `cleanUp` kills what it leaves. */
export class Shell {
  readonly #processes: Processes;
  readonly #folder: string;
  readonly #started: ProcessIdentity[] = [];

  constructor(processes: Processes, folder: string) {
    this.#processes = processes;
    this.#folder = folder;
  }

  get out(): string {
    return join(this.#folder, 'out');
  }

  start(script: string, env: Record<string, string> = {}, stdinFifo?: string): RunningProcess {
    const running = expectOk(
      this.#processes.spawn({
        program: 'sh',
        args: ['-c', script],
        cwd: this.#folder,
        env: { PATH: basePath, ...env },
        ...(stdinFifo === undefined ? {} : { stdinFifo }),
        stdoutFile: this.out,
        stderrFile: join(this.#folder, 'err'),
      }),
    );
    this.#started.push(running.identity);
    return running;
  }

  /** The processes whose pids the script printed as its first lines; they are cleaned up too. */
  async printed(count: number): Promise<ProcessIdentity[]> {
    const lines = await writtenLines(this.out, count);
    const found = lines.map((line) => this.#processes.identify(Number(line)));
    const living = found.filter((identity) => identity !== null);
    this.#started.push(...living);
    if (living.length !== count) throw new Error(`only ${living.length} of ${count} printed processes live`);
    return living;
  }

  cleanUp(): void {
    for (const identity of this.#started) this.#processes.signal(identity, 'SIGKILL');
  }
}

/** Runs TypeScript in a separate Bun, in a shell prepared by `setup`, and waits for its end. */
export async function runInShell(setup: string, code: string, args: readonly string[]): Promise<void> {
  const command = ['sh', '-c', `${setup}; exec "$@"`, 'sh', process.execPath, '--no-install', '-e', code, ...args];
  const child = Bun.spawn(command, { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' });
  const stderr = await child.stderr.text();
  if ((await child.exited) !== 0) throw new Error(stderr);
}
