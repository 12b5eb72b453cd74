/**
 * Promises: a group can be created, filled and run wherever the data folder is and however the commands are started.
 * Our files are private under any umask. A clock that jumps makes no duration negative.
 */
import { afterEach, expect, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Oddity, OddMachine, shell } from '../../support/faults/odd-machine.ts';
import { sampled } from '../../support/long.ts';
import { rig, withRig } from '../../support/rig-ground.ts';

let machine: OddMachine;
withRig();
afterEach(() => machine.remove());

const odd: Readonly<Record<string, Oddity>> = {
  'a data root with blanks, quotes, dollar signs and non-ASCII letters': {
    data: `a  b/it's "so" $HOME \`id\` \\n %s * ~ & ; é 日本 🚀`,
  },
  'a data root of more than 300 characters': { data: Array(4).fill('x'.repeat(90)).join('/') },
  'a data root whose folder name has 255 characters': { data: 'y'.repeat(255) },
  'neither locale nor terminal type': { without: ['LANG', 'TERM'], env: { LANG: '' } },
  'a closed standard input': { prefix: shell('exec "$@" <&-') },
  'an input without a writer': { prefix: shell('mkfifo "$HOME/f" 2>/dev/null; exec "$@" 0<>"$HOME/f"') },
  'signals ignored from the start': { prefix: shell('trap "" HUP INT TERM; exec "$@"') },
  'few open files': { prefix: shell('ulimit -n 128; exec "$@"') },
};

test.each(sampled(Object.keys(odd), 2))(
  '%s',
  async (name) => {
    machine = new OddMachine(rig, odd[name]);
    await machine.completeGroup();
    // The FIFOs lie deeper than the lock.
    const lock = machine.modes().find((path) => path.endsWith('/runner.lock'));
    if (name.includes('characters')) expect(lock?.length).toBeGreaterThan(300);
  },
  60_000,
);

test('a plain C locale on a dumb terminal gets plain ASCII output', async () => {
  machine = new OddMachine(rig, { env: { LANG: 'C', LC_ALL: 'C', TERM: 'dumb' } });
  const group = await machine.makeGroup();
  const told = [await machine.ok('group', 'plan', group), await machine.ok('group', 'run', group, '--output', 'text')];
  for (const command of ['show', 'graph', 'report']) told.push(await machine.ok('group', command, group));
  told.push(await machine.ok('group', 'list'), await machine.ok('session', 'list', group));
  for (const text of told) expect(text).toMatch(/^[\n -~]+$/);
  await machine.expectCompleted(group);
}, 60_000);

test('without HOME, but with a data root', async () => {
  machine = new OddMachine(rig, { without: ['HOME'] });
  await machine.completeGroup();
}, 60_000);

test.each(['group create x', 'group list', 'group run x', 'session show x'])(
  'without HOME and data root: %s',
  async (line) => {
    machine = new OddMachine(rig, { without: ['HOME', 'CLAUDE_CODE_AGENT_HOME'] });
    expect(await machine.refused(2, ...line.split(' '))).toContain('HOME is not set');
    expect(readdirSync(machine.folder)).toEqual(['home']);
    machine.env.HOME = join(machine.folder, 'home');
    await machine.completeGroup();
  },
  60_000,
);

test.each(['000', '077'])(
  'umask %s: all our files are private',
  async (umask) => {
    machine = new OddMachine(rig, { prefix: shell(`umask ${umask}; exec "$@"`) });
    await machine.completeGroup();
    const open = machine.modes().filter((line) => !/^(600|700) /.test(line));
    expect(open).toEqual([]);
  },
  60_000,
);

test('with all standard streams closed, the run works silently', async () => {
  machine = new OddMachine(rig);
  const group = await machine.makeGroup();
  const closed = new OddMachine(rig, { prefix: shell('exec "$@" <&- >&- 2>&-') });
  Object.assign(closed.env, machine.env);
  expect(await closed.run('group', 'run', group)).toEqual({ code: 0, stdout: '', stderr: '' });
  closed.remove();
  await machine.expectCompleted(group);
}, 60_000);
