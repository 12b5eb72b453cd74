/**
 * `npm run bench -- [--quick] [name...]`: has measure.ts do the work and leaves nothing behind, no file and no process,
 * whether that comes to its end, fails or is interrupted.
 */
import { mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { becomeSubreaper, waitForEnded } from '../src/system/libc.ts';
import type { ProcEntry } from '../src/system/processes/proc-table.ts';
import { collectDescendants, createProcTable } from '../src/system/processes/proc-table.ts';
import { dist, memoryFolder, ownPrefix } from './support/places.ts';

const lookMs = 20;
/** What no signal ends hangs in the system. */
const patienceMs = 5_000;
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

// Before there is anything that could be left behind. It is told only once what measures has been started.
let interruptedBy: (typeof signals)[number] | null = null;
for (const signal of signals) {
  process.on(signal, () => {
    interruptedBy ??= signal;
    measuring.kill('SIGKILL');
  });
}
const own = ownPrefix(process.pid);
const places = [makePlace(tmpdir()), makePlace(memoryFolder)] as const;
// Runners detach their workers; orphans stay below this process.
becomeSubreaper();
const [TMPDIR, BENCH_MEMORY] = places;
const measuring = Bun.spawn([process.execPath, join(import.meta.dir, 'measure.ts'), ...process.argv.slice(2)], {
  env: {
    ...process.env,
    ...(TMPDIR === null ? {} : { TMPDIR }),
    ...(BENCH_MEMORY === null ? {} : { BENCH_MEMORY }),
    BENCH_RUN: String(process.pid),
  },
  stdio: ['ignore', 'inherit', 'inherit'],
});
// Programs wait until their killed processes are reaped, which is this process's job for orphans.
const reaping = setInterval(() => endedHere(createProcTable().all()), lookMs);
await measuring.exited;
clearInterval(reaping);
await endTheRest();
for (const place of places) if (place !== null) rmSync(place, { recursive: true, force: true });
for (const name of namesIn(dist)) if (name.startsWith(own)) rmSync(join(dist, name), { recursive: true, force: true });
process.exit(interruptedBy === null ? (measuring.exitCode ?? 1) : 128 + constants.signals[interruptedBy]);

/** A folder for everything that is made in `folder`; null where none can be made. */
function makePlace(folder: string): string | null {
  try {
    return realpathSync(mkdtempSync(join(folder, own)));
  } catch {
    return null;
  }
}

/** There is nothing to lose: at once, and again until nothing was born meanwhile. */
async function endTheRest(): Promise<void> {
  for (let waitedMs = 0; waitedMs < patienceMs; waitedMs += lookMs) {
    const entries = createProcTable().all();
    const left = collectDescendants(entries, [process.pid], process.pid);
    endedHere(entries);
    if (left.length === 0) return;
    for (const { pid } of left) kill(pid);
    await Bun.sleep(lookMs);
  }
}

/** Waits for those that have come to this process and ended; Bun waits for what this process has started. */
function endedHere(entries: readonly ProcEntry[]): void {
  for (const { pid, parent, zombie } of entries) {
    if (zombie && parent === process.pid && pid !== measuring.pid) waitForEnded(pid);
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
