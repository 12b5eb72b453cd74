/**
 * Promises: commands in the README and docs/ that cannot be run are marked and counted, and commands in prose exist.
 * The tests typing-*.test.ts run the other commands.
 */
import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { keyActions } from '../../../src/tui/dashboard/actions.ts';
import { checkoutRoot } from '../../support/cli.ts';
import { documents } from '../../support/docs/document.ts';
import { parseArguments } from '../../support/parse-command.ts';

const all = documents();

test('docs: nine blocks are not run, each for a reason', () => {
  const exceptions = all.flatMap(({ name, exceptions: own }) => own.map(({ why }) => [name, why]));
  expect(exceptions).toEqual([
    ['README.md', 'installs a package for the whole machine'],
    ['README.md', 'needs an account'],
    ['docs/fleet-reference.md', 'needs a server with a certificate'],
    ['docs/fleet-reference.md', 'is typed on another host'],
    ['docs/fleet-reference.md', 'needs a host without ssh'],
    ['docs/fleet.md', 'the address differs from network to network'],
    ['docs/install.md', 'installs a package for the whole machine'],
    ['docs/install.md', 'needs the files of a release'],
    ['docs/library.md', 'asks the npm registry'],
  ]);
});

test('docs: no command is in a block that the tests do not run', () => {
  expect(all.flatMap(({ name, overlooked }) => overlooked.map((line) => [name, line]))).toEqual([]);
  expect(all.flatMap(({ commands }) => commands).length).toBeGreaterThan(120);
});

test('docs: the README has at most 600 words', () => {
  const words = readFileSync(join(checkoutRoot, 'README.md'), 'utf8').split(/\s+/).filter(Boolean);
  expect(words.length).toBeLessThanOrEqual(600);
});

const tasks = (all.find(({ name }) => name === 'docs/tasks.md')?.text ?? '').split(/^## (?=\d)/m).slice(1);

test('docs: there are twelve tasks', () => expect(tasks).toHaveLength(12));

test.each(tasks.map((text) => [text.split('\n', 1)[0] ?? '', text] as const))(
  'docs: a task takes at most two commands or three keys: %s',
  (_, text) => {
    const blocks = [...text.matchAll(/^```sh\n(.*?)^```/gms)].map(([, body = '']) => body.trim().split('\n'));
    expect(blocks).not.toEqual([]);
    for (const lines of blocks) expect(lines.length).toBeLessThanOrEqual(2);
    const keys = [...(/Keys: (.*)/s.exec(text)?.[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, key = '']) => key);
    const known = [...keyActions.flatMap((action) => action.keys), 'cca'];
    expect(keys.filter((key) => !known.includes(key))).toEqual([]);
    expect(keys.length).toBeLessThanOrEqual(3);
  },
);

const families = ['group', 'session', 'template', 'hook', 'cpm', 'faber', 'handover', 'config', 'fleet', 'host'];

/** Inline code that is a command of the program. */
const mentioned = all.flatMap(({ name, text }) => {
  const prose = text.replace(/^ *```.*?^ *```/gms, '').replace(/<!--.*?-->/gs, '');
  return [...prose.matchAll(/`([^`\n]+)`/g)].flatMap(([, code = '']) => {
    const [first = '', second = ''] = code.split(' ');
    const isCommand = first === 'cca' || first === 'claude-code-agent';
    const words = (isCommand ? code.slice(first.length + 1) : code).replace(/^help (?=\w)/, '');
    // Hook commands are for claude, not for users, and are missing in the parser.
    if (/^(?:hook (?:cpm|faber|handover|all)|version$)/.test(words)) return [];
    const isShort = families.includes(first) && /^[a-z][a-z-]+$/.test(second);
    return words !== '' && (isCommand || isShort) ? [[name, code, words] as const] : [];
  });
});

/** Prose may omit arguments. */
const tolerated = ['missingArgument', 'missingMandatoryOptionValue', 'optionMissingArgument', 'version', 'help'];

test.each(mentioned)('docs: %s: `%s` is a command', async (_, __, words) => {
  const argv = (words.match(/"[^"]*"|'[^']*'|\S+/g) ?? []).map((word) => word.replace(/^(["'])(.*)\1$/, '$2'));
  await parseArguments(argv.filter((word) => word !== '…')).catch((error) => {
    if (!tolerated.some((code) => error.code === `commander.${code}`)) throw error;
  });
});
