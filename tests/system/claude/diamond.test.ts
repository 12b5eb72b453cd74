/**
 * Promises, with the real claude and the commands a user types: a diamond of four sessions over three projects exits
 * with code 0. Every session has cost, tokens, duration, claude session id and a transcript with its result. Tools ran
 * in their own projects, and dependents started after their dependencies.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RehearsalScript, Step } from '../../../src/rehearsal/script.ts';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { modelOfKnownPrice } from '../../support/claude/rig.ts';
import { pinnedClaude, TestHome } from '../../support/cli.ts';

const specs = [
  { name: 'top', project: 'a', after: [] },
  { name: 'left', project: 'b', after: ['top'] },
  { name: 'right', project: 'c', after: ['top'] },
  { name: 'bottom', project: 'a', after: ['left', 'right'] },
] as const;

/** Writes a file, reads it with Bash, answers. */
const steps = (name: string): Step[] => [
  {
    text: 'I write the file.',
    tool: 'Write',
    input: { file_path: `{{project}}/${name}.txt`, content: `by ${name}\n` },
  },
  { tool: 'Bash', input: { command: `cat ${name}.txt && pwd` } },
  { text: `${name} is done: the é and the \u2028 came through.` },
];

const script: RehearsalScript = {
  version: 1,
  sessions: Object.fromEntries(specs.map(({ name }) => [name, { steps: steps(name) }])),
};

interface Meta {
  readonly status: string;
  readonly cost: number;
  readonly tokens: Record<string, number>;
  readonly durationMs: number;
  readonly claudeSessionId: string;
  readonly completedAt: string;
  readonly startedAt: string;
  readonly result: string;
}

let machine: TestHome;
let api: ScriptedApi;
const ids = new Map<string, string>();
let group = '';
let events: { type: string; seq: number; sessionId?: string }[] = [];

beforeAll(async () => {
  const names = new Map<string, string>();
  api = startScriptedApi({ script, nameOf: (id) => names.get(id) });
  machine = new TestHome({
    ANTHROPIC_BASE_URL: api.url,
    ANTHROPIC_API_KEY: 'test-key',
    CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
  });
  group = await machine.ok('group', 'create', 'diamond', '--description', 'Four sessions that belong together');
  for (const { name, project, after } of specs) {
    const dependencies = after.flatMap((other) => ['--depends-on', other]);
    const common = ['--name', name, '--project', machine.project(project), '--prompt', `write ${name}.txt`];
    const model = ['--model', modelOfKnownPrice];
    const id = await machine.ok('session', 'add', group, ...common, ...model, ...dependencies);
    ids.set(name, id);
    names.set(id.slice(4), name);
  }
  const run = await machine.run('group', 'run', group, '--output', 'json');
  expect({ code: run.code, stderr: run.stderr }).toEqual({ code: 0, stderr: '' });
  const lines = run.stdout.trim().split('\n');
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ type: 'header', version: 1 });
  events = lines.slice(1).map((line) => JSON.parse(line));
}, 60_000);
afterAll(async () => {
  await api.stop();
  machine.remove();
});

const folder = (name: string) => join(machine.data, 'session-groups', group, 'sessions', ids.get(name) ?? '');

test.each(specs.map(({ name }) => name))('%s is completed, and all its figures are known', (name) => {
  const meta = JSON.parse(readFileSync(join(folder(name), 'meta.json'), 'utf8')) as Meta;
  const id = ids.get(name) ?? '';
  expect(meta).toMatchObject({ status: 'completed', claudeSessionId: id.slice(4) });
  const served = api.served.sessions.get(id.slice(4));
  expect(meta.cost).toBeCloseTo(served?.costUsd ?? Number.NaN, 6);
  expect(meta.tokens).toEqual({ ...served?.tokens });
  expect(meta.durationMs).toBeGreaterThan(0);
  expect(Date.parse(meta.completedAt)).toBeGreaterThanOrEqual(Date.parse(meta.startedAt));
  expect(meta.result).toContain(`${name} is done`);
  const transcript = readFileSync(join(folder(name), 'transcript.jsonl'), 'utf8')
    .trim()
    .split('\n');
  const results = transcript.map((line) => JSON.parse(line)).filter((line) => line.type === 'result');
  expect(results).toHaveLength(1);
  expect(results[0]).toMatchObject({ subtype: 'success', is_error: false });
});

test('the tools ran, each in its own project', () => {
  for (const { name, project } of specs) {
    expect(readFileSync(join(machine.project(project), `${name}.txt`), 'utf8')).toBe(`by ${name}\n`);
  }
  expect(existsSync(join(machine.project('b'), 'right.txt'))).toBe(false);
});

test('dependents started only after their dependencies', () => {
  const seq = (type: string, name: string) =>
    events.find((event) => event.type === type && event.sessionId === ids.get(name))?.seq ?? Number.NaN;
  for (const { name, after } of specs) {
    for (const dependency of after) {
      expect(seq('session_completed', dependency)).toBeLessThan(seq('session_started', name));
    }
  }
});

test("the model got the task, the goal and the dependencies' answers, in well-formed requests", () => {
  expect(api.problems).toEqual([]);
  const first = api.requests.find((request) => request.name === 'bottom' && request.step === 0);
  const text = JSON.stringify(first?.body.messages);
  expect(text).toContain('write bottom.txt');
  expect(text).toContain('Four sessions that belong together');
  expect(text).toContain('left is done');
  expect(text).toContain('run unattended');
  expect(first?.headers['x-api-key']).toBe('test-key');
});

test('tools and system prompt are identical in all sessions, whatever their project, task and folder', () => {
  const firsts = api.requests.filter(({ step }) => step === 0).map(({ body }) => body);
  expect(firsts).toHaveLength(specs.length);
  const shared = firsts.map(({ model, tools, system }) => JSON.stringify({ model, tools, system }));
  expect(new Set(shared).size).toBe(1);
  // The cache marker is at the very end.
  const marked = JSON.stringify([firsts[0]?.system].flat().at(-1));
  expect(marked).toContain('cache_control');
  // The text that all sessions share precedes it and occurs nowhere else.
  for (const words of ['no one can answer questions', '## Git', '## State Management']) {
    expect(marked).toContain(words);
    for (const { messages } of firsts) expect(JSON.stringify(messages?.[0])).not.toContain(words);
  }
});

test('events and meta files contain no secret, and files are private', async () => {
  const root = join(machine.data, 'session-groups', group);
  for (const path of new Bun.Glob('**/*').scanSync({ cwd: root, dot: true })) {
    if (path.includes('claude-config/')) continue;
    expect({ path, leaks: (await Bun.file(join(root, path)).text()).includes('test-key') }).toEqual({
      path,
      leaks: false,
    });
  }
  const listed = Bun.spawnSync(['find', root, '-maxdepth', '3', '-perm', '/077']).stdout.toString();
  expect(listed).toBe('');
});
