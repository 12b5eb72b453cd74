/**
 * Promises: through the real launcher, `group report` writes one reproducible HTML file and overwrites only reports,
 * and prints Markdown and JSON. `group graph` draws.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ReportModel } from '../../../src/view/html/model.ts';
import { User } from '../../support/cli/user.ts';
import { eventfulId, storeEventfulGroup } from '../../support/eventful-group.ts';
import { readMarkup } from '../../support/view/markup-checker.ts';

let user: User;
let target: string;

beforeAll(() => {
  user = new User();
  target = join(user.folder, 'report one.html');
  storeEventfulGroup(user.data);
});
afterAll(() => user.remove());

describe('group report', () => {
  test('group report --html writes one private file, prints its path, and replaces an earlier report', async () => {
    for (const _ of ['first', 'again']) {
      const done = await user.run('group', 'report', 'release', '--html', 'report one.html');
      expect(done).toEqual({ code: 0, stdout: `${target}\n`, stderr: '' });
    }
    const page = readFileSync(target, 'utf8');
    expect(readMarkup(page).text).toContain('The shop shows refunds.');
    expect(statSync(target).mode & 0o777).toBe(0o600);
  });

  test('group report --html - prints the same bytes in any time zone', async () => {
    const pages = await Promise.all(
      ['UTC', 'America/New_York'].map((TZ) =>
        user.runWith({ env: { TZ } }, 'group', 'report', eventfulId, '--html', '-'),
      ),
    );
    expect(pages.map(({ code, stderr }) => [code, stderr])).toEqual([
      [0, ''],
      [0, ''],
    ]);
    expect(new Set(pages.map(({ stdout }) => stdout)).size).toBe(1);
    await user.ok('group', 'report', 'release', '--html', target);
    expect(pages[0]?.stdout).toBe(readFileSync(target, 'utf8'));
  });

  test('group report overwrites a file that is no report only with --force', async () => {
    const mine = join(user.folder, 'notes.html');
    writeFileSync(mine, '<!doctype html>\n<p>mine</p>');
    const refused = await user.run('group', 'report', 'release', '--html', mine);
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toMatch(
      /notes\.html" exists and is not a report\. Give another name, or overwrite it with --force\.\n$/,
    );
    expect(readFileSync(mine, 'utf8')).toBe('<!doctype html>\n<p>mine</p>');
    await user.ok('group', 'report', 'release', '--html', mine, '--force');
    expect(readFileSync(mine, 'utf8')).toContain('The shop shows refunds.');
  });

  test('group report reports an impossible path and writes nothing', async () => {
    mkdirSync(join(user.folder, 'folder'));
    symlinkSync('loop', join(user.folder, 'loop'));
    for (const place of ['no/such/folder.html', 'folder', 'loop', 'notes.html/x.html', '']) {
      const refused = await user.run('group', 'report', 'release', '--html', place);
      expect([place, refused.code, refused.stdout]).toEqual([place, 2, '']);
      expect(refused.stderr.trim().split('\n')).toHaveLength(1);
      expect(refused.stderr).toContain('Give --html a file');
    }
    expect(existsSync(join(user.folder, 'no'))).toBe(false);
  });

  test('group report prints Markdown by default and by name', async () => {
    const [plain, named] = [
      await user.ok('group', 'report', 'release'),
      await user.ok('group', 'report', 'release', '--markdown'),
    ];
    expect(plain).toBe(named);
    expect(plain).toContain('| 004 mobile | failed (not-accepted) |');
  });

  test('group report --json prints one complete document', async () => {
    const model = await user.json<ReportModel>('group', 'report', 'release');
    expect(model).toMatchObject({ version: 1, groupId: eventfulId, status: 'failed', attempts: 9, blocked: 1 });
    const statuses = model.sessions.map(({ status }) => status).join(' ');
    expect(statuses).toBe('completed completed completed failed completed pending');
    expect(model.sessions[3]).toMatchObject({ reason: 'not-accepted', rejection: { message: expect.any(String) } });
  });

  test('group report refuses two formats at once and an unknown group', async () => {
    const both = await user.run('group', 'report', 'release', '--html', 'x.html', '--json');
    expect(both).toMatchObject({ code: 2, stdout: '' });
    expect(existsSync(join(user.folder, 'x.html'))).toBe(false);
    expect(await user.run('group', 'report', 'nothing')).toMatchObject({ code: 2, stdout: '' });
  });

  test('group report works for a group that never started', async () => {
    const group = await user.makeGroup('fresh');
    expect(await user.ok('group', 'report', group)).toContain('0 of 2 sessions completed');
    expect(readMarkup(await user.ok('group', 'report', group, '--html', '-')).text).toContain('group run');
  });
});

test('group graph --format svg prints a picture', async () => {
  const svg = await user.ok('group', 'graph', 'release', '--format', 'svg');
  const { elements, text } = readMarkup(svg);
  expect(elements[0]?.name).toBe('svg');
  expect(text).toContain('004 mobile');
  expect(elements.filter(({ attributes }) => /^node /.test(attributes.get('class') ?? '')).length).toBe(6);
});
