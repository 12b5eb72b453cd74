/** A user of an earlier program who leaves one group behind. */
import { appendFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createRealWorld } from '../../src/system/real-world.ts';
import { Night } from '../../tests/cli/night.ts';
import { Repository } from '../../tests/git/repository.ts';
import { until } from '../../tests/support/cli.ts';
import type { Invocation, Rig } from '../../tests/support/fake-claude-rig.ts';
import type { KeptGroup, KeptWorker } from '../../tests/upgrade/home-file.ts';

const { processes } = createRealWorld();
/** The machine's own. */
const left = ['PATH', 'FAKE_CLAUDE_SOCKET', 'HOME', 'CLAUDE_CODE_AGENT_CLAUDE'];

export class Author extends Night {
  readonly slug: string;
  /** The group's id. */
  made = '';
  readonly #names: string[] = [];
  readonly #workers: KeptWorker[] = [];

  constructor(rig: Rig, program: string, slug: string) {
    super(rig);
    this.program = program;
    this.slug = slug;
    writeFileSync(join(this.home, '.gitconfig'), '[user]\n\tname = Team\n\temail = team@example.org\n');
  }

  async make(sessions: Readonly<Record<string, readonly string[]>>, ...options: string[]): Promise<string> {
    this.made = await this.group(this.slug, sessions, '--description', 'Kept over an upgrade', ...options);
    this.#names.push(...Object.keys(sessions));
    return this.made;
  }

  /** For one that a workflow made. */
  name(group: string, sessions: readonly string[]): void {
    this.made = group;
    this.#names.push(...sessions);
    for (const event of this.events(group)) {
      if (event.type === 'session_added') this.note(event.session.name ?? '', event.sessionId);
    }
  }

  /** Such a fake has a conversation that can be gone on with, as claude would have. */
  override async begun(group: string, name: string): Promise<Invocation> {
    const fake = await super.begun(group, name);
    const timestamp = new Date().toISOString();
    this.remember(fake, { type: 'user', timestamp, message: { role: 'user', content: 'Do it.' } });
    return fake;
  }

  /** A line in the conversation that claude keeps. */
  remember({ claudeSessionId: sessionId, hello: { cwd, env } }: Invocation, line: object): void {
    const folder = join(env.CLAUDE_CONFIG_DIR ?? '', 'projects', cwd.replace(/[^a-zA-Z0-9]/g, '-'));
    mkdirSync(folder, { recursive: true });
    appendFileSync(join(folder, `${sessionId}.jsonl`), `${JSON.stringify({ sessionId, ...line })}\n`);
  }

  go(...options: string[]) {
    return this.start('group', 'run', this.made, '--output', 'quiet', ...options);
  }

  /** A repository with a commit, as the project of that name. */
  repository(name: string): string {
    const made = new Repository(join(this.folder, 'projects', name));
    made.commit({ 'README.md': `${name}\n` });
    return made.folder;
  }

  file(path: string, text: string): string {
    const full = join(this.folder, path);
    writeFileSync(full, text);
    return full;
  }

  /** This worker stays alive when its runner is gone. */
  keep(name: string, { hello: { pid, args, cwd, env } }: Invocation): void {
    const identity = processes.identify(pid);
    if (identity === null) throw new Error(`${name} is gone`);
    const kept = Object.fromEntries(Object.entries(env).filter(([variable]) => !left.includes(variable)));
    this.#workers.push({ name, pid, startTime: identity.startTime, args, cwd, env: kept });
  }

  async kept(): Promise<KeptGroup> {
    const groupId = this.made;
    await until(() => existsSync(join(this.data, 'session-groups', groupId, 'meta.json')));
    return {
      groupId,
      sessions: Object.fromEntries(this.#names.map((name) => [name, this.id(name)])),
      workers: this.#workers,
      shown: await this.json('group', 'show', groupId),
      budget: await this.json('group', 'budget', groupId),
    };
  }
}
