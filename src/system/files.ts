/** Files and folders on the real disk: private, replaced atomically or appended to, read consistently. */
import {
  closeSync,
  constants,
  fchmodSync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statfsSync,
  statSync,
  symlinkSync,
  watch,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { createShared, makePrivateFolder, openPrivate, syncFolder, writeFully } from './private-file.ts';
import { errorCode, isMissing, unlessMissing } from './system-error.ts';
import type { AppendFile, EntryKind, FileAccess, FileInfo, Files, ReadFile, WriteOptions } from './world.ts';

/** A name may have 255 bytes; a long one is cut in the temporary file's name. */
const longestStem = 60;

/** All except the watch, whose modules would delay every hook. */
export function createFiles(): Omit<Files, 'watch'> {
  return {
    readText,
    readBytes,
    writeAtomic,
    writeBytes,
    openRead,
    openAppend,
    truncate,
    makeFolder,
    syncFolder,
    list: (path) => unlessMissing(() => readdirSync(path).sort(), []),
    match: (folder, pattern) =>
      [...new Bun.Glob(pattern).scanSync({ cwd: folder, onlyFiles: false })].map((path) => join(folder, path)).sort(),
    info,
    entryKind,
    realPath,
    rename,
    link: symlinkSync,
    remove,
    freeBytes,
  };
}

function makeFolder(path: string, access: FileAccess = 'private'): boolean {
  return access === 'private' ? makePrivateFolder(path) : mkdirSync(path, { recursive: true }) !== undefined;
}

/** For a file that is being replaced, Bun's realpath reports ENOENT. */
function realPath(path: string): string | null {
  const real = unlessMissing(() => realpathSync(path), null);
  if (real !== null || entryKind(path) !== 'file') return real;
  return join(realpathSync(dirname(path)), basename(path));
}

function remove(path: string): void {
  try {
    // Retried, because an ending process may still add a file while its folder is emptied.
    rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 });
  } catch (error) {
    // Below a file there is nothing to remove.
    if (errorCode(error) !== 'ENOTDIR' || entryKind(path) !== null) throw error;
  }
}

/** The new name survives a power cut, like the contents. */
function rename(from: string, to: string): void {
  renameSync(from, to);
  syncFolder(dirname(to));
}

/** Opened once and read to its end: a file that is replaced meanwhile is read entirely old or entirely new. */
function readText(path: string, what: 'file' | 'pipe' = 'file'): string | null {
  if (what === 'pipe') return unlessMissing(() => readFileSync(path, 'utf8'), null);
  const fd = openToRead(path);
  if (fd === null) return null;
  try {
    const stats = fstatSync(fd);
    return stats.isFile() || stats.isDirectory() ? readFileSync(fd, 'utf8') : null;
  } finally {
    closeSync(fd);
  }
}

/** Null when nothing is there. A project may contain a FIFO, which must not be waited for. */
function openToRead(path: string): number | null {
  try {
    return unlessMissing(() => openSync(path, constants.O_RDONLY | constants.O_NONBLOCK), null);
  } catch (error) {
    // A socket cannot be opened at all.
    if (errorCode(error) === 'ENXIO') return null;
    throw error;
  }
}

/** Null when nothing is there, or no regular file: a folder has no bytes, a FIFO or a device may have no end. */
function openRegular(path: string): number | null {
  const fd = openToRead(path);
  if (fd === null || fstatSync(fd).isFile()) return fd;
  closeSync(fd);
  return null;
}

/** Shared by all files: most reads are short, and allocating a large buffer costs more than the read. */
let readRoom = new Uint8Array(0);
const nothing = new Uint8Array(0);

function openRead(path: string): ReadFile | null {
  const fd = openRegular(path);
  if (fd === null) return null;
  return {
    read(offset, maxBytes) {
      if (readRoom.length < maxBytes) readRoom = new Uint8Array(maxBytes);
      const count = readSync(fd, readRoom, 0, maxBytes, offset);
      return count === 0 ? nothing : readRoom.slice(0, count);
    },
    close: closeOnce(fd),
  };
}

/** A second close could close another file with the same descriptor. */
function closeOnce(fd: number): () => void {
  let isOpen = true;
  return () => {
    if (isOpen) closeSync(fd);
    isOpen = false;
  };
}

function readBytes(path: string, offset: number, maxBytes: number): Uint8Array {
  const fd = openRegular(path);
  if (fd === null) return nothing;
  try {
    const wanted = Math.min(maxBytes, Math.max(0, fstatSync(fd).size - offset));
    const bytes = new Uint8Array(wanted);
    let got = 0;
    while (got < wanted) {
      const count = readSync(fd, bytes, got, wanted - got, offset + got);
      if (count === 0) break;
      got += count;
    }
    return bytes.subarray(0, got);
  } finally {
    closeSync(fd);
  }
}

function writeAtomic(path: string, text: string, options?: WriteOptions): void {
  const folder = dirname(path);
  // The pid is in the name, so that two processes never share it.
  const temporary = join(folder, `.${[...basename(path)].slice(0, longestStem).join('')}.${process.pid}.tmp`);
  try {
    const fd = create(temporary, constants.O_TRUNC, { ...options, like: path });
    try {
      writeFully(fd, Buffer.from(text));
      if (options?.durable === true) fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(temporary, path);
  } catch (error) {
    removeQuietly(temporary);
    throw error;
  }
  if (options?.durable === true) syncFolder(folder);
}

function create(path: string, flag: number, { access, like }: WriteOptions & { readonly like?: string }): number {
  const flags = constants.O_WRONLY | flag;
  return access === 'project' ? createShared(path, flags, like) : openPrivate(path, flags);
}

function writeBytes(path: string, bytes: Uint8Array, options?: Parameters<Files['writeBytes']>[2]): void {
  const fd = create(path, constants.O_EXCL, options ?? {});
  try {
    writeFully(fd, bytes);
    if (options?.mode !== undefined) fchmodSync(fd, options.mode);
    if (options?.durable === true) fsyncSync(fd);
  } catch (error) {
    removeQuietly(path);
    throw error;
  } finally {
    closeSync(fd);
  }
}

function removeQuietly(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {}
}

function openAppend(path: string): AppendFile {
  const fd = openPrivate(path, constants.O_WRONLY | constants.O_APPEND);
  let { size } = fstatSync(fd);
  let isNamed = false;
  const appendBytes = (bytes: Uint8Array): void => {
    let done = 0;
    try {
      while (done < bytes.length) done += writeSync(fd, bytes, done);
    } catch (error) {
      // A full disk accepts part of a line.
      if (done > 0) ftruncateSync(fd, size);
      throw error;
    }
    size += done;
  };
  return {
    get size() {
      return size;
    },
    append: (text) => appendBytes(Buffer.from(text)),
    appendBytes,
    sync() {
      fdatasyncSync(fd);
      // The file may be new: without its directory entry its bytes would still be lost.
      if (!isNamed) syncFolder(dirname(path));
      isNamed = true;
    },
    close: closeOnce(fd),
  };
}

function truncate(path: string, size: number): void {
  const fd = openSync(path, constants.O_RDWR | constants.O_NOFOLLOW);
  try {
    ftruncateSync(fd, size);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function info(path: string): FileInfo | null {
  // Most paths do not exist, and an exception for each would cost more than the call.
  const stats = unlessMissing(() => statSync(path, { throwIfNoEntry: false }), undefined);
  if (stats === undefined) return null;
  const { size, mtimeMs, dev: device, ino: inode, mode } = stats;
  const rights = { isOpenToAll: (mode & 0o002) !== 0, isPrivate: (mode & 0o077) === 0 };
  return { kind: kindOf(stats), size, mtimeMs, device, inode, ...rights };
}

function entryKind(path: string): EntryKind | null {
  const stats = unlessMissing(() => lstatSync(path, { throwIfNoEntry: false }), undefined);
  if (stats === undefined) return null;
  if (stats.isSymbolicLink()) return 'link';
  if (stats.isFile()) return 'file';
  return stats.isDirectory() ? 'folder' : 'other';
}

function kindOf(stats: Stats): FileInfo['kind'] {
  if (stats.isFile()) return 'file';
  if (stats.isDirectory()) return 'folder';
  return stats.isFIFO() ? 'fifo' : 'other';
}

/** For a path that does not exist yet, its nearest existing parent answers. */
function freeBytes(path: string): number {
  try {
    const disk = statfsSync(path);
    return disk.bavail * disk.bsize;
  } catch (error) {
    if (!isMissing(error) || dirname(path) === path) throw error;
    return freeBytes(dirname(path));
  }
}

// Hints that something in a folder, or in a file, changed. The callers' own slow poll is authoritative.

/**
 * A rename makes several events, and a busy worker hundreds a second; after the first they are merged into one, over
 * ever longer intervals while it continues. Each interval ends with a hint, even without an event: Bun drops an event
 * within two milliseconds of another of its kind, and the dropped change came after the first hint.
 */
const firstGatherMs = 4;
const lastGatherMs = 32;

/**
 * A watch on a file stops working when the file is replaced, one on its folder does not. Without a watch (inotify
 * exhausted, nothing there, network disk) there are no hints, so nothing here throws.
 */
export function watchPath(path: string, onChange: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let stopWatching = (): void => {};
  const end = (): void => {
    clearTimeout(timer);
    stopWatching();
    stopWatching = () => {};
  };
  let isMissed = false;
  const tell = (gatherMs = firstGatherMs): void => {
    isMissed = false;
    timer = setTimeout(() => {
      if (isMissed) return tell(Math.min(2 * gatherMs, lastGatherMs));
      timer = undefined;
      onChange();
    }, gatherMs);
    onChange();
  };
  // The first event after a quiet time is reported at once, because a caller may wait for it. Later events are merged
  // and do not prolong the interval: under constant change hints still come.
  const gather = (): void => {
    if (timer === undefined) tell();
    else isMissed = true;
  };
  try {
    const watcher = watch(path, { persistent: false }, gather);
    stopWatching = () => watcher.close();
    watcher.on('error', end);
  } catch {
    return end;
  }
  return end;
}
