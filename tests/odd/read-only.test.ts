/**
 * Promises: a user who may not write where the data lies gets one sentence with the path, nothing is half-written, what
 * may be read is still shown, and after the rights are put right the same command works. Needs root and setpriv(1) to
 * become somebody else, and a copy of this program that everybody may read.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test';
import { chmodSync, chownSync, mkdirSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { launcher } from '../support/crash-rig.ts';
import { type Rig, startRig } from '../support/fake-claude-rig.ts';
import { OddMachine } from './odd-machine.ts';

const nobody = 65_534;
const asNobody = ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups'];

function canBecomeNobody(): boolean {
  if (Bun.which('setpriv') === null || process.getuid?.() !== 0) return false;
  return Bun.spawnSync([...asNobody, launcher, '--version'], { env: { PATH: process.env.PATH ?? '' } }).success;
}

/** What the tests need to be allowed; without it they are reported as skipped. */
const possible = canBecomeNobody();

let rig: Rig;
let machine: OddMachine;
beforeAll(async () => {
  rig = await startRig();
  // The fakes of that user must get to the socket of this one.
  chmodSync(dirname(rig.program), 0o755);
  chmodSync(rig.env.FAKE_CLAUDE_SOCKET as string, 0o777);
});
afterAll(() => rig.stop());
afterEach(() => machine.remove());

/** A machine of the other user's, on which everything but the data root is hers. */
function makeMachine(): OddMachine {
  machine = new OddMachine(rig, { prefix: asNobody });
  mkdirSync(machine.data);
  for (const path of [machine.folder, machine.data, machine.env.HOME as string]) chownSync(path, nobody, nobody);
  return machine;
}

test.skipIf(!possible)(
  'a data root that may not be written',
  async () => {
    makeMachine();
    chmodSync(machine.data, 0o500);
    expect(await machine.refused(1, 'group', 'create', 'x')).toMatch(/Cannot write .*EACCES.*permissions/);
    expect(await machine.run('group', 'list')).toMatchObject({ code: 0 });
    expect(readdirSync(machine.data)).toEqual([]);
    chmodSync(machine.data, 0o700);
    await machine.completeGroup();
  },
  60_000,
);

test.skipIf(!possible)(
  'a data root that may not even be entered',
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

test.skipIf(!possible)(
  'a group whose files may only be read',
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
