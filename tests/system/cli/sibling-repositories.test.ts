/**
 * Promises, with the real claude: sibling repositories are changed together in worktrees. Each session finds the others
 * where the user has them. A dependent builds on its dependency's new work in setup, session, acceptance and the checks
 * of the merge. The user's checkouts are not changed.
 */
import { afterEach, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Step } from '../../../src/rehearsal/script.ts';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { pinnedClaude, TestHome } from '../../support/cli.ts';
import { git } from '../../support/git/repository.ts';

setDefaultTimeout(120_000);

const programs = join(import.meta.dir, '../../../node_modules/.bin');
let api: ScriptedApi | null = null;
let user: TestHome | null = null;
afterEach(async () => {
  await api?.stop();
  user?.remove();
});

const bash = (command: string): Step => ({ tool: 'Bash', input: { command } });
const write = (file: string, content: string): Step => ({
  tool: 'Write',
  input: { file_path: `{{project}}/${file}`, content },
});
const read = (file: string): Step => ({ tool: 'Read', input: { file_path: `{{project}}/${file}` } });

const source = `import { pad } from 'pad';

export function format(amount: number, currency: string, digits = 2): string {
  if (digits === 0) return \`\${amount} \${currency}\`;
  return \`\${Math.floor(amount / 100)}.\${pad(String(amount % 100), 2)} \${currency}\`;
}
`;
const scripts: Readonly<Record<string, Step[]>> = {
  money: [
    write('currencies.json', '{ "EUR": 2, "JPY": 0 }\n'),
    read('src/money.ts'),
    write('src/money.ts', source),
    bash('npm run build && npm test'),
    { text: 'done' },
  ],
  web: [
    read('../money/src/money.ts'),
    write('../money/README.md', 'not mine\n'),
    read('price.js'),
    write('price.js', 'const { format } = require("@acme/money");\nexports.price = (a) => format(a, "JPY", 0);\n'),
    read('test/price.test.js'),
    write(
      'test/price.test.js',
      `require('node:test').test('yen', () =>
  require('node:assert').equal(require('../price.js').price(250), '250 JPY'));\n`,
    ),
    bash('printenv | grep -E "^(CCA|COMPOSE)_"'),
    { text: 'done' },
  ],
  rates: [
    read('test_rates.py'),
    write(
      'test_rates.py',
      `import unittest

import rates


class Known(unittest.TestCase):
    def test_yen(self):
        self.assertEqual(["EUR", "JPY"], rates.known())
`,
    ),
    { text: 'done' },
  ],
};

/** Only the deny rules protect the user's checkouts from it. */
const free = ['--permission-mode', 'bypassPermissions'];
/** The old tests expect the old behaviour. */
const tests = ['--guard', 'none'];
const sessions: Readonly<Record<string, string[]>> = {
  money: ['--setup', 'npm ci --offline && npm run build', '--accept', 'npm test'],
  web: ['--setup', 'npm ci --offline', '--accept', 'npm test', '--depends-on', 'money', ...free, ...tests],
  rates: [
    '--setup',
    'python3 -m venv --without-pip .venv',
    '--accept',
    '.venv/bin/python -m unittest',
    '--depends-on',
    'money',
    ...tests,
  ],
};

test('a library, its sibling app and a service are changed together in worktrees and merged together', async () => {
  const names = new Map<string, string>();
  const script = Object.fromEntries(Object.entries(scripts).map(([name, steps]) => [name, { steps }]));
  const served = startScriptedApi({ script: { version: 1, sessions: script }, nameOf: (id) => names.get(id) });
  api = served;
  const machine = new TestHome({
    ANTHROPIC_BASE_URL: served.url,
    ANTHROPIC_API_KEY: 'test-key',
    CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
    IS_SANDBOX: '1',
    PATH: `${process.env.PATH}:${programs}`,
  });
  user = machine;
  const made = Bun.spawnSync(['sh', join(import.meta.dir, '../../support/cli/siblings.sh'), machine.folder], {
    env: machine.env,
  });
  expect(made.stderr.toString()).toBe('');
  const acme = join(machine.folder, 'acme');
  const group = await machine.ok('group', 'create', 'yen');
  for (const [name, options] of Object.entries(sessions)) {
    const project = ['--project', join(acme, name), '--name', name, '--prompt', `Add the yen to ${name}.`];
    const allowed = ['--isolate', 'worktree', '--allowed-tools', 'Bash(printenv:*)', '--allowed-tools', 'Bash(grep:*)'];
    names.set((await machine.ok('session', 'add', group, ...project, ...allowed, ...options)).slice(4), name);
  }
  const plan = await machine.run('group', 'plan', group);
  expect(plan.stdout).toContain(`${join(acme, 'money')}: 1 worktree of less than 1 MB; setup runs once`);
  expect(plan.stdout).toContain(
    `Worktrees are created below ${join(machine.data, 'w')}. Your checkouts do not change until`,
  );
  const run = await machine.run('group', 'run', group);
  expect(run.stdout).toContain('3 in worktrees (your checkouts do not change)');
  expect(run.stdout).toContain('The work is on cca/yen/001-money, cca/yen/002-web, cca/yen/003-rates, not yet in');
  expect({ ...run, stdout: '' }).toEqual({ code: 0, stdout: '', stderr: run.stderr });
  const paths = await worktreesOf(machine, group);
  for (const name of Object.keys(sessions)) expect(paths.get(name)).toEndWith(`/acme/${name}`);
  // 41 characters below the home of a user with a name of eight.
  expect((paths.get('web') ?? '').slice(machine.data.length).length).toBeLessThan(70 - 35);

  const asked = (name: string) =>
    served.requests.filter((one) => one.name === name).map(({ body }) => JSON.stringify(body));
  for (const name of names.values()) {
    expect(asked(name)[0]).toContain('Amounts are whole numbers of the smallest unit.');
    expect(asked(name)[0]).toContain('codes of three letters');
  }
  const last = asked('web').at(-1) ?? '';
  expect(last).toContain('digits = 2');
  expect(last).toContain(`CCA_DEP_MONEY_DIR=${(paths.get('web') ?? '').replace(/web$/, 'money')}`);
  expect(last).toContain(`CCA_PROJECT_DIR=${join(acme, 'web')}`);
  expect(last).toMatch(/COMPOSE_PROJECT_NAME=yen-[a-z0-9]{7}\b/);
  expect(last).toMatch(/CCA_PORT_BASE=2\d{3}0/);
  // Neither in the user's checkout nor in the worktree of the dependency.
  for (const folder of [acme, join(paths.get('money') ?? '', '..')]) {
    expect(existsSync(join(folder, 'money/README.md'))).toBe(false);
  }
  for (const name of names.values()) expect(git(join(acme, name), 'status', '--porcelain')).toBe('');

  const merge = await machine.run('group', 'merge', group);
  expect({ code: merge.code, stderr: merge.stderr }).toMatchObject({ code: 0 });
  for (const name of names.values()) {
    expect(git(join(acme, name), 'log', '-1', '--format=%s')).toContain(name);
    expect(git(join(acme, name), 'worktree', 'list').split('\n')).toHaveLength(1);
  }
  expect(readFileSync(join(acme, 'web/price.js'), 'utf8')).toContain('JPY');
  expect(readdirSync(join(machine.data, 'w'))).toEqual([]);
});

async function worktreesOf(machine: TestHome, group: string): Promise<Map<string, string>> {
  const paths = new Map<string, string>();
  for (const name of Object.keys(sessions)) {
    const shown = await machine.json<{ workspace: { path: string } }>('session', 'show', `${group}/${name}`);
    paths.set(name, shown.workspace.path);
  }
  return paths;
}
