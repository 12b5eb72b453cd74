/** A session's own cap: what was said of it, and whether it may be due to be said. */
import type { GroupEvent } from '../event.ts';
import type { SessionRecord } from '../session-state.ts';
import type { GroupState } from '../state.ts';

export function noteTight(state: GroupState, { definition: { id, maxBudgetUsd }, usage }: SessionRecord): void {
  const isTight = maxBudgetUsd !== undefined && usage.costUsd >= maxBudgetUsd * state.group.config.warningThreshold;
  if (isTight) state.tight.add(id);
  else state.tight.delete(id);
}

export function noteSaid(state: GroupState, record: SessionRecord, type: GroupEvent['type']): void {
  if (type === 'budget_warning') state.budgetWarned = true;
  else if (type === 'budget_exceeded') state.budgetExceeded = true;
  else record.budgetSaid = type === 'session_budget_warning' ? 'warned' : 'exceeded';
  if (record.budgetSaid === 'exceeded') state.tight.delete(record.definition.id);
}
