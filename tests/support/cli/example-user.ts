/** A user with repositories of their own, the real claude and a scripted model; git is set up as people have it. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Step } from '../../../src/rehearsal/script.ts';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { modelOfKnownPrice } from '../claude/rig.ts';
import { pinnedClaude } from '../cli.ts';
import { User } from './user.ts';

export class ExampleUser extends User {
  readonly api: ScriptedApi;
  readonly #names = new Map<string, string>();

  /** What the model does, by the name of the session; `gitConfig` is written into the user's .gitconfig. */
  constructor(script: Readonly<Record<string, readonly Step[]>>, gitConfig = '') {
    super({ GIT_CONFIG_NOSYSTEM: '1' });
    const sessions = Object.fromEntries(Object.entries(script).map(([name, steps]) => [name, { steps: [...steps] }]));
    this.api = startScriptedApi({ script: { version: 1, sessions }, nameOf: (id) => this.#names.get(id) });
    Object.assign(this.env, {
      ANTHROPIC_BASE_URL: this.api.url,
      ANTHROPIC_API_KEY: 'test-key',
      CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
    });
    const person = '[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n';
    writeFileSync(join(this.home, '.gitconfig'), `${person}${gitConfig}`);
  }

  /** As typed in that folder; its output. */
  shell(folder: string, command: string): string {
    const ran = Bun.spawnSync(['/bin/sh', '-ec', command], { cwd: folder, env: this.env, stderr: 'pipe' });
    if (ran.exitCode !== 0) throw new Error(`${command}: ${ran.stderr}${ran.stdout}`);
    return ran.stdout.toString().trim();
  }

  /** Its gh makes pull requests in a folder. */
  installFakeGh(): void {
    const bin = join(this.folder, 'bin');
    const requests = join(this.folder, 'pull requests');
    for (const folder of [bin, requests]) mkdirSync(folder);
    const fake = fileURLToPath(import.meta.resolve('./fake-gh.ts'));
    writeFileSync(join(bin, 'gh'), `#!/bin/sh\nexec '${process.execPath}' '${fake}' "$@"\n`, { mode: 0o755 });
    Object.assign(this.env, { PATH: `${bin}:${this.env.PATH}`, FAKE_GH: requests });
  }

  async addSession(group: string, name: string, project: string, ...options: string[]): Promise<void> {
    const id = await this.ok(
      ...['session', 'add', group, '--name', name, '--project', project, '--prompt', `Do ${name}.`],
      ...['--model', modelOfKnownPrice, ...options],
    );
    this.#names.set(id.slice(4), name);
  }

  async removeAll(): Promise<void> {
    await this.api.stop();
    this.remove();
  }
}
