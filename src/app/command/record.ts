/** What a command means for a group that nobody runs, written down. */
import type { Result } from '../../core/failure.ts';
import { type Asked, type Command, commandEvents, type Meaning } from '../../runner/request-answers.ts';
import type { GroupWriter } from '../../store/group-writer.ts';
import type { World } from '../../system/world.ts';
import { attemptUsages } from '../watch/attempt-usage.ts';

/** Fails as the answer of a runner would. Changes nothing. */
export function meaningOf(
  world: World,
  { state, paths }: Pick<Asked, 'state' | 'paths'>,
  command: Command,
): Result<Meaning> {
  const used = () => attemptUsages(world, paths, state).values();
  return commandEvents(world, { state, paths, used }, command);
}

/** Logs it. */
export function recordCommand(world: World, writer: GroupWriter, command: Command): Result<Meaning> {
  const meaning = meaningOf(world, writer, command);
  if (meaning.ok) writer.record(meaning.value.events);
  return meaning;
}
