/**
 * Promises, with the real claude, git repositories and a scripted model: sessions start in waves; a correction after
 * the first wave is in the first prompt of each later session and reaches those of the first wave by a retry. Killing
 * the runner or the answer before and after a decision is logged changes nothing.
 */
import { afterEach, expect, test } from 'bun:test';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SessionId } from '../../../src/core/group.ts';
import { sessionUuid } from '../../../src/core/id.ts';
import type { Step } from '../../../src/rehearsal/script.ts';
import { blocksOf, type Message } from '../../../src/rehearsal/script.ts';
import { type CapturedRequest, type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { modelOfKnownPrice } from '../../support/claude/rig.ts';
import { launcher, User } from '../../support/cli/user.ts';
import { pinnedClaude, type StartedCommand, until } from '../../support/cli.ts';
import { alteredProgram, startCommand } from '../../support/crash-rig.ts';
import { Repository } from '../../support/git/repository.ts';
import { isLongRun } from '../../support/long.ts';

const note = 'Keep verify as an alias.';
const flow = `version: 1
group:
  waves: [3, 20%, rest]
  continueIf: accepted >= 80% and cost <= quote
  concurrent: 4
  model: ${modelOfKnownPrice}
  maxBudgetUsd: 40
sessions:
  change:
    matrix:
      projects: repos/*
    isolate: worktree
    allowedTools: [Bash]
    accept: grep -q verifyToken auth.js
    prompt: Rename verify to verifyToken in {{matrix.name}}.
  report:
    project: report
    isolate: none
    prompt: Write the report.
`;
const rename = "sed -i 's/verify/verifyToken/' auth.js && git commit --quiet --all --message Rename";
const steps: Step[] = [{ tool: 'Bash', input: { command: rename } }, { text: 'Renamed.' }, { text: 'Kept.' }];

/** What a person wrote; claude itself adds reminders, among them the text of CLAUDE.md with the task. */
function promptsOf(message: Message): string[] {
  const texts = message.role === 'user' ? blocksOf(message).flatMap(({ text }) => text ?? []) : [];
  return texts.filter((text) => !text.startsWith('<system-reminder>'));
}

/** What the real API would be asked, by repository. */
class Asked {
  readonly api: ScriptedApi;
  /** Settled when the report may be written; until then its session runs. */
  readonly report = Promise.withResolvers<void>();
  /** The same for all repositories but the first three. */
  readonly later = Promise.withResolvers<void>();

  constructor() {
    this.api = startScriptedApi({
      script: { version: 1, sessions: { '*': { steps }, report: { steps: [{ text: 'Reported.' }] } } },
      nameOf: (id) => (this.#reporters.has(id) ? 'report' : undefined),
      gate: ({ session, body }) => {
        if (this.#reporters.has(session)) return this.report.promise;
        return /verifyToken in r0[1-3]/.test(JSON.stringify(body.messages)) ? undefined : this.later.promise;
      },
    });
  }

  readonly #reporters = new Set<string>();

  reports(claudeSession: string): void {
    this.#reporters.add(claudeSession);
  }

  /** All prompts of each repository's conversation, as its last request shows them. */
  prompts(): Map<string, string> {
    const last = new Map<string, CapturedRequest>();
    for (const request of this.api.requests) if (request.kind === 'step') last.set(request.session, request);
    const all = [...last].flatMap(([session, { body }]) =>
      this.#reporters.has(session) ? [] : [(body.messages ?? []).flatMap(promptsOf).join('\n')],
    );
    return new Map(all.map((text) => [/verifyToken in (r\d+)\./.exec(text)?.[1] ?? text, text]));
  }
}

interface Logged {
  readonly type: string;
  readonly sessionId: SessionId;
  readonly [field: string]: unknown;
}

interface Inbox {
  readonly items: { readonly id: string; readonly kind: string; readonly text: string }[];
}

let asked: Asked;
let user: User;
const started: StartedCommand[] = [];
afterEach(async () => {
  asked.report.resolve();
  asked.later.resolve();
  for (const one of started.splice(0)) {
    one.kill('SIGKILL');
    await one.finished;
  }
  await asked.api.stop();
  user.remove();
});

function altered(at: string, ...args: string[]): StartedCommand {
  const command = startCommand([...alteredProgram, ...args], { ...user.env, TEST_WORLD: JSON.stringify({ at }) });
  started.push(command);
  return command;
}

/** The command must be killed at that moment. */
async function killed(at: string, ...args: string[]): Promise<void> {
  const { code, stdout, stderr } = await altered(at, ...args).finished;
  if (code !== null) throw new Error(`${args.join(' ')} ended with ${code} before "${at}": ${stderr}${stdout}`);
}

/** The id of a group with so many repositories. */
async function makeGroup(names: readonly string[]): Promise<string> {
  const first = new Repository(join(user.folder, 'model'));
  first.commit({ 'auth.js': 'exports.verify = (token) => token.length > 0;\n', 'README.md': '# Auth\n' });
  for (const name of names) cpSync(first.folder, join(user.folder, 'repos', name), { recursive: true });
  user.project('../report');
  writeFileSync(join(user.folder, 'flow.yaml'), flow);
  const created = await user.runWith({ cwd: user.folder }, 'group', 'create', 'rename', '--from', 'flow.yaml');
  expect(created.stderr).toBe('');
  return created.stdout.trim();
}

function logged(group: string, type: string): Logged[] {
  const lines = readFileSync(join(user.data, 'session-groups', group, 'events.jsonl'), 'utf8').split('\n');
  return lines.flatMap((line): Logged[] => (line === '' ? [] : [JSON.parse(line)])).filter((one) => one.type === type);
}

async function correctAll(moment: 'before' | 'after', count: number): Promise<void> {
  asked = new Asked();
  const env = { ANTHROPIC_BASE_URL: asked.api.url, ANTHROPIC_API_KEY: 'test-key' };
  user = new User({ ...env, CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(), GIT_CONFIG_NOSYSTEM: '1' });
  writeFileSync(join(user.home, '.gitconfig'), '[user]\n\tname = Ada\n\temail = ada@example.org\n');
  const names = Array.from({ length: count }, (_, index) => `r${String(index + 1).padStart(2, '0')}`);
  const group = await makeGroup(names);
  asked.reports(sessionUuid(logged(group, 'session_added').at(-1)?.sessionId as SessionId));
  await decideFirst(group, moment, count);
  await decideSecond(group, names);
  expect(logged(group, 'item_opened').length).toBe(1);
  expect(logged(group, 'wave_decided').map(({ wave, by, decision }) => [wave, by, decision])).toEqual([
    [1, 'user', 'continue'],
    [2, 'rule', 'continue'],
  ]);
  expect(logged(group, 'session_failed')).toEqual([]);
  const prompts = asked.prompts();
  expect([...prompts.keys()].toSorted()).toEqual(names);
  // Once in each conversation: in the first prompt of the later ones, in a second prompt of the first three.
  expect(names.map((name) => prompts.get(name)?.split(note).length)).toEqual(names.map(() => 2));
  const early = logged(group, 'session_added').slice(0, 3);
  const first = new Set(early.map(({ sessionId }) => sessionUuid(sessionId)));
  const requests = asked.api.requests.filter(({ kind }) => kind === 'step');
  const corrected = requests.filter(({ session, body }) => first.has(session) && JSON.stringify(body).includes(note));
  expect(corrected.length).toBe(3);
  expect(requests.length).toBe(2 * count + 3 + 1);
  const { spentUsd } = await user.json<{ spentUsd: number }>('group', 'budget', group);
  expect(spentUsd).toBeCloseTo(asked.api.served.total.costUsd, 6);
}

/** A person continues after wave 1. The report keeps its claude busy, so each new runner adopts it. */
async function decideFirst(group: string, moment: 'before' | 'after', count: number): Promise<void> {
  const run = ['group', 'resume', group, '--output', 'quiet'];
  await killed('before log wave_finished', 'group', 'run', group, '--output', 'quiet');
  for (const at of ['after log wave_finished', 'before log item_opened', 'after log item_opened']) {
    await killed(at, ...run);
  }
  expect(asked.prompts().size).toBe(3);
  const { items } = await user.json<Inbox>('inbox');
  const [item] = items;
  expect(items).toMatchObject([{ kind: 'wave', options: ['continue', 'stop'] }]);
  const price = (0.02 * (count - 3)).toFixed(2);
  expect(item?.text).toStartWith('Wave 1 of 3: 3 of 3 sessions accepted, $0.06 spent.');
  expect(item?.text).toEndWith(`At this price the other ${count - 3} cost $${price}.`);
  const words = ['continue', '--note', note];
  await killed('before log wave_decided', 'answer', item?.id ?? '', ...words);
  expect((await user.json<Inbox>('inbox')).items).toEqual(items);

  // The runner is there when the answer comes, and is killed by it.
  const adoptions = logged(group, 'session_adopted').length;
  const live = altered(`${moment} log wave_decided`, ...run);
  await until(() => logged(group, 'session_adopted').length > adoptions);
  // Only one wave of a group can wait, so the group's name will do.
  expect(await user.run('answer', 'rename', ...words)).toMatchObject({ code: 0, stderr: '' });
  expect((await live.finished).code).toBe(null);
  const second = await user.run('answer', item?.id ?? '', 'stop');
  expect(second).toMatchObject({ code: 2 });
  expect(second.stderr).toContain('was already answered: continue');
  expect(asked.prompts().size).toBe(3);
}

/** The rule continues after wave 2. The first three are corrected while it runs. */
async function decideSecond(group: string, names: readonly string[]): Promise<void> {
  const run = ['group', 'resume', group, '--output', 'quiet'];
  const two = 3 + Math.ceil(names.length * 0.2);
  const running = altered('before log wave_finished', ...run);
  await until(() => asked.prompts().size > 3);
  for (const name of names.slice(0, 3)) {
    await user.ok('session', 'retry', `${group}/change-${name}`, '--prompt', note);
  }
  asked.later.resolve();
  expect((await running.finished).code).toBe(null);
  for (const at of ['after log wave_finished', 'before log wave_decided']) await killed(at, ...run);
  expect(asked.prompts().size).toBe(two);
  await killed('after log wave_decided', ...run);
  asked.report.resolve();
  expect(await startCommand([launcher, ...run], user.env).finished).toMatchObject({ code: 0, stderr: '' });
}

test.each([['before', isLongRun ? 80 : 12], ...(isLongRun ? ([['after', 12]] as const) : [])] as const)(
  'a runner killed %s the decision: a correction reaches all of %i repositories once',
  correctAll,
  600_000,
);
