/**
 * Promises: files written into a user's project have the mode that other programs would give them. A replaced file
 * keeps its mode and is never readable by more users, not even while it is written.
 */
import { beforeEach, expect, test } from 'bun:test';
import { chmodSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createFiles } from '../../../src/system/files.ts';
import { runInShell, sourceFolder } from '../../support/system/rig.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const files = createFiles();
const temp = withTempFolder();
let at: (...names: string[]) => string;
beforeEach(() => {
  at = (...names) => join(temp.path, ...names);
});

const modeOf = (path: string): number => statSync(path).mode & 0o777;

test.each(['000', '002', '022', '077'])('new project files and folders follow the umask %s', async (umask) => {
  const code = `
    const { createFiles } = await import(process.argv[1] + '/files.ts');
    const root = process.argv[2] + '/made';
    const files = createFiles();
    files.makeFolder(root + '/a/b', 'project');
    files.writeAtomic(root + '/atomic', 'x', { durable: true, access: 'project' });
    files.writeBytes(root + '/bytes', new Uint8Array(1), { access: 'project' });
    files.writeBytes(root + '/like', new Uint8Array(1), { access: 'project', like: root + '/nothing' });`;
  await runInShell(`umask ${umask}`, code, [sourceFolder, temp.path]);
  const taken = Number.parseInt(umask, 8);
  for (const name of ['', 'a', 'a/b']) expect(modeOf(at('made', name))).toBe(0o777 & ~taken);
  for (const name of ['atomic', 'bytes', 'like']) expect(modeOf(at('made', name))).toBe(0o666 & ~taken);
});

test.each([0o644, 0o666, 0o600, 0o400, 0o755])('a replaced project file keeps its mode %o', (mode) => {
  writeFileSync(at('old'), 'secret');
  chmodSync(at('old'), mode);
  files.writeBytes(at('new'), new Uint8Array(1), { access: 'project', like: at('old') });
  expect(modeOf(at('new'))).toBe(mode);
  files.writeAtomic(at('old'), 'x', { access: 'project' });
  expect([modeOf(at('old')), files.readText(at('old'))]).toEqual([mode, 'x']);
  files.writeAtomic(at('old'), 'y');
  expect(modeOf(at('old'))).toBe(0o600);
});

test('a folder in place of a file, and a file in place of a folder, are reported', () => {
  writeFileSync(at('file'), '');
  expect(() => files.makeFolder(at('file'), 'project')).toThrow('EEXIST');
  expect(() => files.makeFolder(at('file', 'below'), 'project')).toThrow('ENOTDIR');
  files.makeFolder(at('folder'), 'project');
  files.makeFolder(at('folder'), 'project');
  expect(() => files.writeAtomic(at('folder'), 'x', { access: 'project' })).toThrow();
  expect(readdirSync(temp.path).toSorted()).toEqual(['file', 'folder']);
});
