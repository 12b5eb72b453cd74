/** What the commands of the family `handover` share: the folder they look in. */
import { resolve } from 'node:path';
import { fail, ok, type Result } from '../../core/failure.ts';
import { briefPath, lookAt, tryPath } from '../path-argument.ts';
import type { Place } from '../place.ts';

/** Absolute, links resolved: the folder in which claude is started. Fails with `usage` when it is none. */
export function handoverRoot(place: Place, typed: string | undefined): Result<string> {
  const next = 'Give the path of an existing folder to --root.';
  if (typed === '') return fail('usage', 'The path given to --root is empty.', next);
  const folder = resolve(place.cwd, typed ?? '.');
  const { files } = place.world;
  const found = lookAt(files, folder);
  if (!found.ok) return fail('usage', `The folder ${briefPath(folder)} ${found.trouble}.`, next);
  if (found.value !== 'folder') return fail('usage', `${briefPath(folder)} is not a folder.`, next);
  const real = tryPath(() => files.realPath(folder));
  return ok(real.ok && real.value !== null ? real.value : folder);
}
