/**
 * Promises: a checked claude is remembered by its file, version and kind of login, a new one is checked once even by
 * concurrent runs, and a replaced or removed file is looked up again before the next attempt.
 */
import { afterEach, expect, test } from 'bun:test';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { broken, type CheckResult, checks, holds } from '../../../src/app/claude-check/checks.ts';
import { CheckGate, lastCheckOf, readChecked } from '../../../src/app/claude-check/gate.ts';
import { fail, ok, type Result } from '../../../src/core/failure.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { newFolder, removeFolders } from '../../support/claude-check/rig.ts';

afterEach(removeFolders);

const world = createRealWorld();
const allHold = checks.map(({ id }) => holds(id));
const without = (...others: readonly CheckResult[]) =>
  allHold.map((one) => others.find(({ id }) => id === one.id) ?? one);
const forbidden = broken('deny', 'a forbidden command ran');

/** A machine with a claude on PATH that is a symlink to an installed program. */
class Machine {
  readonly folder = newFolder();
  readonly root = join(this.folder, 'data');
  readonly bin = join(this.folder, 'bin');
  readonly said: string[] = [];
  readonly stop = new AbortController();
  /** Programs that were checked. */
  readonly checked: string[] = [];
  results: Result<readonly CheckResult[]> = ok(allHold);
  /** Called in the middle of each check. */
  during: () => void | Promise<void> = () => {};

  constructor() {
    mkdirSync(this.bin);
    this.install('2.1.400');
  }

  versionFile(version: string): string {
    return join(this.folder, 'versions', version);
  }

  /** A program of a megabyte, like the native one; `asked` counts its starts. */
  install(version: string, size = 1 << 20): void {
    const path = this.versionFile(version);
    mkdirSync(join(this.folder, 'versions'), { recursive: true });
    rmSync(path, { force: true });
    writeFileSync(path, `#!/bin/sh\necho x >> '${this.folder}/asked'\necho "${version} (Claude Code)"\nexit\n`);
    if (size > 0) truncateSync(path, size);
    chmodSync(path, 0o755);
    rmSync(join(this.bin, 'claude'), { force: true });
    symlinkSync(path, join(this.bin, 'claude'));
  }

  /** A program that is claude only by the name of a symlink to it, as version managers install it. */
  installShim(): void {
    const shim = join(this.folder, 'shim');
    const asClaude = 'case $0 in */claude) echo "2.1.400 (Claude Code)"; exit;; esac';
    writeFileSync(shim, `#!/bin/sh\n${asClaude}\necho "shim 1.0"\nexit 1\n`);
    truncateSync(shim, 1 << 20);
    chmodSync(shim, 0o755);
    rmSync(join(this.bin, 'claude'));
    symlinkSync(shim, join(this.bin, 'claude'));
  }

  /** How often any program was started. */
  get asked(): number {
    const file = join(this.folder, 'asked');
    return existsSync(file) ? readFileSync(file, 'utf8').length / 2 : 0;
  }

  get caller(): Record<string, string> {
    return { PATH: `${this.bin}:/usr/bin:/bin`, ANTHROPIC_API_KEY: 'test-key' };
  }

  place(env = this.caller) {
    const notes = { line: (line: string) => this.said.push(line), passing: () => {} };
    return { world, env, packageRoot: join(this.folder, 'package'), notes };
  }

  gate(caller?: Record<string, string>): CheckGate {
    return new CheckGate(this.place(caller), {
      root: this.root,
      stop: this.stop.signal,
      check: async (_world, { program }) => {
        this.checked.push(program);
        await this.during();
        return this.results;
      },
    });
  }

  lastCheck(program = join(this.bin, 'claude')) {
    return lastCheckOf(this.place(), this.root, program);
  }
}

test('a new claude is checked with a message, and a second run starts nothing for it', async () => {
  const machine = new Machine();
  const first = await machine.gate().choose(undefined);
  expect(first).toMatchObject({ ok: true, value: { version: '2.1.400', program: machine.versionFile('2.1.400') } });
  expect(machine.said).toEqual(['claude 2.1.400 is new here: checking it at no cost (a few seconds) ...']);
  const { asked } = machine;
  expect(await machine.gate().choose(undefined)).toEqual(first);
  expect([machine.asked, machine.checked.length, machine.said.length]).toEqual([asked, 1, 1]);
  expect(statSync(join(machine.root, 'tried-claudes.json')).mode & 0o777).toBe(0o600);
  expect(readdirSync(machine.root)).toEqual(['tried-claudes.json', 'tried-claudes.lock']);
});

test('a remembered check is found through a symlink too, with its results', async () => {
  const machine = new Machine();
  machine.results = ok(without(broken('hooks', 'x')));
  await machine.gate().choose(undefined);
  const last = await machine.lastCheck();
  expect(last?.results).toEqual(without(broken('hooks', 'x')));
  expect(await machine.lastCheck('/nowhere/claude')).toBeUndefined();
});

test.each([
  ['damaged', '{"version":"2","checked":[{]'],
  ['in another format', '{"version":"1","tried":[]}'],
])('a file of remembered checks that is %s is ignored', async (_what, text) => {
  const machine = new Machine();
  await machine.gate().choose(undefined);
  writeFileSync(join(machine.root, 'tried-claudes.json'), text);
  await machine.gate().choose(undefined);
  expect(machine.checked.length).toBe(2);
  expect(readChecked(world, machine.root)).toHaveLength(1);
});

test('a check that cannot be stored counts for this run, with a message', async () => {
  const machine = new Machine();
  mkdirSync(join(machine.root, 'tried-claudes.json'), { recursive: true });
  expect(await machine.gate().choose(undefined)).toMatchObject({ ok: true, value: { version: '2.1.400' } });
  expect(machine.said.at(-1)).toContain('could not be remembered: ');
  expect(machine.said.at(-1)).toContain(join(machine.root, 'tried-claudes.json'));
});

test('another file of the same name and another kind of login are checked', async () => {
  const machine = new Machine();
  await machine.gate().choose(undefined);
  machine.install('2.1.400', (1 << 20) + 1);
  await machine.gate().choose(undefined);
  expect(machine.checked.length).toBe(2);
  const { PATH = '' } = machine.caller;
  const withToken = { PATH, CLAUDE_CODE_OAUTH_TOKEN: 'test-token' };
  for (const caller of [withToken, withToken, undefined]) await machine.gate(caller).choose(undefined);
  expect(machine.checked.length).toBe(3);
});

test('two claude programs on one machine are both remembered', async () => {
  const machine = new Machine();
  await machine.gate().choose(undefined);
  const other = join(machine.folder, 'other');
  writeFileSync(other, `#!/bin/sh\necho "2.1.401 (Claude Code)"\nexit\n`);
  truncateSync(other, 1 << 20);
  chmodSync(other, 0o755);
  const caller = { ...machine.caller, CLAUDE_CODE_AGENT_CLAUDE: other };
  await machine.gate(caller).choose(undefined);
  for (const one of [undefined, caller]) expect(await machine.gate(one).choose(undefined)).toMatchObject({ ok: true });
  expect(machine.checked).toEqual([machine.versionFile('2.1.400'), other]);
});

test('a script runs for its version at each run, because its file does not show what it starts', async () => {
  const machine = new Machine();
  machine.install('2.1.400', 0);
  const version = join(machine.folder, 'version');
  writeFileSync(version, '2.1.400');
  writeFileSync(machine.versionFile('2.1.400'), `#!/bin/sh\necho "$(cat '${version}') (Claude Code)"\n`);
  await machine.gate().choose(undefined);
  await machine.gate().choose(undefined);
  expect(machine.checked.length).toBe(1);
  const last = () => machine.lastCheck();
  expect(await last()).toMatchObject({ version: '2.1.400' });
  // The program that the script starts was updated.
  writeFileSync(version, '2.1.401');
  expect(await last()).toBeUndefined();
  expect(await machine.gate().choose(undefined)).toMatchObject({ ok: true, value: { version: '2.1.401' } });
  expect(machine.checked.length).toBe(2);
});

test('a shim of a version manager is started by the name of its symlink', async () => {
  const machine = new Machine();
  machine.installShim();
  for (let run = 1; run <= 2; run += 1) {
    const admitted = await machine.gate().choose(undefined);
    expect(admitted).toMatchObject({ ok: true, value: { program: join(machine.bin, 'claude') } });
  }
  expect(machine.checked).toEqual([join(machine.bin, 'claude')]);
});

test('concurrent runs check a new claude once', async () => {
  const machine = new Machine();
  const gates = [machine.gate(), machine.gate(), machine.gate()];
  // All of them have read the version and found no remembered check.
  machine.during = async () => {
    while (machine.asked < gates.length) await Bun.sleep(5);
  };
  const admitted = await Promise.all(gates.map((gate) => gate.choose(undefined)));
  expect(admitted.map((one) => one.ok)).toEqual([true, true, true]);
  expect(machine.checked.length).toBe(1);
});

test('a claude that is too old is refused without a check, whatever is accepted', async () => {
  const machine = new Machine();
  machine.install('2.1.307');
  const refused = fail(
    'claude-unproven',
    'claude 2.1.307 is too old; this program needs 2.1.308 or newer.',
    'Update it with: npm install -g @anthropic-ai/claude-code@latest',
  );
  expect(await machine.gate().choose(undefined)).toEqual(refused);
  expect(await machine.gate().choose('2.1.307')).toEqual(refused);
  expect(await machine.gate().again()).toEqual(refused);
  expect(machine.checked).toEqual([]);
  machine.install('2.1.308');
  expect(await machine.gate().choose(undefined)).toMatchObject({ ok: true });
});

test('a refused claude stays refused without another check until a check is requested', async () => {
  const machine = new Machine();
  machine.results = ok(without(forbidden));
  expect(await machine.gate().choose(undefined)).toMatchObject({ ok: false, failure: { reason: 'claude-unproven' } });
  expect((await machine.gate().choose('2.1.399')).ok).toBe(false);
  expect(await machine.gate().choose('2.1.400')).toMatchObject({ ok: true });
  expect(machine.checked.length).toBe(1);
  machine.results = ok(allHold);
  expect(await machine.gate().again()).toMatchObject({ ok: true });
  expect(await machine.gate().choose(undefined)).toMatchObject({ ok: true });
  expect(machine.checked.length).toBe(2);
});

test('a check that could not run refuses claude and is not remembered', async () => {
  const machine = new Machine();
  machine.results = fail('write-failed', 'The disk is full.', 'Free some.');
  const refused = await machine.gate().choose(undefined);
  expect(!refused.ok && refused.failure.message).toContain('could not be checked: The disk is full.');
  expect(await machine.gate().choose('2.1.400')).toMatchObject({ ok: true });
  expect(readChecked(world, machine.root)).toEqual([]);
  expect(machine.said.at(-1)).toContain('is used anyway');
});

test('an interrupted check does not count, whatever is accepted', async () => {
  const machine = new Machine();
  machine.during = () => machine.stop.abort();
  expect((await machine.gate().choose('2.1.400')).ok).toBe(false);
  expect(readChecked(world, machine.root)).toEqual([]);
});

test('a run keeps its claude file when a symlink moves, and checks the new one when that file is gone', async () => {
  const machine = new Machine();
  const gate = machine.gate();
  await gate.choose(undefined);
  machine.install('2.1.401');
  expect(await gate.choose(undefined)).toMatchObject({ ok: true, value: { version: '2.1.400' } });
  rmSync(machine.versionFile('2.1.400'));
  machine.results = ok(without(forbidden));
  const lost = 'The file of claude 2.1.400, which this run used, was replaced or removed';
  const both = await Promise.all([gate.choose(undefined), gate.choose(undefined)]);
  for (const refused of both) {
    expect(!refused.ok && refused.failure.message).toStartWith(`${lost}. claude 2.1.401 failed a check.`);
  }
  expect(machine.checked.length).toBe(2);
  expect(await gate.choose('2.1.401')).toMatchObject({ ok: true, value: { version: '2.1.401' } });
  expect(await gate.choose(undefined)).toMatchObject({ ok: true, value: { version: '2.1.401' } });
  const told = machine.said.filter((line) => line.includes('which this run used'));
  expect(told).toEqual([`${lost}; from now on the run uses claude 2.1.401.`]);
});

test('a program that is missing or not claude is not checked', async () => {
  const machine = new Machine();
  rmSync(machine.versionFile('2.1.400'));
  expect(await machine.gate().choose(undefined)).toMatchObject({ ok: false, failure: { reason: 'claude-missing' } });
  writeFileSync(machine.versionFile('2.1.400'), 'x', { mode: 0o644 });
  expect(await machine.gate().choose('2.1.400')).toMatchObject({ ok: false, failure: { reason: 'claude-missing' } });
  expect(machine.checked).toEqual([]);
});
