/**
 * What the claude in use can do and others cannot, as far as somebody has tried it; never read from its version.
 */
import { advise } from '../core/advice.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import type { SessionDefinition } from '../core/group.ts';
import { forwardOption } from './launch/argv.ts';

/** Absent = nobody has tried. */
export interface Abilities {
  /** `untrustedSwitch` keeps the hooks of a project from running. */
  readonly untrusted?: boolean;
  /** `memoryVariable` ends a command that takes more, on this machine. */
  readonly toolMemory?: boolean;
  /** `forwardOption` is one of its options. */
  readonly forwardsSubagents?: boolean;
}

/** What the text of `claude --help` tells. */
export function abilitiesIn(help: string): Abilities {
  return { forwardsSubagents: help.split(/\s+/).includes(forwardOption) };
}

/**
 * Refuses a session that asks for more than the claude in use can do: a protection that has no effect is worse than
 * none. Fails with `spawn-failed`.
 */
export function checkAbilities(
  { untrusted, memoryBytes }: Pick<SessionDefinition, 'untrusted' | 'memoryBytes'>,
  can: Abilities,
): Result<void> {
  if (untrusted === true && can.untrusted !== true) {
    const what = 'keep the hooks and variables of an untrusted project from having an effect';
    return refused(what, can.untrusted, 'leave out --untrusted if you trust the project');
  }
  if (memoryBytes !== undefined && can.toolMemory !== true) {
    const what = 'limit the memory of its commands on this machine';
    return refused(what, can.toolMemory, 'leave out --memory');
  }
  return ok(undefined);
}

/** `what` is what the claude in use should be able to do; `instead` begins a next step. */
function refused(what: string, tried: boolean | undefined, instead: string): Result<never> {
  if (tried === undefined) {
    const message = `It is not known whether the claude in use can ${what}.`;
    return fail('spawn-failed', message, advise(`Try what it can, or ${instead}`, ['doctor', '--claude']));
  }
  const message = `The claude in use was tried, and it cannot ${what}.`;
  return fail('spawn-failed', message, `Use a newer claude, or ${instead}.`);
}
