/**
 * Promises, with the real claude in a group and in its usual permission mode: the commands of the config templates
 * `cpm` and `handover`, and the programs they name, work at the start, after an automatic compaction, after a pause,
 * after `/clear` and in a fork.
 */
import { afterEach, expect, test } from 'bun:test';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Step } from '../../../src/rehearsal/script.ts';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { bash, said } from '../../support/claude/context-rig.ts';
import { modelOfKnownPrice } from '../../support/claude/rig.ts';
import { User } from '../../support/cli/user.ts';
import { launcher, pinnedClaude, until } from '../../support/cli.ts';
import { TestTerminal } from '../../support/terminal.ts';

let user: User;
let api: ScriptedApi;
let terminal: TestTerminal | undefined;
afterEach(async () => {
  terminal?.close();
  await api.stop();
  user.remove();
});

interface System {
  /** The first task of the session: a command of the template. */
  readonly begin: string;
  readonly begun: string;
  /** What is typed at every boundary, and what the model receives instead. */
  readonly command: string;
  readonly expanded: readonly string[];
  /** A command that the model runs without a permission request, and its output. */
  readonly program: string;
  readonly printed: string;
  readonly files: Readonly<Record<string, string>>;
}

const other = '00000009-0000-4000-8000-000000000000';
const systems: Readonly<Record<string, System>> = {
  cpm: {
    begin: '/do docs/epics/01.md',
    begun: '## Phase 3: Build, task by task',
    command: '/cpm:sessions',
    expanded: ['These sessions have a progress file', 'cpm:spec', 'MARKED'],
    program: `claude-code-agent cpm show ${other}`,
    printed: 'Continue with the answer.',
    files: {
      [`docs/plans/.cpm-progress-${other}.md`]:
        '# State\n\n**Skill**: cpm:spec\n**Phase**: 3 of 6 — MARKED\n\n## Next Action\nContinue with the answer.\n',
    },
  },
  handover: {
    begin: '/handover:save write the tests',
    begun: 'Run `claude-code-agent handover find --json`',
    command: '/handover:projects',
    expanded: ['These projects are handed over', '28-parser', 'MARKED'],
    program: 'claude-code-agent handover find --json',
    printed: '28-parser',
    files: {
      '02-projects/28-parser/01-planning/resume-context.md':
        '---\nsession_ids: []\ncurrent_phase: "execution"\nnext_action: "MARKED"\n---\n',
    },
  },
};

const textOf = (index: number): string => said(api.requests[index]) ?? '';

/** The result of the model's call in the previous request. */
function resultIn(index: number): string {
  const messages = (api.requests[index]?.body.messages ?? []) as readonly { content: unknown }[];
  const blocks = messages.flatMap(({ content }) => content);
  return JSON.stringify(blocks.findLast((block) => Object(block).type === 'tool_result') ?? null);
}

/** The first request from `from` on that matches. */
async function requestWith(text: string, from: number): Promise<number> {
  const find = () => api.requests.findIndex((_, index) => index >= from && textOf(index).includes(text));
  await until(() => find() >= 0);
  return find();
}

/** All files that claude has written. */
function conversations(group: string): string {
  const sessions = join(user.data, 'session-groups', group, 'sessions');
  const files = readdirSync(sessions, { recursive: true, encoding: 'utf8' });
  const written = files.filter((name) => name.includes('/projects/') && name.endsWith('.jsonl'));
  return written.map((name) => readFileSync(join(sessions, name), 'utf8')).join('');
}

function hookStarts(group: string, source: string): number {
  const sessions = join(user.data, 'session-groups', group, 'sessions');
  const lines = readdirSync(sessions).flatMap((name) =>
    readFileSync(join(sessions, name, 'hooks.log'), 'utf8')
      .trim()
      .split('\n'),
  );
  const calls = lines.map((line): unknown => JSON.parse(line));
  return calls.filter((call) => Bun.deepMatch({ system: 'cpm', event: 'session-start', source }, call)).length;
}

/** A group of one session with the template, which is compacted above 67,000 tokens. */
async function groupOf(template: string, { begin, program, files }: Pick<System, 'begin' | 'program' | 'files'>) {
  const call = bash(program);
  const hang = { hang: true, times: 1 };
  const filled = { ...call, usage: { input: 70_000 } };
  const steps: Step[] = [
    call,
    filled,
    call,
    { ...call, ...hang },
    { text: 'Done.' },
    call,
    { text: 'Working.', ...hang },
  ];
  let own: string | undefined;
  api = startScriptedApi({
    script: {
      version: 1,
      sessions: { own: { steps }, '*': { steps: [call, { text: 'Cleared.' }, call, { text: 'Forked.' }] } },
    },
    // Each boundary in the terminal starts a conversation with another id.
    nameOf(id) {
      own ??= id;
      return id === own ? 'own' : undefined;
    },
  });
  user = new User({
    ANTHROPIC_BASE_URL: api.url,
    ANTHROPIC_API_KEY: 'test-key',
    CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
  });
  const project = user.project('api');
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(project, path)), { recursive: true });
    writeFileSync(join(project, path), text);
  }
  const group = await user.ok('group', 'create', 'work', '--config-template', template);
  const given = ['--name', 'one', '--prompt', begin, '--model', modelOfKnownPrice];
  const compacting = ['--settings-override', '{"autoCompactWindow": 100000}'];
  await user.ok('session', 'add', group, '--project', project, ...given, ...compacting);
  return group;
}

test.each(Object.entries(systems))(
  '%s: its commands work at the start, after a compaction, a pause, /clear and in a fork',
  async (template, { begin, begun, command, expanded, program, printed, files }) => {
    const group = await groupOf(template, { begin, program, files });
    const expectCommand = (index: number) => {
      for (const part of expanded) expect(textOf(index)).toContain(part);
    };

    // The start and an automatic compaction.
    const first = user.start('group', 'run', group, '--output', 'quiet');
    await until(() => api.requests.length >= 5);
    expect(api.requests.map(({ kind }) => kind)).toEqual(['step', 'step', 'summary', 'step', 'step']);
    expect(textOf(0)).toContain(begun);
    for (const index of [1, 4]) expect(resultIn(index)).toContain(printed);

    // A pause. The message to the session is a command of the template and a turn of its own.
    await user.ok('group', 'pause', group);
    await first.finished;
    await user.ok('session', 'say', `${group}/one`, command);
    const second = user.start('group', 'run', group, '--output', 'quiet');
    await until(() => api.requests.length >= 9);
    expect(resultIn(6)).toContain(printed);
    expectCommand(7);
    expect(resultIn(8)).toContain(printed);

    terminal = new TestTerminal([launcher, 'session', 'attach', `${group}/one`], {
      cwd: user.folder,
      env: user.env,
      columns: 100,
      rows: 40,
    });
    await terminal.shows('❯');
    for (const [boundary, answer, hasBegun] of [
      ['/clear', 'Cleared.', () => hookStarts(group, 'clear') > 0],
      ['/branch', 'Forked.', () => terminal?.text().includes('Branched') === true],
    ] as const) {
      await terminal.enter(boundary);
      await until(hasBegun);
      const { length } = api.requests;
      await terminal.enter(command);
      const index = await requestWith(expanded[0] ?? '', length);
      expectCommand(index);
      await until(() => api.requests.length > index + 1);
      expect(resultIn(index + 1)).toContain(printed);
      // A fork of an unfinished turn would lack its end.
      await until(() => conversations(group).includes(answer));
      await until(() => !terminal?.text().includes('esc to interrupt'));
    }
    await terminal.enter('/exit');
    expect(await terminal.exited).toBe(0);
    second.kill('SIGTERM');
    await second.finished;
    expect(api.problems).toEqual([]);
  },
  60_000,
);
