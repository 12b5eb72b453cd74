/**
 * Promises: `config` shows every setting with its value and origin, `set` changes one and keeps the rest of
 * config.yaml, and invalid values are refused without a change.
 */
import { beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { user, withUser } from '../../support/cli/user.ts';
import { pinnedClaude } from '../../support/cli.ts';

let file: string;
withUser();
beforeEach(() => {
  file = join(user.home, '.config', 'claude-code-agent', 'config.yaml');
});

interface Settings {
  readonly settings: readonly { readonly key: string; readonly value: unknown; readonly source: string }[];
}

async function settings(env: Readonly<Record<string, string>> = {}): Promise<Record<string, unknown>> {
  const { stdout } = await user.runWith({ env }, 'config', '--json');
  const { settings: all } = JSON.parse(stdout) as Settings;
  return Object.fromEntries(all.map(({ key, value, source }) => [key, [value, source]]));
}

function write(text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

test('config shows whether a setting comes from a default, config.yaml or the environment', async () => {
  const plain = await settings();
  expect(plain).toMatchObject({
    home: [user.data, 'environment'],
    configFolder: [dirname(file), 'default'],
    templates: [[], 'default'],
    plainText: [false, 'default'],
    debug: [false, 'default'],
    onEvent: [null, 'default'],
    'prices.opus-4-8': [{ input: 5, output: 25, cacheCreation: 6.25, cacheRead: 0.5 }, 'default'],
  });
  write('onEvent: cat\nprices:\n  opus-4-8: { input: 1, output: 2 }\n  mine: { input: 3, output: 4, cacheRead: 1 }\n');
  const env = {
    CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
    CLAUDE_CODE_AGENT_TEMPLATES: '/a:/b',
    NO_COLOR: '1',
    CLAUDE_CODE_AGENT_DEBUG: '1',
  };
  expect(await settings(env)).toMatchObject({
    claude: [pinnedClaude(), 'environment'],
    templates: [['/a', '/b'], 'environment'],
    plainText: [true, 'environment'],
    debug: [true, 'environment'],
    onEvent: ['cat', 'config.yaml'],
    'prices.opus-4-8': [{ input: 1, output: 2, cacheCreation: 1.25, cacheRead: 0.1 }, 'config.yaml'],
    'prices.mine': [{ input: 3, output: 4, cacheCreation: 3.75, cacheRead: 1 }, 'config.yaml'],
  });
});

test('config without a subcommand prints the table of settings', async () => {
  write('onEvent: cat\n');
  const table = await user.ok('config');
  expect(table).toBe(await user.ok('config', 'list'));
  expect(table).toMatch(/^SETTING +VALUE +FROM$/m);
  expect(table).toMatch(/^home +\S.* +environment \(CLAUDE_CODE_AGENT_HOME\)$/m);
  expect(table).toMatch(/^onEvent +cat +config\.yaml$/m);
  expect(table).toMatch(/^prices\.opus-4-8 +input 5, output 25, cacheCreation 6\.25, cacheRead 0\.5 +default$/m);
});

test('config get prints one value as text or JSON', async () => {
  expect(await user.ok('config', 'get', 'home')).toBe(user.data);
  expect(await user.ok('config', 'get', 'onEvent')).toBe('');
  expect(await user.ok('config', 'get', 'prices.opus-4-8.output')).toBe('25');
  expect(await user.json('config', 'get', 'prices.opus-4-8')).toMatchObject({
    key: 'prices.opus-4-8',
    value: { input: 5 },
  });
  expect(await user.json('config', 'get', 'onEvent')).toEqual({ key: 'onEvent', value: null });
  expect(await user.ok('config', 'path')).toBe(file);
  expect(await user.json('config', 'path')).toEqual({ path: file });
});

test('config set keeps comments, order and other settings; an empty value removes one', async () => {
  const before = [
    '# mine',
    'prices:',
    '  # in dollars',
    '  opus: { input: 5, output: 25 } # as told',
    '  haiku:',
    '    input: 1',
    '    output: 2',
    '',
  ].join('\n');
  write(before);
  expect(await user.ok('config', 'set', 'prices.opus.output', '20')).toBe('20');
  expect(await user.ok('config', 'set', 'onEvent', 'jq -r .type >> "$HOME/x: y" # z')).toBe(
    'jq -r .type >> "$HOME/x: y" # z',
  );
  const after = readFileSync(file, 'utf8');
  for (const comment of ['# mine', '# in dollars', '# as told']) expect(after).toContain(comment);
  expect(await settings()).toMatchObject({
    onEvent: ['jq -r .type >> "$HOME/x: y" # z', 'config.yaml'],
    'prices.opus': [{ output: 20 }, 'config.yaml'],
    'prices.haiku': [{ input: 1, output: 2 }, 'config.yaml'],
  });
  await user.ok('config', 'set', 'onEvent', '');
  await user.ok('config', 'set', 'prices.opus.output', '25');
  expect(readFileSync(file, 'utf8')).toBe(before);
  await user.ok('config', 'set', 'prices.opus', '');
  await user.ok('config', 'set', 'prices.haiku', '');
  expect(await settings()).toMatchObject({ onEvent: [null, 'default'] });
  expect(readFileSync(file, 'utf8')).not.toContain('input');
});

test('config set creates a private file if it is missing, and keeps a symlink to it', async () => {
  const { value } = await user.json<{ value: unknown }>('config', 'set', 'prices.my-model.2', '{input: 2, output: 4}');
  expect(value).toEqual({ input: 2, output: 4, cacheCreation: 2.5, cacheRead: 0.2 });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const elsewhere = join(user.folder, 'dotfiles.yaml');
  const other = join(user.folder, 'other');
  mkdirSync(join(other, 'claude-code-agent'), { recursive: true });
  writeFileSync(elsewhere, '');
  const link = join(other, 'claude-code-agent', 'config.yaml');
  symlinkSync(elsewhere, link);
  const set = await user.runWith({ env: { XDG_CONFIG_HOME: other } }, 'config', 'set', 'onEvent', 'cat');
  expect(set).toMatchObject({ code: 0, stdout: 'cat\n' });
  expect(readFileSync(elsewhere, 'utf8')).toBe('onEvent: cat\n');
});

test.each<[string[], string]>([
  [['set', 'prices.opus.output', ''], 'prices.opus.output is missing'],
  [['set', 'prices.new.input', '3'], 'prices.new.output is missing'],
  [['set', 'prices.opus.input', '-1'], 'prices.opus.input cannot be set: '],
  [['set', 'prices.opus.input', 'much'], 'prices.opus.input cannot be set: '],
  [['set', 'prices.opus', '{'], 'prices.opus cannot be "{"'],
  [['set', 'onEvent', ' '], 'onEvent cannot be set: '],
  [['set', 'home', '/x'], 'Set the environment variable CLAUDE_CODE_AGENT_HOME'],
  [['set', 'nothing', '1'], 'There is no setting "nothing". See: claude-code-agent config list'],
  [['set', 'prices', '{}'], 'There is no setting "prices"'],
  [['get', 'nothing'], 'There is no setting "nothing"'],
  [['get', 'prices.opus.nothing'], 'There is no setting'],
  [['get'], 'Give it as: claude-code-agent config get KEY'],
  [['get', 'home', 'more'], 'Give it as: claude-code-agent config get KEY'],
  [['set', 'onEvent'], 'Give it as: claude-code-agent config set KEY VALUE'],
  [['path', 'home'], 'Give it as: claude-code-agent config path'],
  [['nothing'], 'Allowed choices are list, get, set, path'],
])('config %j is refused and changes nothing', async (words, said) => {
  write('prices: { opus: { input: 5, output: 25 } }\n');
  const refused = await user.run('config', ...words);
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toContain(said);
  expect(refused.stderr.split('\n')).toHaveLength(2);
  expect(readFileSync(file, 'utf8')).toBe('prices: { opus: { input: 5, output: 25 } }\n');
});

test('an unreadable config.yaml stays unchanged', async () => {
  write('onEvent: [\n');
  for (const words of [[], ['set', 'onEvent', 'cat']]) {
    const refused = await user.run('config', ...words);
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toContain('config.yaml:');
  }
  expect(readFileSync(file, 'utf8')).toBe('onEvent: [\n');
  expect(existsSync(join(dirname(file), '.config.yaml.lock'))).toBe(false);
});
