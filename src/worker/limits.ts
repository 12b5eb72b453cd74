/** Resource limits of a session that this machine can enforce. */
import { defined } from '../core/defined.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import type { SessionDefinition } from '../core/group.ts';
import { programName } from '../core/program-name.ts';
import type { Limits, Processes } from '../system/world.ts';

type Machine = Pick<Processes, 'limits'>;

/** Memory for claude itself, in addition to `memoryBytes` for its commands. */
const claudeMemoryBytes = 1024 ** 3;

/** The limits for `spawn`. Where the system cannot limit memory, claude limits its commands. */
export function limitsOf(
  { memoryBytes, maxProcesses }: Pick<SessionDefinition, 'memoryBytes' | 'maxProcesses'>,
  machine: Machine,
): Limits | undefined {
  const memory =
    memoryBytes !== undefined && machine.limits().has('memory') ? memoryBytes + claudeMemoryBytes : undefined;
  if (memory === undefined && maxProcesses === undefined) return undefined;
  return defined({ memory, processes: maxProcesses });
}

/** Fails with `spawn-failed` when the process limit cannot be enforced here. */
export function checkLimits({ maxProcesses }: Pick<SessionDefinition, 'maxProcesses'>, machine: Machine): Result<void> {
  if (maxProcesses === undefined || machine.limits().has('processes')) return ok(undefined);
  return fail('spawn-failed', '--max-processes cannot be enforced on this machine.', limitsAdvice());
}

const limitsAdvice = (): string =>
  `Run it under \`systemd-run --user --scope -p Delegate=yes ${programName} …\`, or leave out --max-processes.`;
