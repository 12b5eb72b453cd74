/**
 * Promises: durable data is synced to disk before the next step: contents before the file name, the name before it is
 * announced. The simulated disk trusts these steps. Disks that lie are not tested.
 */
import { expect, test } from 'bun:test';
import { sourceFolder } from '../../support/system/rig.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const temp = withTempFolder();

/** The system calls in order, in a separate process, so that the test's own calls are not recorded. */
async function stepsOf(calls: string): Promise<string[]> {
  const code = `
    const fs = require('node:fs');
    const { basename } = require('node:path');
    const [source, folder] = process.argv.slice(1);
    const steps = [];
    const names = new Map();
    const nameOf = (path) => (path === folder ? 'the folder' : basename(path).replace(String(process.pid), 'PID'));
    const noting = (call, note) => {
      const real = fs[call];
      fs[call] = (...given) => {
        const result = real(...given);
        const step = note(given, result);
        if (step !== null) steps.push(step);
        return result;
      };
    };
    noting('openSync', ([path], fd) => (names.set(fd, nameOf(path)), null));
    noting('writeSync', ([fd]) => 'write ' + names.get(fd));
    noting('ftruncateSync', ([fd]) => 'cut ' + names.get(fd));
    noting('fsyncSync', ([fd]) => 'sync ' + names.get(fd));
    noting('fdatasyncSync', ([fd]) => 'sync ' + names.get(fd));
    noting('renameSync', ([from, to]) => 'rename ' + nameOf(from) + ' to ' + nameOf(to));
    const files = (await import(source + '/files.ts')).createFiles();
    const at = (name) => folder + '/' + name;
    ${calls}
    console.log(JSON.stringify(steps));`;
  const child = Bun.spawn([process.execPath, '-e', code, sourceFolder, temp.path], { stdout: 'pipe' });
  return JSON.parse(await child.stdout.text()) as string[];
}

test('a durable file is synced before its name, and its name before the call returns', async () => {
  expect(await stepsOf(`files.writeAtomic(at('log'), 'x', { durable: true });`)).toEqual([
    'write .log.PID.tmp',
    'sync .log.PID.tmp',
    'rename .log.PID.tmp to log',
    'sync the folder',
  ]);
});

test('a snapshot does not wait for the disk', async () => {
  expect(await stepsOf(`files.writeAtomic(at('meta'), 'x');`)).toEqual([
    'write .meta.PID.tmp',
    'rename .meta.PID.tmp to meta',
  ]);
});

test('appended data is safe after one sync, the first time together with the file name', async () => {
  const calls = `
    const log = files.openAppend(at('log'));
    for (const text of ['a', 'b']) {
      log.append(text);
      log.sync();
    }`;
  expect(await stepsOf(calls)).toEqual(['write log', 'sync log', 'sync the folder', 'write log', 'sync log']);
});

test('a cut partial line is synced and stays cut', async () => {
  const calls = `
    files.writeAtomic(at('log'), 'whole, to');
    steps.length = 0;
    files.truncate(at('log'), 6);`;
  expect(await stepsOf(calls)).toEqual(['cut log', 'sync log']);
});

test('a new file name is synced to disk', async () => {
  const calls = `
    files.makeFolder(at('.new'));
    steps.length = 0;
    files.rename(at('.new'), at('group'));`;
  expect(await stepsOf(calls)).toEqual(['rename .new to group', 'sync the folder']);
});

test('durable bytes are synced to disk', async () => {
  expect(await stepsOf(`files.writeBytes(at('bytes'), new Uint8Array(3), { durable: true });`)).toEqual([
    'write bytes',
    'sync bytes',
  ]);
});
