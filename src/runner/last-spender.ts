/** Pure: whose name a budget event bears. */
import type { SessionId } from '../core/group.ts';
import type { SessionRecord } from '../core/session-state.ts';
import type { GroupState } from '../core/state.ts';

/** The session whose end changed the spending last; the first one while none has ended. */
export function lastSpender(state: GroupState): SessionId {
  const records = [...state.sessions.values()];
  let last: SessionRecord | undefined;
  for (const record of records) {
    if (record.endedAt !== undefined && (last?.endedAt === undefined || record.endedAt >= last.endedAt)) last = record;
  }
  return (last ?? records[0])?.definition.id ?? '';
}
