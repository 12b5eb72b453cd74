/** The real world that counts what it does to the disk, and can be told to leave the waiting for it out. */
import type { AppendFile, Files, World } from '../../src/system/world.ts';

export interface DiskCounts {
  /** Calls of fsync and fdatasync, folders included. */
  syncs: number;
  /** Appends to event logs and others; workers write their transcripts themselves, and sync each line of them. */
  appends: number;
  /** Files replaced as a whole. */
  replaces: number;
}

export interface CountingWorld extends World {
  readonly counts: DiskCounts;
  /** False: nothing of ours is made safe against a power cut, for comparison. */
  syncs: boolean;
}

export function createCountingWorld(real: World): CountingWorld {
  const counts: DiskCounts = { syncs: 0, appends: 0, replaces: 0 };
  const world: CountingWorld = { ...real, counts, syncs: true, files: real.files };
  const files: Files = {
    ...real.files,
    writeAtomic(path, text, options) {
      const durable = world.syncs && options?.durable === true;
      counts.replaces += 1;
      // The file and the folder it is renamed in.
      if (durable) counts.syncs += 2;
      real.files.writeAtomic(path, text, { durable });
    },
    openAppend: (path) => countedAppend(real.files.openAppend(path), world),
    syncFolder(path) {
      if (!world.syncs) return;
      counts.syncs += 1;
      real.files.syncFolder(path);
    },
    truncate(path, size) {
      counts.syncs += 1;
      real.files.truncate(path, size);
    },
    rename(from, to) {
      counts.syncs += 1;
      real.files.rename(from, to);
    },
  };
  return Object.assign(world, { files });
}

function countedAppend(file: AppendFile, world: CountingWorld): AppendFile {
  let named = false;
  return {
    get size() {
      return file.size;
    },
    append(text) {
      world.counts.appends += 1;
      file.append(text);
    },
    appendBytes: (bytes) => file.appendBytes(bytes),
    sync() {
      if (!world.syncs) return;
      // The first one syncs the folder, too.
      world.counts.syncs += named ? 1 : 2;
      named = true;
      file.sync();
    },
    close: () => file.close(),
  };
}
