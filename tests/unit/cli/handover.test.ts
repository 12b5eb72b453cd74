/**
 * Promises: through the real launcher, `handover init` creates a project that the hooks find anywhere, `list` and
 * `find` show what they would find, and invalid input changes nothing.
 */
import { beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { noteInProject } from '../../../src/context/handover/note.ts';
import { readResumeFile } from '../../../src/context/handover/resume-file.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { user, withUser } from '../../support/cli/user.ts';

let root: string;
withUser();
beforeEach(() => {
  root = user.project('nexus');
});

const resume = (...parts: string[]) => join(root, ...parts, '01-planning', 'resume-context.md');
const inRoot = (...args: string[]) => user.runWith({ cwd: root }, 'handover', ...args);
const config = () => join(root, '.claude-code-agent', 'handover.json');

interface Listed {
  readonly project: string;
  readonly name: string;
  readonly sessionIds: readonly string[];
  readonly nextAction: string;
}
const listed = () => user.json<Listed[]>('handover', 'list', '--root', root);

test('handover init creates a project in 02-projects that find and list show with its session', async () => {
  expect(await inRoot('init', '02-projects/28-parser', '--name', 'The "parser"')).toEqual({
    code: 0,
    stdout: `Created ${resume('02-projects', '28-parser')}\n`,
    stderr: '',
  });
  expect(readResumeFile(readFileSync(resume('02-projects', '28-parser'), 'utf8'))).toMatchObject({
    schemaVersion: '2.0',
    projectName: 'The "parser"',
    sessionIds: [],
  });
  expect(existsSync(config())).toBe(false);
  const { files } = createRealWorld();
  const project = { file: resume('02-projects', '28-parser') };
  expect(noteInProject(files, project, 'aaa111', Date.parse('2026-01-05T00:00:00Z')).ok).toBe(true);
  await inRoot('init', '02-projects/29-lexer');
  expect(await inRoot('find', 'aaa111')).toEqual({ code: 0, stdout: '28-parser\n', stderr: '' });
  // Inside claude the session need not be named: claude refuses to check a command with a variable.
  const env = { CLAUDE_CODE_SESSION_ID: 'aaa111' };
  expect((await user.runWith({ env }, 'handover', 'find', '--root', root)).stdout).toBe('28-parser\n');
  expect(await user.json<object>('handover', 'find', 'aaa111', '--root', root)).toEqual({
    project: '28-parser',
    foundBy: 'session_ids',
    folder: join(root, '02-projects', '28-parser'),
    file: resume('02-projects', '28-parser'),
  });
  expect((await listed()).map(({ project, sessionIds }) => [project, sessionIds])).toEqual([
    ['29-lexer', []],
    ['28-parser', ['aaa111']],
  ]);
  expect((await inRoot('list')).stdout).toMatch(
    /^PROJECT +PHASE +SESSIONS +UPDATED +NEXT ACTION\n29-lexer +planning +0 /,
  );
});

test('handover init elsewhere below the root adds the folder to handover.json once', async () => {
  mkdirSync(dirname(config()));
  writeFileSync(config(), '{"folders": ["old"], "mine": 1}');
  const made = await inRoot('init', 'clients/acme');
  expect(made.stdout).toBe(`Created ${resume('clients', 'acme')}\nAdded it to ${config()}\n`);
  expect(JSON.parse(readFileSync(config(), 'utf8'))).toEqual({ folders: ['old', 'clients/acme'], mine: 1 });
  expect((await listed()).map(({ project }) => project)).toEqual(['acme']);
  writeFileSync(config(), '{"folders": []}');
  expect((await inRoot('init', 'clients/acme')).stdout).toBe(`Added it to ${config()}\n`);
  const again = await inRoot('init', 'clients/acme');
  expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining('already exists') });
});

test.each(['{"folders": "clients"}', '{'])('a faulty handover.json stays and nothing is created: %s', async (text) => {
  mkdirSync(dirname(config()));
  writeFileSync(config(), text);
  const { code, stderr } = await inRoot('init', 'clients/acme');
  expect([code, stderr]).toEqual([1, expect.stringContaining('does not have the form')]);
  expect(readFileSync(config(), 'utf8')).toBe(text);
  expect(existsSync(join(root, 'clients'))).toBe(false);
  expect(await inRoot('list')).toMatchObject({ code: 0, stderr: expect.stringContaining('Ignored: ') });
});

test('handover init refuses a folder outside the root, and the root itself', async () => {
  const outside = join(user.folder, 'elsewhere', 'x');
  expect((await inRoot('init', outside)).stdout).toContain(`if claude starts in ${outside}`);
  expect(await listed()).toEqual([]);
  expect((await inRoot('init', '.')).stdout).toBe(`Created ${resume()}\n`);
  expect((await listed()).map(({ project }) => project)).toEqual(['nexus']);
  expect(existsSync(config())).toBe(false);
});

test('handover init overwrites nothing', async () => {
  mkdirSync(dirname(resume('02-projects', 'a')), { recursive: true });
  writeFileSync(resume('02-projects', 'a'), 'mine');
  expect((await inRoot('init', '02-projects/a')).code).toBe(2);
  expect(readFileSync(resume('02-projects', 'a'), 'utf8')).toBe('mine');
  mkdirSync(dirname(resume('02-projects', 'b')), { recursive: true });
  symlinkSync(join(user.folder, 'nowhere'), resume('02-projects', 'b'));
  expect((await inRoot('init', '02-projects/b')).code).toBe(2);
  expect(existsSync(join(user.folder, 'nowhere'))).toBe(false);
  writeFileSync(join(root, 'file'), 'mine');
  expect(await inRoot('init', 'file')).toMatchObject({ code: 2, stderr: expect.stringContaining('is not a folder') });
  expect(await inRoot('init', 'file/below')).toMatchObject({ code: 1, stderr: expect.stringContaining('ENOTDIR') });
});

test('handover with invalid input prints one sentence, exits with 2 or 1, and creates nothing', async () => {
  const wrong: [string[], number, string][] = [
    [['init', ''], 2, 'is empty'],
    [['init', 'x', '--root', 'none'], 2, 'does not exist'],
    [['list', '--root', ''], 2, 'is empty'],
    [['list', '--root', '/dev/null'], 2, 'is not a folder'],
    [['find', 'zzz999'], 2, 'lists the session zzz999'],
    [['find', '../x'], 2, 'session id is not valid'],
    [['find'], 2, 'Give the id of a session'],
  ];
  for (const [args, code, sentence] of wrong) {
    const end = await inRoot(...args);
    expect([end.code, end.stdout, end.stderr]).toEqual([code, '', expect.stringContaining(sentence)]);
    expect(end.stderr.trim().split('\n')).toHaveLength(1);
  }
});

test('project text in handover output cannot move the cursor', async () => {
  mkdirSync(dirname(resume('02-projects', 'a')), { recursive: true });
  const esc = '\u001b';
  writeFileSync(resume('02-projects', 'a'), `---\nnext_action: "${esc}[2Jx\\u001b[1my"\nsession_ids: [aaa]\n---\n`);
  const { stdout } = await inRoot('list');
  expect(stdout).not.toContain(esc);
  expect((await inRoot('list', '--json')).stdout).not.toContain(esc);
});
