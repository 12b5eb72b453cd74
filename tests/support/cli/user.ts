/** A user at a command line: like support/cli.ts, with a chosen folder, input and environment per command. */
import { afterEach, beforeEach } from 'bun:test';
import { launcher, TestHome } from '../cli.ts';
import { mayRunInProcess, type ProgramResult, runInProcess } from '../in-process.ts';

export { launcher };

export interface Circumstances {
  readonly cwd?: string;
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export class User extends TestHome {
  async runWith({ cwd, stdin, env }: Circumstances, ...args: string[]): Promise<ProgramResult> {
    const line = { args, cwd: cwd ?? this.folder, env: { ...this.env, ...env } };
    const isOurs = this.program === launcher;
    if (isOurs && stdin === undefined && mayRunInProcess(args)) return runInProcess(line);
    const child = Bun.spawn([this.program, ...args], {
      cwd: line.cwd,
      env: line.env,
      stdin: stdin === undefined ? 'ignore' : Buffer.from(stdin),
      stdout: 'pipe',
      stderr: 'pipe',
    });
    const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    return { code: await child.exited, stdout, stderr };
  }

  /** A group with the sessions `api` and `web`, which depends on it; the group's id. */
  async makeGroup(slug = 'auth'): Promise<string> {
    const group = await this.ok('group', 'create', slug, '--max-budget-usd', '10');
    await this.add(group, 'api');
    await this.add(group, 'web', '--depends-on', 'api');
    return group;
  }

  add(group: string, name: string, ...more: string[]): Promise<string> {
    return this.ok(
      'session',
      'add',
      group,
      '--project',
      this.project(name),
      '--prompt',
      'Do it.',
      '--name',
      name,
      ...more,
    );
  }
}

export let user: User;

/** Once in each file of tests: a new user for each test. */
export function withUser(): void {
  beforeEach(() => {
    user = new User();
  });
  afterEach(() => user.remove());
}
