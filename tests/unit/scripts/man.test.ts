/**
 * Promises: the man pages are those that the definitions of the commands make, name commands, options and exit codes,
 * are packed and installed under both names, and a formatter has nothing to complain about.
 */
import { expect, test } from 'bun:test';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import manifest from '../../../package.json' with { type: 'json' };
import { renderPage } from '../../../scripts/man/roff.ts';

const root = resolve(import.meta.dir, '../../..');
const committed = (file: string): string => readFileSync(join(root, file), 'utf8');

test('npm run man has nothing to change', () => {
  const folder = mkdtempSync(join(tmpdir(), 'man-'));
  try {
    const made = Bun.spawnSync([process.execPath, join(root, 'scripts', 'man.ts'), folder], { cwd: '/' });
    expect({ code: made.exitCode, said: made.stderr.toString() }).toEqual({ code: 0, said: '' });
    for (const page of ['claude-code-agent.1', 'cca.1']) {
      expect(committed(`man/${page}`)).toBe(readFileSync(join(folder, page), 'utf8'));
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('both names are installed and packed', () => {
  expect(manifest.man).toEqual(Object.keys(manifest.bin).map((name) => `man/${name}.1`));
  expect(manifest.files).toContain('man');
  expect(committed('man/cca.1')).toBe('.so man1/claude-code-agent.1\n');
});

test('commands, options, exit codes and variables stand in it', () => {
  const page = committed('man/claude-code-agent.1').replaceAll('\\-', '-');
  for (const line of ['group run <group>', 'session add <group>', 'logs [group-or-session]', 'try', 'init [file]']) {
    expect(page).toContain(`.SS claude-code-agent ${line}\n`);
  }
  for (const word of ['.B --max-budget-usd <usd>', '.B 130\n', '.B CLAUDE_CODE_AGENT_HOME\n', '.SH EXIT STATUS']) {
    expect(page).toContain(word);
  }
  // What answers the shell is no command of people.
  expect(page).not.toContain('.SS claude-code-agent complete');
});

test('nothing of a text is taken for a request', () => {
  const command = { path: 'x', usage: '', description: ".a\\b\n'c", arguments: [], options: [], notes: '.d\n-e' };
  const page = renderPage({
    name: 'n',
    version: '1',
    summary: 's "q"',
    synopsis: ['n'],
    description: '.x',
    commands: [command],
    sections: [{ title: 'T', parts: [['.y', '.z']] }],
  });
  const requests = page.split('\n').filter((line) => /^[.']/.test(line));
  for (const line of requests) expect(line).toMatch(/^\.(?:\\"|TH|SH|SS|B|TP|PP|nf|fi|br)(?: |$)/);
  expect(page).toContain("\\&.a\\eb\n\\&'c");
});

test.skipIf(Bun.which('groff') === null)('groff formats it without a warning', () => {
  const page = join(root, 'man', 'claude-code-agent.1');
  const formatted = Bun.spawnSync(['groff', '-man', '-ww', '-Tascii', page]);
  expect({ code: formatted.exitCode, said: formatted.stderr.toString() }).toEqual({ code: 0, said: '' });
  expect(formatted.stdout.toString().includes('interrupted twice by the user')).toBe(true);
});
