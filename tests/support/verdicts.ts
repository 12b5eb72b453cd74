/** The verdicts on all waiting sessions, in order of definition. */
import type { SchedulingContext } from '../../src/core/plan/decision.ts';
import { verdictsOf } from '../../src/core/plan/verdicts.ts';
import type { GroupState } from '../../src/core/state.ts';

export function whyNot(state: GroupState, context: SchedulingContext) {
  const verdicts = verdictsOf(state, context);
  return [...state.sessions].flatMap(([sessionId, record]) => {
    const why = verdicts(record);
    return why === null ? [] : [{ sessionId, ...why }];
  });
}
