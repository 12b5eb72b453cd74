/**
 * Runs a program to its end, then ends everything below this process that it left behind. Nothing can get away between
 * the two, as it could if whoever ends the rest had to find it after the last process that held it together is gone.
 */

import { createLinuxTable } from './proc-linux.ts';
import { collectDescendants } from './process-tree.ts';

const lookMs = 20;
/** From the polite signal to the one that nobody can ignore. */
const graceMs = 300;
/** Something that no signal ends hangs in the system; then whoever started us is told all the same. */
const patienceMs = 10_000;

/**
 * Ends this process as the program ended, by its code or by its signal; returns when it cannot be executed.
 * `hasChildren` asks the system and takes in children that have ended; null = it cannot be asked.
 */
export async function supervise(command: readonly string[], hasChildren: (() => boolean) | null): Promise<void> {
  // These are meant for the program, which gets them as well; this process ends with it.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});
  const child = start(command);
  if (child === null) return;
  await child.exited;
  await endTheRest(hasChildren);
  if (child.signalCode === null) process.exit(child.exitCode ?? 1);
  process.removeAllListeners(String(child.signalCode));
  process.kill(process.pid, child.signalCode);
  // A signal that does not end a process has ended none.
  process.exit(128);
}

/** In a session of its own, so that a program that signals its whole group does not signal us. */
function start(command: readonly string[]) {
  try {
    return Bun.spawn([...command], { stdin: 'inherit', stdout: 'inherit', stderr: 'inherit', detached: true });
  } catch {
    return null;
  }
}

/**
 * Who reads the process table misses a process that is born meanwhile of one that ends meanwhile. The system does not:
 * orphans become children of this process at once, so nothing is left when it has no child.
 */
async function endTheRest(hasChildren: (() => boolean) | null): Promise<void> {
  const table = createLinuxTable('/proc');
  const asked = new Set<number>();
  for (let waitedMs = 0; waitedMs < patienceMs; waitedMs += lookMs) {
    if (hasChildren !== null && !hasChildren()) return;
    const left = collectDescendants(table.all(), process.pid, process.pid);
    if (hasChildren === null && left.length === 0) return;
    for (const { pid } of left) {
      if (waitedMs >= graceMs) send(pid, 'SIGKILL');
      else if (!asked.has(pid)) send(pid, 'SIGTERM');
      asked.add(pid);
    }
    await Bun.sleep(lookMs);
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended meanwhile, or it became somebody else's.
  }
}
