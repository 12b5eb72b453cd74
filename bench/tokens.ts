/**
 * What requests have in common from their beginning on, ours beside `claude -p` in a loop: only that can be read from
 * the server's prompt cache instead of being paid in full. The model is scripted; what the server really keeps cannot
 * be measured without it.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { MessagesBody } from '../src/rehearsal/conversation.ts';
import type { Step } from '../src/rehearsal/script.ts';
import { type ScriptedApi, startScriptedApi } from '../src/rehearsal/scripted-api.ts';
import { Machine, pinnedClaude, until } from '../tests/support/cli.ts';
import { noteTried } from '../tests/support/tried.ts';
import { type Benchmark, type Figure, formatBytes } from './support/figures.ts';
import { type SharedPrefix, sharedPrefix } from './support/request-prefix.ts';

/** Of English and JSON; only the API itself counts tokens. */
const bytesPerToken = 4;

const [update, describe] = ['Bring the parser up to date.', 'Write down what the tests do not cover.'];

interface Sketch {
  readonly project: string;
  readonly prompt: string;
  readonly isolate?: 'worktree';
  readonly configTemplate?: 'house' | 'strict' | 'forgetful';
}

/** All of one group; each pair of names below is compared. */
const sketches: Readonly<Record<string, Sketch>> = {
  base: { project: 'one', prompt: update },
  same: { project: 'one', prompt: update },
  task: { project: 'one', prompt: describe },
  project: { project: 'two', prompt: update },
  both: { project: 'two', prompt: describe },
  tree: { project: 'two', prompt: update, isolate: 'worktree' },
  grove: { project: 'two', prompt: describe, isolate: 'worktree' },
  house: { project: 'one', prompt: update, configTemplate: 'house' },
  home: { project: 'two', prompt: describe, configTemplate: 'house' },
  strict: { project: 'one', prompt: update, configTemplate: 'strict' },
  blank: { project: 'one', prompt: update, configTemplate: 'forgetful' },
  void: { project: 'one', prompt: describe, configTemplate: 'forgetful' },
};

const pairs: readonly (readonly [what: string, one: string, other: string])[] = [
  ['same project, same task', 'base', 'same'],
  ['same project, other task', 'base', 'task'],
  ['other project, same task', 'base', 'project'],
  ['other project, other task', 'base', 'both'],
  ['two worktrees, other task', 'tree', 'grove'],
  ['in place and in a worktree, other task', 'base', 'grove'],
  ['one config template, other project, other task', 'house', 'home'],
  ['without and with a config template', 'base', 'home'],
  ['without and with a denied tool', 'base', 'strict'],
  ['without auto-memory (autoMemoryEnabled: false), other task', 'blank', 'void'],
];

export const tokens: Benchmark = {
  about: () =>
    'What the second of two requests repeats of the first, up to a mark at which the server stores: share of the ' +
    `bytes of tools, system and messages. Tokens are bytes / ${bytesPerToken}. Each session changes a file of its ` +
    'project, unless said otherwise. Without our options: the same group, with the parts of the system prompt that ' +
    'differ left where claude puts them. ' +
    'TEST_CLAUDE names another claude than the pinned one. Loop: `claude -p` in each project, one user, one ' +
    'config dir.',
  async run({ isQuick }) {
    const ours = await ourFirstRequests([changes, done]);
    const without = await ourFirstRequests([changes, done], asClaudeDoes);
    const loop = await loopFirstRequests([changes, done]);
    const shared = pairs.map(([what, one, other]) => {
      const of = (requests: Requests) => compared(requests, one, other);
      return {
        what,
        ours: of(ours),
        without: of(without),
        loop: loop.has(one) && loop.has(other) ? of(loop) : undefined,
      };
    });
    // Nine groups and loops of the real claude are no first look.
    if (isQuick) return [...shared.map(row), saving];
    const still = { ours: await ourFirstRequests([done]), loop: await loopFirstRequests([done]) };
    const unchanged = {
      what: 'the same once more, nothing changed',
      ours: compared(still.ours, 'base', 'same'),
      loop: compared(still.loop, 'base', 'same'),
    };
    const resumed = {
      what: 'before a pause and after it',
      ours: await ourResume(),
      without: await ourResume(asClaudeDoes),
    };
    const rows: Row[] = [
      ...shared.slice(0, 1),
      unchanged,
      ...shared.slice(1),
      { ...resumed, loop: await loopResume([]) },
      { what: 'the same, the loop with --model', ours: resumed.ours, loop: await loopResume(['--model', loopModel]) },
    ];
    return [...rows.map(row), saving];
  },
};

/** What the scripted model is called by who names one; any that claude knows. */
const loopModel = 'claude-opus-4-8';

type Requests = ReadonlyMap<string, MessagesBody>;

function bodyOf(requests: Requests, name: string): MessagesBody {
  const body = requests.get(name);
  if (body === undefined) throw new Error(`session ${name} made no request`);
  return body;
}

function compared(requests: Requests, one: string, other: string): SharedPrefix {
  return sharedPrefix(bodyOf(requests, one), bodyOf(requests, other));
}

interface Row {
  readonly what: string;
  readonly ours: SharedPrefix;
  /** The same without our options. */
  readonly without?: SharedPrefix;
  readonly loop: SharedPrefix | undefined;
}

function row({ what, ours, without, loop }: Row): Figure {
  const share = ({ cached, bytes }: SharedPrefix) => `${((100 * cached) / bytes).toFixed(1)} %`;
  const place = ({ parts }: SharedPrefix) => (parts === undefined ? '' : `, then ${parts.place} differs`);
  const size = `${formatBytes(ours.cached)} ≈ ${Math.round(ours.cached / bytesPerToken)} tokens${place(ours)}`;
  return {
    what,
    value: share(ours),
    note: [
      size,
      ...(without === undefined ? [] : [`without our options ${share(without)}${place(without)}`]),
      ...(loop === undefined ? [] : [`loop ${share(loop)}${place(loop)}`]),
    ].join('; '),
  };
}

/** Money only as a formula: what the server keeps, for whom and at which price, is not known here. */
const saving: Figure = {
  what: 'saved when one of n sessions goes first',
  value: '(n − 1) · P · (w − r)',
  note:
    'P = tokens of the row that fits, w and r = prices of writing and of reading one. Assumes that all n would have ' +
    'asked before the first answer, and that the server keeps P for the account until the last of them asks.',
};

const changes: Step = { text: 'I write it down.', tool: 'Bash', input: { command: 'date +%N >> notes.txt' } };
const pausable: Step = { tool: 'Bash', input: { command: 'test -e begun || { touch begun; sleep 600; }' } };
const done: Step = { text: 'It is done.' };

/** A machine with the projects and the template, and a model that plays `steps`; ends with `use`. */
async function onMachine<T>(steps: Step[], use: (machine: Machine, api: ScriptedApi) => Promise<T>): Promise<T> {
  const script = { version: 1 as const, sessions: { '*': { steps } } };
  const api = startScriptedApi({ script, nameOf: () => undefined });
  const machine = new Machine({
    ANTHROPIC_BASE_URL: api.url,
    ANTHROPIC_API_KEY: 'test-key',
    CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
  });
  try {
    for (const name of ['one', 'two']) makeProject(machine, name);
    const template = (path: string, text: string) => write(join(machine.folder, 'configs', path), text);
    template('house/CLAUDE.md', 'Write tests first.\n');
    template('house/settings.json', JSON.stringify({ permissions: { allow: ['Bash(ls:*)'] } }));
    template('house/skills/tidy/SKILL.md', '---\nname: tidy\ndescription: Tidies up\n---\nTidy up.\n');
    template('house/agents/reader.md', '---\nname: reader\ndescription: Reads much\n---\nRead.\n');
    template('house/commands/do.md', 'Do it.\n');
    template('house/rules/words.md', 'Use plain words.\n');
    template('forgetful/settings.json', JSON.stringify({ autoMemoryEnabled: false }));
    template('strict/settings.json', JSON.stringify({ permissions: { deny: ['WebFetch'] } }));
    machine.env.CLAUDE_CODE_AGENT_TEMPLATES = machine.folder;
    return await use(machine, api);
  } finally {
    await api.stop();
    machine.remove();
  }
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

function makeProject(machine: Machine, name: string): void {
  const folder = machine.project(name);
  write(join(folder, 'README.md'), `Project ${name}.\n`);
  const who = ['-c', 'user.name=bench', '-c', 'user.email=bench@localhost', '-c', 'commit.gpgSign=false'];
  for (const command of [
    ['init', '--quiet'],
    ['add', '.'],
    ['commit', '--quiet', '--message', 'Everything'],
  ]) {
    const ran = Bun.spawnSync(['git', ...who, ...command], { cwd: folder, env: machine.env });
    if (ran.exitCode !== 0) throw new Error(`git ${command.join(' ')}: ${ran.stderr}`);
  }
}

/** A group of these sessions, one after another, with a project that changes in between. */
async function makeGroup(machine: Machine, names: readonly string[]): Promise<Map<string, string>> {
  const sessions = names.map((name) => [
    name,
    { ...sketches[name], allowedTools: ['Bash'], project: `projects/${sketches[name]?.project}` },
  ]);
  const shared = { concurrent: 1, shareCheckouts: true, isolate: 'none' };
  const file = join(machine.folder, 'bench.json');
  write(file, JSON.stringify({ version: 1, name: 'bench', group: shared, sessions: Object.fromEntries(sessions) }));
  const group = await machine.ok('group', 'create', 'bench', '--from', file);
  const listed = JSON.parse(await machine.ok('session', 'list', group, '--json')) as { id: string; name: string }[];
  return new Map(listed.map(({ id, name }) => [id.slice(id.indexOf('-') + 1), name]));
}

/** Takes back, between the runner and claude, what our options do to keep requests alike. */
function asClaudeDoes(machine: Machine): void {
  const program = join(machine.folder, 'as-claude-does');
  const lines = [
    '#!/bin/sh',
    'settings=$CLAUDE_CONFIG_DIR/settings.json',
    '[ -e "$settings" ] && sed -i \'s/"includeGitInstructions": false/"includeGitInstructions": true/\' "$settings"',
    'for word; do',
    '  shift',
    '  [ "$word" = --exclude-dynamic-system-prompt-sections ] || set -- "$@" "$word"',
    'done',
    `exec '${pinnedClaude()}' "$@"`,
  ];
  writeFileSync(program, `${lines.join('\n')}\n`, { mode: 0o700 });
  machine.env.CLAUDE_CODE_AGENT_CLAUDE = program;
  noteTried(machine.data, program);
}

function firstOf(api: ScriptedApi, names: ReadonlyMap<string, string>): Requests {
  const firsts = new Map<string, MessagesBody>();
  for (const { session, body } of api.requests) {
    const name = names.get(session);
    if (name !== undefined && !firsts.has(name)) firsts.set(name, body);
  }
  return firsts;
}

function ourFirstRequests(steps: Step[], prepare = (_: Machine) => {}): Promise<Requests> {
  return onMachine(steps, async (machine, api) => {
    prepare(machine);
    const names = await makeGroup(machine, Object.keys(sketches));
    await machine.ok('group', 'run', 'bench', '--min-free-memory', '1', '--output', 'quiet');
    return firstOf(api, names);
  });
}

/** The last request before the pause, and the first one after it. */
function ourResume(prepare = (_: Machine) => {}): Promise<SharedPrefix> {
  return onMachine([changes, pausable, done], async (machine, api) => {
    prepare(machine);
    await makeGroup(machine, ['base']);
    const run = ['group', 'run', 'bench', '--min-free-memory', '1', '--output', 'quiet'];
    const first = machine.start(...run);
    await until(() => existsSync(join(machine.project('one'), 'begun')));
    await machine.ok('group', 'pause', 'bench');
    await first.finished;
    return afterNext(api, () => machine.ok(...run));
  });
}

async function afterNext(api: ScriptedApi, goOn: () => Promise<unknown>): Promise<SharedPrefix> {
  const before = api.requests.length;
  await goOn();
  const [last, next] = api.requests.slice(before - 1, before + 1);
  if (last === undefined || next === undefined) throw new Error('nothing was asked after the pause');
  return sharedPrefix(last.body, next.body);
}

/** What people write themselves: no config dir of its own for each, so no templates and no worktrees either. */
function loopFirstRequests(steps: Step[]): Promise<Requests> {
  return onMachine(steps, async (machine, api) => {
    const names = new Map<string, string>();
    for (const [name, { project, prompt, isolate, configTemplate }] of Object.entries(sketches)) {
      if (isolate !== undefined || configTemplate !== undefined) continue;
      const id = crypto.randomUUID();
      names.set(id, name);
      await plainClaude(machine, project, ['--session-id', id], prompt).exited;
    }
    return firstOf(api, names);
  });
}

/** `words`: options that are given both times. */
function loopResume(words: readonly string[]): Promise<SharedPrefix> {
  return onMachine([changes, pausable, done], async (machine, api) => {
    const id = crypto.randomUUID();
    const first = plainClaude(machine, 'one', [...words, '--session-id', id], update);
    const begun = join(machine.project('one'), 'begun');
    await until(() => existsSync(begun));
    first.kill('SIGINT');
    await first.exited;
    return afterNext(api, () => plainClaude(machine, 'one', [...words, '--resume', id], 'Go on.').exited);
  });
}

function plainClaude(machine: Machine, project: string, words: readonly string[], prompt: string) {
  const args = ['-p', '--allowedTools=Bash', ...words];
  return Bun.spawn([pinnedClaude(), ...args], {
    cwd: machine.project(project),
    env: { ...machine.env, CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' },
    stdin: Buffer.from(prompt),
    stdout: 'ignore',
    stderr: 'ignore',
  });
}
