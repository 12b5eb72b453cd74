/**
 * Promises: the acceptance rows of the CPM specification marked [integration], and every kind of stdin, through the
 * whole program.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { other, own, Project, progress } from '../../../support/context/cpm/rig.ts';

let project: Project;
beforeEach(() => {
  project = new Project();
  project.write(own, progress('cpm:spec', '3 of 6', 'MINE'));
  project.write(other, progress('cpm:do', '2 of 4', 'THEIRS'));
});
afterEach(() => project.remove());

const input = (source: string, sessionId = own) =>
  `${JSON.stringify({ session_id: sessionId, hook_event_name: 'SessionStart', source, cwd: '/nowhere' })}\n`;

test("2. Claude's context contains `CPM_SESSION_ID` after session start", () => {
  const { exitCode, stdout, stderr } = project.run('session-start', input('startup'));
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  expect(stdout).toStartWith(`CPM_SESSION_ID: ${own}\n`);
  expect(stdout).toContain('MINE');
  expect(stdout).toContain('THEIRS');
});

test('3. Post-compaction context contains correct session state', () => {
  for (const [id, mine, theirs] of [
    [own, 'MINE', 'THEIRS'],
    [other, 'THEIRS', 'MINE'],
  ] as const) {
    const { exitCode, stdout } = project.run('session-start', input('compact', id));
    expect(exitCode).toBe(0);
    expect(stdout).toStartWith(`CPM_SESSION_ID: ${id}\n`);
    expect(stdout).toContain(mine);
    expect(stdout).not.toContain(theirs);
  }
});

describe('unusable stdin', () => {
  test.each<[string, string | null]>([
    ['missing fields', '{}'],
    ['an id of another type', '{"session_id":7,"source":["compact"]}'],
    ['an id that is no file name', '{"session_id":"../../etc/passwd","source":"compact"}'],
    ['malformed', '{"session_id":"'],
    ['not an object', '[1, 2]'],
    ['no JSON', 'hello\u0000\u001b[2J'],
    ['empty', ''],
    ['missing', null],
  ])('with unusable stdin the hook shows all progress files: %s', (_, stdin) => {
    const { exitCode, stdout, stderr } = project.run('session-start', stdin);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).not.toContain('CPM_SESSION_ID:');
    expect(stdout).toContain('MINE');
    expect(stdout).toContain('THEIRS');
  });
  test('an id without a source counts as a start', () => {
    const { stdout } = project.run('session-start', `{"session_id":"${own}"}`);
    expect(stdout).toStartWith(`CPM_SESSION_ID: ${own}\n`);
    expect(stdout).toContain('THEIRS');
  });
});

test('a script that passes its source as an argument gets the output for that source', () => {
  const start = (source: string) => project.run('session-start', `{"session_id":"${own}"}`, {}, '--source', source);
  expect(start('compact').stdout).toContain('MINE');
  expect(start('compact').stdout).not.toContain('THEIRS');
  expect(start('startup').stdout).toContain('THEIRS');
});

test('hook events other than the start go through the same program', () => {
  const compaction = project.run('pre-compact', `{"session_id":"${own}","trigger":"auto"}`);
  expect(compaction.exitCode).toBe(0);
  expect(compaction.stdout).toContain('cpm:spec — 3 of 6');
  expect(project.run('session-end', `{"session_id":"${own}","reason":"other"}`)).toEqual({
    exitCode: 0,
    stdout: '',
    stderr: '',
  });
});

test('in a worker the hook call is logged and asks no question', () => {
  const session = join(project.top, 'sessions', `001-${own}`);
  mkdirSync(session, { recursive: true });
  const env = { CLAUDE_CODE_AGENT_ATTEMPT: 'attempt-1', CLAUDE_CONFIG_DIR: join(session, 'claude-config') };
  const { stdout } = project.run('session-start', input('resume'), env);
  expect(stdout).toContain('MINE');
  expect(stdout).not.toMatch(/THEIRS|Ask the user/);
  const line = JSON.parse(readFileSync(join(session, 'hooks.log'), 'utf8'));
  expect(line).toMatchObject({ system: 'cpm', event: 'session-start', source: 'resume', sessionId: own });
  expect(line.shown).toEqual([`.cpm-progress-${own}.md`]);
});
