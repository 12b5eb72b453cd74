/**
 * Promises: every command that the README and docs/ show is typed as it stands (typing-*.test.ts), each document from
 * its first to its last in a fresh HOME, and succeeds. What cannot be typed is marked in the source, and counted. What
 * prose calls a command is one that the program has. Not covered: whether what is said about a command is true.
 */
import { expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { helpEntries } from '../../../src/tui/dashboard/frame.ts';
import { packageRoot } from '../../support/cli.ts';
import { documents, readDocument } from '../../support/docs/document.ts';
import { parseCommand } from '../../support/parse-command.ts';

const all = documents();

test('nine blocks are not typed, and each says why', () => {
  const exceptions = all.flatMap(({ name, exceptions: own }) => own.map(({ why }) => [name, why]));
  expect(exceptions).toEqual([
    ['README.md', 'installs a package for the whole machine'],
    ['README.md', 'needs an account'],
    ['docs/benchmarks.md', 'takes half an hour, and needs a clone'],
    ['docs/fleet-reference.md', 'needs a server with a certificate'],
    ['docs/fleet-reference.md', 'is typed on another host'],
    ['docs/fleet.md', 'the address differs from network to network'],
    ['docs/install.md', 'installs a package for the whole machine'],
    ['docs/install.md', 'needs the files of a release'],
    ['docs/library.md', 'asks the npm registry'],
  ]);
});

test('no command hides in a block that is not for a shell', () => {
  expect(all.flatMap(({ name, overlooked }) => overlooked.map((line) => [name, line]))).toEqual([]);
  expect(all.flatMap(({ commands }) => commands).length).toBeGreaterThan(120);
});

/** As GitHub makes it from a heading. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

test('every link of a page leads to a file and a heading that exist', () => {
  const pages = [...all, ...['CHANGELOG.md', 'CONTRIBUTING.md'].map(readDocument)];
  const broken = pages.flatMap(({ name, text }) =>
    [...text.matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)]
      .filter(([, file = '', anchor]) => {
        const path = file === '' ? name : join(dirname(name), file);
        if (!existsSync(join(packageRoot, path))) return true;
        const headings = anchor === undefined ? '' : readFileSync(join(packageRoot, path), 'utf8');
        return (
          anchor !== undefined && ![...headings.matchAll(/^#+ (.*)$/gm)].some(([, it = '']) => anchorOf(it) === anchor)
        );
      })
      .map(([link]) => `${name}: ${link}`),
  );
  expect(broken).toEqual([]);
});

test('the README is short', () => {
  const words = readFileSync(join(packageRoot, 'README.md'), 'utf8').split(/\s+/).filter(Boolean);
  expect(words.length).toBeLessThanOrEqual(600);
});

const tasks = (all.find(({ name }) => name === 'docs/tasks.md')?.text ?? '').split(/^## (?=\d)/m).slice(1);

test('there are twelve tasks', () => expect(tasks).toHaveLength(12));

test.each(tasks.map((text) => [text.split('\n', 1)[0] ?? '', text] as const))(
  'at most two commands or three keys: %s',
  (_, text) => {
    const blocks = [...text.matchAll(/^```sh\n(.*?)^```/gms)].map(([, body = '']) => body.trim().split('\n'));
    expect(blocks).not.toEqual([]);
    for (const lines of blocks) expect(lines.length).toBeLessThanOrEqual(2);
    const keys = [...(/Keys: (.*)/s.exec(text)?.[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, key = '']) => key);
    const known = [...helpEntries.flatMap(([names]) => names), 'n', 'cca'];
    expect(keys.filter((key) => !known.includes(key))).toEqual([]);
    expect(keys.length).toBeLessThanOrEqual(3);
  },
);

const families = ['group', 'session', 'template', 'hook', 'cpm', 'faber', 'handover', 'config', 'fleet', 'host'];

/** What stands in code within prose and is meant as a command of the program. */
const mentioned = all.flatMap(({ name, text }) => {
  const prose = text.replace(/^ *```.*?^ *```/gms, '').replace(/<!--.*?-->/gs, '');
  return [...prose.matchAll(/`([^`\n]+)`/g)].flatMap(([, code = '']) => {
    const [first = '', second = ''] = code.split(' ');
    const isCommand = first === 'cca' || first === 'claude-code-agent';
    const words = (isCommand ? code.slice(first.length + 1) : code).replace(/^help (?=\w)/, '');
    // Hooks are no commands of a person, and are not known to the parser.
    if (/^(?:hook (?:cpm|faber|handover|all)|version$)/.test(words)) return [];
    const isShort = families.includes(first) && /^[a-z][a-z-]+$/.test(second);
    return words !== '' && (isCommand || isShort) ? [[name, code, words] as const] : [];
  });
});

/** What is left out where a command is only mentioned, and help. */
const tolerated = ['missingArgument', 'missingMandatoryOptionValue', 'optionMissingArgument', 'version', 'help'];

test.each(mentioned)('%s: `%s`', async (_, __, words) => {
  const argv = (words.match(/"[^"]*"|'[^']*'|\S+/g) ?? []).map((word) => word.replace(/^(["'])(.*)\1$/, '$2'));
  await parseCommand(argv.filter((word) => word !== '…')).catch((error) => {
    if (!tolerated.some((code) => error.code === `commander.${code}`)) throw error;
  });
});
