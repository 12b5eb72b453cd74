/**
 * Promises: a replaced file is seen old or new, never torn. Created files are private under any umask, appends and
 * cuts keep all other bytes, and missing files are no error. Power cuts are tested elsewhere.
 */
import { beforeEach, expect, test } from 'bun:test';
import { appendFileSync, chmodSync, existsSync, renameSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
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

test.each(['000', '077'])('files are 0600 and folders 0700 under umask %s', async (umask) => {
  const code = `
    const { createFiles } = await import(process.argv[1] + '/files.ts');
    const { createFifos, createLocks } = await import(process.argv[1] + '/libc.ts');
    const root = process.argv[2] + '/made';
    const files = createFiles();
    files.makeFolder(root + '/a/b');
    files.writeAtomic(root + '/atomic', 'x');
    files.writeAtomic(root + '/durable', 'x', { durable: true });
    files.openAppend(root + '/append').close();
    createFifos().create(root + '/fifo');
    createLocks(() => false).tryLock(root + '/lock', { identity: {}, runId: 'r' });`;
  await runInShell(`umask ${umask}`, code, [sourceFolder, temp.path]);
  for (const name of ['', 'a', 'a/b']) expect(modeOf(at('made', name))).toBe(0o700);
  for (const name of ['atomic', 'durable', 'append', 'fifo', 'lock']) expect(modeOf(at('made', name))).toBe(0o600);
});

test('a failed replacement leaves the file unchanged and no temporary file', () => {
  files.makeFolder(at('taken', 'inside'));
  expect(() => files.writeAtomic(at('taken'), 'x')).toThrow();
  expect(files.list(temp.path)).toEqual(['taken']);
  expect(() => files.writeAtomic(at('none', 'x'), 'x')).toThrow('ENOENT');
});

test('a temporary file of a crashed write is reused by the next write', () => {
  writeFileSync(at(`.meta.json.${process.pid}.tmp`), 'half');
  files.writeAtomic(at('meta.json'), 'whole', { durable: true });
  expect(files.list(temp.path)).toEqual(['meta.json']);
  expect(files.readText(at('meta.json'))).toBe('whole');
});

test('appending continues at the end of a file, and cutting keeps its head', () => {
  const first = files.openAppend(at('log'));
  first.append('één\n');
  first.append('two\n');
  first.sync();
  expect(first.size).toBe(10);
  first.close();
  first.close();

  const second = files.openAppend(at('log'));
  expect(second.size).toBe(10);
  files.truncate(at('log'), 6);
  second.append('three\n');
  second.close();
  expect(files.readText(at('log'))).toBe('één\nthree\n');
});

test('an append that does not fit is undone completely', async () => {
  const code = `
    const { createFiles } = await import(process.argv[1] + '/files.ts');
    const file = createFiles().openAppend(process.argv[2]);
    file.append('kept\\n');
    try { file.append('x'.repeat(100_000)); } catch (error) { file.append(error.code + ' ' + file.size + '\\n'); }`;
  // A file size limit simulates a full disk; one block has 512 bytes.
  await runInShell('trap "" XFSZ; ulimit -f 8', code, [sourceFolder, at('log')]);
  expect(files.readText(at('log'))).toBe('kept\nEFBIG 5\n');
});

test('reads at any offset return the bytes, and fewer at the end', () => {
  writeFileSync(at('data'), '0123456789');
  const read = (offset: number, max: number): string =>
    Buffer.from(files.readBytes(at('data'), offset, max)).toString();
  expect([read(0, 4), read(8, 4), read(10, 4), read(99, 4), read(3, 0)]).toEqual(['0123', '89', '', '', '']);
  expect(files.readBytes(at('none'), 0, 9)).toHaveLength(0);
});

test('an open file can be read while it grows or is replaced, and closing twice closes no other', () => {
  writeFileSync(at('growing'), 'one');
  const file = files.openRead(at('growing'));
  if (file === null) throw new Error('not opened');
  const text = (offset: number, most: number) => Buffer.from(file.read(offset, most)).toString();
  const first = file.read(0, 9);
  expect([text(1, 1), text(3, 9)]).toEqual(['n', '']);
  appendFileSync(at('growing'), 'two');
  renameSync(at('growing'), at('aside'));
  writeFileSync(at('growing'), 'another');
  expect(text(3, 99)).toBe('two');
  // The file on disk differs from what was read before.
  expect(Buffer.from(first).toString()).toBe('one');
  file.close();
  const other = files.openRead(at('growing'));
  file.close();
  expect(other?.read(0, 9)).toHaveLength(7);
  other?.close();
  expect(files.openRead(at('none'))).toBeNull();
});

test('missing files are reported as missing', () => {
  writeFileSync(at('file'), '');
  symlinkSync(at('nowhere'), at('dangling'));
  for (const path of [at('none'), at('file', 'below'), at('dangling')]) {
    expect(files.readText(path)).toBeNull();
    expect(files.list(path)).toEqual([]);
    expect(files.info(path)).toBeNull();
    expect(files.realPath(path)).toBeNull();
  }
  for (const path of [at('none'), at('file', 'below')]) files.remove(path);
  expect(() => files.openAppend(at('dangling'))).toThrow('ELOOP');
});

test('kinds, symlinks and names of files are reported', () => {
  files.makeFolder(at('folder'));
  files.makeFolder(at('folder'));
  writeFileSync(at('file'), 'abc');
  symlinkSync(at('file'), at('link'));
  expect(files.info(at('link'))).toMatchObject({ kind: 'file', size: 3 });
  expect(files.info(at('folder'))?.kind).toBe('folder');
  expect(files.info('/dev/null')?.kind).toBe('other');
  expect(files.realPath(at('link'))).toBe(files.realPath(at('file')));
  expect(files.list(temp.path)).toEqual(['file', 'folder', 'link']);
  expect(() => files.makeFolder(at('file'))).toThrow('EEXIST');
});

test('removing a folder keeps the targets of its symlinks', () => {
  files.makeFolder(at('kept'));
  writeFileSync(at('kept', 'file'), '');
  files.makeFolder(at('gone', 'deep'));
  symlinkSync(at('kept'), at('gone', 'deep', 'link'));
  files.remove(at('gone'));
  expect(existsSync(at('gone'))).toBe(false);
  expect(existsSync(at('kept', 'file'))).toBe(true);
  files.rename(at('kept'), at('moved'));
  expect(files.list(at('moved'))).toEqual(['file']);
});

test('an existing file keeps its mode when it is opened for appending', () => {
  writeFileSync(at('shared'), '');
  chmodSync(at('shared'), 0o644);
  files.openAppend(at('shared')).close();
  expect(modeOf(at('shared'))).toBe(0o644);
});

test('free space is reported, even for a path that does not exist yet', () => {
  expect(files.freeBytes(at('not', 'yet'))).toBeGreaterThan(0);
});
