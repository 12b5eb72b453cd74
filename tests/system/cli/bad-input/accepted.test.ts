/**
 * Promises: unusual but valid input is accepted. Prompts reach the model verbatim whatever they begin with, projects
 * are stored by their real path, and a group with a truncated log can be used.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { Ground } from '../../../support/cli/bad-input/ground.ts';
import { launcher } from '../../../support/cli/user.ts';

const mebibyte = 1024 * 1024;

let ground: Ground;
beforeAll(() => {
  ground = new Ground();
  for (const slug of ['prompts', 'projects', 'numbers', 'torn']) ground.make(slug);
});
afterAll(() => ground.remove());

interface Shown {
  readonly prompt: string;
  readonly projectPath: string;
  readonly dependsOn: readonly string[];
}

async function show(reference: string): Promise<Shown> {
  return ground.json<Shown>('session', 'show', reference);
}

const prompts: readonly string[] = [
  '-p',
  '--help',
  '/help',
  '/etc/hosts is wrong, repair it',
  '{"type":"control_request"}',
  'Zwei\nZeilen\n',
  '"quoted" \'and\' `ticked` $HOME $(id) \\n %s',
  '🚀 認証 \u202eabc',
  'a\u001b[31mred\u0007',
];

describe('prompts', () => {
  test('are kept verbatim, whatever they begin with', async () => {
    for (const [index, prompt] of prompts.entries()) {
      await ground.ok('session', 'add', 'prompts', '--project', '.', '--prompt', prompt);
      expect((await show(`prompts/${index + 1}`)).prompt).toBe(prompt);
    }
  });

  test('come from files, pipes and standard input, up to 1 MiB', async () => {
    const add = ['session', 'add', 'prompts', '--project', '.'];
    const longest = 'x'.repeat(mebibyte);
    writeFileSync(join(ground.folder, 'longest.md'), longest);
    writeFileSync(join(ground.folder, '-odd name.md'), '\ufeffFrom a file.\r\n');
    const fromFile = await ground.ok(...add, '--prompt-file', 'longest.md');
    expect((await show(`prompts/${fromFile}`)).prompt).toBe(longest);
    const fromOdd = await ground.ok(...add, '--prompt-file', '-odd name.md');
    expect((await show(`prompts/${fromOdd}`)).prompt).toBe('From a file.\r\n');
    const piped = await ground.runWith({ stdin: longest }, ...add, '--prompt', '-');
    expect((await show(`prompts/${piped.stdout.trim()}`)).prompt).toBe(longest);
    const line = '"$0" session add prompts --project . --prompt-file <(printf "from a pipe")';
    const child = Bun.spawn(['bash', '-c', line, launcher], { cwd: ground.folder, env: ground.env, stdout: 'pipe' });
    const id = (await new Response(child.stdout).text()).trim();
    expect((await show(`prompts/${id}`)).prompt).toBe('from a pipe');
  });

  test('reach the model verbatim, after the introduction of every conversation, or alone as a command', async () => {
    const group = ground.make('sent');
    const sent = ['-p', '--', '/tmp is full'];
    for (const prompt of sent) await ground.ok('session', 'add', 'sent', '--project', '.', '--prompt', prompt);
    const ran = await ground.run('group', 'run', 'sent', '--rehearse', '--output', 'quiet');
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    const { sessions } = ground.paths(group);
    for (const [index, prompt] of sent.entries()) {
      const id = readdirSync(sessions).sort()[index] as string;
      expect(firstMessage(join(sessions, id, 'claude-config', 'projects'))).toBe(
        prompt.startsWith('/') ? prompt : `The task of this session:\n\n${prompt}`,
      );
    }
  }, 120_000);
});

/** The first user message in the only conversation below claude's projects folder. */
function firstMessage(projects: string): string {
  const names = readdirSync(projects, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.jsonl'));
  const lines = readFileSync(join(projects, names[0] as string), 'utf8')
    .trimEnd()
    .split('\n');
  const said = lines.map((line) => JSON.parse(line)).find(({ type }) => type === 'user');
  const { content } = said.message as { content: string | { text: string }[] };
  return typeof content === 'string' ? content : content.map(({ text }) => text).join('');
}

test('projects are stored by their real path', async () => {
  const { folder } = ground;
  const real = join(folder, 'real');
  for (const name of ['inner', 'line\nbreak', '--name', 'sp ace']) mkdirSync(join(real, name), { recursive: true });
  symlinkSync('real', join(folder, 'link'));
  symlinkSync('../link/inner', join(real, 'back'));
  const paths: readonly (readonly [given: string, stored: string])[] = [
    ['.', folder],
    ['real/', real],
    ['./real//inner/..', real],
    ['link', real],
    ['link/back/', join(real, 'inner')],
    ['real/line\nbreak', join(real, 'line\nbreak')],
    ['real/--name', join(real, '--name')],
    ['real/sp ace', join(real, 'sp ace')],
    [`../${basename(folder)}/real`, real],
    ['/', '/'],
  ];
  for (const [given, stored] of paths) {
    const id = await ground.ok('session', 'add', 'projects', '--project', given, '--prompt', 'x');
    expect((await show(`projects/${id}`)).projectPath).toBe(realpathSync(stored));
  }
  const shown = await ground.ok('session', 'show', 'projects/6');
  expect(shown).toContain('real/line break');
});

test('a truncated log is read, and the next change follows its last complete line', async () => {
  const { events } = ground.paths(ground.groups.find((id) => id.endsWith('-torn')) as string);
  const whole = readFileSync(events, 'utf8');
  appendFileSync(events, '{"seq":3,"at":"2026-');
  expect(await ground.json('group', 'show', 'torn')).toMatchObject({ status: 'created', sessions: [] });
  expect(readFileSync(events, 'utf8')).not.toBe(whole);
  await ground.ok('session', 'add', 'torn', '--project', '.', '--prompt', 'x');
  expect(readFileSync(events, 'utf8')).toStartWith(whole);
  expect((await ground.json<unknown[]>('session', 'list', 'torn')).length).toBe(1);
});

test.skipIf(!existsSync('/dev/full'))('output that a full disk did not accept is no success', async () => {
  const child = Bun.spawn(['sh', '-c', '"$0" group list --json >/dev/full', launcher], {
    env: ground.env,
    stderr: 'pipe',
  });
  expect(await new Response(child.stderr).text()).toMatch(/^claude-code-agent: .* output failed: ENOSPC\. Free disk/);
  expect(await child.exited).toBe(1);
});

test('a symlink to a group is only unlinked, a damaged group is deleted completely', async () => {
  const kept = ground.make('kept', [{ name: 'one' }]);
  const folder = ground.paths(kept).folder;
  const linked = '20260909-090909-linked';
  symlinkSync(kept, join(folder, '..', linked));
  await ground.ok('group', 'delete', linked, '--force');
  expect(await ground.json('group', 'show', 'kept')).toMatchObject({ id: kept, sessions: [{ name: 'one' }] });
  writeFileSync(ground.paths(kept).events, 'garbage\n');
  await ground.ok('group', 'delete', 'kept', '--force');
  expect(readdirSync(join(folder, '..'))).not.toContain(kept);
});

test.each(['/nowhere/claude', 'nowhere', '/dev/null', ' '])(
  'a missing program at %p fails the session and pauses the group',
  async (path) => {
    const group = ground.make(`missing-${[...path].filter((letter) => /[a-z]/.test(letter)).join('') || 'blank'}`, [
      { name: 'one' },
    ]);
    const env = { CLAUDE_CODE_AGENT_CLAUDE: path };
    const { code, stdout } = await ground.runWith({ env }, 'group', 'run', group);
    expect(code).toBe(3);
    expect(stdout).toContain('failed (claude-missing)');
    expect(stdout).toContain(`CLAUDE_CODE_AGENT_CLAUDE names ${path}`.trimEnd());
    expect(stdout).toContain('Set it to the path of the claude program');
  },
);
