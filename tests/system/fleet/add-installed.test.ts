/**
 * Promises: `host add` works from the npm package and from the one-file release, over a real sshd to a host without
 * Bun. Its agent takes work, and `host forget` leaves nothing there. From a checkout: tests/system/cli/fleet-hosts.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fleetPaths } from '../../../src/fleet/fleet-files.ts';
import { User } from '../../support/cli/user.ts';
import { checkoutRoot } from '../../support/cli.ts';
import { hasRedis, startRedis } from '../../support/redis-server.ts';
import { hasSshd, startSshd } from '../../support/ssh-server.ts';
import { noteTried } from '../../support/tried.ts';

const timeoutMs = 300_000;
/** On the PATH of the host, as on any system; neither Bun nor npm. */
const tools = [
  'sh',
  'cat',
  'chmod',
  'env',
  'git',
  'gzip',
  'ln',
  'mkdir',
  'mv',
  'nproc',
  'readlink',
  'rm',
  'tar',
  'uname',
];

describe.skipIf(!hasRedis || !hasSshd)('with redis-server and sshd', () => {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'cca add '));
    const release = ['sh', 'scripts/bun.sh', 'scripts/release.ts', join(folder, 'release')];
    run([...release, `${process.platform}-${process.arch}`], checkoutRoot);
    const [file, packed] = readdirSync(join(folder, 'release')).filter((name) => name.startsWith('claude-code-agent'));
    symlinkSync(join(folder, 'release', file ?? ''), join(folder, 'cca'));
    const install = ['npm', 'install', '-g', '--prefix', join(folder, 'npm'), '--offline', '--omit=optional'];
    run([...install, join(folder, 'release', packed ?? '')], folder);
  }, timeoutMs);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  function run(words: readonly string[], cwd: string): void {
    const { exitCode, stderr } = Bun.spawnSync([...words], { cwd, stdin: 'ignore' });
    expect([exitCode, exitCode === 0 ? '' : stderr.toString()]).toEqual([0, '']);
  }

  test.each([
    ['the npm package', 'npm/bin/cca', true],
    ['the one-file release', 'cca', false],
  ])(
    'host add from %s installs and starts a host, and host forget removes all of it',
    async (_, program, isBunSent) => {
      const user = new User();
      user.program = join(folder, program);
      const server = await startRedis(user.folder, ['appendonly yes']);
      const bin = join(user.folder, 'bin');
      mkdirSync(bin);
      for (const tool of tools) symlinkSync(Bun.which(tool) ?? '', join(bin, tool));
      writeFileSync(join(bin, 'claude'), '#!/bin/sh\necho "2.1.331 (Claude Code)"\n', { mode: 0o755 });
      noteTried(fleetPaths(join(user.folder, 'there', '.local', 'claude-code-agent')).folder, join(bin, 'claude'));
      const there = await startSshd(user.folder, { PATH: bin });
      // A package installed by npm with its optional packages contains Bun.
      const bun = join(user.folder, 'with-bun');
      mkdirSync(bun);
      symlinkSync(process.execPath, join(bun, 'bun'));
      user.env.PATH = [there.bin, ...(isBunSent ? [bun] : []), user.env.PATH].join(':');
      try {
        await user.ok('fleet', 'init', '--redis', server.url, '--lease', '8');
        const added = await user.run('host', 'add', 'one', '--ssh', there.destination, '--slots', '2');
        expect([added.code, added.stderr]).toEqual([0, expect.stringContaining('Testing the program there')]);
        const { hosts } = await user.json<{ hosts: object[] }>('host', 'list');
        expect(hosts).toMatchObject([{ name: 'one', slots: 2, state: 'ready' }]);
        expect(await user.ok('host', 'forget', 'one', '--yes')).toBe('Removed one from the fleet.');
      } finally {
        await user.run('host', 'forget', 'one', '--yes');
        await there.stop();
        await server.kill();
      }
      const left = readdirSync(there.home, { recursive: true, encoding: 'utf8' });
      expect(left.filter((name) => statSync(join(there.home, name)).isFile())).toEqual([]);
      user.remove();
    },
    timeoutMs,
  );
});
