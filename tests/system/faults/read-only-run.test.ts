/**
 * Promises: where the disk of the data root becomes read-only while sessions run, as ext4 makes it after an error of
 * the device, what runs can be stopped all the same: nothing can be written down, and it would go on to spend.
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

test.skipIf(!isPossible)('of a group at rest nothing is said to have been ended', async () => {
  const group = await machine.ok('group', 'create', 'x');
  disk.mount('-o', 'remount,abort', machine.data);
  const { code, stderr } = await machine.run('group', 'pause', group);
  expect(code).toBe(1);
  expect(stderr).toContain('EROFS');
  expect(stderr).not.toContain('were ended');
});
