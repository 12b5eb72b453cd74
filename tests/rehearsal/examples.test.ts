/**
 * Promises: the examples' scripts fit the repositories that their setup makes. Every tool call of every session works
 * with the real claude (nothing denied, no edit that misses, no test that fails), and the diffs are as told.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseScript } from '../../src/rehearsal/script.ts';
import { type ScriptedApi, startScriptedApi } from '../../src/rehearsal/scripted-api.ts';
import { type Line, resultOf, runClaude, Sandbox } from './claude-process.ts';

const examples = resolve(import.meta.dir, '../../examples');
const timeoutMs = 180_000;
let sandbox: Sandbox;
let api: ScriptedApi | undefined;
let name = '';

beforeEach(() => {
  sandbox = new Sandbox();
});

afterEach(async () => {
  await api?.stop();
  sandbox.remove();
});

/** Makes the repositories of an example (from another cwd, in a folder with a blank) and starts its model. */
function prepare(example: string): void {
  const setup = Bun.spawnSync(['sh', join(examples, example, 'setup.sh'), sandbox.project], { cwd: '/' });
  expect(setup.stderr.toString()).toBe('');
  const file = join(examples, example, 'rehearsal.yaml');
  const script = parseScript(readFileSync(file, 'utf8'), file);
  if (!script.ok) throw new Error(script.failure.message);
  api = startScriptedApi({ script: script.value, nameOf: () => name });
}

/** Results of tools that are errors: an edit that missed, a command that failed, a call that was denied. */
function toolErrors(lines: readonly Line[]): unknown[] {
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
  expect(resultOf(lines)).toMatchObject({ subtype: 'success', is_error: false, permission_denials: [] });
  expect(resultOf(lines)?.result).not.toContain('at its end');
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
  'wide-batch, by the first of its twelve repositories',
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

test('setup refuses folders that are there, and every script is plain POSIX sh', () => {
  prepare('wide-batch');
  for (const example of ['wide-batch', 'cross-project-refactor']) {
    const again = ['sh', join(examples, example, 'setup.sh'), sandbox.project];
    expect(Bun.spawnSync(again).exitCode).toBe(example === 'wide-batch' ? 2 : 0);
    for (const file of ['setup.sh', 'run.sh']) {
      expect(Bun.spawnSync(['sh', '-n', join(examples, example, file)]).exitCode).toBe(0);
    }
  }
  expect(Bun.spawnSync(['sh', '-n', join(examples, 'demo.sh')]).exitCode).toBe(0);
});
