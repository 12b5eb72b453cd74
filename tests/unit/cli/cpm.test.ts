/** Promises: `cpm list`, `show` and `clean` show the contents of docs/plans and remove only the requested files. */
import { beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { user, withUser } from '../../support/cli/user.ts';

let project: string;
let plans: string;
withUser();
beforeEach(() => {
  project = user.project('shop');
  plans = join(project, 'docs', 'plans');
  mkdirSync(plans, { recursive: true });
});

const path = (id: string) => join(plans, `.cpm-progress-${id}.md`);

function write(name: string, text: string, hoursOld = 0): string {
  const file = join(plans, name);
  writeFileSync(file, text);
  const at = Date.now() / 1000 - hoursOld * 3600;
  utimesSync(file, at, at);
  return file;
}

function session(id: string, hoursOld = 0, skill = 'cpm:do'): string {
  const header = `# CPM Session State\n\n**Skill**: ${skill}\n**Phase**: 2 of 4 — Work\n**Output target**: docs/x.md\n`;
  return write(`.cpm-progress-${id}.md`, `${header}\n## Next Action\nContinue with ${id}.\n`, hoursOld);
}

/** A cpm command on the project; stderr and stdout together are what a user sees. */
const cpm = (...args: string[]) => user.run('cpm', ...args, '--project', project);

describe('cpm list', () => {
  test('cpm list shows age, skill, phase and stale files, newest first', async () => {
    session('aaa', 1.1);
    session('bbb', 100, 'cpm:spec');
    write('.cpm-progress.md', '**Skill**: cpm:brief\n', 2);
    write('.cpm-progress-not an id.md', 'x');
    const { code, stdout, stderr } = await cpm('list');
    expect(code).toBe(0);
    const [title, ...rows] = stdout.trimEnd().split('\n');
    expect(title).toMatch(/^SESSION +AGE +SKILL +PHASE +WORKS ON$/);
    expect(rows[0]).toMatch(/^aaa +1h 06m +cpm:do +2 of 4 — Work +docs\/x\.md$/);
    expect(rows[1]).toMatch(/^bbb +4d 04h +stale +cpm:spec/);
    expect(rows[2]).toMatch(/^legacy +2h 00m +cpm:brief/);
    expect(rows).toHaveLength(3);
    expect(stderr).toContain('cpm clean');
    expect(stderr).toContain('Ignored 1 file in docs/plans');
  });
  test('cpm list --json prints one document', async () => {
    session('aaa', 1.5);
    write('.cpm-progress.md', '', 50);
    mkdirSync(path('folder'));
    const { code, stdout } = await cpm('list', '--json');
    expect(code).toBe(0);
    const listed = JSON.parse(stdout) as Record<string, unknown>[];
    expect(listed.find(({ id }) => id === 'aaa')).toMatchObject({
      file: 'docs/plans/.cpm-progress-aaa.md',
      skill: 'cpm:do',
      phase: '2 of 4 — Work',
      artifact: 'docs/x.md',
      ageHours: 1,
      stale: false,
    });
    expect(listed.find(({ id }) => id === 'legacy')).toMatchObject({
      file: 'docs/plans/.cpm-progress.md',
      stale: true,
    });
    expect(listed.find(({ id }) => id === 'folder')).toMatchObject({ trouble: 'is not a regular file' });
  });
  test('cpm list removes escape codes', async () => {
    write('.cpm-progress-aaa.md', '**Skill**: \u001b[31mred\u0007\n**Phase**: \u202eevil\n');
    for (const args of [['list'], ['list', '--json'], ['show'], ['show', '--json'], ['clean', 'aaa']]) {
      const { stdout, stderr } = await cpm(...args);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is what this is for.
      expect(stdout + stderr).not.toMatch(/[\u0007\u001b\u202e]/);
      expect(stdout + stderr).toContain('red');
    }
  });
});

describe('cpm show', () => {
  test('cpm show prints the newest progress file, or the named one', async () => {
    session('aaa', 5);
    session('abc', 1);
    write('.cpm-progress.md', 'from before\n', 9);
    expect((await cpm('show')).stdout).toBe(readFileSync(path('abc'), 'utf8'));
    expect((await cpm('show', 'aa')).stdout).toBe(readFileSync(path('aaa'), 'utf8'));
    expect((await cpm('show', '.cpm-progress-aaa.md')).stdout).toContain('Continue with aaa.');
    expect((await cpm('show', 'legacy')).stdout).toBe('from before\n');
    const json = JSON.parse((await cpm('show', 'aaa', '--json')).stdout);
    expect(json).toMatchObject({ id: 'aaa', skill: 'cpm:do', truncated: false });
    expect(json.text).toContain('Continue with aaa.');
  });
  test.each([
    [['show', 'zzz'], 'No progress file belongs to "zzz".'],
    [['show', ''], 'No progress file belongs to "".'],
    [['show', 'a'], '"a" matches several ids: aaa, abc.'],
  ])('cpm show %j is refused', async (args, sentence) => {
    session('aaa');
    session('abc', 1);
    const { code, stdout, stderr } = await cpm(...args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(sentence);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
  });
  test('cpm show reports missing and unreadable progress files', async () => {
    expect((await cpm('show')).stderr).toContain('There are no progress files');
    symlinkSync('/dev/zero', path('aaa'));
    const { code, stdout, stderr } = await cpm('show', 'aaa');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('is a symlink out of the project');
  });
});

describe('compaction summaries', () => {
  const summary = (id: string, hoursOld = 0) =>
    write(`.cpm-compact-summary-${id}.md`, '# Compact Summary (PostCompact)\n**Trigger**: auto\n\nWORK\n', hoursOld);

  test('compaction summaries are listed, and shown only when named', async () => {
    session('aaa', 3);
    summary('aaa', 1);
    const { stdout } = await cpm('list');
    expect(stdout).toMatch(/^aaa +3h 00m +cpm:do/m);
    expect(stdout).toMatch(/^aaa +1h 00m +compact summary/m);
    for (const args of [[], ['aaa'], ['a']])
      expect((await cpm('show', ...args)).stdout).toContain('Continue with aaa.');
    expect((await cpm('show', '.cpm-compact-summary-aaa.md')).stdout).toContain('WORK');
  });
  test('cpm clean removes a compaction summary with its progress file, and stale ones without a file', async () => {
    for (const [id, hours, summaryHours] of [
      ['old', 100, 99],
      ['live', 1, 90],
      ['compacted', 90, 1],
    ] as const) {
      session(id, hours);
      summary(id, summaryHours);
    }
    summary('orphan', 72);
    summary('new', 1);
    expect((await cpm('clean', '--force')).code).toBe(0);
    const left = ['live', 'compacted'].flatMap((id) => [`.cpm-compact-summary-${id}.md`, `.cpm-progress-${id}.md`]);
    expect(readdirSync(plans).toSorted()).toEqual([...left, '.cpm-compact-summary-new.md'].toSorted());
    expect((await cpm('clean', 'live', 'new', '--force')).code).toBe(0);
    expect(readdirSync(plans).toSorted()).toEqual(['.cpm-compact-summary-compacted.md', '.cpm-progress-compacted.md']);
  });
});

describe('cpm clean', () => {
  test('cpm clean removes only stale files, and requires --force without a terminal', async () => {
    session('fresh', 47);
    session('old', 49);
    write('.cpm-progress.md', '', 100);
    write('.cpm-progress-not an id.md', 'x', 100);
    write('01-plan.md', 'x', 100);
    const refused = await cpm('clean');
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('Remove 2 progress files: old (cpm:do), legacy (unknown)?');
    expect(refused.stderr).toContain('--force');
    expect(readdirSync(plans)).toHaveLength(5);
    const { code, stderr } = await cpm('clean', '--force');
    expect(code).toBe(0);
    expect(stderr).toContain('Removed 2 progress files: .cpm-progress-old.md, .cpm-progress.md.');
    expect(readdirSync(plans).sort()).toEqual(['.cpm-progress-fresh.md', '.cpm-progress-not an id.md', '01-plan.md']);
    expect((await cpm('clean')).stderr).toContain('There are no stale progress files to remove.');
  });
  test('cpm clean removes a fresh file if it is named, and no other', async () => {
    session('fresh');
    session('other');
    session('old', 100);
    expect((await cpm('clean', 'fre', 'fresh', '--force')).code).toBe(0);
    expect(readdirSync(plans).sort()).toEqual(['.cpm-progress-old.md', '.cpm-progress-other.md']);
  });
  test('cpm clean removes nothing if one of several names is unknown', async () => {
    session('aaa', 100);
    const { code, stderr } = await cpm('clean', 'aaa', 'zzz', '--force');
    expect(code).toBe(2);
    expect(stderr).toContain('"zzz"');
    expect(existsSync(path('aaa'))).toBe(true);
  });
  test('cpm clean does not enter folders or follow symlinks', async () => {
    const outside = join(user.folder, 'outside');
    mkdirSync(outside);
    writeFileSync(join(outside, 'keep.md'), 'x');
    mkdirSync(path('folder'));
    writeFileSync(join(path('folder'), 'keep.md'), 'x');
    utimesSync(path('folder'), 1, 1);
    symlinkSync(join(outside, 'keep.md'), path('link'));
    session('old', 100);
    for (const args of [['folder'], ['link'], ['old', 'folder']]) {
      const { code, stderr } = await cpm('clean', ...args, '--force');
      expect(code).toBe(2);
      expect(stderr).toContain('is not a regular file of the project. Nothing was removed');
    }
    expect(existsSync(path('old'))).toBe(true);
    // A file that cannot be removed does not prevent the removal of the rest.
    session('older', 100);
    const { code, stderr } = await cpm('clean', '--force');
    expect(code).toBe(0);
    expect(stderr).toContain('Left alone: .cpm-progress-folder.md is not a regular file of the project.');
    expect(stderr).toContain('Removed 2 progress files');
    session('old', 100);
    expect(existsSync(join(path('folder'), 'keep.md'))).toBe(true);
    expect(existsSync(join(outside, 'keep.md'))).toBe(true);
    const linked = user.project('linked');
    mkdirSync(join(linked, 'docs'));
    symlinkSync(plans, join(linked, 'docs', 'plans'));
    expect((await user.run('cpm', 'clean', 'old', '--force', '--project', linked)).code).toBe(2);
    expect(existsSync(path('old'))).toBe(true);
  });
});
