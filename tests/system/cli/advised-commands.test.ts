/**
 * Promises: advice consists of whole commands, the same in every view, and each can be pasted as shown: the program
 * accepts it or gives the reason for a refusal. No view shortens one, and no code searches sentences for commands.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { adviceText, advise, adviseInOrder, commandText, see, shellWord } from '../../../src/core/advice.ts';
import { adviceSites } from '../../support/advice-sites.ts';
import { launcher, User } from '../../support/cli/user.ts';
import { checkoutRoot } from '../../support/cli.ts';
import { parseArguments as parse } from '../../support/parse-command.ts';

let user: User;
let group: string;
const cured = () => join(user.folder, 'cured');
const said = { text: '', json: '' };

beforeAll(async () => {
  user = new User();
  // Without a model: `api` is completed, `web` fails while a file is missing, `docs` depends on it.
  group = await user.ok('group', 'create', 'auth', '--max-budget-usd', '10');
  await user.add(group, 'api');
  await user.add(group, 'web', '--accept', `test -e ${shellWord(cured())}`, '--accept-retries', '0');
  await user.add(group, 'docs', '--depends-on', 'web');
  const ran = await user.run('group', 'run', group, '--rehearse', '--output', 'json');
  expect(ran).toMatchObject({ code: 1, stderr: '' });
  said.json = ran.stdout;
  const again = await user.run('group', 'run', group);
  expect(again).toMatchObject({ code: 1, stdout: '' });
  said.text = again.stderr;
}, 120_000);
afterAll(() => user.remove());

/** How a shell splits a command line, without the program's name. */
function wordsOf(line: string): string[] {
  const { stdout } = Bun.spawnSync(['sh', '-c', `for word in ${line}; do printf '%s\\0' "$word"; done`]);
  return stdout.toString().split('\0').slice(1, -1);
}

const sites = adviceSites(checkoutRoot);

describe('every advised command exists in the program', () => {
  /** A real value for parts that are known only at run time. */
  function filled(word: string): string {
    const unknown = /^<(.*)>$/s.exec(word)?.[1];
    if (unknown === undefined) return word;
    if (unknown === 'words[command.do]') return 'say';
    const [, chosen] = / \? '([a-z-]+)' : /.exec(unknown) ?? [];
    if (chosen !== undefined) return chosen;
    if (/Usd/.test(unknown)) return '1';
    if (unknown === 'freer') return 'bypassPermissions';
    if (/reference|Reference|\/\$\{/.test(unknown)) return `${group}/web`;
    return unknown === 'number' ? '002' : /^(?:id|groupId|basename.*|.*\.id)$/i.test(unknown) ? group : 'x';
  }

  test('all of them are found', () => {
    expect(sites.length).toBeGreaterThan(90);
    for (const kind of ['group', 'session', 'template', 'doctor', 'stop', 'run', 'faber', 'cpm', 'handover']) {
      expect(sites.map(({ words }) => words[0])).toContain(kind);
    }
  });

  test.each(sites.map(({ where, words }) => [where, words] as const))('%s', async (_, words) => {
    const line = commandText(words.map(filled));
    expect(line).toStartWith('claude-code-agent ');
    await parse(wordsOf(line));
  });
});

test('a command that the program does not have is detected', () => {
  expect(parse(['group', 'resumes', 'x'])).rejects.toThrow('resumes');
  expect(parse(['session', 'retry', 'x', '--rehearsal'])).rejects.toThrow("unknown option '--rehearsal'");
  expect(parse(['session', 'retry'])).rejects.toThrow('missing required argument');
});

describe('one renderer', () => {
  test('a sentence, followed by its commands', () => {
    expect(adviceText(advise('Free some space.'))).toBe('Free some space.');
    expect(adviceText(see('group', 'list'))).toBe('See: claude-code-agent group list');
    expect(adviceText(advise('Watch it, or pause it', ['group', 'watch', 'a'], ['group', 'pause', 'a']))).toBe(
      'Watch it, or pause it: claude-code-agent group watch a · claude-code-agent group pause a',
    );
  });

  test('commands for one after the other are one line that can be pasted', () => {
    const lines = [
      ['group', 'copy', 'a b', '--real'],
      ['group', 'run', '@'],
    ];
    expect(adviceText(adviseInOrder('For real', ...lines))).toBe(
      "For real: claude-code-agent group copy 'a b' --real && claude-code-agent group run @",
    );
  });

  test.each(['plain', "it's", '', 'a b', '$HOME `x` "y"', 'line\nbreak', '--x=1', '~', '*', 'ü'])(
    'a shell reads %j as one word',
    (word) => expect(wordsOf(`x ${shellWord(word)}`)).toEqual([word]),
  );
});

/** Every command in a text, up to where a view ends it. */
const advised = (text: string): string[] =>
  [...text.matchAll(/claude-code-agent (?!agent)[a-z]+ [^\n`·<|]*/g)].map(([line]) =>
    line.replace(/&#39;/g, "'").trim(),
  );
const abbreviated = /(?<!claude-code-agent )\b(?:group|session) (?:run|resume|retry|show|why|budget|remove|merge)\b/;

describe('advice about a rehearsed group that failed', () => {
  const faces: readonly (readonly [face: string, () => Promise<string> | string])[] = [
    ['events as JSON', () => nextOf(said.json).join('\n')],
    ['a refusal', () => said.text],
    ['group show', () => user.ok('group', 'show', group)],
    ['group why', () => user.ok('group', 'why', group)],
    ['session show', () => user.ok('session', 'show', `${group}/web`)],
    ['Markdown', () => user.ok('group', 'report', group, '--markdown')],
    ['the report as JSON', async () => texts(await user.json('group', 'report', group)).join('\n')],
    ['group watch', async () => (await user.run('group', 'watch', group, '--output', 'text')).stdout],
  ];

  test.each(faces)('%s: whole commands, each of which the program accepts', async (_, show) => {
    const text = await show();
    expect(text).not.toMatch(abbreviated);
    const lines = new Set(advised(text));
    expect([...lines].join('\n')).toMatch(/ (?:--retry-failed|session retry)/);
    for (const line of lines) for (const part of line.split(' && ')) await parse(wordsOf(part));
  });

  test('HTML', async () => {
    const path = join(user.folder, 'report.html');
    await user.ok('group', 'report', group, '--html', path);
    const page = (await Bun.file(path).text()).replace(/<[^>]*>/g, '\n');
    expect(page).not.toMatch(abbreviated);
    expect(advised(page)).toContain(`claude-code-agent session retry ${group}/web`);
  });

  test('the advice uses the name that was typed', async () => {
    const cca = join(user.folder, 'cca');
    symlinkSync(launcher, cca);
    const other = Bun.spawnSync([cca, 'group', 'show', group], { env: user.env });
    expect(other.stdout.toString()).toContain(`\nContinue with: cca group run ${group} --rehearse --retry-failed`);
    const refused = Bun.spawnSync([cca, 'group', 'show', 'none'], { env: user.env });
    expect(refused.stderr.toString()).toBe('cca: There is no group "none". See: cca group list\n');
  });

  test('the advised commands are typed as shown until the group is completed', async () => {
    const type = async (line: string) => {
      const { code, stderr } = await user.run(...wordsOf(line));
      expect({ line, code, stderr }).toEqual({ line, code: 0, stderr: '' });
    };
    const next = async () => advised((await user.ok('group', 'show', group)).split('\n').slice(-2).join('\n'));
    await Bun.write(cured(), '');
    const retry = advised(await user.ok('session', 'show', `${group}/web`)).at(-1) ?? '';
    expect(retry).toBe(`claude-code-agent session retry ${group}/web`);
    await type(retry);
    expect(await next()).toEqual([`claude-code-agent group resume ${group} --rehearse`]);
    for (const line of await next()) await type(line);
    expect(await user.json('group', 'show', group)).toMatchObject({ status: 'completed' });
    const [look = '', real = '', ...more] = await next();
    expect([look, real, ...more]).toEqual([
      `claude-code-agent session logs ${group}/api`,
      `claude-code-agent group copy ${group} --real && claude-code-agent group run @`,
    ]);
    await type(look);
    // Without a login, so that the run ends before it costs anything.
    const env = { ...user.env, PATH: `${dirname(launcher)}:${user.env.PATH}` };
    const pasted = Bun.spawnSync(['sh', '-c', real], { cwd: user.folder, env });
    expect(pasted.stderr.toString()).not.toMatch(/argument|Unknown|option/);
    const copied = await user.json<{ readonly id: string; readonly slug: string }>('show', '@');
    expect({ ...copied, isNew: copied.id !== group }).toMatchObject({ slug: 'auth', isNew: true });
  }, 120_000);
});

/** The advice in the events of a run. */
function nextOf(lines: string): string[] {
  const events = lines
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { readonly type: string; readonly next?: unknown });
  return events.flatMap(({ type, next }) => {
    if (type === 'session_failed' || type === 'group_failed') expect(next).toBeString();
    return typeof next === 'string' ? [next] : [];
  });
}

function texts(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(texts) : [];
}
