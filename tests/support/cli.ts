/** Runs the program as a user does: the launcher, an emptied environment, a data root and projects of its own. */
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { claudeBinary } from './claude-binary.ts';
import { mayRunInProcess, type ProgramResult, runInProcess } from './in-process.ts';
import { impatience, patienceMs } from './mailbox.ts';
import { noteTried } from './tried.ts';

export const checkoutRoot = resolve(import.meta.dir, '../..');
export const launcher = join(checkoutRoot, 'bin', 'claude-code-agent');

/** Path of the tested claude. Throws when none is installed, because no result would be valid. */
export function pinnedClaude(): string {
  if (claudeBinary === undefined) throw new Error('claude is not installed');
  return claudeBinary;
}

export interface StartedCommand {
  readonly pid: number;
  readonly finished: Promise<ProgramResult>;
  kill(signal: NodeJS.Signals): void;
}

export class TestHome {
  /** The path has a space, so that missing quotes show. */
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'cca cli ')));
  readonly home = join(this.folder, 'home');
  readonly data = join(this.folder, 'data');
  readonly env: Record<string, string>;
  /** The launcher to run. One of another package never runs inside the test's process. */
  program = launcher;

  constructor(env: Readonly<Record<string, string>> = {}) {
    mkdirSync(this.home);
    this.env = {
      PATH: process.env.PATH ?? '',
      HOME: this.home,
      CLAUDE_CODE_AGENT_HOME: this.data,
      LANG: 'C.UTF-8',
      ...env,
    };
    const { CLAUDE_CODE_AGENT_CLAUDE: claude } = env;
    if (claude !== undefined) noteTried(this.data, claude);
  }

  /** Absolute path of a project folder, created if missing. */
  project(name: string): string {
    const path = join(this.folder, 'projects', name);
    mkdirSync(path, { recursive: true });
    return path;
  }

  start(...args: string[]): StartedCommand {
    const child = Bun.spawn([this.program, ...args], {
      cwd: this.folder,
      env: this.env,
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    });
    const finished = Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
    return {
      pid: child.pid,
      kill: (signal) => child.kill(signal),
      finished: finished.then(([stdout, stderr]) => ({ code: child.exitCode, stdout, stderr })),
    };
  }

  run(...args: string[]): Promise<ProgramResult> {
    const isOurs = this.program === launcher;
    if (isOurs && mayRunInProcess(args)) return runInProcess({ args, cwd: this.folder, env: this.env });
    return this.start(...args).finished;
  }

  /** Runs a command that must succeed; its trimmed stdout. */
  async ok(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(...args);
    if (code !== 0) throw new Error(`claude-code-agent ${args.join(' ')} ended with ${code}: ${stderr}${stdout}`);
    return stdout.trim();
  }

  async json<T>(...args: string[]): Promise<T> {
    return JSON.parse(await this.ok(...args, '--json')) as T;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Resolves when `condition` holds; checks whenever the event loop is idle. Throws after a while. */
export async function until(condition: () => boolean): Promise<void> {
  const giveUpAt = performance.now() + patienceMs;
  while (!condition()) {
    if (performance.now() > giveUpAt) throw impatience(`this to be true: ${condition}`);
    await Bun.sleep(10);
  }
}

/** Pids of live processes whose working folder is the project. */
export function processesIn(project: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/cwd`) === project;
    } catch {
      return false;
    }
  });
}
