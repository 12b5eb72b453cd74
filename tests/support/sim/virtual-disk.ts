/**
 * A disk in memory that keeps what was fsynced and may lose the rest: later appends are cut anywhere, later renames and
 * new files are there or not, each independently. Contents only grow, are cut, or are replaced as a whole.
 */
import type { FileInfo } from '../../../src/system/world.ts';
import type { Seeded } from './seeded.ts';

const inodes = new WeakMap<object, number>();
let inodesSoFar = 1;

export class FileNode {
  readonly kind = 'file';
  mtimeMs: number;
  /** Bytes that a power cut certainly keeps; more may survive. */
  durableSize = 0;
  /** Bytes from the start that the last power cut did not fill with zeros. */
  intactSize = Number.POSITIVE_INFINITY;
  #bytes: Uint8Array = new Uint8Array(0);
  #size = 0;
  #text: string | null = null;

  constructor(nowMs: number, text = '') {
    this.mtimeMs = nowMs;
    this.#text = text;
  }

  get size(): number {
    this.#encode();
    return this.#size;
  }

  append(bytes: Uint8Array, nowMs: number): void {
    this.#encode();
    if (this.#size + bytes.length > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(1_024, 2 * (this.#size + bytes.length)));
      larger.set(this.#bytes.subarray(0, this.#size));
      this.#bytes = larger;
    }
    this.#bytes.set(bytes, this.#size);
    this.#size += bytes.length;
    this.#text = null;
    this.mtimeMs = nowMs;
  }

  cut(size: number): void {
    this.#encode();
    this.#size = Math.min(size, this.#size);
    this.durableSize = Math.min(this.durableSize, this.#size);
    this.#text = null;
  }

  read(offset: number, most: number): Uint8Array {
    this.#encode();
    return this.#bytes.subarray(Math.min(offset, this.#size), Math.min(offset + most, this.#size));
  }

  text(): string {
    this.#text ??= new TextDecoder().decode(this.#bytes.subarray(0, this.#size));
    return this.#text;
  }

  /** What a power cut leaves: everything durable, then some of the rest, its last part possibly as zeros. */
  losePower(luck: Seeded): void {
    const size = this.size;
    this.intactSize = Number.POSITIVE_INFINITY;
    if (this.durableSize >= size) return;
    this.cut(luck.int(this.durableSize, size));
    this.intactSize = Math.min(this.intactSize, this.#size);
    const zeros = luck.chance(0.2) ? luck.int(0, this.#size - this.durableSize) : 0;
    if (zeros > 0) {
      this.#bytes.fill(0, this.#size - zeros, this.#size);
      this.intactSize = this.#size - zeros;
    }
    this.durableSize = this.#size;
  }

  #encode(): void {
    if (this.#bytes.length > 0 || this.#text === null || this.#text === '') return;
    this.#bytes = new TextEncoder().encode(this.#text);
    this.#size = this.#bytes.length;
  }
}

/** A named pipe; what is in it belongs to the processes that have it open. */
export class FifoNode {
  readonly kind = 'fifo';
  readonly size = 0;
  mtimeMs: number;
  /** Accepts lines; null while no process has the reading side open. */
  reader: ((line: string) => void) | null = null;

  constructor(nowMs: number) {
    this.mtimeMs = nowMs;
  }
}

export class FolderNode {
  readonly kind = 'folder';
  readonly size = 0;
  mtimeMs: number;
  readonly entries = new Map<string, Node>();
  readonly #durable = new Map<string, Node>();
  #isSynced = true;

  constructor(nowMs: number) {
    this.mtimeMs = nowMs;
  }

  put(name: string, node: Node): void {
    this.entries.set(name, node);
    this.#isSynced = false;
  }

  drop(name: string): void {
    this.entries.delete(name);
    this.#isSynced = false;
  }

  sync(): void {
    if (this.#isSynced) return;
    this.#durable.clear();
    for (const [name, node] of this.entries) this.#durable.set(name, node);
    this.#isSynced = true;
  }

  /** Each name changed since the last sync is in its old or new state. */
  losePower(luck: Seeded): void {
    if (!this.#isSynced) {
      for (const name of new Set([...this.entries.keys(), ...this.#durable.keys()])) {
        const before = this.#durable.get(name);
        if (before === this.entries.get(name) || luck.chance(0.5)) continue;
        if (before === undefined) this.entries.delete(name);
        else this.entries.set(name, before);
      }
      this.sync();
    }
    for (const node of this.entries.values()) if (node.kind !== 'fifo') node.losePower(luck);
  }
}

export type Node = FileNode | FifoNode | FolderNode;

/** The tree without any faults, as the kernel sees it. */
export class Disk {
  readonly root = new FolderNode(0);
  readonly #parts = new Map<string, string[]>();

  split(path: string): string[] {
    let parts = this.#parts.get(path);
    if (parts === undefined) {
      if (this.#parts.size > 2_000) this.#parts.clear();
      parts = path.split('/').filter((part) => part !== '');
      this.#parts.set(path, parts);
    }
    return parts;
  }

  find(path: string): Node | null {
    let node: Node = this.root;
    for (const part of this.split(path)) {
      if (node.kind !== 'folder') return null;
      const next = node.entries.get(part);
      if (next === undefined) return null;
      node = next;
    }
    return node;
  }

  file(path: string): FileNode | null {
    const node = this.find(path);
    return node?.kind === 'file' ? node : null;
  }

  /** The folder of `path`, and its last name; null without such a folder. */
  place(path: string): { readonly folder: FolderNode; readonly name: string } | null {
    const parts = this.split(path);
    let node: Node = this.root;
    for (let index = 0; index < parts.length - 1; index += 1) {
      const next: Node | undefined = node.kind === 'folder' ? node.entries.get(parts[index] as string) : undefined;
      if (next === undefined) return null;
      node = next;
    }
    return node.kind === 'folder' ? { folder: node, name: parts.at(-1) as string } : null;
  }

  /** A new empty file in an existing folder. */
  createFile(path: string, nowMs: number): FileNode {
    const node = new FileNode(nowMs);
    const place = this.place(path);
    place?.folder.put(place.name, node);
    return node;
  }

  makeFolder(path: string, nowMs: number): void {
    let node: FolderNode = this.root;
    for (const part of this.split(path)) {
      const known = node.entries.get(part);
      const next: Node = known ?? new FolderNode(nowMs);
      if (known === undefined) node.put(part, next);
      if (next.kind !== 'folder') throw new Error(`${path} leads through a file`);
      node = next;
    }
  }

  info(path: string): FileInfo | null {
    const node = this.find(path);
    if (node === null) return null;
    const inode = inodes.get(node) ?? inodesSoFar++;
    inodes.set(node, inode);
    return { kind: node.kind, size: node.size, mtimeMs: node.mtimeMs, device: 1, inode };
  }

  /** As after a long quiet time: everything is durable. */
  syncAll(folder: FolderNode = this.root): void {
    folder.sync();
    for (const node of folder.entries.values()) {
      if (node.kind === 'file') node.durableSize = node.size;
      else if (node.kind === 'folder') this.syncAll(node);
    }
  }
}
