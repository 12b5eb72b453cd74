/**
 * Promises: benchmarks leave no file and no process, whether they are interrupted, refuse their arguments, or end by
 * themselves. With real processes; the fakes of the benchmark report that they run.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dist, memoryFolder, ownPrefix } from '../../../bench/support/places.ts';
import { collectDescendants, createLinuxTable } from '../../../src/system/processes/proc-table.ts';
import { checkoutRoot, until } from '../../support/cli.ts';

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'cca-interrupted-')));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function bench(...words: string[]) {
  const child = Bun.spawn([process.execPath, join(checkoutRoot, 'bench', 'run.ts'), ...words], {
    env: { ...process.env, TMPDIR: folder },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const left = () => {
    const named = [memoryFolder, dist].flatMap((place) => readdirSync(place).map((name) => join(place, name)));
    return [...readdirSync(folder), ...named.filter((path) => path.includes(`/${ownPrefix(child.pid)}`))];
  };
  return { child, left };
}

const below = (pid: number) => collectDescendants(createLinuxTable('/proc').all(), [pid], process.pid);

const signals = [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const;

test.if(process.platform === 'linux').each(signals)(
  '%s in the middle of a benchmark ends all of it',
  async (signal, code) => {
    const { child, left } = bench('--quick', 'size');
    // The runner, a fake and its sleep are below the measuring process.
    await until(() => below(child.pid).length > 4 && left().length > 0);
    const [during, files] = [below(child.pid), left()];
    child.kill(signal);
    expect(await child.exited).toBe(code);
    const living = createLinuxTable('/proc')
      .all()
      .flatMap(({ pid, startTime, zombie }) => (zombie ? [] : [`${pid} ${startTime}`]));
    expect(during.filter(({ pid, startTime }) => living.includes(`${pid} ${startTime}`))).toEqual([]);
    expect(files.length).toBeGreaterThan(0);
    expect(left()).toEqual([]);
  },
);

test('an unknown name is refused with the usage, which --help prints too', async () => {
  const refused = bench('--quikc', 'size');
  expect(await refused.child.exited).toBe(2);
  expect(await new Response(refused.child.stderr).text()).toContain('There is no benchmark --quikc. Usage: npm run');
  expect(refused.left()).toEqual([]);
  const asked = bench('--help');
  expect(await asked.child.exited).toBe(0);
  expect(await new Response(asked.child.stdout).text()).toContain('[--quick]');
});
