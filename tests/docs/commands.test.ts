/**
 * Promises: every command that the README and docs/ show is typed here as it stands, each document from its first to
 * its last in a fresh HOME, and succeeds. What cannot be typed is marked in the source, and counted. What prose calls a
 * command is one that the program has. Not covered: whether what is said about a command is true.
 */
import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { helpEntries } from '../../src/report/dashboard/help.ts';
import { packageRoot } from '../support/cli.ts';
import { parseCommand } from '../support/parse-command.ts';
import { documents } from './document.ts';
import { Reader } from './reader.ts';

const all = documents();
const typed = all.filter(({ commands }) => commands.length > 0);

test.concurrent.each(typed.map((document) => [document.name, document] as const))(
  'what %s shows can be typed',
  async (_, { commands, files }) => {
    const reader = new Reader(files);
    try {
      for (const { line, text } of commands) {
        if (text === ': the model takes its time for web') reader.hold();
        if (text === ': the model answers web') reader.release();
        const { code, stdout, stderr } = await reader.type(text);
        if (code !== 0) throw new Error(`Line ${line} ended with ${code}: ${text}\n${stderr}${stdout}`);
      }
    } finally {
      await reader.leave();
    }
  },
  120_000,
);

test('three blocks are not typed, and each says why', () => {
  const exceptions = all.flatMap(({ name, exceptions: own }) => own.map(({ why }) => [name, why]));
  expect(exceptions).toEqual([
    ['README.md', 'installs a package for the whole machine'],
    ['README.md', 'needs an account'],
    ['docs/benchmarks.md', 'takes half an hour, and needs a clone'],
  ]);
});

test('no command hides in a block that is not for a shell', () => {
  expect(all.flatMap(({ name, overlooked }) => overlooked.map((line) => [name, line]))).toEqual([]);
  expect(all.flatMap(({ commands }) => commands).length).toBeGreaterThan(120);
});

test('the README is short', () => {
  const words = readFileSync(join(packageRoot, 'README.md'), 'utf8').split(/\s+/).filter(Boolean);
  expect(words.length).toBeLessThanOrEqual(900);
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

const families = ['group', 'session', 'template', 'hook', 'cpm', 'faber', 'handover', 'config'];

/** What stands in code within prose and is meant as a command of the program. */
const mentioned = all.flatMap(({ name, text }) => {
  const prose = text.replace(/^ *```.*?^ *```/gms, '').replace(/<!--.*?-->/gs, '');
  return [...prose.matchAll(/`([^`\n]+)`/g)].flatMap(([, code = '']) => {
    const [first = '', second = ''] = code.split(' ');
    const isCommand = first === 'cca' || first === 'claude-code-agent';
    const words = isCommand ? code.slice(first.length + 1) : code;
    const isShort = families.includes(first) && /^[a-z][a-z-]+$/.test(second);
    return words !== '' && (isCommand || isShort) ? [[name, code, words] as const] : [];
  });
});

test.each(mentioned)('%s: `%s`', async (_, __, words) => {
  const argv = (words.match(/"[^"]*"|'[^']*'|\S+/g) ?? []).filter((word) => !/^(?:…|\.\.\.)$/.test(word));
  await parseCommand(argv.map((word) => word.replace(/^(["'])(.*)\1$/, '$2'))).catch((error) => {
    // A mention leaves out what the command is about.
    if (!/missing required argument|required option/.test(error.message)) throw error;
  });
});
