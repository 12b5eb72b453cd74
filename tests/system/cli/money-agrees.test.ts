/**
 * Promises: every face, file and event tells the same money, to the sixth digit, at the same moment: while sessions
 * with caps of their own work, when they are paused, after a resume, when the runner has died, and in the end. What
 * nobody of the log knows yet, because it is being spent, is told by all but the snapshots, which are of the log alone.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { roundUsd } from '../../../src/core/group.ts';
import { groupPaths, sessionPaths } from '../../../src/store/paths.ts';
import { obeyInterrupt, sayCost } from '../../support/cli/night.ts';
import { User } from '../../support/cli/user.ts';
import { until } from '../../support/cli.ts';
import { type Invocation, type Rig, resultLine, startRig } from '../../support/fake-claude-rig.ts';

const model = 'claude-opus-4-8';
const names = ['api', 'web'] as const;

let rig: Rig;
let user: User;
let group: string;
let ids: readonly string[];

beforeEach(async () => {
  rig = await startRig();
  user = new User(rig.env);
  group = await user.ok('group', 'create', 'money', '--max-budget-usd', '10');
  for (const name of names) await user.add(group, name, '--max-budget-usd', '3');
  ids = (await user.json<{ sessions: { id: string }[] }>('group', 'show', group)).sessions.map(({ id }) => id);
});
afterEach(() => {
  for (const fake of rig.invocations) if (!fake.hasEnded) fake.exit(0);
  rig.stop();
  user.remove();
});

async function begun(index: number): Promise<Invocation> {
  const fake = await rig.nextFor((ids[index] as string).slice(4));
  await fake.prompt();
  await fake.init(model);
  return fake;
}

/** Dollars of the group and of its sessions, in the order in which they were added. */
type Figures = readonly [total: number, ...sessions: number[]];

interface Costing {
  readonly id: string;
  readonly cost: number;
}
interface Progress {
  readonly totalCost: number;
  readonly sessions: readonly Costing[];
}

const { parse } = JSON;
const fileOf = <T>(path: string): T => parse(readFileSync(path, 'utf8')) as T;
const ofProgress = ({ totalCost, sessions }: Progress): Figures => [totalCost, ...sessions.map(({ cost }) => cost)];

interface Listed {
  readonly cost: number;
  readonly sessions: readonly Costing[];
}
const ofListed = (listed: Listed | undefined): Figures => [
  listed?.cost ?? -1,
  ...(listed?.sessions ?? []).map(({ cost }) => cost),
];

/** Nothing before it is written first. */
function progressFile(): Figures {
  const { progress } = groupPaths(user.data, group);
  return existsSync(progress) ? ofProgress(fileOf<Progress>(progress)) : [0];
}

interface Spent {
  readonly id: string;
  readonly spentUsd: number;
}

/** What each command says now. */
async function faces(): Promise<Readonly<Record<string, Figures>>> {
  const json = <T>(...args: string[]) => user.json<T>(...args);
  const shown = await json<Listed & { progress: Progress }>('group', 'show', group);
  const [listed] = await json<Listed[]>('group', 'list');
  const plan = await json<{ budget: { spentUsd: number } }>('group', 'plan', group);
  const budget = await json<{ spentUsd: number; sessions: Spent[]; models: { costUsd: number }[] }>(
    'group',
    'budget',
    group,
  );
  const sessions = await json<Costing[]>('session', 'list', group);
  const single = await Promise.all(ids.map((id) => json<{ cost: number }>('session', 'show', `${group}/${id}`)));
  const report = await json<{
    cost: { spentUsd: number };
    sessions: { costUsd: number }[];
  }>('group', 'report', group);
  const sum = (all: readonly { costUsd: number }[]) => roundUsd(all.reduce((usd, { costUsd }) => usd + costUsd, 0));
  const ofSessions = single.map(({ cost }) => cost);
  return {
    'group show --json': ofProgress(shown.progress),
    'group show --json, beside its progress': ofListed(shown),
    'group list --json': ofListed(listed),
    'group plan --json': [plan.budget.spentUsd, ...ofSessions],
    'group budget --json': [budget.spentUsd, ...budget.sessions.map(({ spentUsd }) => spentUsd)],
    'models of the budget': [sum(budget.models), ...ofSessions],
    'session list --json': [shown.progress.totalCost, ...sessions.map(({ cost }) => cost)],
    'session show --json': [shown.progress.totalCost, ...ofSessions],
    'group report --json': [report.cost.spentUsd, ...report.sessions.map(({ costUsd }) => costUsd)],
  };
}

/** The snapshots, which tell what the log tells. */
function snapshots(): Figures {
  const paths = groupPaths(user.data, group);
  const cost = (path: string) => fileOf<{ cost: number }>(path).cost;
  return [cost(paths.meta), ...ids.map((id) => cost(sessionPaths(paths, id).meta))];
}

async function expectAll(figures: Figures): Promise<void> {
  const said = await faces();
  expect(said).toEqual(Object.fromEntries(Object.keys(said).map((face) => [face, figures])));
}

interface Line {
  readonly type: string;
  readonly sessionId?: string;
  readonly cost?: number;
  readonly totalCost?: number;
}

/** What all attempts of a session have cost by the last line of that type in the stream of a run. */
function lastOf(stdout: string, type: string, id: string | undefined): number | undefined {
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => parse(line) as Line);
  const last = lines.findLast((line) => line.type === type && line.sessionId === id);
  return last?.totalCost ?? last?.cost;
}

test('while it runs, paused, after a resume, without its runner, and in the end', async () => {
  const run = user.start('group', 'run', group, '--output', 'json');
  const web = await begun(1);
  const api = await begun(0);
  await sayCost(api, 0.1);
  await sayCost(web, 0.200_001);
  await web.succeed(0.200_001);
  await until(() => progressFile().join() === '0.300001,0.1,0.200001');
  await expectAll([0.300_001, 0.1, 0.200_001]);

  const pause = user.start('group', 'pause', group);
  await obeyInterrupt(api, 0.7);
  expect((await pause.finished).code).toBe(0);
  const { stdout } = await run.finished;
  expect(lastOf(stdout, 'session_paused', ids[0])).toBe(0.7);
  expect(lastOf(stdout, 'session_completed', ids[1])).toBe(0.200_001);
  const paused: Figures = [0.900_001, 0.7, 0.200_001];
  await expectAll(paused);
  expect([snapshots(), progressFile()]).toEqual([paused, paused]);

  const resumed = user.start('group', 'resume', group, '--output', 'json');
  const again = await begun(0);
  // Before claude has said what it charged, what its messages used is priced.
  const used = { input_tokens: 237, output_tokens: 69, cache_read_input_tokens: 11 };
  await again.print({ type: 'assistant', message: { id: 'm1', model, content: [], usage: used } });
  await until(() => (progressFile()[1] ?? 0) > 0.7);
  const estimated = progressFile();
  await expectAll(estimated);

  resumed.kill('SIGKILL');
  await resumed.finished;
  await expectAll(estimated);

  const adopting = user.start('group', 'run', group, '--output', 'json');
  await until(() => readFileSync(groupPaths(user.data, group).events, 'utf8').split('"group_resumed"').length > 2);
  await again.print(resultLine(0.3));
  const { code, stdout: told } = await adopting.finished;
  expect(code).toBe(0);
  const end: Figures = [1.200_001, 1, 0.200_001];
  expect(lastOf(told, 'session_completed', ids[0])).toBe(1);
  expect(lastOf(told, 'session_progress', ids[0])).toBe(1);
  await expectAll(end);
  expect([snapshots(), progressFile()]).toEqual([end, end]);
  expect(await user.ok('group', 'report', group)).toContain('$1.20');
  expect(await user.ok('group', 'list')).toContain('$1.20');
  expect(await user.ok('group', 'show', group)).toContain('$1.20');
});
