/** Names of sessions and projects as a report shows them. */
import { basename } from 'node:path';
import type { SessionId } from '../../core/group.ts';
import { sessionTitle } from '../wording.ts';

/** The last part of the project's path. */
export function projectName(path: string): string {
  return basename(path) || path;
}

/** `003 docs, 004 tests and 12 more`; of sessions that were removed only the number is known. */
export function listTitlesOf(ids: readonly SessionId[], titles: ReadonlyMap<SessionId, string>, max: number): string {
  const shown = ids.slice(0, max).map((id) => titles.get(id) ?? sessionTitle(id, undefined));
  const rest = ids.length - shown.length;
  return rest > 0 ? `${shown.join(', ')} and ${rest} more` : shown.join(', ');
}
