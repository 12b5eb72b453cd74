/**
 * Promises: on a full disk every command ends with one sentence and writes nothing partially; once there is space, the
 * next command works. Before the disk is full, sessions are interrupted in time to report their cost. If it fills at
 * once, workers are halted and the run waits for space. The disk is a private tmpfs.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../../support/cli.ts';
import { finish, finishAtOnce, identify } from '../../support/crash-rig.ts';
import { OddMachine } from '../../support/faults/odd-machine.ts';
import { canMount, PrivateDisk } from '../../support/faults/private-disk.ts';
import { obeyInterrupt, rig, withRig } from '../../support/rig-ground.ts';

const mountable = canMount();

let disk: PrivateDisk;
let machine: OddMachine;
withRig();
beforeEach(async () => {
  if (!mountable) return;
  disk = await PrivateDisk.begin();
  machine = new OddMachine(rig, { prefix: disk.prefix });
  mkdirSync(machine.data);
  // Nothing starts with less than 500 MB free, so the disk must offer more until it is filled.
  disk.mount('-t', 'tmpfs', '-o', 'size=520m,mode=0700', 'tmpfs', machine.data);
  machine.knowClaude(inside());
});
afterEach(() => {
  if (!mountable) return;
  disk.end();
  machine.remove();
});

const inside = (...names: string[]) => disk.inside(join(machine.data, ...names));
const ballast = () => inside('ballast');

/** Fills every free page. */
function fill(): void {
  for (let size = 1 << 26; size >= 1; size >>= 1) {
    for (;;) {
      try {
        writeFileSync(ballast(), Buffer.alloc(size), { flag: 'a' });
      } catch {
        break;
      }
    }
  }
}

const isHalted = (pid: number): boolean => /\) T /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
const free = () => rmSync(ballast());
const groups = () => readdirSync(inside('session-groups'));

test.skipIf(!mountable)(
  'creating groups and adding sessions',
  async () => {
    fill();
    expect(await machine.refused(1, 'group', 'create', 'x')).toMatch(/ENOSPC.*[Ff]ree some disk space/);
    expect(groups()).toEqual([]);
    free();
    const group = await machine.ok('group', 'create', 'x');
    fill();
    const add = ['session', 'add', group, '--project', machine.project('a'), '--prompt', 'x'.repeat(9_000)];
    expect(await machine.refused(1, ...add)).toMatch(/ENOSPC.*[Ff]ree some disk space/);
    expect(JSON.parse(await machine.ok('session', 'list', group, '--json'))).toEqual([]);
    expect(await machine.refused(1, 'group', 'run', group)).toContain('ENOSPC');
    free();
    expect(groups()).toEqual([group]);
    await machine.ok(...add);
    await machine.completeGroup();
  },
  60_000,
);

test.skipIf(!mountable)(
  'a result that cannot be written is written once there is space, and the run continues',
  async () => {
    const group = await machine.ok('group', 'create', 'x');
    const ids = [await machine.add(group, 'one'), await machine.add(group, 'two')];
    const first = machine.start('group', 'run', group, '--output', 'quiet');
    const [one, two] = await Promise.all(ids.map((id) => rig.nextFor(id)));
    if (one === undefined || two === undefined) throw new Error('both sessions have a worker');
    await identify(one);
    await identify(two);
    const journal = inside('session-groups', group, 'events.jsonl');
    await until(() => readFileSync(journal, 'utf8').split('session_identified').length === 3);
    // The runner sleeps while the disk fills behind a result that does not fit into the log's last page.
    process.kill(first.pid, 'SIGSTOP');
    await one.print({ type: 'system', subtype: 'filler', text: 'x'.repeat(9_000) });
    await finish(one, 0.01, 'long '.repeat(2_000));
    fill();
    process.kill(first.pid, 'SIGCONT');
    await until(() => isHalted(two.hello.pid));
    const why = await machine.ok('group', 'why', group);
    expect(why).toMatch(/disk: The disk of .* is full\. Suspended until .* group prune --older-than 30d\n/);
    expect(readFileSync(journal, 'utf8')).not.toContain('session_completed');
    free();
    await until(() => !isHalted(two.hello.pid));
    await finish(two);
    expect(await first.finished).toMatchObject({ code: 0, stderr: '' });
    await machine.expectCompleted(group);
    expect(rig.invocations.filter(({ claudeSessionId }) => ids.includes(claudeSessionId)).length).toBe(2);
  },
  60_000,
);

test.skipIf(!mountable)(
  'running sessions are interrupted before the disk is full, and resume when there is space',
  async () => {
    const group = await machine.ok('group', 'create', 'x');
    const id = await machine.add(group, 'one');
    const run = machine.start('group', 'run', group, '--output', 'json');
    const fake = await rig.nextFor(id);
    await identify(fake);
    const journal = inside('session-groups', group, 'events.jsonl');
    // A session that is not known to work is ended without an interrupt.
    await until(() => readFileSync(journal, 'utf8').includes('session_identified'));
    writeFileSync(ballast(), Buffer.alloc(300 * 1000 ** 2));
    await obeyInterrupt(fake, 0.01);
    await until(() => readFileSync(journal, 'utf8').includes('session_paused'));
    expect(await machine.ok('group', 'why', group)).toMatch(/disk is nearly full|free on the disk/);
    free();
    await rig.nextFor(id).then(finishAtOnce);
    const { code, stdout, stderr } = await run.finished;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/"session_paused".*"reason":"disk".*the disk is nearly full/);
    await machine.expectCompleted(group);
  },
  60_000,
);

test.skipIf(!mountable)(
  'sessions that run while the disk fills at once are halted, and the same attempts continue when there is space',
  async () => {
    const group = await machine.ok('group', 'create', 'x');
    const id = await machine.add(group, 'one');
    const run = machine.start('group', 'run', group, '--output', 'text');
    const fake = await rig.nextFor(id);
    await identify(fake);
    const journal = inside('session-groups', group, 'events.jsonl');
    await until(() => readFileSync(journal, 'utf8').includes('session_identified'));
    // Filling takes time, in which the runner would still interrupt.
    process.kill(run.pid, 'SIGSTOP');
    fill();
    process.kill(run.pid, 'SIGCONT');
    await until(() => isHalted(fake.hello.pid));
    free();
    await until(() => !isHalted(fake.hello.pid));
    await finish(fake, 0.02);
    const { code, stdout } = await run.finished;
    expect({ code, stdout }).toMatchObject({ code: 0 });
    expect(stdout).toMatch(
      /warning: The disk of \S.*x is full\. Running sessions are suspended until space is available\./,
    );
    await machine.expectCompleted(group);
    expect(rig.invocations.filter(({ claudeSessionId }) => claudeSessionId === id)).toHaveLength(1);
  },
  60_000,
);

test.skipIf(!mountable)(
  'a read-only disk',
  async () => {
    const group = await machine.makeGroup();
    disk.mount('-o', 'remount,ro', machine.data);
    expect(await machine.refused(1, 'group', 'create', 'y')).toContain('EROFS');
    expect(await machine.refused(1, 'group', 'run', group)).toContain('EROFS');
    expect(JSON.parse(await machine.ok('group', 'show', group, '--json'))).toMatchObject({ status: 'created' });
    expect(await machine.ok('group', 'list')).toContain(group);
    disk.mount('-o', 'remount,rw', machine.data);
    await machine.ok('group', 'run', group);
    await machine.expectCompleted(group);
  },
  60_000,
);
