/**
 * Promises: through the real launcher, templates are listed with those that they hide, shown, rendered and validated,
 * `init` creates a valid folder, and bad input gives the documented exit code with every problem at its place.
 */
import { beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { user, withUser } from '../../support/cli/user.ts';

let mine: string;
withUser();
beforeEach(() => {
  mine = join(user.home, '.config', 'claude-code-agent', 'templates');
});

function write(path: string, text: string): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
}

const shared = '.claude-code-agent/templates';
const review =
  '---\ndescription: Mine\nvariables:\n  - {name: what, required: true, description: W}\n---\nReview {{what}}.\n';

interface Listed {
  readonly kind: string;
  readonly name: string;
  readonly origin: string;
  readonly problems?: number;
  readonly aliases?: string[];
  readonly hides: { readonly origin: string }[];
}

describe('template list', () => {
  test('template list shows the place of each template and what it hides', async () => {
    write(join(mine, 'prompts', 'code-review.md'), review);
    write(join(user.folder, shared, 'prompts', 'code-review.md'), review);
    const team = join(user.folder, 'team');
    write(join(team, 'prompts', 'code-review.md'), review);
    write(join(team, 'configs', 'broken', 'settings.json'), '{');
    const env = { CLAUDE_CODE_AGENT_TEMPLATES: `nowhere:${team}` };
    const { stdout, code } = await user.runWith({ env }, 'template', 'list', '--json');
    expect(code).toBe(0);
    const listed = JSON.parse(stdout) as Listed[];
    const found = listed.find(({ name }) => name === 'code-review');
    expect(found).toMatchObject({ kind: 'prompt', origin: 'project', description: 'Mine' } as object);
    expect(found?.hides.map(({ origin }) => origin)).toEqual(['environment', 'user', 'shipped']);
    expect(listed.find(({ name }) => name === 'broken')).toMatchObject({ origin: 'environment', problems: 1 });
    expect(listed.find(({ name }) => name === 'strict-typescript')?.aliases).toEqual(['typescript-strict']);
    const table = await user.runWith({ env }, 'template', 'list', '--kind', 'prompt');
    expect(table.stdout).toMatch(/prompt +code-review +project +environment, user, shipped +Mine\n/);
    expect(table.stdout).not.toContain('config ');
  });
});

describe('template show', () => {
  test('template show prints a prompt with its variables', async () => {
    const path = write(join(mine, 'prompts', 'mine.md'), review);
    expect(await user.ok('template', 'show', 'mine')).toBe(
      `mine (prompt, user)\nMine\n${path}\n\nVariables:\n  what (string; required): W\n\nReview {{what}}.`,
    );
    expect(await user.json('template', 'show', 'mine')).toMatchObject({
      kind: 'prompt',
      name: 'mine',
      origin: 'user',
      path,
      variables: [{ name: 'what', required: true }],
      text: 'Review {{what}}.',
    });
  });

  test('template show prints a config with its files, also by its alias', async () => {
    const shown = await user.json<{ name: string; files: { path: string }[] }>('template', 'show', 'typescript-strict');
    expect(shown).toMatchObject({ kind: 'config', name: 'strict-typescript', origin: 'shipped' } as object);
    expect(shown.files.map(({ path }) => path)).toContain('settings.json');
  });

  test('template show requires the kind for an ambiguous name, and accepts a path', async () => {
    write(join(mine, 'prompts', 'both.md'), review);
    write(join(mine, 'workflows', 'both.yaml'), 'version: 1\ndescription: W\n');
    const clash = await user.run('template', 'show', 'both');
    expect(clash).toMatchObject({ code: 2, stdout: '' });
    expect(clash.stderr).toContain('is a prompt');
    expect(clash.stderr).toContain('--kind workflow');
    expect(await user.ok('template', 'show', 'both', '--kind', 'workflow')).toContain('version: 1');
    write(join(user.folder, 'here.md'), 'Hello {{you}}');
    expect(await user.ok('template', 'show', './here.md')).toContain('Hello {{you}}');
  });

  test.each([
    [['show', 'code-reveiw'], 'did you mean "code-review"?'],
    [['show', 'no-such-thing-at-all'], 'There is no template "no-such-thing-at-all"'],
    [['show', '..'], 'is not a valid template name'],
    [['show', './nowhere.md'], 'does not exist'],
    [['show', ''], 'is not a valid template name'],
    [['render', 'feature-implementation'], 'is a workflow'],
    [['validate', 'nowhere'], 'does not exist'],
    [['validate', 'projects.txt'], 'is not a template'],
    [['list', '--kind', 'odd'], 'Allowed choices are'],
    [['lsit'], 'Did you mean list?'],
  ])('template %j is refused', async (args, sentence) => {
    write(join(user.folder, 'projects.txt'), 'x');
    const { code, stdout, stderr } = await user.run('template', ...args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(sentence);
    expect(stderr).not.toMatch(/\n {4}at /);
  });
});

describe('template render', () => {
  test('template render prints the specification’s example exactly', async () => {
    const given = ['--var', 'file_path=src/a.ts'];
    const text = await user.ok('template', 'render', 'code-review', ...given);
    expect(text).toContain('src/a.ts');
    expect(text).toContain('security, performance, readability');
  });
});

describe('template validate', () => {
  test('template validate reports every problem of a folder at its place', async () => {
    const folder = join(user.folder, 'pack');
    write(join(folder, 'prompts', 'a.md'), '---\nvariables: []\n---\n{{x}}\n\n{{y}}');
    write(join(folder, 'prompts', 'b.md'), '---js\nmodule.exports = 1\n---\nx');
    write(
      join(folder, 'configs', 'c', 'settings.json'),
      '{"permissions": {"deny": ["Bash"]}, "hooks": {"Stop": [{}]}}',
    );
    write(join(folder, 'configs', 'd', 'evil.sh'), 'x');
    symlinkSync('/etc/hostname', join(folder, 'configs', 'd', 'CLAUDE.md'));
    write(join(folder, 'workflows', 'w.yaml'), 'version: 1\nsessions:\n  a:\n    project: .\n    promt: x\n');
    write(join(folder, 'README.md'), 'x');
    const checked = await user.run('template', 'validate', 'pack');
    expect({ code: checked.code, stdout: checked.stdout }).toEqual({ code: 2, stdout: '' });
    const below = (text: string) => text.replaceAll(`${folder}/`, '');
    const [head, ...lines] = below(checked.stderr).trimEnd().split('\n');
    expect(head).toMatch(/has \d+ problems:$/);
    expect(lines[0]).toStartWith('configs/c/settings.json:1:1: ');
    expect(lines[1]).toStartWith('configs/d/CLAUDE.md:1:1: is a symlink');
    expect(lines[2]).toStartWith('configs/d/evil.sh:1:1: does not belong here');
    expect(lines[3]).toStartWith('prompts/a.md:4:1: there is no variable "x"');
    expect(lines[4]).toStartWith('prompts/a.md:6:1: there is no variable "y"');
    expect(lines[5]).toStartWith('prompts/b.md:1:1: the front matter begins with "---js"');
    expect(lines[6]).toMatch(/^workflows\/w\.yaml:5:5: .*promt/);
    expect(lines.at(-1)).toBe('Correct it and run the command again.');
    const { code, stdout } = await user.run('template', 'validate', 'pack', '--json');
    expect(code).toBe(2);
    const said = JSON.parse(stdout) as { templates: object[]; problems: object[] };
    expect(said.templates).toHaveLength(5);
    expect(said.problems).toHaveLength(lines.length - 1);
  });

  test('template validate confirms a valid template', async () => {
    const path = write(join(user.folder, 'x.md'), review);
    expect(await user.ok('template', 'validate', path)).toBe('The prompt template is valid.');
    expect(await user.json<object>('template', 'validate', path)).toEqual({
      templates: [{ kind: 'prompt', path }],
      problems: [],
    });
  });
});

describe('template init', () => {
  test('template init creates templates that are valid, found and rendered', async () => {
    await user.ok('template', 'init', shared);
    expect(await user.ok('template', 'validate', shared)).toBe('3 templates checked. No problems.');
    const listed = await user.json<Listed[]>('template', 'list');
    const ours = listed.filter(({ origin }) => origin === 'project');
    expect(ours.map(({ name }) => name)).toEqual(['explain', 'careful', 'two-steps']);
    expect(await user.ok('template', 'render', 'explain', '--var', 'topic=the build')).toContain(
      'Explain the build in',
    );
    expect(await user.ok('template', 'render', 'careful')).toContain('Bash(npm test)');
  });

  test('template init changes no existing file', async () => {
    write(join(user.folder, 'full', 'note'), 'mine');
    symlinkSync(join(user.folder, 'elsewhere'), join(user.folder, 'dangling'));
    for (const [path, sentence] of [
      ['full', 'is not empty'],
      ['full/note', 'is not a folder'],
      ['full/note/deeper', 'note/deeper'],
      ['dangling', 'is a broken symlink'],
      ['', 'The path of the folder is empty'],
      ['/proc/no/such/folder', 'Cannot write /proc/no/such/folder'],
      ['x'.repeat(5000), 'longer than a path can be'],
    ] as const) {
      const { code, stdout, stderr } = await user.run('template', 'init', path);
      expect(code).not.toBe(0);
      expect(stdout).toBe('');
      expect(stderr).toContain(sentence);
      expect(stderr).not.toMatch(/\n {4}at /);
    }
    expect(readFileSync(join(user.folder, 'full', 'note'), 'utf8')).toBe('mine');
    expect(readdirSync(join(user.folder, 'full'))).toEqual(['note']);
    expect(existsSync(join(user.folder, 'elsewhere'))).toBe(false);
  });
});
