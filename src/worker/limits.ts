/** Resource limits of a session, as far as the machine can enforce them. */
import { defined } from '../core/defined.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import type { SessionDefinition } from '../core/group.ts';
import { programName } from '../core/program-name.ts';
import type { Limits, Processes } from '../system/world.ts';

type Machine = Pick<Processes, 'limits'>;

/**
 * Memory for claude itself in addition to `memoryBytes` for its commands; otherwise claude would be killed instead of a
 * command.
 */
const claudeMemoryBytes = 1024 ** 3;

/** The limits for `spawn`; undefined = none. Where memory cannot be limited, claude limits its commands. */
export function limitsOf(
  { memoryBytes, maxProcesses }: Pick<SessionDefinition, 'memoryBytes' | 'maxProcesses'>,
  machine: Machine,
): Limits | undefined {
  const memory =
    memoryBytes !== undefined && machine.limits().has('memory') ? memoryBytes + claudeMemoryBytes : undefined;
  if (memory === undefined && maxProcesses === undefined) return undefined;
  return defined({ memory, processes: maxProcesses });
}

/** Refuses a session whose process limit cannot be enforced here. Fails with `spawn-failed`. */
export function checkLimits({ maxProcesses }: Pick<SessionDefinition, 'maxProcesses'>, machine: Machine): Result<void> {
  if (maxProcesses === undefined || machine.limits().has('processes')) return ok(undefined);
  return fail('spawn-failed', 'The number of its processes cannot be limited here.', limitsAdvice());
}

const limitsAdvice = (): string =>
  `Run it under \`systemd-run --user --scope -p Delegate=yes ${programName} …\`, or leave out --max-processes.`;
