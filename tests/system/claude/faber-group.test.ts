/**
 * Promises, with the real claude in a group and a scripted API: the FABER commands of the config template run
 * unattended under both names, as the prompt and as calls of the model. The session stays part of its run through a
 * compaction, `/clear`, a fork and a resume; a session beside it gets one line.
 */
import { afterEach, expect, test } from 'bun:test';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Step } from '../../../src/rehearsal/script.ts';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { User } from '../../support/cli/user.ts';
import { launcher, pinnedClaude, type StartedCommand, until } from '../../support/cli.ts';
import { Repository } from '../../support/git/repository.ts';
import { TestTerminal } from '../../support/terminal.ts';

let user: User;
let api: ScriptedApi;
let terminal: TestTerminal | undefined;
let run: StartedCommand | undefined;
afterEach(async () => {
  terminal?.close();
  run?.kill('SIGKILL');
  await api.stop();
  user.remove();
});

const skill = (name: string, args: string) => ({ tool: 'Skill', input: { skill: name, args } });
const bash = (words: string, more: Partial<Step> = {}): Step => {
  return { tool: 'Bash', input: { command: `claude-code-agent faber ${words}` }, ...more };
};

/** Steps of the conversation that starts the run; it is compacted before the last one. */
const first: readonly Step[] = [
  bash('start --work-id 258'),
  ...['', 'fractary-faber:'].map((prefix) => ({
    tools: [
      skill(`${prefix}prime-context`, '--force'),
      skill(`${prefix}workflow-run`, '--resume 258'),
      skill(`${prefix}session-end`, ''),
    ],
  })),
  bash('phase frame', { usage: { input: 70_000 } }),
  { hang: true },
];
/** Steps after `/clear`, in its fork, and back in the group. */
const later: readonly Step[] = [
  bash('prime-context --force'),
  { text: 'Primed.' },
  bash('phase architect'),
  { text: 'The architecture stands.' },
  bash('session-end'),
  bash('phase build'),
  { text: 'Built.' },
];

/** The group whose session `run` starts a run, with `other` after it in the same checkout. */
function begin(): { shop: string; claudeId(number: string): string | undefined } {
  const sessionsOf = () => {
    const groups = join(user.data, 'session-groups');
    return readdirSync(groups).flatMap((group) => readdirSync(join(groups, group, 'sessions')));
  };
  const claudeId = (number: string) =>
    sessionsOf()
      .find((name) => name.startsWith(number))
      ?.slice(4);
  const names: Readonly<Record<string, string>> = { '001': 'first', '002': 'other' };
  api = startScriptedApi({
    script: {
      version: 1,
      sessions: { first: { steps: [...first] }, other: { steps: [{ text: 'ok' }] }, '*': { steps: [...later] } },
    },
    nameOf: (id) => Object.entries(names).find(([number]) => claudeId(number) === id)?.[1],
  });
  user = new User({
    ANTHROPIC_BASE_URL: api.url,
    ANTHROPIC_API_KEY: 'test-key',
    CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
  });
  user.env.PATH = `${dirname(launcher)}:${user.env.PATH}`;
  const shop = new Repository(join(user.folder, 'shop'));
  shop.commit({ 'README.md': '# Shop\n' });
  const workflow = `version: 1
group: { isolate: none }
sessions:
  run:
    project: shop
    prompt: /workflow-run --work-id 258
    configTemplate: faber
    model: claude-sonnet-4-5
    config: { settingsOverride: { autoCompactWindow: 100000 } }
  other: { project: shop, prompt: Do something else., dependsOn: run }
`;
  writeFileSync(join(user.folder, 'w.yaml'), workflow);
  run = user.start('run', 'w.yaml', '--output', 'quiet');
  return { shop: shop.folder, claudeId };
}

const asked = (index: number) => JSON.stringify(api.requests.at(index)?.body.messages);

/** Input typed before the end of a turn waits for it or is refused. */
const idle = () => until(() => terminal?.text().includes('esc to interrupt') === false);

async function type(text: string, shown: string): Promise<void> {
  await idle();
  await terminal?.enter(text);
  await terminal?.shows(shown);
}

test('FABER commands of the config template run unattended, and the session stays part of its run', async () => {
  const { shop, claudeId } = begin();
  const isCompacted = () => api.requests.some(({ kind }) => kind === 'summary') && api.requests.at(-1)?.kind === 'step';
  await until(() => api.requests.at(-1)?.step === first.length - 1 && isCompacted());
  const [runId = ''] = readdirSync(join(shop, '.fractary/runs'));
  const state = () => JSON.parse(readFileSync(join(shop, '.fractary/runs', runId, 'state.json'), 'utf8'));
  const expectRun = (text: string, source: string, next: string) => {
    expect(text).toContain(`SessionStart:${source}`);
    expect(text).toContain(`FABER run ${runId} (default, work item 258): in_progress.`);
    expect(text).toContain(`Continue with the phase ${next}.`);
  };
  // The prompt and the model's calls were these commands.
  expect(asked(0)).toContain('Work through a FABER run. What was given: `--work-id 258`');
  const before = api.requests.findLast(({ kind }) => kind === 'summary')?.body.messages;
  for (const name of ['prime-context', 'workflow-run', 'session-end']) {
    for (const prefix of ['', 'fractary-faber:']) {
      expect(JSON.stringify(before)).toContain(`Launching skill: ${prefix}${name}`);
    }
  }
  expectRun(asked(-1), 'compact', 'architect');

  const group = readdirSync(join(user.data, 'session-groups'))[0];
  const terminalWish = { cwd: user.folder, env: user.env, columns: 100, rows: 40 };
  terminal = new TestTerminal([launcher, 'session', 'attach', `${group}/run`], terminalWish);
  await terminal.shows('❯');
  await terminal.enter('/clear');
  await until(() => state().sessions.session_history.at(-1)?.end_reason === 'clear');
  await until(() => state().sessions.current_session?.session_id !== undefined);
  const cleared = state().sessions.current_session_id;
  const { length } = api.requests;
  await type('/prime-context --force', 'Primed.');
  expectRun(asked(length), 'clear', 'architect');
  expect(asked(length)).toContain('Load the context of the FABER run that is active in this project.');

  await type('/branch', 'Branched');
  const fork = api.requests.length;
  await type('Go on.', 'The architecture stands.');
  expectRun(asked(fork), 'fork', 'architect');
  await idle();
  await terminal.enter('/exit');
  expect(await terminal.exited).toBe(0);

  const resumed = api.requests.length;
  expect(await run?.finished).toMatchObject({ code: 0 });
  expectRun(asked(resumed), 'resume', 'build');
  const done = { status: 'completed' };
  expect(state()).toMatchObject({ status: 'in_progress', phases: { frame: done, architect: done, build: done } });
  expect(JSON.stringify(api.requests.map(({ body }) => body.messages))).not.toContain('requires approval');

  // All conversations of this session in their order, and no others.
  const known = state().sessions.session_history.map((record: { session_id: string }) => record.session_id);
  const forked = known.at(-1);
  expect([...new Set(known)]).toEqual([claudeId('001'), cleared, forked]);
  const other = asked(-1);
  expect(other).toContain('Do something else.');
  expect(other).toContain(`FABER: the run ${runId} for the work item 258 is in progress here.`);
  expect(other).not.toContain('Continue with the phase');
}, 180_000);
