/**
 * Promises, with the real claude in a terminal and a scripted API: attaching to a running session opens its
 * conversation in claude without a question, and the group continues with what was said. The cost is counted once. Also
 * covers what `/clear` and claude's exit leave in its files.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { attemptMark } from '../../../src/claude/launch/attempt-mark.ts';
import type { Step } from '../../../src/rehearsal/script.ts';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { placeState, systems } from '../../support/claude/context-rig.ts';
import { modelOfKnownPrice } from '../../support/claude/rig.ts';
import { launcher, pinnedClaude, type StartedCommand, until } from '../../support/cli.ts';
import { Runners, removeGroup } from '../../support/crash-rig.ts';
import { type GroupFixture, makeGroup } from '../../support/group-fixture.ts';
import { key, TestTerminal } from '../../support/terminal.ts';

let api: ScriptedApi;
let group: GroupFixture;
let runners: Runners;
let terminal: TestTerminal | undefined;
beforeEach(() => {
  group = makeGroup([{ name: 'one', fields: { allowedTools: ['Bash'], model: modelOfKnownPrice } }], {
    maxBudgetUsd: 5,
  });
});
afterEach(async () => {
  terminal?.close();
  await api.stop();
  removeGroup(group);
});

/** Cost of one step of the scripted API: one cent. */
function serve(...steps: readonly Step[]): void {
  api = startScriptedApi({
    script: { version: 1, sessions: { '*': { steps: [...steps] } } },
    nameOf: (id) => (id === group.claudeId('one') ? 'one' : undefined),
  });
  runners = new Runners(group, {
    ANTHROPIC_BASE_URL: api.url,
    ANTHROPIC_API_KEY: 'test-key',
    CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
  });
}

function attach(): TestTerminal {
  const env = { PATH: process.env.PATH ?? '', LANG: 'C.UTF-8', ...runners.env };
  terminal = new TestTerminal([launcher, 'session', 'attach', `${group.groupId}/one`], {
    cwd: group.folder,
    env,
    columns: 100,
    rows: 40,
  });
  return terminal;
}

/** The session is running and waits for an answer that does not come; then the user attaches. */
async function takenOver(
  ...answers: readonly Step[]
): Promise<{ readonly run: StartedCommand; readonly terminal: TestTerminal }> {
  const begun = { text: 'Working.', tool: 'Bash', input: { command: 'echo begun' } };
  const [next = { text: 'Done.' }, ...others] = answers;
  serve(begun, { hang: true, times: 1, ...next }, ...others);
  const run = runners.start();
  await until(() => api.requests.length === 2);
  const opened = attach();
  await opened.shows('Working.', '❯');
  return { run, terminal: opened };
}

/** Types like a person, who waits for each echo. */
async function say(text: string, answer: string): Promise<void> {
  await terminal?.enter(text);
  await terminal?.shows(answer);
}

/** Everything that was served is recorded exactly once. */
function expectCounted(): void {
  expect(api.problems).toEqual([]);
  expect(group.state().usage.costUsd).toBeCloseTo(api.served.total.costUsd, 6);
  expect(group.state().reservedUsd).toBe(0);
}

const ids = () => group.state().sessions.get(group.id('one'))?.claudeSessionIds;

test('attach to a running session: it continues with what was said, and the cost is counted once', async () => {
  const { run } = await takenOver({ text: 'Blue it is.' }, { text: 'Painted it blue.' });
  expect(group.state().reservedUsd).toBeGreaterThan(0);
  await say('Paint it blue instead.', 'Blue it is.');
  await terminal?.enter('/exit');
  expect(await terminal?.exited).toBe(0);
  expect(terminal?.text()).toMatch(/You spent ~?\$0\.01\. 001 one continues when a slot is free\./);
  expect(await run.finished).toMatchObject({ code: 0, stderr: '' });
  const last = JSON.stringify(api.requests.at(-1));
  expect(api.requests.map(({ session }) => session)).toEqual(Array(4).fill(group.claudeId('one')));
  expect(last).toContain('Paint it blue instead.');
  expect(last).toContain('the user has taken part in this conversation');
  expectCounted();
  expect(group.state().status).toBe('completed');
  expect(ids()).toEqual([group.claudeId('one')]);
}, 60_000);

test('/clear starts a conversation with its own cost, and the group continues with that one', async () => {
  const { run } = await takenOver({ text: 'Blue it is.' });
  await say('Paint it blue instead.', 'Blue it is.');
  await terminal?.enter('/clear');
  await until(() => !terminal?.text().includes('Blue it is.'));
  // The script restarts with the conversation.
  await say('Begin again.', 'Working.');
  await until(() => api.requests.length >= 5);
  await terminal?.enter('/exit');
  expect(await terminal?.exited).toBe(0);
  const { code } = await run.finished;
  expect(code).toBe(0);
  expect(ids()?.length).toBe(2);
  expect(api.requests.at(-1)?.session).toBe(ids()?.at(-1) as string);
  expect(JSON.stringify(api.requests.at(-1))).toContain('You do not have the earlier conversation');
  expectCounted();
}, 60_000);

/** Replaces the project's state files of a context system. */
function changeState(from: string, to: string): void {
  const project = group.project('one');
  const files = readdirSync(project, { recursive: true, withFileTypes: true }).filter((file) => file.isFile());
  const texts = files.map((file) => join(file.parentPath, file.name)).map((path) => [path, readFileSync(path, 'utf8')]);
  const changed = texts.filter(([, text = '']) => text.includes(from));
  for (const [path = '', text = ''] of changed) writeFileSync(path, text.replaceAll(from, to));
  expect(changed.length).toBeGreaterThan(0);
}

test.each(systems)(
  '%s: state and task return after /clear and in a fork',
  async (system) => {
    const fields = { allowedTools: ['Bash'], model: modelOfKnownPrice, context: [system] };
    group = makeGroup([{ name: 'one', fields }], { maxBudgetUsd: 5 });
    placeState(group, system, { name: 'one', project: 'one' }, 'STATE-AT-FIRST');
    const { run } = await takenOver({ text: 'Blue it is.' });
    /** The first request of the conversation that the command starts. */
    const askedAfter = async (command: string, hasBegun: () => boolean): Promise<string> => {
      await terminal?.enter(command);
      await until(hasBegun);
      const { length } = api.requests;
      await terminal?.enter('Go on.');
      await until(() => api.requests.length > length);
      return JSON.stringify(api.requests[length]?.body.messages);
    };
    changeState('STATE-AT-FIRST', 'STATE-AT-CLEAR');
    const cleared = await askedAfter('/clear', () => hookStarts(system, 'clear') > 0);
    for (const part of ['do one', 'STATE-AT-CLEAR']) expect(cleared).toContain(part);
    expect(cleared).not.toContain('STATE-AT-FIRST');
    await terminal?.shows('echo begun');
    terminal?.type('\u001b');
    await terminal?.shows('Interrupted');
    changeState('STATE-AT-CLEAR', 'STATE-AT-FORK');
    const forked = await askedAfter('/branch', () => terminal?.text().includes('Branched') === true);
    // Older versions have no fork hook; their earlier messages are copied along.
    if (process.env.TEST_CLAUDE === undefined || hookStarts(system, 'fork') > 0) {
      for (const part of ['do one', 'STATE-AT-FORK']) expect(forked).toContain(part);
    }
    // Input that was interrupted before its answer returns to the prompt line.
    terminal?.type('\u001b');
    await until(() => !terminal?.text().includes('esc to interrupt'));
    terminal?.type(key.eraseLine);
    await terminal?.enter('/exit');
    expect(await terminal?.exited).toBe(0);
    run.kill('SIGTERM');
    await run.finished;
  },
  60_000,
);

function hookStarts(system: string, source: string): number {
  const text = readFileSync(join(group.session('one').folder, 'hooks.log'), 'utf8');
  const calls = text
    .trim()
    .split('\n')
    .map((line): unknown => JSON.parse(line));
  return calls.filter((call) => Bun.deepMatch({ event: 'session-start', system, source }, call)).length;
}

test('killing the attach command ends claude, and the cost is still counted', async () => {
  const { run } = await takenOver({ text: 'Blue it is.' }, { text: 'Painted it blue.' });
  await say('Paint it blue instead.', 'Blue it is.');
  const mark = group.state().sessions.get(group.id('one'))?.takenOver?.id ?? '';
  await until(() => keptInFile().includes('Blue it is.'));
  terminal?.kill('SIGKILL');
  expect(await run.finished).toMatchObject({ code: 0, stderr: '' });
  expect(group.world.processes.findMarked(attemptMark, mark)).toEqual([]);
  expect(JSON.stringify(api.requests.at(-1))).toContain('Paint it blue instead.');
  expectCounted();
}, 60_000);

test('closing the terminal ends claude, and the cost is counted', async () => {
  const { run } = await takenOver({ text: 'Blue it is.' }, { text: 'Painted it blue.' });
  await say('Paint it blue instead.', 'Blue it is.');
  await until(() => keptInFile().includes('Blue it is.'));
  terminal?.hangUp();
  expect(await run.finished).toMatchObject({ code: 0, stderr: '' });
  expectCounted();
}, 60_000);

test('at its reserved budget claude is ended, although it has no cap of its own', async () => {
  const fields = { allowedTools: ['Bash'], model: modelOfKnownPrice, maxBudgetUsd: 0.025 };
  group = makeGroup([{ name: 'one', fields }]);
  const { run } = await takenOver({ text: 'Blue it is.' }, { text: 'Red it is.' });
  await say('Paint it blue instead.', 'Blue it is.');
  await terminal?.enter('Or red.');
  expect(await terminal?.exited).toBe(3);
  expect(terminal?.text()).toMatch(/claude was ended: the limit of \$0\.0?15? was reached\./);
  await run.finished;
  expectCounted();
  expect(group.state()).toMatchObject({ status: 'paused', reason: 'budget' });
}, 60_000);

function keptInFile(): string {
  const folder = join(group.session('one').config, 'projects');
  const files = readdirSync(folder, { recursive: true, withFileTypes: true });
  return files
    .flatMap((file) => (file.isFile() ? readFileSync(join(file.parentPath, file.name), 'utf8') : []))
    .join('');
}
