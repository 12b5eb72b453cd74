/**
 * Runs a program to its end, then ends everything below this process that it left behind. Nothing can get away between
 * the two, as it could if whoever ends the rest had to find it after the last process that held it together is gone.
 */

import { endGroup } from './cgroup.ts';
import { createLinuxTable } from './proc-linux.ts';
import type { ProcTable } from './proc-table.ts';
import { collectDescendants } from './process-tree.ts';

const lookMs = 20;
/** From the polite signal to the one that nobody can ignore. */
const graceMs = 300;
/** Something that no signal ends hangs in the system; then whoever started us is told all the same. */
const patienceMs = 10_000;
/** So often those are ended who are here for an instant, before the table is read again. */
const chases = 500;

export interface Supervision {
  /** The whole environment of the program. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Folder of the control group that the program is in; empty = it has none of its own. */
  readonly group: string;
  /** Asks the system and takes in children that have ended; null = it cannot be asked. */
  readonly hasChildren: (() => boolean) | null;
}

/** Ends this process as the program ended, by its code or by its signal; returns when it cannot be executed. */
export async function supervise(command: readonly string[], how: Supervision): Promise<void> {
  // These are meant for the program, which gets them as well; this process ends with it.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});
  const child = start(command, how);
  if (child === null) return;
  await child.exited;
  await endTheRest(how);
  if (child.signalCode === null) process.exit(child.exitCode ?? 1);
  process.removeAllListeners(String(child.signalCode));
  process.kill(process.pid, child.signalCode);
  // A signal that does not end a process has ended none.
  process.exit(128);
}

/** In a session of its own, so that a program that signals its whole group does not signal us. */
function start(command: readonly string[], { env }: Supervision) {
  try {
    return Bun.spawn([...command], { env, stdin: 'inherit', stdout: 'inherit', stderr: 'inherit', detached: true });
  } catch {
    return null;
  }
}

/**
 * Who reads the process table misses a process that is born meanwhile of one that ends meanwhile. The system does not:
 * orphans become children of this process at once, so nothing is left when it has no child.
 */
async function endTheRest({ group, hasChildren }: Supervision): Promise<void> {
  const table = createLinuxTable('/proc');
  const asked = new Set<number>();
  for (let waitedMs = 0; waitedMs < patienceMs; waitedMs += lookMs) {
    const left = hasChildren?.() === false ? [] : collectDescendants(table.all(), process.pid, process.pid);
    const isLast = hasChildren === null ? left.length === 0 : !hasChildren();
    if ((isLast || waitedMs >= graceMs) && (group === '' || endGroup(group, { unlessHit: true })) && isLast) return;
    for (const { pid, session } of left) {
      // The sessions of what is below were made below; all of one ends at once, also what is just being started.
      if (waitedMs >= graceMs) for (const target of session > 1 ? [-session, pid] : [pid]) send(target, 'SIGKILL');
      else if (!asked.has(pid)) send(pid, 'SIGTERM');
      asked.add(pid);
    }
    if (waitedMs >= graceMs) chase(table, hasChildren);
    await Bun.sleep(lookMs);
  }
}

/**
 * What starts another and ends, again and again, is never in a table that takes long to read. But each of them loses
 * its parent at once, and is a child of this process for the whole of its short life.
 */
function chase(table: ProcTable, hasChildren: Supervision['hasChildren']): void {
  for (let tries = 0; tries < chases && hasChildren?.() !== false; tries += 1) {
    const children = table.children(process.pid);
    if (children === null || children.length === 0) return;
    for (const pid of children) send(pid, 'SIGKILL');
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended meanwhile, or it became somebody else's.
  }
}
