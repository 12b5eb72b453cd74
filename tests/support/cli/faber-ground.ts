/** A user in a git repository with runs of FABER. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { checkoutRoot } from '../cli.ts';
import { Repository } from '../git/repository.ts';
import type { ProgramResult } from '../in-process.ts';
import { User } from './user.ts';

export class FaberUser extends User {
  readonly repository = new Repository(join(this.folder, 'shop'));
  readonly shop = this.repository.folder;

  constructor() {
    super();
    this.repository.commit({ 'README.md': '# Shop\n' });
  }

  faber(...args: string[]): Promise<ProgramResult> {
    return this.runWith({ cwd: this.shop }, 'faber', ...args);
  }

  /** As claude's Bash tool runs it. */
  asSession(id: string, ...args: string[]): Promise<ProgramResult> {
    return this.runWith({ cwd: this.shop, env: { CLAUDE_CODE_SESSION_ID: id } }, 'faber', ...args);
  }

  /** What the hook printed. */
  async hook(event: string, input: object, project = this.shop): Promise<string> {
    const child = Bun.spawn([process.execPath, join(checkoutRoot, 'src', 'hook-main.ts'), 'faber', event], {
      env: { ...this.env, CLAUDE_PROJECT_DIR: project },
      stdin: Buffer.from(JSON.stringify(input)),
      stdout: 'pipe',
      stderr: 'pipe',
    });
    const text = await new Response(child.stdout).text();
    if ((await child.exited) !== 0) throw new Error(`the hook ended with ${child.exitCode}`);
    return text;
  }

  /** The new run's id. */
  async begin(workId = '258', ...more: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.faber('start', '--work-id', workId, ...more);
    if (code !== 0) throw new Error(stderr);
    return stdout.trim();
  }

  write(path: string, text: string): void {
    mkdirSync(dirname(join(this.shop, path)), { recursive: true });
    writeFileSync(join(this.shop, path), text);
  }

  activeFile(root = this.shop): string {
    return join(root, '.fractary/faber/.active-run-id');
  }

  activeRun(root = this.shop): string {
    return readFileSync(this.activeFile(root), 'utf8');
  }

  stateFile(run: string, root = this.shop): string {
    return join(root, '.fractary/runs', run, 'state.json');
  }

  // biome-ignore lint/suspicious/noExplicitAny: whatever stands in the file; tests say what they expect.
  stateOf(run: string, root = this.shop): any {
    return JSON.parse(readFileSync(this.stateFile(run, root), 'utf8'));
  }
}
