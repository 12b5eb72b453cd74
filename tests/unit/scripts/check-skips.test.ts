/**
 * Promises: a skipped test that is not in the list of skips is reported and fails the run. The list has whole names,
 * possibly with patterns, and a reason in every line.
 */
import { afterEach, expect, test } from 'bun:test';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkoutRoot } from '../../support/cli.ts';

const script = join(checkoutRoot, 'scripts', 'check-skips.sh');

let folder = '';
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function check(list: string, log: string) {
  rmSync(folder, { recursive: true, force: true });
  folder = mkdtempSync(join(tmpdir(), 'cca-skips-'));
  const [skips, output] = [join(folder, 'skips'), join(folder, 'log')];
  writeFileSync(skips, list);
  writeFileSync(output, log);
  const { exitCode, stdout } = Bun.spawnSync(['sh', script, output, skips]);
  return { exitCode, lines: stdout.toString().split('\n').slice(0, -1) };
}

const log = '(pass) one\n(skip) a disk > that is full\n(skip) with 2 * 3 files\n(todo) later\n';

test('skipped tests missing in the list are reported', () => {
  const named = (...names: readonly string[]) => names.map((name) => `skipped without a reason in .ci/skips: ${name}`);
  expect(check('', log)).toEqual({ exitCode: 1, lines: named('a disk > that is full', 'later', 'with 2 * 3 files') });
  const list = 'a disk > * — needs a mount\nlater — it will come\nwith 2 \\* 3 files — needs time\n';
  expect(check(list, log)).toEqual({ exitCode: 0, lines: [] });
  expect(check(list.replace('a disk > *', 'a disk'), log).lines).toEqual(named('a disk > that is full'));
});

test('a line without a reason in the list of skips allows nothing', () => {
  expect(check('later\n', '(todo) later\n').exitCode).toBe(1);
  const lines = readFileSync(join(checkoutRoot, '.ci', 'skips'), 'utf8')
    .trim()
    .split('\n');
  expect(lines.filter((line) => !/^\S.* — \S/.test(line))).toEqual([]);
});
