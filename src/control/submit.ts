/** A wish of the user about one session: asked of the live runner, or written down when there is none. */
import { see } from '../core/advice.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import { nextGroupStatus } from '../core/status.ts';
import { wishEvents } from '../runner/request-answers.ts';
import type { GroupWriter } from '../store/group-writer.ts';
import type { RequestBody } from '../store/requests.ts';
import type { World } from '../world/world.ts';
import { changeGroup } from './change-group.ts';
import type { Place } from './place.ts';
import { askRunner } from './request.ts';
import type { LoadedSession } from './resolve.ts';

/** Who has taken note of the wish. */
export type Granted = 'runner' | 'log';

/** Fails with `usage` and a sentence when it cannot be granted now. */
export function submit(
  place: Pick<Place, 'world' | 'notes'>,
  session: LoadedSession,
  wish: Extract<RequestBody, { readonly sessionId: string }>,
): Promise<Result<Granted>> {
  const { world } = place;
  return changeGroup<Granted>(place, session, {
    direct(writer) {
      const granted = recordCommand(world, writer, wish);
      return granted.ok ? ok('log') : granted;
    },
    async viaRunner(runId) {
      const answer = await askRunner(world, session, runId, wish);
      if (answer === 'runner-gone') return answer;
      return answer.ok ? ok('runner') : answer;
    },
  });
}

/** Writes down what a wish means for a group that nobody runs. Fails with `usage` like the answer of a runner. */
export function recordCommand(world: World, writer: GroupWriter, wish: RequestBody): Result<void> {
  const { status, group } = writer.state;
  if (nextGroupStatus(status, 'session_queued') === null) {
    const next = see('group', 'show', group.id);
    return fail('usage', `Group ${group.id} is ${status}; its sessions stay as they are.`, next);
  }
  const granted = wishEvents(world, writer, wish);
  if (!granted.ok) return fail('usage', granted.failure.message, granted.failure.next);
  writer.record(granted.value.events);
  return ok(undefined);
}
