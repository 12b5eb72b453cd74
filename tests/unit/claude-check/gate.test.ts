/**
 * Promises: what was tried is remembered by its file and its version, so that a second run asks nothing; what is new is
 * tried once, however many runs begin; a file that is replaced or gone is looked at again before the next attempt.
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
import { broken, claims, holds, type Seen } from '../../../src/app/claude-check/claims.ts';
import { type GateOptions, TrialGate } from '../../../src/app/claude-check/gate.ts';
import { launchDigest } from '../../../src/app/claude-check/launch.ts';
import { readTried, rememberTried, trialOf } from '../../../src/app/claude-check/remembered.ts';
import { attemptMark } from '../../../src/claude/launch/attempt-mark.ts';
import { fail, ok, type Result } from '../../../src/core/failure.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { newFolder, removeFolders } from '../../support/claude-check/rig.ts';

afterEach(removeFolders);

const world = createRealWorld();
const allHold = claims.map(({ id }) => holds(id));
const without = (...others: readonly Seen[]) => allHold.map((one) => others.find(({ id }) => id === one.id) ?? one);

/** A machine with a claude on PATH, which is a link to what an installer has put elsewhere. */
class Place {
  readonly folder = newFolder();
  readonly root = join(this.folder, 'data');
  readonly bin = join(this.folder, 'bin');
  readonly said: string[] = [];
  readonly stop = new AbortController();
  /** Programs that a trial was asked for. */
  readonly trials: string[] = [];
  seen: Result<readonly Seen[]> = ok(allHold);
  /** Called in the middle of each trial. */
  during: () => void | Promise<void> = () => {};

  constructor() {
    mkdirSync(this.bin);
    this.install('2.1.400');
  }

  versionFile(version: string): string {
    return join(this.folder, 'versions', version);
  }

  /** A program of a megabyte, as the native one is; how often it was started stands in `asked`. */
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

  /** A whole program that is claude only by the name of a link to it. */
  installShim(): void {
    const shim = join(this.folder, 'shim');
    const asClaude = 'case $0 in */claude) echo "2.1.400 (Claude Code)"; exit;; esac';
    writeFileSync(shim, `#!/bin/sh\n${asClaude}\necho "shim 1.0"\nexit 1\n`);
    truncateSync(shim, 1 << 20);
    chmodSync(shim, 0o755);
    rmSync(join(this.bin, 'claude'));
    symlinkSync(shim, join(this.bin, 'claude'));
  }

  /** What a version manager puts there: it chooses by the folder, 2.1.400 where that says nothing. A project's path. */
  installByFolder(projects: Readonly<Record<string, string>>): Record<string, string> {
    const manager = join(this.folder, 'manager');
    const script = `#!/bin/sh\necho "$(cat .claude-version 2>/dev/null || echo 2.1.400) (Claude Code)"\n`;
    writeFileSync(manager, script, { mode: 0o755 });
    rmSync(join(this.bin, 'claude'));
    symlinkSync(manager, join(this.bin, 'claude'));
    const made = Object.entries(projects).map(([name, version]): [string, string] => {
      const project = join(this.folder, name);
      mkdirSync(project);
      writeFileSync(join(project, '.claude-version'), version);
      return [name, project];
    });
    return Object.fromEntries(made);
  }

  /** How often any program was started. */
  get asked(): number {
    const file = join(this.folder, 'asked');
    return existsSync(file) ? readFileSync(file, 'utf8').length / 2 : 0;
  }

  gate(more: Partial<GateOptions> = {}, own = world): TrialGate {
    return new TrialGate(own, {
      root: this.root,
      caller: { PATH: `${this.bin}:/usr/bin:/bin`, ANTHROPIC_API_KEY: 'test-key' },
      packageRoot: join(this.folder, 'package'),
      say: (line) => this.said.push(line),
      stop: this.stop.signal,
      trial: async (_world, { program }) => {
        this.trials.push(program);
        await this.during();
        return this.seen;
      },
      ...more,
    });
  }
}

test('a new claude is tried and said so, and a second run asks nothing', async () => {
  const place = new Place();
  const first = await place.gate().admit(undefined);
  expect(first).toMatchObject({ ok: true, value: { version: '2.1.400', program: place.versionFile('2.1.400') } });
  expect(place.said).toEqual(['claude 2.1.400 is new here: trying it at no cost (a few seconds) ...']);
  const { asked } = place;
  const second = await place.gate({ trial: () => Promise.reject(new Error('tried again')) }).admit(undefined);
  expect(second).toEqual(first);
  expect([place.asked, place.trials.length, place.said.length]).toEqual([asked, 1, 1]);
  expect(statSync(join(place.root, 'tried-claudes.json')).mode & 0o777).toBe(0o600);
  expect(readdirSync(join(place.root, 'trials'))).toEqual(['lock']);
});

test('what is remembered is found by a link as well, and says what was shown', async () => {
  const place = new Place();
  place.seen = ok(without(broken('fork', 'x')));
  await place.gate().admit(undefined);
  const caller = { PATH: '/usr/bin:/bin' };
  const tried = await trialOf(world, place.root, join(place.bin, 'claude'), caller);
  expect(tried?.seen).toEqual(without(broken('fork', 'x')));
  expect(await trialOf(world, place.root, '/nowhere/claude', caller)).toBeUndefined();
});

test.each([
  ['damaged', '{"version":"1","tried":[{]'],
  ['of another form', '{"version":"2","tried":[]}'],
  ['of something else', '{"version":"1","tried":[{"file":{"path":"/x"}}]}'],
])('notes that are %s are as good as none', async (_what, text) => {
  const place = new Place();
  await place.gate().admit(undefined);
  writeFileSync(join(place.root, 'tried-claudes.json'), text);
  await place.gate().admit(undefined);
  expect(place.trials.length).toBe(2);
  expect(readTried(world, place.root)).toHaveLength(1);
});

test('notes that cannot be kept take nothing from what was seen, and it is said', async () => {
  const place = new Place();
  mkdirSync(join(place.root, 'tried-claudes.json'), { recursive: true });
  expect(await place.gate().admit(undefined)).toMatchObject({ ok: true, value: { version: '2.1.400' } });
  expect(place.said.at(-1)).toContain('could not be remembered: ');
  expect(place.said.at(-1)).toContain(join(place.root, 'tried-claudes.json'));
});

test('another file of the same name, and another way of starting it, are tried', async () => {
  const place = new Place();
  await place.gate().admit(undefined);
  place.install('2.1.400', (1 << 20) + 1);
  await place.gate().admit(undefined);
  expect(place.trials.length).toBe(2);
  const [tried] = readTried(world, place.root);
  if (tried === undefined) throw new Error('nothing is remembered');
  expect(tried.launch).toBe(launchDigest());
  rememberTried(world, place.root, { ...tried, launch: 'of another version of this program' });
  await place.gate().admit(undefined);
  expect(place.trials.length).toBe(3);
});

test('two programs on one machine are both remembered', async () => {
  const place = new Place();
  await place.gate().admit(undefined);
  const other = join(place.folder, 'other');
  writeFileSync(other, `#!/bin/sh\necho "2.1.401 (Claude Code)"\nexit\n`);
  truncateSync(other, 1 << 20);
  chmodSync(other, 0o755);
  const caller = { PATH: '/usr/bin:/bin', CLAUDE_CODE_AGENT_CLAUDE: other, ANTHROPIC_API_KEY: 'test-key' };
  await place.gate({ caller }).admit(undefined);
  for (const more of [{}, { caller }]) expect(await place.gate(more).admit(undefined)).toMatchObject({ ok: true });
  expect(place.trials).toEqual([place.versionFile('2.1.400'), other]);
});

test('a script, whose file says nothing of what it starts, is asked for its version every time', async () => {
  const place = new Place();
  place.install('2.1.400', 0);
  await place.gate().admit(undefined);
  const { asked } = place;
  await place.gate().admit(undefined);
  expect([place.asked - asked, place.trials.length]).toEqual([1, 1]);
  const version = join(place.folder, 'version');
  writeFileSync(version, '2.1.401');
  writeFileSync(place.versionFile('2.1.400'), `#!/bin/sh\necho "$(cat '${version}') (Claude Code)"\n`);
  await place.gate().admit(undefined);
  // What it starts was updated, the script was not.
  writeFileSync(version, '2.1.402');
  expect(await place.gate().admit(undefined)).toMatchObject({ ok: true, value: { version: '2.1.402' } });
  expect(place.trials.length).toBe(3);
});

test('what answers only to its name, as shims of version managers do, is started by that name', async () => {
  const place = new Place();
  place.installShim();
  for (let run = 1; run <= 2; run += 1) {
    const admitted = await place.gate().admit(undefined);
    expect(admitted).toMatchObject({ ok: true, value: { program: join(place.bin, 'claude') } });
  }
  expect(place.trials).toEqual([join(place.bin, 'claude')]);
});

test('runs that begin together try it once', async () => {
  const place = new Place();
  const gates = [place.gate(), place.gate(), place.gate()];
  // All of them have asked for the version, and found nothing remembered.
  place.during = async () => {
    while (place.asked < gates.length) await Bun.sleep(5);
  };
  const admitted = await Promise.all(gates.map((gate) => gate.admit(undefined)));
  expect(admitted.map((one) => one.ok)).toEqual([true, true, true]);
  expect(place.trials.length).toBe(1);
});

test('a claude that is too old is refused, whatever is accepted, and is not tried', async () => {
  const place = new Place();
  place.install('2.1.307');
  const refused = fail(
    'claude-unproven',
    'claude 2.1.307 is too old; this program needs 2.1.308 or newer.',
    'Update it with: npm install -g @anthropic-ai/claude-code@latest',
  );
  expect(await place.gate().admit(undefined)).toEqual(refused);
  expect(await place.gate().admit('2.1.307')).toEqual(refused);
  expect(await place.gate().again()).toEqual(refused);
  expect(place.trials).toEqual([]);
  place.install('2.1.308');
  expect(await place.gate().admit(undefined)).toMatchObject({ ok: true });
});

test('what was refused stays refused without another trial, until it is tried on purpose', async () => {
  const place = new Place();
  place.seen = ok(without(broken('deny', 'a forbidden command ran')));
  expect(await place.gate().admit(undefined)).toMatchObject({ ok: false, failure: { reason: 'claude-unproven' } });
  expect((await place.gate().admit('2.1.399')).ok).toBe(false);
  expect(await place.gate().admit('2.1.400')).toMatchObject({ ok: true });
  expect(place.trials.length).toBe(1);
  place.seen = ok(allHold);
  expect(await place.gate().again()).toMatchObject({ ok: true });
  expect(await place.gate().admit(undefined)).toMatchObject({ ok: true });
  expect(place.trials.length).toBe(2);
});

test('a trial that could not take place is refused as that and not remembered', async () => {
  const place = new Place();
  place.seen = fail('write-failed', 'The disk is full.', 'Free some.');
  const refused = await place.gate().admit(undefined);
  expect(!refused.ok && refused.failure.message).toContain('could not be tried: The disk is full.');
  expect(await place.gate().admit('2.1.400')).toMatchObject({ ok: true, value: { tried: null } });
  expect(readTried(world, place.root)).toEqual([]);
  expect(place.said.at(-1)).toContain('is used all the same');
});

test('nothing of an interrupted trial counts, whatever is accepted', async () => {
  const place = new Place();
  place.during = () => place.stop.abort();
  expect((await place.gate().admit('2.1.400')).ok).toBe(false);
  expect(readTried(world, place.root)).toEqual([]);
});

test('a file that is replaced while it is tried is not what was tried', async () => {
  const place = new Place();
  place.during = () => {
    place.during = () => {};
    place.install('2.1.400', (1 << 20) + 7);
  };
  expect(await place.gate().admit(undefined)).toMatchObject({ ok: true, value: { file: { size: (1 << 20) + 7 } } });
  expect(place.trials.length).toBe(2);
});

test('a run stays with its file when a link moves on, and tries the new one when that file is gone', async () => {
  const place = new Place();
  const gate = place.gate();
  await gate.admit(undefined);
  place.install('2.1.401');
  expect(await gate.admit(undefined)).toMatchObject({ ok: true, value: { version: '2.1.400' } });
  rmSync(place.versionFile('2.1.400'));
  place.seen = ok(without(broken('deny', 'a forbidden command ran')));
  const both = await Promise.all([gate.admit(undefined), gate.admit(undefined)]);
  for (const refused of both) {
    expect(!refused.ok && refused.failure.message).toStartWith(
      'The file of claude 2.1.400, which was in use, was replaced or is gone. claude 2.1.401 was tried',
    );
  }
  expect(place.trials.length).toBe(2);
  expect(await gate.admit('2.1.401')).toMatchObject({ ok: true, value: { version: '2.1.401' } });
  expect(await gate.admit(undefined)).toMatchObject({ ok: true, value: { version: '2.1.401' } });
  const replaced =
    'The file of claude 2.1.400, which was in use, was replaced or is gone; from now on the new one, 2.1.401, is used.';
  expect(place.said.filter((line) => line.includes('which was in use'))).toEqual([replaced]);
});

test('what chooses by the folder is asked in that of the session, and nothing counts as replaced', async () => {
  const place = new Place();
  const { one, two } = place.installByFolder({ one: '2.1.400', two: '2.1.401' });
  let nowMs = world.clock.now();
  const { after } = world.clock;
  const gate = place.gate({}, { ...world, clock: { now: () => nowMs, after } });
  expect(await gate.admit(undefined, one)).toMatchObject({ ok: true, value: { version: '2.1.400' } });
  const refused = await gate.admit(undefined, two);
  expect(!refused.ok && refused.failure).toMatchObject({
    reason: 'claude-unproven',
    message: expect.stringMatching(/^claude 2\.1\.401 is new here .* outside of the project, .* starts 2\.1\.400\.$/i),
    next: { sentence: expect.stringContaining('CLAUDE_CODE_AGENT_CLAUDE') },
  });
  const accepted = (project?: string) => gate.admit('2.1.401', project);
  for (let round = 0; round < 2; round += 1) {
    const versions = (await Promise.all([one, two].map(accepted))).map(
      (admitted) => admitted.ok && admitted.value.version,
    );
    expect(versions).toEqual(['2.1.400', '2.1.401']);
    nowMs += 60_000;
  }
  expect(await gate.admit(undefined, join(place.folder, 'gone'))).toMatchObject({
    ok: true,
    value: { version: '2.1.400' },
  });
  expect(place.trials.length).toBe(1);
  expect(place.said.filter((line) => line.includes('replaced'))).toEqual([]);
});

test('what only starts another program is asked again in the middle of a run', async () => {
  const place = new Place();
  // The script stays as it is; what it starts does not.
  const behind = join(place.folder, 'behind');
  writeFileSync(behind, '2.1.400');
  const script = `#!/bin/sh\necho x >> '${place.folder}/asked'\necho "$(cat '${behind}') (Claude Code)"\n`;
  writeFileSync(place.versionFile('2.1.400'), script);
  let nowMs = world.clock.now();
  const { after } = world.clock;
  const gate = place.gate({}, { ...world, clock: { now: () => nowMs, after } });
  await gate.admit(undefined);
  const { asked } = place;
  // Sessions that start together ask once.
  await Promise.all([gate.admit(undefined), gate.admit(undefined)]);
  expect(place.asked).toBe(asked);
  nowMs += 60_000;
  expect(await gate.admit(undefined)).toMatchObject({ ok: true, value: { version: '2.1.400' } });
  expect(place.asked).toBe(asked + 1);
  expect(place.trials.length).toBe(1);

  const remembered = () => trialOf(world, place.root, join(place.bin, 'claude'), { PATH: '/usr/bin:/bin' });
  expect(await remembered()).toMatchObject({ version: '2.1.400' });
  writeFileSync(behind, '2.1.401');
  // Nor does a doctor say of the new one what was seen of the old.
  expect(await remembered()).toBeUndefined();
  nowMs += 60_000;
  const both = await Promise.all([gate.admit(undefined), gate.admit(undefined)]);
  for (const admitted of both) expect(admitted).toMatchObject({ ok: true, value: { version: '2.1.401' } });
  expect(place.trials.length).toBe(2);
  expect(place.said.at(-1)).toContain('from now on the new one, 2.1.401, is used');
});

test('a machine on which nothing can be asked is not taken for a claude that was replaced', async () => {
  const place = new Place();
  place.install('2.1.400', 0);
  const own = createRealWorld();
  let nowMs = own.clock.now();
  const { after } = own.clock;
  const gate = place.gate({}, { ...own, clock: { now: () => nowMs, after } });
  await gate.admit(undefined);
  const { run } = own.processes;
  own.processes.run = async () => fail('timeout', 'It did not answer.', '');
  nowMs += 60_000;
  expect(await gate.admit(undefined)).toEqual(fail('timeout', 'It did not answer.', ''));
  own.processes.run = run;
  nowMs += 60_000;
  expect(await gate.admit(undefined)).toMatchObject({ ok: true, value: { version: '2.1.400' } });
  expect(place.trials.length).toBe(1);
});

test('a name that only its link answers to is looked at by that link', async () => {
  const place = new Place();
  place.installShim();
  const gate = place.gate();
  expect(await gate.admit(undefined)).toMatchObject({ ok: true, value: { program: join(place.bin, 'claude') } });
  // The version manager was left; its program is still there.
  place.install('2.1.401');
  expect(await gate.admit(undefined)).toMatchObject({ ok: true, value: { version: '2.1.401' } });
});

test('what a killed trial left is ended and removed by the next one', async () => {
  const place = new Place();
  const id = world.random.uuid();
  const trial = world.random.uuid();
  const left = join(place.folder, `claude-code-agent-trial-${trial}`);
  mkdirSync(join(left, 'attempts', id), { recursive: true });
  mkdirSync(join(place.root, 'trials'), { recursive: true });
  writeFileSync(join(place.root, 'trials', trial), left);
  // Whatever is noted, nothing else is removed.
  writeFileSync(join(place.root, 'trials', 'forged'), place.bin);
  const child = Bun.spawn(['sleep', '60'], { env: { ...process.env, [attemptMark]: id } });
  await place.gate().admit(undefined);
  await child.exited;
  expect(child.signalCode).toBe('SIGKILL');
  expect([existsSync(left), existsSync(place.bin)]).toEqual([false, true]);
  expect(readdirSync(join(place.root, 'trials'))).toEqual(['lock']);
});

test('a program that is not there, or is none, is no broken promise', async () => {
  const place = new Place();
  rmSync(place.versionFile('2.1.400'));
  expect(await place.gate().admit(undefined)).toMatchObject({ ok: false, failure: { reason: 'claude-missing' } });
  writeFileSync(place.versionFile('2.1.400'), 'x', { mode: 0o644 });
  expect(await place.gate().admit('2.1.400')).toMatchObject({ ok: false, failure: { reason: 'claude-missing' } });
  expect(place.trials).toEqual([]);
});
