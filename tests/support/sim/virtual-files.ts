/** The Files of one process over the virtual disk: faults are applied here, and watches get hints of changes. */
import type { AppendFile, EntryKind, Files, ReadFile } from '../../../src/system/world.ts';
import type { Seeded } from './seeded.ts';
import type { Owner, Timeline } from './virtual-clock.ts';
import { type Disk, FileNode } from './virtual-disk.ts';

/** An error in the system's form. */
export class SystemError extends Error {
  readonly code: string;
  readonly path: string;
  readonly syscall: string;

  constructor(code: string, syscall: string, path: string) {
    super(`${code}: ${syscall} '${path}'`);
    this.code = code;
    this.syscall = syscall;
    this.path = path;
  }
}

/** Present faults of the disk. */
export interface DiskTrouble {
  /** Nothing that needs space succeeds. */
  full: boolean;
  /** Little space is left, but enough for these writes. */
  low: boolean;
  /** Number of failed writing calls so far. */
  failed: number;
}

interface Watcher {
  readonly owner: Owner;
  readonly onChange: () => void;
}

/** The watches by path; hints come late, twice or never. */
export class Watchers {
  readonly #timeline: Timeline;
  readonly #luck: Seeded;
  readonly #byPath = new Map<string, Set<Watcher>>();

  constructor(timeline: Timeline, luck: Seeded) {
    this.#timeline = timeline;
    this.#luck = luck;
  }

  watch(owner: Owner, path: string, onChange: () => void): () => void {
    const watcher = { owner, onChange };
    const set = this.#byPath.get(path) ?? new Set();
    this.#byPath.set(path, set);
    set.add(watcher);
    return () => set.delete(watcher);
  }

  /** That path has changed, and so has its folder. */
  changed(path: string): void {
    for (const watched of [path, path.slice(0, path.lastIndexOf('/'))]) this.#tell(this.#byPath.get(watched));
  }

  #tell(set: Set<Watcher> | undefined): void {
    for (const watcher of set ?? []) {
      if (!watcher.owner.alive) {
        set?.delete(watcher);
        continue;
      }
      if (this.#luck.chance(0.3)) continue;
      const hints = this.#luck.chance(0.1) ? 2 : 1;
      for (let hint = 0; hint < hints; hint += 1) {
        this.#timeline.schedule(this.#luck.delay(5, 2_000), 'watcher hint', watcher.owner, () => {
          if (set?.has(watcher)) watcher.onChange();
        });
      }
    }
  }
}

export interface FilesParts {
  readonly disk: Disk;
  readonly timeline: Timeline;
  readonly watchers: Watchers;
  readonly trouble: DiskTrouble;
  readonly owner: Owner;
}

const encoder = new TextEncoder();

export class VirtualFiles implements Files {
  readonly #parts: FilesParts;

  constructor(parts: FilesParts) {
    this.#parts = parts;
  }

  /** Throws the disk's present error for a writing call. */
  writing(syscall: string, path: string, needsRoom = true): void {
    const { trouble } = this.#parts;
    if (!trouble.full || !needsRoom) return;
    trouble.failed += 1;
    throw new SystemError('ENOSPC', syscall, path);
  }

  readText(path: string): string | null {
    return this.#parts.disk.file(path)?.text() ?? null;
  }

  readBytes(path: string, offset: number, maxBytes: number): Uint8Array {
    return this.#parts.disk.file(path)?.read(offset, maxBytes) ?? new Uint8Array(0);
  }

  writeAtomic(path: string, text: string, options?: { readonly durable?: boolean }): void {
    this.writing('write', path);
    const { folder, name } = this.#place('open', path);
    const node = new FileNode(this.#parts.timeline.wall(), text);
    folder.put(name, node);
    if (options?.durable === true) {
      node.durableSize = node.size;
      folder.sync();
    }
    this.#parts.watchers.changed(path);
  }

  writeBytes(path: string, bytes: Uint8Array, options?: { readonly durable?: boolean }): void {
    this.writing('write', path);
    const { folder, name } = this.#place('open', path);
    if (folder.entries.has(name)) throw new SystemError('EEXIST', 'open', path);
    const node = new FileNode(this.#parts.timeline.wall());
    node.append(bytes, this.#parts.timeline.wall());
    if (options?.durable === true) node.durableSize = node.size;
    folder.put(name, node);
    this.#parts.watchers.changed(path);
  }

  openRead(path: string): ReadFile | null {
    const file = this.#parts.disk.file(path);
    return file === null ? null : { read: (offset, maxBytes) => file.read(offset, maxBytes), close: () => {} };
  }

  openAppend(path: string): AppendFile {
    const { disk, timeline, watchers } = this.#parts;
    const { folder, name } = this.#place('open', path);
    let node = disk.file(path);
    if (node === null) {
      this.writing('open', path);
      node = new FileNode(timeline.wall());
      folder.put(name, node);
    }
    const file = node;
    const writing = (syscall: string, needsRoom: boolean) => this.writing(syscall, path, needsRoom);
    let size = file.size;
    const appendBytes = (bytes: Uint8Array): void => {
      writing('write', true);
      file.append(bytes, timeline.wall());
      size += bytes.length;
      watchers.changed(path);
    };
    return {
      get size() {
        return size;
      },
      append: (text) => appendBytes(encoder.encode(text)),
      appendBytes,
      sync() {
        writing('fdatasync', false);
        file.durableSize = file.size;
        folder.sync();
      },
      close() {},
    };
  }

  truncate(path: string, size: number): void {
    this.writing('ftruncate', path, false);
    const node = this.#parts.disk.file(path);
    if (node === null) throw new SystemError('ENOENT', 'open', path);
    node.cut(size);
    node.durableSize = node.size;
    this.#parts.watchers.changed(path);
  }

  makeFolder(path: string): boolean {
    if (this.#parts.disk.find(path)?.kind === 'folder') return false;
    this.writing('mkdir', path);
    this.#parts.disk.makeFolder(path, this.#parts.timeline.wall());
    return true;
  }

  syncFolder(path: string): void {
    this.writing('fsync', path, false);
    const node = this.#parts.disk.find(path);
    if (node?.kind !== 'folder') throw new SystemError('ENOENT', 'open', path);
    node.sync();
  }

  list(path: string): string[] {
    const node = this.#parts.disk.find(path);
    return node?.kind === 'folder' ? [...node.entries.keys()].sort() : [];
  }

  match(): string[] {
    return [];
  }

  info(path: string) {
    return this.#parts.disk.info(path);
  }

  /** This disk has no symlinks. */
  entryKind(path: string): EntryKind | null {
    const kind = this.#parts.disk.info(path)?.kind ?? null;
    return kind === 'fifo' ? 'other' : kind;
  }

  realPath(path: string): string | null {
    return this.#parts.disk.find(path) === null ? null : path;
  }

  link(): void {}

  rename(from: string, to: string): void {
    this.writing('rename', to);
    const source = this.#place('rename', from);
    const target = this.#place('rename', to);
    const node = source.folder.entries.get(source.name);
    if (node === undefined) throw new SystemError('ENOENT', 'rename', from);
    source.folder.drop(source.name);
    target.folder.put(target.name, node);
    target.folder.sync();
    this.#parts.watchers.changed(from);
    this.#parts.watchers.changed(to);
  }

  remove(path: string): void {
    const place = this.#parts.disk.place(path);
    if (place === null || !place.folder.entries.has(place.name)) return;
    this.writing('unlink', path, false);
    place.folder.drop(place.name);
    this.#parts.watchers.changed(path);
  }

  freeBytes(): number {
    const { full, low } = this.#parts.trouble;
    return full ? 0 : low ? 1e8 : 1e12;
  }

  watch(path: string, onChange: () => void): () => void {
    return this.#parts.watchers.watch(this.#parts.owner, path, onChange);
  }

  #place(syscall: string, path: string) {
    const place = this.#parts.disk.place(path);
    if (place === null) throw new SystemError('ENOENT', syscall, path);
    return place;
  }
}
