/** The program as src/main.ts runs it, on a world that counts; the counts go to the file that BENCH_COUNTS names. */
import { writeFileSync } from 'node:fs';
import { createContext } from '../../src/cli/context.ts';
import { runToEnd } from '../../src/cli/program.ts';
import { packageRoot } from '../../src/system/own-program.ts';
import { createRealWorld } from '../../src/system/real-world.ts';
import type { AppendFile, Files } from '../../src/system/world.ts';

export interface DiskCounts {
  /** Calls of fsync and fdatasync, folders included. */
  syncs: number;
  /** Appends to event logs and others; workers write their transcripts themselves, and sync each line of them. */
  appends: number;
  /** Files replaced as a whole. */
  replaces: number;
}

function countedFiles(real: Files, counts: DiskCounts): Files {
  return {
    ...real,
    writeAtomic(path, text, options) {
      counts.replaces += 1;
      // The file and the folder it is renamed in.
      if (options?.durable === true) counts.syncs += 2;
      real.writeAtomic(path, text, options);
    },
    openAppend: (path) => countedAppend(real.openAppend(path), counts),
    syncFolder(path) {
      counts.syncs += 1;
      real.syncFolder(path);
    },
    truncate(path, size) {
      counts.syncs += 1;
      real.truncate(path, size);
    },
    rename(from, to) {
      counts.syncs += 1;
      real.rename(from, to);
    },
  };
}

function countedAppend(file: AppendFile, counts: DiskCounts): AppendFile {
  let named = false;
  return {
    get size() {
      return file.size;
    },
    append(text) {
      counts.appends += 1;
      file.append(text);
    },
    appendBytes: (bytes) => file.appendBytes(bytes),
    sync() {
      // The first one syncs the folder, too.
      counts.syncs += named ? 1 : 2;
      named = true;
      file.sync();
    },
    close: () => file.close(),
  };
}

const { BENCH_COUNTS: target } = process.env;
// What it starts itself, such as a hook, is not to be counted. It ends this process.
if (target === undefined) await import('../../src/main.ts');
else {
  delete process.env.BENCH_COUNTS;
  const counts: DiskCounts = { syncs: 0, appends: 0, replaces: 0 };
  const world = createRealWorld();
  const context = createContext(packageRoot);
  Object.defineProperty(context, 'world', { value: { ...world, files: countedFiles(world.files, counts) } });
  const code = await runToEnd(context, process.argv.slice(2), '0.0.0');
  writeFileSync(target, JSON.stringify(counts));
  process.exit(code);
}
