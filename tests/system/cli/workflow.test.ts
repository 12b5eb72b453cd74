/**
 * Promises, with the real claude: a workflow becomes a group whose later prompts contain earlier results. Generated
 * files are loaded and obeyed, recorded definitions stay, and a preview starts and writes nothing.
 */

import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { RehearsalScript } from '../../../src/rehearsal/script.ts';
import { type CapturedRequest, type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { User } from '../../support/cli/user.ts';
import { pinnedClaude } from '../../support/cli.ts';
import { isLongRun } from '../../support/long.ts';

let api: ScriptedApi;
let user: User;
/** Maps claude's session id to the session's name; filled in when a group exists. */
const names = new Map<string, string>();

function serve(sessions: RehearsalScript['sessions'], claude = pinnedClaude()): void {
  api = startScriptedApi({ script: { version: 1, sessions }, nameOf: (id) => names.get(id) });
  user = new User({
    ANTHROPIC_BASE_URL: api.url,
    ANTHROPIC_API_KEY: 'test-key',
    CLAUDE_CODE_AGENT_CLAUDE: claude,
  });
}

beforeEach(() => names.clear());
afterEach(async () => {
  await api.stop();
  user.remove();
});

function write(path: string, text: string): string {
  const whole = join(user.folder, path);
  mkdirSync(dirname(whole), { recursive: true });
  writeFileSync(whole, text);
  return whole;
}

async function learnNames(group: string): Promise<void> {
  const sessions = await user.json<{ id: string; name: string }[]>('session', 'list', group);
  for (const { id, name } of sessions) names.set(id.slice(id.indexOf('-') + 1), name);
}

const requestsOf = (name: string): CapturedRequest[] => api.requests.filter((request) => request.name === name);
const said = (request: CapturedRequest | undefined): string => JSON.stringify(request?.body.messages);

const threeStages = `
version: 1
name: everywhere
title: "{{ticket}} everywhere"
vars:
  ticket: { required: true }
group: { concurrent: 6 }
sessions:
  find:
    matrix: { projects: "services/*" }
    prompt: "Find what {{ticket}} means for {{matrix.name}}"
  change:
    matrix: { projects: "services/*" }
    prompt: "Change it. {{sessions.find[matrix.project].result}}"
    dependsOn: "find[matrix.project]"
  check:
    matrix: { projects: "services/*" }
    prompt: "Check it. {{sessions.change[matrix.project].result}}"
    dependsOn: "change[matrix.project]"
`;

/** Thirty-six sessions take a while. */
const projects = isLongRun ? 12 : 2;

test('three sessions for each of many projects: planned and rehearsed, with earlier results', async () => {
  serve({ '*': { steps: [{ text: 'never asked' }] } }, pinnedClaude());
  for (let count = 1; count <= projects; count += 1) write(`services/s${count}/README.md`, 'a service');
  const file = write('everywhere.yaml', threeStages);
  const script = write(
    'script.yaml',
    'version: 1\nsessions:\n  "*":\n    steps:\n      - text: "{{session}} was here"\n',
  );
  const planned = await user.run('run', file, '--var', 'ticket=ABC-12', '--dry-run', '--rehearse', '--retry-failed');
  expect(planned).toMatchObject({ code: 0, stderr: '' });
  expect(planned.stdout).toContain(`${3 * projects} sessions in 3 waves, 6 at once`);
  if (projects > 2)
    expect(planned.stdout).toContain(
      `${Math.min(projects, 6) - 1} similar sessions wait some seconds for the first answer to`,
    );
  expect(readdirSync(user.data)).toEqual(['tried-claudes.json']);

  const run = await user.run('run', file, '--var', 'ticket=ABC-12', '--rehearse', script, '--output', 'quiet');
  expect(run.code).toBe(0);
  const [group = ''] = readdirSync(join(user.data, 'session-groups'));
  const folder = join(user.data, 'session-groups', group);
  const sessions = await user.json<{ id: string; name: string; status: string }[]>('session', 'list', group);
  expect(sessions.filter(({ status }) => status === 'completed')).toHaveLength(3 * projects);
  const promptOf = (name: string) => {
    const { id } = sessions.find((session) => session.name === name) ?? { id: '' };
    return readFileSync(join(folder, 'sessions', id, 'prompt.md'), 'utf8');
  };
  expect(promptOf('find-s1')).toBe('The task of this session:\n\nFind what ABC-12 means for s1');
  const said = (name: string) => `<session-result from="${name}">${name} was here</session-result>`;
  expect(promptOf('change-s1')).toBe(`The task of this session:\n\nChange it. ${said('find-s1')}`);
  expect(promptOf('check-s2')).toBe(`The task of this session:\n\nCheck it. ${said('change-s2')}`);
  expect(readFileSync(join(folder, 'workflow.yaml'), 'utf8')).toBe(threeStages);
}, 180_000);

test("a session can read its dependency's project, and changes nothing there", async () => {
  const sessions: RehearsalScript['sessions'] = { api: { steps: [{ text: 'done' }] } };
  serve(sessions);
  for (const name of ['api', 'web', 'other']) write(`${name}/README.md`, `this is ${name}`);
  const text = `
version: 1
sessions:
  api: { project: api, prompt: "Add verifyToken" }
  web: { project: web, dependsOn: api, prompt: "Use verifyToken of ../api" }
`;
  const group = await user.ok('group', 'create', 'auth', '--from', write('auth.yaml', text));
  await learnNames(group);
  const at = (path: string) => join(user.folder, path);
  const tools = [
    { tool: 'Read', input: { file_path: at('api/README.md') } },
    { tool: 'Bash', input: { command: 'grep -c "this is" ../api/README.md && echo FOUND' } },
    { tool: 'Write', input: { file_path: at('api/mine.txt'), content: 'x' } },
    { tool: 'Read', input: { file_path: at('other/README.md') } },
  ];
  sessions.web = { steps: [{ tools }, { text: 'used' }] };
  await user.run('group', 'run', group, '--output', 'quiet');
  const heard = said(requestsOf('web').at(-1));
  for (const part of ['this is api', 'FOUND']) expect(heard).toContain(part);
  expect(heard).not.toContain('this is other');
  expect(readdirSync(at('api'))).toEqual(['README.md']);
}, 60_000);

test('a later prompt contains an earlier result, its structured parts, and a file path for long results', async () => {
  const long = `BEGIN ${'much to say. '.repeat(1_000)}END`;
  const sessions: RehearsalScript['sessions'] = {
    scan: { steps: [{ tool: 'StructuredOutput', input: { found: [{ file: 'a.ts', why: 'old' }] } }] },
    tell: { steps: [{ text: long }] },
  };
  serve(sessions);
  write('one/README.md', 'x');
  const file = write(
    'fix.yaml',
    `
version: 1
sessions:
  scan:
    project: one
    prompt: scan
    outputSchema:
      type: object
      properties: { found: { type: array, items: { type: object } } }
      required: [found]
  tell: { project: one, prompt: tell }
  fix:
    project: one
    dependsOn: [scan, tell]
    prompt: |
      Fix {{sessions.scan.structured.found[0].file}} for {{sessions.scan.structured.found}}.
      {{sessions.tell.result}}
`,
  );
  const group = await user.ok('group', 'create', 'fix', '--from', file);
  await learnNames(group);
  const path = join(folderOf(group, 'fix'), 'inputs', '1-tell-result.md');
  sessions.fix = { steps: [{ tool: 'Read', input: { file_path: path } }, { text: 'fixed' }] };
  expect((await user.run('group', 'run', group, '--output', 'quiet')).code).toBe(0);
  const first = said(requestsOf('fix')[0]);
  expect(first).toContain('Fix a.ts for');
  expect(first).toContain('BEGIN much to say.');
  expect(first).not.toContain('END');
  expect(first).toContain(`All of it is in the file ${path}]`);
  expect(readFileSync(path, 'utf8')).toBe(long);
  expect(said(requestsOf('fix').at(-1))).toContain('END');
  expect(await user.json('session', 'show', `${group}/scan`)).toMatchObject({
    structured: { found: [{ file: 'a.ts', why: 'old' }] },
  });
}, 60_000);

function folderOf(group: string, name: string): string {
  const folder = join(user.data, 'session-groups', group, 'sessions');
  const id = readdirSync(folder).find((entry) => names.get(entry.slice(entry.indexOf('-') + 1)) === name) ?? '';
  return join(folder, id);
}

test('a session without an answer that fits its schema fails', async () => {
  serve({ '*': { steps: [{ tool: 'StructuredOutput', input: { other: 1 } }, { text: 'I would rather not.' }] } });
  write('one/README.md', 'x');
  const schema = '{ type: object, properties: { n: { type: integer } }, required: [n] }';
  const file = write('s.yaml', `version: 1\nsessions: { a: { project: one, prompt: count, outputSchema: ${schema} } }`);
  const run = await user.run('run', file, '--output', 'json');
  expect(run.code).toBe(1);
  const failed = run.stdout.split('\n').find((line) => line.includes('"session_failed"')) ?? '{}';
  expect(JSON.parse(failed)).toMatchObject({ reason: 'no-structured-result' });
}, 60_000);

function writeStrictTemplate(): void {
  const folder = 'one/.claude-code-agent/templates/configs/strict';
  write(`${folder}/CLAUDE.md`, 'Never use the word {{word}}.');
  write(`${folder}/settings.json`, '{"permissions":{"allow":["Bash(ls:*)"],"deny":["Bash(touch:*)"]}}');
  write(`${folder}/commands/greet.md`, 'Greet $ARGUMENTS.');
  write(`${folder}/skills/lookup/SKILL.md`, '---\nname: lookup\ndescription: looks things up\n---\nLook it up.\n');
  // One that ends at once: claude waits half a minute for a silent one.
  const server = { command: process.execPath, args: ['-e', ''] };
  write(`${folder}/mcp.json`, JSON.stringify({ mcpServers: { tiny: server } }));
}

test('claude loads and obeys a config template; later changes of the template have no effect', async () => {
  serve({
    '*': { steps: [{ tool: 'Bash', input: { command: 'touch made' } }, { text: 'tried' }] },
  });
  writeStrictTemplate();
  const group = await user.ok('group', 'create', 'strict');
  const one = join(user.folder, 'one');
  const added = ['--project', one, '--prompt', 'touch it', '--config-template', 'strict', '--var', 'word=obviously'];
  const id = await user.ok('session', 'add', group, ...added, '--allowed-tools', 'Bash');
  rmSync(join(one, '.claude-code-agent'), { recursive: true });
  await user.run('group', 'run', group, '--output', 'quiet');

  const transcript = readFileSync(join(user.data, 'session-groups', group, 'sessions', id, 'transcript.jsonl'), 'utf8');
  const init = JSON.parse(transcript.split('\n').find((line) => line.includes('"subtype":"init"')) ?? '{}');
  expect(init.mcp_servers).toMatchObject([{ name: 'tiny' }]);
  expect(init.slash_commands).toContain('greet');
  expect(init.skills).toContain('lookup');
  expect(readdirSync(one)).not.toContain('made');
  expect(said(api.requests[0])).toContain('Never use the word obviously.');

  const view = await user.json<{ claudeMd: { layer: string }[]; settingsOrigins: object; mcpOrigins: object }>(
    'session',
    'show',
    id,
    '--config',
  );
  expect(view.claudeMd.map(({ layer }) => layer)).toEqual(['claude-code-agent', 'config template strict']);
  expect(view.settingsOrigins).toMatchObject({ 'permissions.deny.0': 'config template strict' });
  expect(view.mcpOrigins).toEqual({ tiny: 'config template strict' });
}, 60_000);

test('claude loads the plugins of a config template, with their hooks and commands', async () => {
  serve({ '*': { steps: [{ text: 'tried' }] } });
  const one = join(user.folder, 'one');
  const plugin = 'one/.claude-code-agent/templates/configs/team/plugins/team';
  write(`${plugin}/.claude-plugin/plugin.json`, '{"name": "team", "version": "1.0.0"}');
  write(`${plugin}/commands/hail.md`, 'Say hail.');
  write(`${plugin}/scripts/begin.sh`, '#!/bin/sh\necho begun-by-the-plugin\n');
  const command = ['"$', '{CLAUDE_PLUGIN_ROOT}"/scripts/begin.sh'].join('');
  const SessionStart = [{ hooks: [{ type: 'command', command }] }];
  write(`${plugin}/hooks/hooks.json`, JSON.stringify({ hooks: { SessionStart } }));
  const group = await user.ok('group', 'create', 'team');
  const add = ['session', 'add', group, '--project', one, '--prompt', 'go'];
  const id = await user.ok(...add, '--config-template', 'team', '--name', 'work');
  expect((await user.run('group', 'run', group, '--output', 'quiet')).code).toBe(0);
  const transcript = readFileSync(join(user.data, 'session-groups', group, 'sessions', id, 'transcript.jsonl'), 'utf8');
  const init = JSON.parse(transcript.split('\n').find((line) => line.includes('"subtype":"init"')) ?? '{}');
  expect(init.plugins).toContainEqual(expect.objectContaining({ name: 'team' }));
  expect(init.slash_commands).toContain('team:hail');
  expect(JSON.stringify(api.requests[0]?.body).includes('begun-by-the-plugin')).toBe(true);

  rmSync(join(user.folder, plugin, '.claude-plugin'), { recursive: true });
  const refused = await user.run(...add, '--config-template', 'team');
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('is not a plugin: .claude-plugin') });
  write(`${plugin}/.claude-plugin/plugin.json`, '{"name": "team"}');
  write(`${plugin}/.mcp.json`, '{"mcpServers": {}}');
  expect(await user.run(...add, '--config-template', 'team')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('move them to mcp.json of the template'),
  });
}, 60_000);

test('a plan forecasts from finished runs, and says when there are none', async () => {
  serve({ '*': { steps: [{ text: 'done' }] } });
  write('one/README.md', 'x');
  const file = write('w.yaml', 'version: 1\nsessions: { a: { project: one, prompt: do it, model: claude-opus-4-8 } }');
  const before = await user.json<{ forecast: object }>(
    'group',
    'plan',
    await user.ok('group', 'create', 'w', '--from', file),
  );
  expect(before.forecast).toMatchObject({ costUsd: null });
  expect((await user.run('run', file, '--output', 'quiet')).code).toBe(0);
  const after = await user.json<{ forecast: { costUsd: { p50: number; p90: number } }; missing: unknown[] }>(
    'group',
    'plan',
    await user.ok('group', 'create', 'w', '--from', file),
  );
  expect(after.forecast.costUsd).toEqual({ p50: 0.01, p90: 0.01 });
  expect(after.missing).toEqual([]);
}, 60_000);

test('the example commands of the specification work verbatim', async () => {
  serve({ '*': { steps: [{ text: 'done' }] } });
  for (const name of ['project-a', 'project-b']) user.project(name);
  const folder = join(user.folder, 'projects');
  const group = await user.ok(
    ...['group', 'create', 'cross-project-refactor', '--name', 'Cross-Project Auth Refactor'],
    ...['--description', 'Refactor auth across services'],
  );
  const first = await user.ok(
    ...['session', 'add', group, '--project', join(folder, 'project-a'), '--prompt', 'Implement auth module'],
    ...['--template', 'typescript-strict'],
  );
  const second = await user.ok(
    ...['session', 'add', group, '--project', join(folder, 'project-b'), '--prompt', 'Update shared library'],
    ...['--depends-on', first],
  );
  expect(await user.json('session', 'show', first)).toMatchObject({
    prompt: 'Implement auth module',
    configTemplate: { name: 'strict-typescript' },
  });
  for (const status of ['active', 'completed', 'archived']) await user.ok('group', 'list', '--status', status);
  await user.ok('group', 'show', group);
  expect((await user.run('group', 'run', group, '--concurrent', '3', '--respect-dependencies')).code).toBe(0);
  expect(await user.ok('group', 'watch', group)).toContain('completed');
  expect(await user.json('session', 'show', second)).toMatchObject({ status: 'completed' });
  await user.ok('group', 'archive', group);
  await user.ok('group', 'delete', group, '--force');
}, 60_000);
