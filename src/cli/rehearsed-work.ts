/** Work that no model has done is handed over only by somebody who knows it. */
import { type GroupReference, loadWithRunner } from '../app/resolve.ts';
import { ok, type Result } from '../core/failure.ts';
import { confirmed } from './confirm.ts';
import type { Context } from './context.ts';

interface HandOver {
  /** As in the question: Merge. */
  readonly what: string;
  readonly dryRun: boolean;
  readonly partial: boolean;
  /** Nobody is to be asked. */
  readonly yes: boolean;
}

/** Asks on a terminal; a script, which is not asked, is told. False = the user said no. */
export async function mayHandOver(
  context: Context,
  group: GroupReference,
  { what, yes, ...options }: HandOver,
): Promise<Result<boolean>> {
  if (yes || !isRehearsedWork(context, group, options)) return ok(true);
  const fact = `Group ${group.groupId} is a rehearsal: a script said what to do, no model.`;
  const canAsk = context.stdinIsTerminal && context.stdout.isTerminal;
  if (!canAsk) context.stderr.line(fact);
  return confirmed(context, `${fact} ${what} it all the same?`, !canAsk);
}

/** Nobody is asked about what will be refused anyway. */
function isRehearsedWork(
  { world }: Context,
  group: GroupReference,
  { dryRun, partial }: Pick<HandOver, 'dryRun' | 'partial'>,
): boolean {
  const loaded = loadWithRunner(world, group);
  if (dryRun || !loaded.ok || loaded.value.state.run?.rehearsal === undefined) return false;
  const records = [...loaded.value.state.sessions.values()];
  return partial || records.every(({ state }) => state.status === 'completed');
}
