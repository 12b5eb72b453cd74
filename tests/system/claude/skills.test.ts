/**
 * Promises about the real claude: a session with the config template `cpm` is offered all 14 skills by name. This
 * package loads as a plugin without an error, with the skills, hooks and commands.
 */
import { afterEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { Step } from '../../../src/rehearsal/script.ts';
import { type CapturedRequest, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { claudeBinary, openRig, type Rig } from '../../support/claude/rig.ts';
import { User } from '../../support/cli/user.ts';
import { checkoutRoot, pinnedClaude } from '../../support/cli.ts';

const run = test.skipIf(claudeBinary === undefined);
const inLongRun = test.if(claudeBinary !== undefined);
const timeoutMs = 120_000;
const skills = readdirSync(join(checkoutRoot, 'templates', 'configs', 'cpm', 'skills'));

let cleanUp: () => Promise<void> | void = () => {};
afterEach(() => cleanUp());

type Message = Readonly<Record<string, unknown>>;
const messagesOf = (text: string): Message[] =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Message);
const initOf = (text: string): Message | undefined => messagesOf(text).find(({ subtype }) => subtype === 'init');
const saidIn = (request: CapturedRequest | undefined): string => JSON.stringify(request?.body.messages);

run(
  'a session with the config template cpm is offered all 14 skills, and one reaches the model verbatim',
  async () => {
    const progress = 'docs/plans/.cpm-progress-1.md';
    const api = startScriptedApi({
      script: {
        version: 1,
        sessions: {
          '*': {
            steps: [
              { tool: 'Skill', input: { skill: 'do', args: 'docs/epics/01.md' } },
              { tool: 'Write', input: { file_path: `{{project}}/${progress}`, content: '**Skill**: cpm:do\n' } },
              { tool: 'Bash', input: { command: `cat ${progress} && rm ${progress}` } },
              { text: 'ok' },
            ],
          },
        },
      },
      nameOf: () => undefined,
    });
    const user = new User({
      ANTHROPIC_BASE_URL: api.url,
      ANTHROPIC_API_KEY: 'test-key',
      CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
    });
    cleanUp = async () => {
      await api.stop();
      user.remove();
    };
    const group = await user.ok('group', 'create', 'planned', '--config-template', 'cpm');
    await user.ok('session', 'add', group, '--project', user.project('api'), '--prompt', 'Continue with epic 01.');
    expect(await user.run('group', 'run', group, '--output', 'quiet')).toMatchObject({ code: 0 });
    const sessions = join(user.data, 'session-groups', group, 'sessions');
    const [session = ''] = readdirSync(sessions);
    const init = initOf(readFileSync(join(sessions, session, 'transcript.jsonl'), 'utf8'));
    expect(skills).toHaveLength(14);
    expect(init?.skills).toEqual(expect.arrayContaining(skills));
    expect(init?.slash_commands).toEqual(expect.arrayContaining(skills));
    // claude has its own /review command, which ours replaces.
    expect([init?.skills].flat().filter((name) => name === 'review')).toHaveLength(1);
    const last = saidIn(api.requests.at(-1));
    // What the skill does with its progress file needs no permission.
    expect(last).toContain('"content":"**Skill**: cpm:do"');
    expect(existsSync(join(user.project('api'), progress))).toBe(false);
    expect(readdirSync(join(user.project('api'), 'docs/plans'))).toEqual([]);
    expect(last).toContain('## Phase 3: Build, task by task');
    expect(last).toContain('docs/plans/.cpm-progress-{session_id}.md');
    expect(last).toContain('- The epic, and a story number if only one is wanted: docs/epics/01.md');
  },
  timeoutMs,
);

interface Ran {
  readonly rig: Rig;
  readonly text: string;
  readonly init: Message | undefined;
}

/** One prompt to a claude that has the package as its plugin, from a path with a space. */
async function withPlugin(
  prompt: string,
  steps: readonly Step[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ran> {
  const rig = openRig(steps);
  cleanUp = () => rig.close();
  const plugin = join(rig.folder, 'the plugin');
  symlinkSync(checkoutRoot, plugin);
  mkdirSync(join(rig.project, 'docs', 'plans'), { recursive: true });
  rig.write(
    'project/docs/plans/.cpm-progress-11.md',
    '**Skill**: cpm:spec\n**Phase**: 2 of 6 — Qualities\n\nBANANAS\n',
  );
  const args = ['-p', '--output-format', 'stream-json', '--verbose', '--plugin-dir', plugin, '--', prompt];
  const child = Bun.spawn([claudeBinary ?? '', ...args], {
    cwd: rig.project,
    env: { ...rig.env, ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  rig.children.push(child);
  const text = await new Response(child.stdout).text();
  return { rig, text, init: initOf(text) };
}

const hooksOf = (text: string) => messagesOf(text).filter(({ subtype }) => subtype === 'hook_response');

run(
  'the package is a plugin: it loads without an error, with all skills, and its hooks inject the state',
  async () => {
    const { rig, text, init } = await withPlugin('Go on.', [{ text: 'ok' }]);
    expect(init?.plugin_errors ?? []).toEqual([]);
    // claude has bundled plugins of its own.
    const plugins = (init?.plugins ?? []) as Message[];
    expect(plugins.filter(({ path }) => path !== 'builtin')).toEqual([expect.objectContaining({ name: 'cpm' })]);
    expect(init?.skills).toEqual(expect.arrayContaining(skills.map((name) => `cpm:${name}`)));
    const commands = ['sessions', 'clean', 'prime-context', 'session-end'];
    expect(init?.slash_commands).toEqual(expect.arrayContaining(commands.map((name) => `cpm:${name}`)));
    expect(hooksOf(text).map(({ outcome, stderr }) => [outcome, stderr])).toEqual(Array(3).fill(['success', '']));
    const said = saidIn(rig.api.requests[0]);
    expect(said).toContain(`CPM_SESSION_ID: ${init?.session_id}`);
    expect(said).toContain('CPM SESSION STATE (cpm:spec — 2 of 6 — Qualities');
    expect(said).toContain('BANANAS');
  },
  timeoutMs,
);

inLongRun(
  "without Bun the plugin's hooks report it and block nothing",
  async () => {
    const { rig, text } = await withPlugin('Go on.', [{ text: 'ok' }], {
      CLAUDE_CODE_AGENT_BUN: join('/nowhere', 'bun'),
    });
    expect(hooksOf(text).map(({ outcome }) => outcome)).toEqual(Array(3).fill('success'));
    const said = saidIn(rig.api.requests[0]);
    expect(said.match(/no Bun was found/g)).toHaveLength(1);
    expect(said).toContain('read docs/plans/.cpm-progress-*.md of the project yourself');
    expect(text).toContain('"result":"ok"');
  },
  timeoutMs,
);

inLongRun(
  "in a worker of a group, which has its own hooks, the plugin's hooks are silent",
  async () => {
    const { rig } = await withPlugin('Go on.', [{ text: 'ok' }], { CLAUDE_CODE_AGENT_ATTEMPT: 'one' });
    expect(saidIn(rig.api.requests[0])).not.toContain('BANANAS');
  },
  timeoutMs,
);

inLongRun.each(['sessions', 'clean'])(
  'the command /cpm:%s gives the model the list of progress files without a permission request',
  async (command) => {
    const { rig } = await withPlugin(`/cpm:${command}`, [{ text: 'ok' }]);
    const said = saidIn(rig.api.requests[0]);
    expect(said).toContain('.cpm-progress-11.md');
    expect(said).toContain('progress file');
    expect(said).not.toContain('!`');
  },
  timeoutMs,
);
