/**
 * Promises: the man pages and docs/reference/ are up to date, complete, packed and installed, and groff formats them
 * without a warning.
 */
import { expect, test } from 'bun:test';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import manifest from '../../../package.json' with { type: 'json' };
import { renderPage } from '../../../scripts/man/roff.ts';
import { createJsonReporter } from '../../../src/view/json-reporter.ts';
import { eventfulRun, play, sampleGroupId } from '../../support/view/sample-run.ts';

const root = resolve(import.meta.dir, '../../..');
const committed = (file: string): string => readFileSync(join(root, file), 'utf8');

test('npm run man changes nothing', () => {
  const folder = mkdtempSync(join(tmpdir(), 'man-'));
  try {
    const made = Bun.spawnSync([process.execPath, join(root, 'scripts', 'man.ts'), folder], { cwd: '/' });
    expect({ code: made.exitCode, said: made.stderr.toString() }).toEqual({ code: 0, said: '' });
    for (const page of readdirSync(folder)) {
      const file = page.endsWith('.md') ? `docs/reference/${page}` : `man/${page}`;
      expect(committed(file)).toBe(readFileSync(join(folder, page), 'utf8'));
    }
    expect(readdirSync(folder).toSorted()).toEqual(
      [...readdirSync(join(root, 'man')), ...readdirSync(join(root, 'docs/reference'))].toSorted(),
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('man pages of both names are installed and packed', () => {
  expect(manifest.man).toEqual(Object.keys(manifest.bin).map((name) => `man/${name}.1`));
  expect(manifest.files).toContain('man');
  expect(committed('man/cca.1')).toBe('.so man1/claude-code-agent.1\n');
});

test('the man page has all commands, options, exit codes and variables', () => {
  const page = committed('man/claude-code-agent.1').replaceAll('\\-', '-');
  for (const line of ['group run <group>', 'session add <group>', 'logs [group-or-session]', 'try', 'init [file]']) {
    expect(page).toContain(`.SS claude-code-agent ${line}\n`);
  }
  for (const word of ['.B --max-budget-usd <usd>', '.B 130\n', '.B CLAUDE_CODE_AGENT_HOME\n', '.SH EXIT STATUS']) {
    expect(page).toContain(word);
  }
  // Commands for shell completion are not for users.
  expect(page).not.toContain('.SS claude-code-agent complete');
});

const codes = committed('docs/reference/codes.md');

test('the reference has a line for every reason for which a session or group waits', () => {
  const sources = [...new Bun.Glob('src/core/plan/*.ts').scanSync({ cwd: root })].map(committed).join('\n');
  const reasons = [...sources.matchAll(/\breason: '([a-z-]+)'/g)].map(([, reason = '']) => reason);
  expect(new Set(reasons).size).toBeGreaterThan(20);
  expect(reasons.filter((reason) => !codes.includes(`\n| \`${reason}\` |`))).toEqual([]);
});

test('the reference has exactly the fields of events that are printed', () => {
  const fieldsOf = (type: string): string[] => {
    const [, fields = ''] =
      codes
        .split('\n')
        .find((line) => line.startsWith(`| \`${type}\` | `))
        ?.split(' | ') ?? [];
    return [...fields.matchAll(/`(\w+)\??`/g)].map(([, field = '']) => field);
  };
  const general = ['at', 'type', 'groupId', 'sessionId', 'seq'];
  const lines: string[] = [];
  const clock = { now: () => 0, after: () => () => {} };
  play(createJsonReporter({ write: (text) => lines.push(text), groupId: sampleGroupId, clock }), eventfulRun);
  const [, ...events] = lines.map((line) => JSON.parse(line));
  expect(events.length).toBeGreaterThan(5);
  for (const event of events) {
    const known = [...general, ...fieldsOf(event.type)];
    expect([event.type, Object.keys(event).filter((field) => !known.includes(field))]).toEqual([event.type, []]);
  }
});

test('text in the man page is never parsed as a roff request', () => {
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

test.skipIf(Bun.which('groff') === null)('groff formats the man page without a warning', () => {
  const page = join(root, 'man', 'claude-code-agent.1');
  const formatted = Bun.spawnSync(['groff', '-man', '-ww', '-Tascii', page]);
  expect({ code: formatted.exitCode, said: formatted.stderr.toString() }).toEqual({ code: 0, said: '' });
  expect(formatted.stdout.toString().includes('interrupted twice by the user')).toBe(true);
});
