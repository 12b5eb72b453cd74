/** Runs the same prompts by plain claude and by a group, with the real claude and a scripted model that records. */
import { existsSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { CapturedRequest, ScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { pinnedClaude, TestHome } from '../cli.ts';
import { type Fixture, makeFixture, stepsIn } from './fixture.ts';
import type { RunOfClaude } from './items.ts';

export interface Task {
  readonly project: keyof Fixture;
  readonly prompt: string;
}

export interface GroupRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly plan: string;
  /** By name of the session. */
  readonly sessions: Readonly<Record<string, RunOfClaude>>;
}

export class ParityGround {
  readonly machine: TestHome;
  readonly fixture: Fixture;
  readonly api: ScriptedApi;

  constructor() {
    this.machine = new TestHome({ CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude() });
    this.fixture = makeFixture(this.machine.home);
    this.api = startScriptedApi({
      script: { version: 1, sessions: { '*': { steps: [...stepsIn()] } } },
      nameOf: (_, path) => path.split('/')[1],
    });
    Object.assign(this.machine.env, {
      ANTHROPIC_API_KEY: 'test-key',
      DISABLE_AUTOUPDATER: '1',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      IS_SANDBOX: '1',
    });
  }

  async close(): Promise<void> {
    await this.api.stop();
    this.machine.remove();
  }

  #envFor(name: string): Record<string, string> {
    const ran = this.#ranFile(name);
    return { ...this.machine.env, ANTHROPIC_BASE_URL: `${this.api.url}/${name}`, PARITY_RAN: ran };
  }

  #ranFile(name: string): string {
    return join(this.machine.folder, `ran-${name}`);
  }

  /** As the user types it in the folder of the project. */
  async plain(name: string, { project, prompt }: Task): Promise<RunOfClaude> {
    const child = Bun.spawn([pinnedClaude(), '-p', '--output-format', 'stream-json', '--verbose', prompt], {
      cwd: this.fixture[project],
      env: this.#envFor(name),
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    });
    const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    await child.exited;
    const requests = this.api.requests.filter((request) => request.name === name);
    return {
      ...{ requests: mainRequests(requests), stdout, stderr, ran: read(this.#ranFile(name)) },
      names: this.#names(project, this.fixture[project], join(this.machine.home, '.claude')),
    };
  }

  /** Each task in its own session, in the folder itself (`app`) or in a worktree (`app-apart`). */
  async group(name: string, workflow: string): Promise<GroupRun> {
    const file = join(this.machine.folder, `${name}.yaml`);
    await Bun.write(file, workflow);
    const env = this.#envFor(name);
    const run = async (...args: string[]) => {
      const child = Bun.spawn([this.machine.program, ...args], {
        ...{ cwd: this.machine.folder, env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
      });
      const texts = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
      return { code: await child.exited, stdout: texts[0], stderr: texts[1] };
    };
    const plan = await run('run', file, '--dry-run', '--output', 'text');
    const ran = await run('run', file, '--output', 'text', '--no-warm-cache');
    const { sessions } = await this.machine.json<{ sessions: { id: string; name: string }[] }>('group', 'show', '@');
    return {
      ...ran,
      plan: plan.stdout + plan.stderr,
      sessions: Object.fromEntries(sessions.map((one) => [one.name, this.#session(name, one)])),
    };
  }

  #session(group: string, { id, name }: { readonly id: string; readonly name: string }): RunOfClaude {
    const [folder = ''] = [
      ...new Bun.Glob(`session-groups/*/sessions/${id}`).scanSync({ cwd: this.machine.data, onlyFiles: false }),
    ];
    const path = join(this.machine.data, folder);
    const stdout = read(join(path, 'transcript.jsonl'));
    const { cwd = '' } = JSON.parse(stdout.split('\n').find((line) => line.includes('"subtype":"init"')) ?? '{}');
    const project = name.split('-')[0] as keyof Fixture;
    const requests = this.api.requests.filter((request) => request.session === id.slice(4));
    const ran = read(this.#ranFile(group))
      .split('\n')
      .filter((line) => line.endsWith(` in ${cwd}`))
      .join('\n');
    return {
      ...{ requests: mainRequests(requests), stdout, stderr: read(join(path, 'stderr.log')), ran },
      names: [...this.#names(project, cwd, join(path, 'claude-config')), [path, 'SESSION']],
    };
  }

  #names(project: string, cwd: string, config: string): [string, string][] {
    const original = this.fixture[project as keyof Fixture];
    const below = relative(this.machine.home, original);
    // A worktree has the same folders above it as the project.
    const above = cwd.endsWith(`/${below}`) ? cwd.slice(0, -below.length - 1) : '';
    return [
      [join(config, '.claude.json'), 'STATE'],
      [`${config}.json`, 'STATE'],
      [config, 'CONFIG'],
      [slug(cwd), 'SLUG'],
      [cwd, 'PROJECT'],
      [original, 'PROJECT'],
      [above, 'HOME'],
      [this.machine.home, 'HOME'],
    ];
  }
}

const slug = (path: string) => path.replaceAll(/[^A-Za-z0-9]/g, '-');
const read = (path: string): string => (existsSync(path) ? readFileSync(path, 'utf8') : '');

function mainRequests(requests: readonly CapturedRequest[]) {
  return requests.filter(({ kind, agentId }) => kind === 'step' && agentId === undefined).map(({ body }) => body);
}
