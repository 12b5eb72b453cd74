/**
 * Promises: where the disk of the data root becomes read-only while sessions run, as ext4 makes it after an error of
 * the device, or answers nothing at all any more, what runs is stopped all the same: nothing can be written down, and
 * it would go on to spend.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../../support/cli.ts';
import { begin } from '../../support/crash-rig.ts';
import { type Rig, startRig } from '../../support/fake-claude-rig.ts';
import { OddMachine } from '../../support/faults/odd-machine.ts';
import { canMount, PrivateDisk } from '../../support/faults/private-disk.ts';

let rig: Rig;
let disk: PrivateDisk;
let machine: OddMachine;
let isPossible = canMount() && Bun.which('mkfs.ext4') !== null && Bun.which('truncate') !== null;
if (isPossible) {
  // Whether there are loop devices is found out by using one.
  const probe = await PrivateDisk.begin();
  try {
    probe.mountImage('/mnt');
  } catch {
    isPossible = false;
  }
  probe.end();
}
beforeAll(async () => {
  rig = await startRig();
});
afterAll(() => rig.stop());
beforeEach(async () => {
  if (!isPossible) return;
  disk = await PrivateDisk.begin();
  machine = new OddMachine(rig, { prefix: disk.prefix });
  mkdirSync(machine.data);
  disk.mountImage(machine.data);
  machine.knowClaude(disk.inside(machine.data));
});
afterEach(() => {
  if (!isPossible) return;
  disk.end();
  machine.remove();
});

const isBreakable = isPossible && Bun.which('python3') !== null;

/** A group with a session at work. */
async function running() {
  const group = await machine.ok('group', 'create', 'x');
  const id = await machine.add(group, 'one');
  const run = machine.start('group', 'run', group, '--output', 'quiet');
  const fake = await rig.nextFor(id);
  await begin(fake);
  const journal = disk.inside(join(machine.data, 'session-groups', group, 'events.jsonl'));
  await until(() => readFileSync(journal, 'utf8').includes('session_identified'));
  return { group, run, fake };
}

/** The runner, which looks at its disk itself, was faster than the command on a busy machine. */
const hasEndedAll = ({ stderr }: { readonly stderr: string }) => stderr.includes('Its workers were ended');

test.skipIf(!isPossible).each(['stop --all', 'group pause GROUP', 'group delete GROUP --force --yes'])(
  'it is stopped by %s',
  async (command) => {
    const { group, run, fake } = await running();
    disk.mount('-o', 'remount,abort', machine.data);
    const { code, stderr } = await machine.run(...command.replace('GROUP', group).split(' '));
    expect(code).toBe(1);
    const ended = await run.finished;
    expect(stderr).toContain('EROFS');
    if (!hasEndedAll(ended)) {
      expect(stderr).toMatch(
        /Cannot write .*EROFS.*Its sessions were ended; what they have cost is counted by the next run/,
      );
    }
    expect(machine.alive(fake.hello.pid)).toBe(false);
    expect(ended.code).toBe(1);
  },
  60_000,
);

for (const how of ['read-only', 'dead'] as const) {
  test.skipIf(how === 'dead' ? !isBreakable : !isPossible)(
    `on a disk that is ${how} its runner ends it by itself: it hears no more of what claude says`,
    async () => {
      const { run, fake } = await running();
      if (how === 'dead') disk.breakImage(machine.data);
      else disk.mount('-o', 'remount,abort', machine.data);
      const { code, stderr } = await run.finished;
      expect(code).toBe(1);
      expect(stderr).toMatch(/Cannot write .*events\.jsonl: E(ROFS|IO)\. Its workers were ended\./);
      expect(stderr).toContain(how === 'dead' ? 'Its disk does not answer' : 'Its disk is read-only');
      expect(machine.alive(fake.hello.pid)).toBe(false);
    },
    60_000,
  );
}

test.skipIf(!isBreakable).each(['stop --all', 'group pause GROUP', 'group delete GROUP --force --yes'])(
  'on a disk that answers nothing any more it is stopped by %s',
  async (command) => {
    const { group, run, fake } = await running();
    process.kill(run.pid, 'SIGSTOP');
    disk.breakImage(machine.data);
    process.kill(run.pid, 'SIGCONT');
    const { code, stderr } = await machine.run(...command.replace('GROUP', group).split(' '));
    expect(code).toBe(1);
    const ended = await run.finished;
    expect(stderr).toContain('EIO');
    const isAsked = /EIO.*Its sessions were ended; what they have cost is counted by the next run/;
    const isFound = /Ended its runner \(process \d+\) and \d+ process(es)? of its sessions\. .*EIO/;
    if (!hasEndedAll(ended)) expect(stderr).toMatch(command === 'stop --all' ? isFound : isAsked);
    expect(machine.alive(fake.hello.pid)).toBe(false);
    expect(ended.code).not.toBe(0);
  },
  60_000,
);

test.skipIf(!isBreakable)(
  'on such a disk what a dead runner left behind is ended, too, and what is at rest is not',
  async () => {
    const { group, run, fake } = await running();
    run.kill('SIGKILL');
    await run.finished;
    disk.breakImage(machine.data);
    const stopped = await machine.run('stop', '--all');
    expect(stopped.code).toBe(1);
    expect(stopped.stderr).toMatch(/Ended \d+ process(es)? that a dead runner left behind\. .*EIO/);
    expect(machine.alive(fake.hello.pid)).toBe(false);
    for (const command of ['stop --all', `group pause ${group}`]) {
      const again = await machine.run(...command.split(' '));
      expect(again.code).toBe(1);
      expect(again.stderr).toContain('EIO');
      expect(again.stderr).not.toMatch(/[Ee]nded/);
    }
  },
);

test.skipIf(!isPossible)('of a group at rest nothing is said to have been ended', async () => {
  const group = await machine.ok('group', 'create', 'x');
  disk.mount('-o', 'remount,abort', machine.data);
  const { code, stderr } = await machine.run('group', 'pause', group);
  expect(code).toBe(1);
  expect(stderr).toContain('EROFS');
  expect(stderr).not.toContain('were ended');
});
