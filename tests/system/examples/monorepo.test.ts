/**
 * Promises, with the real claude, npm and pnpm, without a network: in a monorepo with workspaces two sessions work in
 * different packages, the second with the new code of the first. Each is set up and accepted, and they are merged
 * together.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Step } from '../../../src/rehearsal/script.ts';
import { ExampleUser } from '../../support/cli/example-user.ts';
import { writeTree } from '../../support/git/repository.ts';

const write = (path: string, content: string): Step => ({
  tool: 'Write',
  input: { file_path: `{{project}}/${path}`, content },
});

const script = {
  money: [
    write('index.js', 'exports.format = (cents) => `$${(cents / 100).toFixed(2)}`;\n'),
    { text: 'format(cents) is there.' },
  ],
  web: [
    write('index.js', "const { format } = require('@acme/money');\nexports.price = () => format(1250);\n"),
    write('index.test.js', testOf('price()', '$12.50')),
    { text: 'The price is shown.' },
  ],
} satisfies Record<string, Step[]>;

function testOf(call: string, wanted: string): string {
  const name = call.replace(/\(.*/, '');
  return `const test = require('node:test');\nconst assert = require('node:assert');
const { ${name} } = require('./index.js');\ntest('${name}', () => assert.equal(${call}, '${wanted}'));\n`;
}

const manifest = (name: string, more: object = {}): string =>
  `${JSON.stringify({ name, version: '1.0.0', private: true, scripts: { test: 'node --test' }, ...more }, null, 2)}\n`;

interface Manager {
  readonly version: string;
  readonly install: string;
  readonly setup: string;
  readonly test: string;
  readonly testAll: string;
}

const managers: Readonly<Record<string, Manager>> = {
  npm: {
    version: '1.0.0',
    install: 'npm install --silent',
    setup: 'npm ci --silent',
    test: 'npm test --silent',
    testAll: 'npm test --silent --workspaces --if-present',
  },
  pnpm: {
    version: 'workspace:*',
    install: 'pnpm install --silent',
    setup: 'pnpm install --silent --frozen-lockfile',
    test: 'pnpm --silent test',
    testAll: 'pnpm --recursive test',
  },
};

describe.each(Object.entries(managers))('%s', (name, manager) => {
  const example = test.skipIf(Bun.which(name) === null);
  let user: ExampleUser;
  let shop: string;
  let group: string;
  beforeAll(async () => {
    if (Bun.which(name) === null) return;
    user = new ExampleUser(script);
    // No registry is contacted.
    writeFileSync(join(user.home, '.npmrc'), 'offline=true\naudit=false\nfund=false\nupdate-notifier=false\n');
    shop = user.project('shop');
    writeTree(shop, {
      '.gitignore': 'node_modules/\n',
      'package.json': manifest('shop', { workspaces: ['packages/*'] }),
      'pnpm-workspace.yaml': 'packages:\n  - packages/*\n',
      'packages/money/package.json': manifest('@acme/money'),
      'packages/money/index.js': 'exports.format = () => "";\n',
      'packages/money/index.test.js': testOf('format(1250)', '$12.50'),
      'packages/web/package.json': manifest('@acme/web', { dependencies: { '@acme/money': manager.version } }),
      'packages/web/index.js': 'exports.price = () => "";\n',
    });
    user.shell(shop, `git init -q && ${manager.install} && git add . && git commit -qm First`);
    group = await user.ok('group', 'create', 'shop');
    const commands = ['--setup', manager.setup, '--accept', manager.test, '--isolate', 'worktree'];
    await user.addSession(group, 'money', join(shop, 'packages/money'), ...commands);
    await user.addSession(group, 'web', join(shop, 'packages/web'), ...commands, '--depends-on', 'money');
    const { code, stdout, stderr } = await user.run('group', 'run', group, '--output', 'text');
    if (code !== 0) throw new Error(`${stdout}${stderr}`);
  }, 120_000);
  afterAll(() => user?.removeAll());

  example('installed packages of the worktree are its own, and lead to its own packages', async () => {
    const { workspace } = await user.json<{ workspace: { path: string } }>('session', 'show', `${group}/web`);
    const found = user.shell(join(workspace.path, 'packages/web'), `node -p "require.resolve('@acme/money')"`);
    expect(found).toBe(join(workspace.path, 'packages/money/index.js'));
  });

  example(
    'group merge: both packages change together, and installed packages are not listed as lost',
    async () => {
      const { code, stdout, stderr } = await user.run('group', 'merge', group);
      expect({ code, stdout, stderr }).toMatchObject({ code: 0 });
      expect(`${stdout}${stderr}`).not.toContain('git ignores');
      expect(user.shell(shop, manager.testAll)).toContain('pass 1');
      expect(user.shell(shop, 'git status --porcelain')).toBe('');
    },
    60_000,
  );
});
