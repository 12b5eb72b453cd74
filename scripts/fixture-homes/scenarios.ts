/** How the groups came to be as they are. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { obeyInterrupt, sayCost } from '../../tests/cli/night.ts';
import { processesIn, until } from '../../tests/support/cli.ts';
import { type Invocation, resultLine } from '../../tests/support/fake-claude-rig.ts';
import type { Author } from './author.ts';

/** Seconds since 1970, 2099-01-01: tests put a time of their own in its place. */
export const resetsAt = 4_070_908_800;

const text = (said: string) => ({
  type: 'assistant',
  message: { id: `m-${said.length}`, model: 'claude-opus-4-8', content: [{ type: 'text', text: said }] },
});

/** Pauses the group while that session works, which has cost so much by then. */
async function pauseAt(author: Author, costUsd: number, working: Invocation): Promise<void> {
  const pause = author.start('group', 'pause', author.made);
  await obeyInterrupt(working, costUsd);
  await pause.finished;
}

const limitInfo = { status: 'rejected', resetsAt, rateLimitType: 'five_hour' };

async function meetLimit(fake: Invocation): Promise<void> {
  await fake.print(text('Half of it is done.'));
  await fake.print({ type: 'rate_limit_event', rate_limit_info: limitInfo });
  await fake.print(
    resultLine(0.02, { is_error: true, result: 'You’ve hit your session limit', api_error_status: 429 }),
  );
}

/** Sessions in worktrees of one repository: the second begins with the work of the first. */
async function workInWorktrees(author: Author): Promise<void> {
  const shop = author.repository(`${author.slug}-shop`);
  const group = await author.ok('group', 'create', author.slug, '--description', 'Kept over an upgrade');
  const add = ['session', 'add', group, '--project', shop, '--isolate', 'worktree'];
  await author.ok(...add, '--name', 'api', '--prompt', 'Write the API.', '--accept', 'test -e api.txt');
  await author.ok(...add, '--name', 'web', '--prompt', 'Use the API.', '--depends-on', 'api');
  author.name(group, ['api', 'web']);
  const run = author.go();
  for (const name of ['api', 'web']) {
    const fake = await author.begun(group, name);
    writeFileSync(join(fake.hello.cwd, `${name}.txt`), `${name}\n`);
    await fake.succeed(0.01, `Wrote ${name}.txt.`);
  }
  await run.finished;
}

export const scenarios: Readonly<Record<string, (author: Author) => Promise<void>>> = {
  async created(author) {
    const every = [
      '--accept',
      'true',
      '--accept-retries',
      '0',
      '--retries',
      '1',
      '--timeout',
      '2h',
      '--max-budget-usd',
      '1',
    ];
    const more = ['--allowed-tools', 'Edit,Bash(git log:*)', '--stall-timeout', '20m', '--model', 'claude-sonnet-5'];
    const sessions = { api: [...every, ...more, '--context', 'cpm'], web: ['--depends-on', 'api'] };
    await author.make(sessions, '--max-budget-usd', '5', '--concurrent', '2', '--on-limit', 'pause');
  },

  /** Three workers live, of which one has said nothing yet; their runner was killed. */
  async live(author) {
    const sessions = { api: [], web: [], mute: [], docs: ['--depends-on', 'api', '--depends-on', 'web'] };
    const group = await author.make(sessions, '--max-budget-usd', '5', '--no-warm-cache');
    const run = author.go();
    const [api, web, mute] = await Promise.all([
      author.begun(group, 'api'),
      author.begun(group, 'web'),
      author.next('mute'),
    ]);
    await mute.prompt();
    await api.print(text('I look around.'));
    await sayCost(api, 0.05);
    await author.ok('session', 'say', `${group}/web`, 'Mind the colours.');
    await author.event(group, 'session_message');
    author.keep('api', api);
    author.keep('web', web);
    author.keep('mute', mute);
    run.kill('SIGKILL');
    await run.finished;
  },

  /** Everything is halted, and the runner was killed before it let it go on. */
  async frozen(author) {
    const group = await author.make({ api: [] });
    const run = author.go();
    const api = await author.begun(group, 'api');
    await author.ok('group', 'pause', group, '--freeze');
    author.keep('api', api);
    run.kill('SIGKILL');
    await run.finished;
  },

  /** The third attempt of one session is paused, another is completed, a third never began. */
  async paused(author) {
    const sessions = { api: [], web: [], docs: ['--depends-on', 'web'] };
    const group = await author.make(sessions, '--max-budget-usd', '5', '--no-warm-cache');
    const first = author.go();
    await (await author.begun(group, 'api')).succeed(0.03, 'The API is there.');
    await author.event(group, 'session_completed');
    await pauseAt(author, 0.02, await author.begun(group, 'web'));
    await first.finished;
    for (const costUsd of [0.04, 0.01]) {
      const again = author.go();
      const web = await author.begun(group, 'web');
      await web.print(text(`Another ${costUsd}.`));
      await pauseAt(author, costUsd, web);
      await again.finished;
    }
  },

  /** A live worker that has resumed a conversation, of a claude whose total holds what was paid before. */
  async 'doubled-live'(author) {
    const group = await author.make({ api: [] }, '--max-budget-usd', '5');
    const first = author.go();
    const before = await author.begun(group, 'api');
    await pauseAt(author, 0.02, before);
    await first.finished;
    const { total_cost_usd: totalCostUSD, modelUsage } = resultLine(0.02);
    author.remember(before, { type: 'cost-state', totalCostUSD, modelUsage });
    const run = author.go();
    const api = await author.begun(group, 'api');
    await sayCost(api, 0.05);
    await api.print(text('I go on.'));
    author.keep('api', api);
    run.kill('SIGKILL');
    await run.finished;
  },

  /** Parked at a usage limit when its runner was killed. */
  async limit(author) {
    const group = await author.make({ api: [], web: ['--depends-on', 'api'] });
    const run = author.go();
    await meetLimit(await author.begun(group, 'api'));
    await author.event(group, 'limit_reached');
    run.kill('SIGKILL');
    await run.finished;
  },

  /** A usage limit ended the run. */
  async 'limit-paused'(author) {
    const group = await author.make({ api: [], web: ['--depends-on', 'api'] }, '--on-limit', 'pause');
    const run = author.go();
    await meetLimit(await author.begun(group, 'api'));
    await run.finished;
  },

  async failed(author) {
    const group = await author.make(
      { api: [], web: ['--depends-on', 'api'] },
      '--error-threshold',
      '1',
      '--no-pause-on-error',
    );
    const run = author.go();
    const api = await author.begun(group, 'api');
    await api.print(resultLine(0.02, { is_error: true, result: 'It went wrong.' }));
    await run.finished;
  },

  async completed(author) {
    const group = await author.make({ api: [], web: ['--depends-on', 'api'] });
    const run = author.go();
    for (const name of ['api', 'web']) await (await author.begun(group, name)).succeed(0.02, `${name} is done.`);
    await run.finished;
  },

  /** The money is spent with a session left to run. */
  async budget(author) {
    const group = await author.make({ api: [], web: ['--depends-on', 'api'] }, '--max-budget-usd', '0.1');
    const run = author.go();
    await (await author.begun(group, 'api')).succeed(0.1, 'Dear.');
    await run.finished;
  },

  /** claude is done; its runner was killed while the acceptance command was being waited for. */
  async accepting(author) {
    const accept = 'while [ ! -e ../gate ]; do sleep 0.05; done';
    const group = await author.make({ api: ['--accept', accept], web: ['--depends-on', 'api'] });
    const run = author.go();
    await (await author.begun(group, 'api')).succeed(0.02, 'It is there.');
    await author.event(group, 'session_accepting');
    run.kill('SIGKILL');
    await run.finished;
    const gate = author.file('projects/gate', '');
    await until(() => processesIn(author.project('api')).length === 0);
    rmSync(gate);
  },

  finished: workInWorktrees,

  async merged(author) {
    await workInWorktrees(author);
    await author.ok('group', 'merge', author.made);
  },

  async archived(author) {
    const group = await author.make({ api: [] });
    const run = author.go();
    await (await author.begun(group, 'api')).succeed(0.02, 'Done.');
    await run.finished;
    await author.ok('group', 'archive', group);
  },

  /** Made by a workflow from frozen templates; the first half is done, the second is told what came of it. */
  async workflow(author) {
    author.project('service');
    const flow = `version: 1
title: "{{ticket}} in the service"
vars:
  ticket: { required: true }
sessions:
  find:
    project: projects/service
    prompt: "Find what {{ticket}} means."
  change:
    project: projects/service
    dependsOn: find
    configTemplate: strict-typescript
    prompt: "Make the change for {{ticket}}. {{sessions.find.result}}"
`;
    author.file('workflow.yaml', flow);
    const group = await author.ok('group', 'create', author.slug, '--from', 'workflow.yaml', '--var', 'ticket=ABC-12');
    author.name(group, ['find', 'change']);
    const run = author.go();
    await (await author.begun(group, 'find')).succeed(0.02, 'It means a new column.');
    await pauseAt(author, 0.01, await author.begun(group, 'change'));
    await run.finished;
  },
};

/**
 * A real conversation, paused, resumed and paused again, with a scripted model: its first answer is given, the next
 * never comes.
 */
export async function rehearsed(author: Author, claude: string): Promise<void> {
  author.env.CLAUDE_CODE_AGENT_CLAUDE = claude;
  const group = await author.make({ api: [] });
  const script = `version: 1
sessions:
  api:
    steps:
      - { text: I look first., tool: Bash, input: { command: "ls" }, usage: { input: 2100, output: 180 } }
      - hang: true
`;
  const path = author.file('script.yaml', script);
  const session = join(author.data, 'session-groups', group, 'sessions', author.id('api'));
  const said = () => readFileSync(join(session, 'transcript.jsonl'), 'utf8');
  for (let attempt = 1; attempt <= 2; attempt += 1) {
    const run = author.start('group', 'run', group, '--output', 'quiet', '--rehearse', path);
    await until(() => author.events(group).filter(({ type }) => type === 'session_identified').length === attempt);
    await until(() => said().includes('tool_result'));
    // It hangs once nothing is added any more.
    for (let before = ''; before !== said(); await Bun.sleep(2_000)) before = said();
    await author.ok('group', 'pause', group);
    await run.finished;
  }
}

/** Longer texts are not what a conversation is gone on with for. */
const textMax = 100;

/**
 * The same with a claude that counts the cost of a resumed conversation from its beginning: it is in the log twice. Its
 * conversation is kept without the long instructions of claude's own that it quotes.
 */
export async function doubled(author: Author, newerClaude: string): Promise<void> {
  await rehearsed(author, newerClaude);
  const config = join(author.data, 'session-groups', author.made, 'sessions', author.id('api'), 'claude-config');
  for (const name of readdirSync(join(config, 'projects'), { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.jsonl')) continue;
    const path = join(config, 'projects', name);
    const lines = readFileSync(path, 'utf8').trim().split('\n');
    const kept = lines.map((line) => JSON.parse(line, shortened)).filter(({ type }) => !type.startsWith('api-request'));
    writeFileSync(path, kept.map((line) => `${JSON.stringify(line)}\n`).join(''));
  }
}

function shortened(_key: string, value: unknown): unknown {
  return typeof value === 'string' && value.length > textMax ? `${value.slice(0, textMax)} [...]` : value;
}
