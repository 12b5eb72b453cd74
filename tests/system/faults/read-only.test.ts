/**
 * Promises: a user without write permission for the data folder gets one sentence with the path, and nothing is written
 * partially. Readable data is still shown, and the same command works once the permissions are fixed.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test';
import { chmodSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type FakeClaudeHarness, startRig } from '../../support/fake-claude-rig.ts';
import { OddMachine } from '../../support/faults/odd-machine.ts';
import { giveToUnprivileged, unprivileged } from '../../support/unprivileged.ts';

let rig: FakeClaudeHarness;
let machine: OddMachine;
beforeAll(async () => {
  rig = await startRig();
  // The fakes run as another user and must reach this user's socket.
  chmodSync(dirname(rig.program), 0o755);
  chmodSync(rig.env.FAKE_CLAUDE_SOCKET as string, 0o777);
});
afterAll(() => rig.stop());
afterEach(() => machine.remove());

/** A machine on which all files belong to a user to whom permissions apply. */
function makeMachine(): OddMachine {
  machine = new OddMachine(rig, { prefix: unprivileged.prefix });
  machine.knowClaude();
  giveToUnprivileged(machine.folder);
  return machine;
}

test.skipIf(!unprivileged.isPossible)(
  'a data root that cannot be written',
  async () => {
    makeMachine();
    chmodSync(machine.data, 0o500);
    expect(await machine.refused(1, 'group', 'create', 'x')).toMatch(/Cannot write .*EACCES.*permissions/);
    expect(await machine.run('group', 'list')).toMatchObject({ code: 0 });
    expect(readdirSync(machine.data)).toEqual(['tried-claudes.json']);
    chmodSync(machine.data, 0o700);
    await machine.completeGroup();
  },
  60_000,
);

test.skipIf(!unprivileged.isPossible)(
  'groups in a read-only data root are listed, shown, explained and planned',
  async () => {
    makeMachine();
    const group = await machine.makeGroup();
    Bun.spawnSync(['chmod', '-R', 'a-w', machine.data]);
    const before = machine.modes();
    for (const command of ['show', 'why', 'plan']) expect(await machine.ok('group', command, group)).toContain('two');
    expect(await machine.ok('group', 'list')).toContain(group);
    machine.env.TMPDIR = machine.data;
    const { code, stdout, stderr } = await machine.run('group', 'plan', group);
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('two') });
    expect(stderr).toMatch(/^The login was not checked: Cannot write .*EACCES.*TMPDIR/);
    expect(machine.modes()).toEqual(before);
    Bun.spawnSync(['chmod', '-R', 'u+w', machine.data]);
  },
  60_000,
);

test.skipIf(!unprivileged.isPossible)(
  'a data root that cannot be entered',
  async () => {
    makeMachine();
    chmodSync(machine.data, 0o000);
    for (const line of ['group create x', 'group list', 'group run x']) {
      expect(await machine.refused(2, ...line.split(' '))).toContain(`data folder cannot be ${machine.data}`);
    }
    chmodSync(machine.data, 0o700);
    await machine.completeGroup();
  },
  60_000,
);

test.skipIf(!unprivileged.isPossible)(
  'a group whose files are read-only',
  async () => {
    makeMachine();
    const group = await machine.makeGroup();
    const folder = join(machine.data, 'session-groups', group);
    const setMode = (mode: string) => Bun.spawnSync(['chmod', '-R', mode, folder]);
    setMode('a-w');
    expect(await machine.refused(1, 'group', 'run', group)).toMatch(/EACCES.*permissions/);
    expect(JSON.parse(await machine.ok('group', 'show', group, '--json'))).toMatchObject({ status: 'created' });
    setMode('u+w');
    expect(await machine.ok('group', 'run', group)).toContain('2 of 2 sessions completed');
    await machine.expectCompleted(group);
  },
  60_000,
);
