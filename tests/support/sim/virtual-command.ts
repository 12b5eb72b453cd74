/** A model of an acceptance command: a shell that works for a while, may start a process, and ends in many ways. */
import type { CommandBook } from './books.ts';
import type { CommandBehaviour } from './scenario.ts';
import { seededFor } from './seeded.ts';
import type { VirtualMachine } from './virtual-machine.ts';

const output = new TextEncoder().encode('checking – ça va\nsomething is wrong.\n');

/** Runs the command of the book; it prints into `logFile`. */
export function runVirtualCommand(
  machine: VirtualMachine,
  { process }: CommandBook,
  logFile: string,
  behaviour: CommandBehaviour,
): void {
  const { table, timeline } = machine;
  const luck = seededFor(machine.scenario.seed, process.name);
  const { ending, workMs, term, child } = behaviour;
  let isDying = false;
  const exit = (code: number) => table.end(process, { kind: 'exited', code });
  process.onSignal = (signal) => {
    if (signal !== 'SIGTERM' || term === 'ignored' || isDying) return;
    isDying = true;
    const delayMs = term === 'slow' ? luck.int(100, 700) : luck.int(1, 40);
    timeline.schedule(delayMs, 'ends after SIGTERM', process, () => {
      if (term === 'success') exit(0);
      else table.end(process, { kind: 'signalled', signal });
    });
  };
  timeline.schedule(luck.delay(80, 900), 'begins to check', process, () => {
    machine.appendQuietly(logFile, output);
    if (child !== 'none') machine.startTool(process, child);
  });
  if (ending === 'hangs') return;
  timeline.schedule(100 + workMs * (0.5 + luck.next()), 'has checked', process, () => {
    if (isDying) return;
    if (ending === 'killed') table.end(process, { kind: 'signalled', signal: 'SIGKILL' });
    else exit(ending === 'succeeds' ? 0 : luck.int(1, 3));
  });
}
