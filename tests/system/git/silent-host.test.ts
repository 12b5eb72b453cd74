/**
 * Promise: a transfer of commits ends soon after its host has lost power or its network, so that the session can
 * continue elsewhere.
 */
import { expect, test } from 'bun:test';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fetchCommits } from '../../../src/git/worktrees/snapshot.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { until } from '../../support/cli.ts';
import { startProxy } from '../../support/cuttable-proxy.ts';
import { git, Repository } from '../../support/git/repository.ts';
import { hasSshd, startSshd } from '../../support/ssh-server.ts';

test.skipIf(!hasSshd)('a fetch from a host that has gone silent ends by itself', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'cca silent '));
  const held = join(folder, 'held');
  const there = join(folder, 'bin there');
  writeProgram(there, 'git', `touch '${held}'\nexec sleep 300`);
  const sshd = await startSshd(folder, { PATH: `${there}:/usr/bin:/bin` });
  const proxy = await startProxy(Number(/^Port (\d+)$/m.exec(sshd.config)?.[1]));
  const here = join(folder, 'bin here');
  writeProgram(here, 'ssh', `exec '${join(sshd.bin, 'ssh')}' -o StrictHostKeyChecking=no "$@"`);
  const repository = new Repository(join(folder, 'api'));
  try {
    const own = { world: createRealWorld(), env: { PATH: `${here}:${process.env.PATH}`, HOME: sshd.home } };
    const url = `ssh://${sshd.destination}:${proxy.port}${repository.folder}`;
    const fetching = fetchCommits(own, repository.folder, { url, isOnHost: true }, [['f'.repeat(40), 'refs/x/head']]);
    await until(() => existsSync(held));
    proxy.cut();
    const fetched = await fetching;
    expect(fetched.ok ? null : fetched.failure).toMatchObject({ reason: 'timeout' });
    expect(fetched.ok ? '' : fetched.failure.message).toContain('not responding');
    expect(git(repository.folder, 'for-each-ref', 'refs/x')).toBe('');
  } finally {
    proxy.close();
    await sshd.stop();
    rmSync(folder, { recursive: true });
  }
});

function writeProgram(folder: string, name: string, script: string): void {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, name);
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
}
