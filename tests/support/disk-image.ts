/**
 * A real ext4 in a file, mounted: the file's content at an instant is what a power cut at that instant leaves. Needs
 * root and a loop device; tests that need one are skipped and counted elsewhere.
 */
import { dlopen } from 'bun:ffi';
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** More than a run requires to be free; little of it is ever written. */
const bytes = 800_000_000;
const seekData = 3;
const seekHole = 4;
/** During a write no two readings are equal; it takes some milliseconds. */
const readingsMax = 200;

/** The data at an offset of a sparse file. */
interface Extent {
  readonly offset: number;
  readonly data: Buffer;
}

function readExtents(path: string): Extent[] {
  const { symbols } = dlopen('libc.so.6', { lseek: { args: ['i32', 'i64', 'i32'], returns: 'i64' } } as const);
  const fd = openSync(path, 'r');
  try {
    const extents: Extent[] = [];
    for (let end = 0; ; ) {
      const offset = Number(symbols.lseek(fd, BigInt(end), seekData));
      if (offset < 0) return extents;
      end = Number(symbols.lseek(fd, BigInt(offset), seekHole));
      const data = Buffer.alloc(end - offset);
      readSync(fd, data, 0, data.length, offset);
      extents.push({ offset, data });
    }
  } finally {
    closeSync(fd);
  }
}

function isSame(a: readonly Extent[], b: readonly Extent[]): boolean {
  return (
    a.length === b.length &&
    a.every(({ offset, data }, index) => {
      const other = b[index];
      return other?.offset === offset && other.data.equals(data);
    })
  );
}

function succeeds(command: readonly string[]): boolean {
  return Bun.spawnSync([...command], { stdout: 'ignore', stderr: 'ignore' }).exitCode === 0;
}

export type DiskContents = readonly Extent[];

export class DiskImage {
  /** Where the disk is mounted. */
  readonly folder: string;
  readonly #place = mkdtempSync(join(tmpdir(), 'cca-disk-'));
  readonly #file = join(this.#place, 'disk.img');
  #isMounted = false;

  constructor() {
    this.folder = join(this.#place, 'mounted');
    mkdirSync(this.folder);
    writeFileSync(this.#file, '');
    truncateSync(this.#file, bytes);
  }

  /** Creates the file system; false without the tools. */
  format(): boolean {
    return succeeds(['mkfs.ext4', '-q', '-J', 'size=4', this.#file]);
  }

  /** False where that is not allowed. */
  mount(): boolean {
    this.#isMounted = succeeds(['mount', '-o', 'loop', this.#file, this.folder]);
    return this.#isMounted;
  }

  unmount(): void {
    if (this.#isMounted) this.#isMounted = !succeeds(['umount', this.folder]);
    if (this.#isMounted) throw new Error(`${this.folder} is still in use`);
  }

  /** The disk's content at one instant: a reading that a second, later reading confirms. */
  powerCut(): DiskContents {
    let before = readExtents(this.#file);
    for (let readings = 0; readings < readingsMax; readings += 1) {
      const now = readExtents(this.#file);
      if (isSame(now, before)) return now;
      before = now;
    }
    throw new Error('the disk is never at rest');
  }

  /** Continues with what a power cut left. Throws when it cannot be mounted. */
  restore(contents: DiskContents): void {
    this.unmount();
    writeFileSync(this.#file, '');
    truncateSync(this.#file, bytes);
    const fd = openSync(this.#file, 'r+');
    for (const { offset, data } of contents) writeSync(fd, data, 0, data.length, offset);
    closeSync(fd);
    if (!this.mount()) throw new Error('the disk cannot be mounted after the power cut');
  }

  remove(): void {
    this.unmount();
    rmSync(this.#place, { recursive: true, force: true });
  }
}

/** Whether such a disk is possible here. */
export function canMountImages(): boolean {
  if (process.platform !== 'linux' || process.getuid?.() !== 0 || Bun.which('unshare') === null) return false;
  const image = new DiskImage();
  try {
    return image.format() && image.mount();
  } finally {
    image.remove();
  }
}
