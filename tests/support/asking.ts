/** Sessions that ask questions: the program as a user types it, the real claude, and a scripted model that records. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Step } from '../../src/rehearsal/script.ts';
import { type ScriptedApi, startScriptedApi } from '../../src/rehearsal/scripted-api.ts';
import type { Alteration } from './altered-world.ts';
import { modelOfKnownPrice } from './claude/rig.ts';
import { User } from './cli/user.ts';
import { pinnedClaude, processesIn, type StartedCommand, until } from './cli.ts';
import { alteredProgram, startCommand } from './crash-rig.ts';

/** Needs a permission; no server listens there. */
export const curl = 'curl -s http://127.0.0.1:9/ >> tried.txt; echo ran >> ran.txt';

export const askDatabase = {
  tool: 'AskUserQuestion',
  input: {
    questions: [
      {
        question: 'Which database?',
        header: 'Database',
        multiSelect: false,
        options: [
          { label: 'Postgres', description: 'as in production' },
          { label: 'SQLite', description: 'no server' },
        ],
      },
    ],
  },
} satisfies Step;

export const askCurl: Step = { tool: 'Bash', input: { command: curl } };

interface Waiting {
  readonly id: string;
  readonly group: string;
  readonly session: string;
  readonly kind: string;
  readonly text: string;
  readonly options: readonly string[];
  readonly since: string;
}

export class AskingUser {
  readonly api: ScriptedApi;
  readonly user: User;
  readonly started: StartedCommand[] = [];

  constructor(sessions: Readonly<Record<string, readonly Step[]>>) {
    const names = Object.keys(sessions);
    this.api = startScriptedApi({
      script: {
        version: 1,
        sessions: Object.fromEntries(Object.entries(sessions).map(([name, steps]) => [name, { steps: [...steps] }])),
      },
      nameOf: (id) => names.find((name) => this.#ids.get(name) === id),
    });
    const env = { ANTHROPIC_BASE_URL: this.api.url, ANTHROPIC_API_KEY: 'test-key' };
    this.user = new User({ ...env, CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude() });
  }

  readonly #ids = new Map<string, string>();

  /** Creates a group with `ask: wait` and one session per script; returns its id. */
  async group(names: readonly string[], ...options: string[]): Promise<string> {
    const more = ['--ask', 'wait', '--model', modelOfKnownPrice, '--max-budget-usd', '1', '--retries', '5'];
    const group = await this.user.ok('group', 'create', 'auth', ...more, ...options);
    for (const name of names) {
      this.user.project(name);
      const id = await this.user.add(group, name, '--isolate', 'none');
      this.#ids.set(name, id.slice(4));
    }
    return group;
  }

  start(group: string): StartedCommand {
    const run = this.user.start('group', 'run', group, '--output', 'json');
    this.started.push(run);
    return run;
  }

  /** `group run` on an altered world. */
  startAltered(group: string, alteration: Alteration): StartedCommand {
    const env = { ...this.user.env, TEST_WORLD: JSON.stringify(alteration) };
    const run = startCommand([...alteredProgram, 'group', 'run', group, '--output', 'json'], env);
    this.started.push(run);
    return run;
  }

  /** The name of the session with this id. */
  nameOf(session: string): string | undefined {
    return [...this.#ids].find(([, id]) => session.endsWith(id))?.[0];
  }

  /** The pid of claude in the running attempt of the session. */
  claude(group: string, name: string): number {
    const id = this.#ids.get(name) ?? '';
    const last = this.events(group).findLast(
      ({ type, sessionId }) => /_(?:started|resumed)$/.test(type) && String(sessionId).endsWith(id),
    );
    return (last?.process as { pid: number } | undefined)?.pid ?? 0;
  }

  async inbox(): Promise<Waiting[]> {
    return (await this.user.json<{ items: Waiting[] }>('inbox')).items;
  }

  /**
   * Waits until this many items are open, and claude has written their calls to its conversations: it asks first and
   * writes some 100 ms later. Killed in between, it does not know its call, and the scripted model repeats it.
   */
  async asked(count: number): Promise<Waiting[]> {
    for (;;) {
      const items = await this.inbox();
      if (items.length >= count && items.every((item) => this.#isSaved(item))) return items;
      await Bun.sleep(50);
    }
  }

  #isSaved({ id, group }: Waiting): boolean {
    const opened = this.events(group).find(({ type, item }) => type === 'item_opened' && item === id);
    const files = new Bun.Glob('**/projects/*/**/*.jsonl').scanSync({
      cwd: this.user.folder,
      dot: true,
      absolute: true,
    });
    return [...files].some((path) => readFileSync(path, 'utf8').includes(String(opened?.toolUseId)));
  }

  events(group: string): { readonly type: string; readonly [field: string]: unknown }[] {
    const path = join(this.user.data, 'session-groups', group, 'events.jsonl');
    const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line));
  }

  async logged(group: string, type: string): Promise<void> {
    await until(() => this.events(group).some((event) => event.type === type));
  }

  /** The content of the last request of this session to the model. */
  heard(name: string): string {
    const last = this.api.requests.findLast((request) => request.name === name && request.kind === 'step');
    return JSON.stringify(last?.body.messages ?? []);
  }

  requests(name: string): number {
    return this.api.requests.filter((request) => request.name === name && request.kind === 'step').length;
  }

  async close(): Promise<void> {
    for (const run of this.started) run.kill('SIGKILL');
    await Promise.all(this.started.map(({ finished }) => finished));
    // A claude whose runner was killed waits for its answer.
    const left = [...this.#ids.keys()].flatMap((name) => processesIn(this.user.project(name)));
    if (left.length > 0) Bun.spawnSync(['kill', '-9', ...left]);
    await this.api.stop();
    this.user.remove();
  }
}

export function occurrences(text: string, part: string): number {
  return text.split(part).length - 1;
}
