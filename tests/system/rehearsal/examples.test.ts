/**
 * Promises: the scripts of the examples fit the repositories that their setup makes. Every tool call works with the
 * real claude, and the diffs are as described. The example over two repositories runs to the merge.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseScript } from '../../../src/rehearsal/script.ts';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { TestHome } from '../../support/cli.ts';
import { ClaudeSandbox, resultLineOf, runClaude, type StreamLine } from '../../support/rehearsal/claude-process.ts';

const examples = resolve(import.meta.dir, '../../../examples');
const timeoutMs = 180_000;
let sandbox: ClaudeSandbox;
let api: ScriptedApi | undefined;
let name = '';

beforeEach(() => {
  sandbox = new ClaudeSandbox();
});

afterEach(async () => {
  await api?.stop();
  sandbox.remove();
});

/** Makes the repositories of an example (from another cwd, in a folder with a space) and starts its model. */
function prepare(example: string): void {
  const setup = Bun.spawnSync(['sh', join(examples, example, 'setup.sh'), sandbox.project], { cwd: '/' });
  expect(setup.stderr.toString()).toBe('');
  const file = join(examples, example, 'rehearsal.yaml');
  const script = parseScript(readFileSync(file, 'utf8'), file);
  if (!script.ok) throw new Error(script.failure.message);
  api = startScriptedApi({ script: script.value, nameOf: () => name });
}

/** Tool results that are errors: an edit without a match, a failed command, a denied call. */
function toolErrors(lines: readonly StreamLine[]): unknown[] {
  return lines.flatMap((line) => {
    const content = (line.message as { content?: unknown } | undefined)?.content;
    return Array.isArray(content) ? content.filter((block) => block.is_error === true) : [];
  });
}

async function rehearse(session: string, project: string): Promise<void> {
  name = session;
  const cwd = join(sandbox.project, project);
  const lines = await runClaude({
    sandbox: { ...sandbox, project: cwd },
    url: api?.url ?? '',
    session: crypto.randomUUID(),
    prompt: 'Go.',
    allowedTools: 'Bash(node:*)',
  });
  expect(toolErrors(lines)).toEqual([]);
  expect(resultLineOf(lines)).toMatchObject({ subtype: 'success', is_error: false, permission_denials: [] });
  expect(resultLineOf(lines)?.result).not.toContain('at its end');
  expect(api?.problems).toEqual([]);
}

function changes(project: string): string[] {
  const status = Bun.spawnSync(['git', '-C', join(sandbox.project, project), 'status', '--porcelain']);
  return status.stdout.toString().trimEnd().split('\n');
}

test(
  'cross-project-refactor',
  async () => {
    prepare('cross-project-refactor');
    await rehearse('auth-module', 'project-a');
    await rehearse('shared-library', 'project-b');
    await rehearse('integration', 'project-a');
    await rehearse('documentation', 'project-c');
    expect(changes('project-a')).toEqual([' M src/login.js', '?? src/auth.js', '?? test/auth.test.js']);
    expect(changes('project-b')).toEqual([
      ' M CHANGELOG.md',
      ' M package.json',
      ' M src/index.js',
      ' M test/index.test.js',
    ]);
    expect(changes('project-c')).toEqual([' M README.md', ' M docs/authentication.md', '?? docs/shared-library.md']);
  },
  timeoutMs,
);

test(
  'wide-batch, with the first of its twelve repositories',
  async () => {
    prepare('wide-batch');
    expect(readdirSync(sandbox.project)).toHaveLength(12);
    await rehearse('accounts', 'accounts');
    expect(changes('accounts')).toEqual([' M CHANGELOG.md', '?? SECURITY.md']);
    expect(readFileSync(join(sandbox.project, 'accounts/SECURITY.md'), 'utf8')).toStartWith(
      '# Security policy of accounts',
    );
  },
  timeoutMs,
);

const git = (folder: string, ...args: string[]) =>
  Bun.spawnSync(['git', '-C', folder, ...args])
    .stdout.toString()
    .trim();

test(
  'rate-limits, to its merge: one session is retried, and main of both repositories has all the work',
  async () => {
    const user = new TestHome();
    try {
      const folder = join(user.folder, 'toy repositories');
      const child = Bun.spawn(['sh', join(examples, 'rate-limits', 'run.sh'), folder], {
        cwd: '/',
        env: user.env,
        stdin: 'ignore',
        stdout: 'pipe',
        stderr: 'pipe',
      });
      const [stdout, stderr] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
      ]);
      expect({ code: await child.exited, stderr }).toMatchObject({ code: 0 });
      expect(stdout).toContain('004 login     paused (not-accepted)');
      expect(stdout).toContain('004 login     completed');
      const made = { api: ['limiter', 'search', 'login'], web: ['messages', 'notes'] };
      for (const [project, sessions] of Object.entries(made)) {
        const at = join(folder, project);
        expect(git(at, 'status', '--porcelain')).toBe('');
        expect(git(at, 'branch', '--format=%(refname:short)')).toBe('main');
        expect(git(at, 'worktree', 'list').split('\n')).toHaveLength(1);
        expect(Bun.spawnSync(['git', '-C', at, 'fsck', '--full', '--strict']).exitCode).toBe(0);
        for (const session of sessions) expect(git(at, 'log', '--format=%s')).toContain(`${session}: `);
        expect(Bun.spawnSync(['node', '--test'], { cwd: at, env: user.env }).exitCode).toBe(0);
      }
      const [group = ''] = readdirSync(join(user.data, 'session-groups'));
      const sessions = join(user.data, 'session-groups', group, 'sessions');
      const search = readdirSync(sessions).find((name) => name.startsWith('003-')) ?? '';
      const prompt = readFileSync(join(sessions, search, 'prompt.md'), 'utf8');
      expect(prompt).toContain('2 files changed, 22 insertions(+) on\ncca/rate-limits/001-limiter, where you begin.');
    } finally {
      user.remove();
    }
  },
  timeoutMs,
);
