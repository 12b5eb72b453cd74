/** Asks the live runner of a group to do something, and waits for the event that answers. */
import { fail, ok, type Result } from '../core/failure.ts';
import { awaitAnswer, type RequestAnswer, type RequestBody, sendRequest } from '../store/requests.ts';
import type { World } from '../world/world.ts';
import type { GroupReference } from './resolve.ts';

/** The answer when it was done. Fails when the runner refused; `runner-gone` when it will not answer any more. */
export async function askRunner(
  world: World,
  group: GroupReference,
  runId: string,
  body: RequestBody,
): Promise<Result<RequestAnswer> | 'runner-gone'> {
  const id = world.random.uuid();
  const sinceSize = world.files.info(group.paths.events)?.size ?? 0;
  sendRequest(world, group.paths, { id, runId, at: new Date(world.clock.now()).toISOString(), ...body });
  const answer = await awaitAnswer(world, group.paths, id, sinceSize);
  if (answer === 'runner-gone') return answer;
  return answer.done ? ok(answer) : fail('usage', answer.message, '');
}
