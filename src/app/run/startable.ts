/** Whether a session that shall run alone could start now. */

import { advise } from '../../core/advice.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { resumeCommand } from '../../core/plan/advice.ts';
import { listTitles } from '../../view/wording.ts';
import type { LoadedSession } from '../resolve.ts';

/** Fails when the session cannot start because others it depends on are not completed. */
export function checkStartable({ state, record }: LoadedSession): Result<void> {
  if (!state.group.config.respectDependencies) return ok(undefined);
  const unmet = record.definition.dependsOn.filter((id) => state.sessions.get(id)?.state.status !== 'completed');
  if (unmet.length === 0) return ok(undefined);
  const next = advise('Let the group go on with', resumeCommand(state));
  return fail('usage', `It waits for ${listTitles(state, unmet)}, which must complete first.`, next);
}
