/**
 * Promises: a job of eight sessions in four waves, over three repositories and three hosts added by ssh from the npm
 * package, completes through each single fault. No session is accepted twice, none is lost, all commits are in the
 * user's repositories, and the books equal what the API served, or the difference is held.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkoutRoot } from '../../support/cli.ts';
import { canMakeHosts } from '../../support/fleet/namespaced-host.ts';
import { expectJobDone, faults } from '../../support/fleet-faults-checks.ts';
import { isLongRun, sampled } from '../../support/long.ts';
import { hasRedis } from '../../support/redis-server.ts';
import { hasSshd } from '../../support/ssh-server.ts';

const timeoutMs = 600_000;
/** Size of the history of one repository. */
const bigBytes = isLongRun ? 300_000_000 : 1_000_000;
const isPossible = hasRedis && hasSshd && canMakeHosts();

describe.skipIf(!isPossible)('with redis-server, sshd and namespaces', () => {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'cca faults '));
    const release = ['sh', 'scripts/bun.sh', 'scripts/release.ts', join(folder, 'release')];
    run([...release, `${process.platform}-${process.arch}`], checkoutRoot);
    const packed = readdirSync(join(folder, 'release')).find((name) => name.endsWith('.tgz')) ?? '';
    const install = ['npm', 'install', '-g', '--prefix', join(folder, 'npm'), '--offline', '--omit=optional'];
    run([...install, join(folder, 'release', packed)], folder);
  }, timeoutMs);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  function run(words: readonly string[], cwd: string): void {
    const { exitCode, stderr } = Bun.spawnSync([...words], { cwd, stdin: 'ignore' });
    expect([exitCode, exitCode === 0 ? '' : stderr.toString()]).toEqual([0, '']);
  }

  test.each(sampled(faults, faults.length).map((fault) => [fault.name, fault] as const))(
    'a job on three hosts is done once and paid once although %s',
    (_, fault) => expectJobDone(join(folder, 'npm/bin/cca'), fault, bigBytes),
    timeoutMs,
  );
});
