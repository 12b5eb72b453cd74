/**
 * Promises of `cpm check-skills`: it reports every problem with its location at once. --fix only adds to the section
 * and keeps the old file. It never writes through symlinks, and gives one clear sentence for anything it cannot check.
 */
import { expect, test } from 'bun:test';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { user, withUser } from '../../support/cli/user.ts';
import { checkoutRoot } from '../../support/cli.ts';

const section = readFileSync(join(checkoutRoot, 'templates', 'cpm', 'state-management.md'), 'utf8');
withUser();

function write(path: string, text: string | Uint8Array): string {
  const full = join(user.folder, path);
  mkdirSync(dirname(full), { recursive: true });
  writeFileSync(full, text);
  return full;
}

const body = (name: string) => `---
name: ${name}
description: Something that is done.
---

# ${name}

## Phase 1: a
`;

test('the shipped skills pass, from the whole template down to one skill', async () => {
  const template = join(checkoutRoot, 'templates', 'configs', 'cpm');
  expect(await user.ok('cpm', 'check-skills', template)).toBe('14 skills checked. No problems.');
  expect(await user.ok('cpm', 'check-skills', join(template, 'skills', 'do'))).toBe('1 skill checked. No problems.');
});

test('reports every problem of every skill with its location, and changes nothing', async () => {
  const own = 'Keep `docs/plans/.cpm-progress-{id}.md`, by CPM_SESSION_ID; adopt an older one.';
  const one = write('skills/one/SKILL.md', body('one'));
  const two = write('skills/two/SKILL.md', `${body('zwei')}\n## State Management\n\n${own}\n`);
  const before = [one, two].map((path) => readFileSync(path, 'utf8'));
  const { code, stdout, stderr } = await user.run('cpm', 'check-skills', 'skills');
  expect([code, stdout]).toEqual([2, '']);
  const [head, ...lines] = stderr.trim().split('\n');
  expect(head).toContain('skills has 3 problems:');
  expect(lines).toEqual([
    `${one}:9:1: has no section "## State Management"`,
    `${two}:2:7: name is "zwei", but the folder is "two", which claude uses as the name`,
    `${two}:10:1: the section "State Management" does not say to delete the file at the end`,
    'Correct it. Use --fix to add the missing section.',
  ]);
  expect([one, two].map((path) => readFileSync(path, 'utf8'))).toEqual(before);
});

test('--fix adds what the section lacks, keeps the old file, and names what it cannot fix', async () => {
  const one = write('skills/one/SKILL.md', body('one'));
  const two = write(
    'skills/deep/er/two/SKILL.md',
    `${body('two')}\n## State Management\n\nMine: .cpm-progress.md\n\n## More\n\nKept.\n`,
  );
  const bad = write('skills/bad/SKILL.md', `${body('bad')}\n\`\`\`\n`);
  const { code, stdout, stderr } = await user.run('cpm', 'check-skills', 'skills', '--fix');
  expect(code).toBe(2);
  expect(stdout.trim().split('\n')).toEqual([two, one].map((path) => `Updated ${path}; the original is ${path}.bak`));
  expect(stderr).toContain(`${bad}:10:1: opens a code block that is never closed`);
  expect(stderr).toContain('has a problem:');
  expect(readFileSync(one, 'utf8')).toBe(`${body('one')}\n${section}`);
  const now = readFileSync(two, 'utf8');
  for (const text of ['Mine: .cpm-progress.md', 'CPM_SESSION_ID', '**Adoption**', '\n## More\n\nKept.\n'])
    expect(now).toContain(text);
  expect(readFileSync(`${two}.bak`, 'utf8')).toContain('\n## State Management\n\nMine: .cpm-progress.md\n\n## More');
  expect(readFileSync(bad, 'utf8')).toBe(`${body('bad')}\n\`\`\`\n`);
  expect(readdirSync(dirname(one))).toEqual(['SKILL.md', 'SKILL.md.bak']);
  expect(readdirSync(dirname(bad))).toEqual(['SKILL.md']);
});

test('the skills of the CPM plugin have no problem, and --fix changes none of them', async () => {
  // As in version 3.11: state rules are stated once, and some skills keep none.
  const shared = 'Write `docs/plans/.cpm-progress-{id}.md`, named by CPM_SESSION_ID. Adopt an older one. Delete it.';
  write('cpm/shared/conventions.md', `# Conventions\n\n## Progress File Management\n\n${shared}\n\n## Other\n`);
  const own = '**Format**:\n\n```markdown\n# CPM Session State\n\n**Task**: {task}\n```';
  const follows = `## State Management\n\nFollow the shared **Progress File Management** procedure.\n\n${own}\n`;
  const texts = {
    do: `${body('do')}\n${follows}`,
    status: `${body('status')}\n## State Management\n\n**This skill is stateless.**\n`,
    clean: `${body('clean')}\nThis skill is **stateless**.\n`,
  };
  for (const [name, text] of Object.entries(texts)) write(`cpm/skills/${name}/SKILL.md`, text);
  expect(await user.ok('cpm', 'check-skills', 'cpm/skills', '--fix')).toBe('3 skills checked. No problems.');
  for (const [name, text] of Object.entries(texts)) {
    const folder = join(user.folder, 'cpm/skills', name);
    expect(readFileSync(join(folder, 'SKILL.md'), 'utf8')).toBe(text);
    expect(readdirSync(folder)).toEqual(['SKILL.md']);
  }
  // Without those conventions the skill lacks text, and nothing is added to a skill with other conventions.
  write('cpm/shared/conventions.md', '# Conventions\n');
  const { code, stderr } = await user.run('cpm', 'check-skills', 'cpm/skills', '--fix');
  expect(code).toBe(2);
  expect(stderr).toContain('has 3 problems:');
  expect(readFileSync(join(user.folder, 'cpm/skills/do/SKILL.md'), 'utf8')).toBe(texts.do);
});

test('--json lists the skills, the fixes and the problems', async () => {
  const path = write('skills/one/SKILL.md', body('one'));
  const checked = await user.run('cpm', 'check-skills', 'skills', '--json');
  expect(checked).toMatchObject({ code: 2, stderr: '' });
  expect(JSON.parse(checked.stdout)).toEqual({
    skills: [{ path, fixed: false }],
    problems: [{ file: path, line: 9, column: 1, message: 'has no section "## State Management"' }],
  });
  expect(await user.json<object>('cpm', 'check-skills', 'skills', '--fix')).toEqual({
    skills: [{ path, fixed: true }],
    problems: [],
  });
});

test.each([
  [['nowhere'], 'does not exist'],
  [['file'], 'is not a folder'],
  [['empty'], 'There is no SKILL.md in'],
  [[''], 'The path of the folder is empty'],
  [[], "missing required argument 'dir'"],
  [['empty', '--fixx'], "unknown option '--fixx'"],
])('refuses %j in one sentence', async (args, message) => {
  mkdirSync(join(user.folder, 'empty'));
  write('file', '');
  const { code, stdout, stderr } = await user.run('cpm', 'check-skills', ...args);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr.toLowerCase()).toContain(message.toLowerCase());
  expect(stderr.trim().split('\n')).toHaveLength(1);
});
