/** Fetches installed template packs again from where they came from. */
import { advise } from '../../core/advice.ts';
import { type Failure, fail, ok, type Result } from '../../core/failure.ts';
import { systemFailure } from '../../store/system-failure.ts';
import { findPack, handEdits, type InstalledPack, listPacks, withPacks } from '../../template/pack/pack.ts';
import { changesBetween, type PackChange, type PackNote } from '../../template/pack/pack-note.ts';
import type { Place } from '../place.ts';
import { fetchPack, installPack, packSource, packsOf, sayPowers } from './pack-fetch.ts';

export type UpdatedPack = { readonly name: string } & (
  | { readonly status: 'unchanged'; readonly note: PackNote }
  | {
      readonly status: 'updated';
      readonly from: PackNote;
      readonly note: PackNote;
      readonly changes: readonly PackChange[];
    }
  | { readonly status: 'failed'; readonly problem: Failure }
);

export interface HowToUpdate {
  /** From now on this branch, tag or commit; without it the one that was noted. */
  readonly ref?: string | undefined;
  /** Also when files were changed by hand. */
  readonly force?: true | undefined;
}

/** The named pack, or all. Each has an outcome of its own; fails as a whole when the packs cannot be looked at. */
export async function updatePacks(
  place: Place,
  name: string | undefined,
  how: HowToUpdate,
): Promise<Result<UpdatedPack[]>> {
  const packs = packsOf(place);
  if (!packs.ok) return packs;
  return withPacks<UpdatedPack[]>(place.world, packs.value, async () => {
    const chosen = name === undefined ? ok(listPacks(place.world, packs.value)) : one(place, packs.value, name);
    if (!chosen.ok) return chosen;
    const done: UpdatedPack[] = [];
    for (const pack of chosen.value) done.push(await updateOne(place, packs.value, pack, how));
    return ok(done);
  });
}

function one(place: Place, packs: string, name: string): Result<InstalledPack[]> {
  const found = findPack(place.world, packs, name);
  return found.ok ? ok([found.value]) : found;
}

async function updateOne(place: Place, packs: string, pack: InstalledPack, how: HowToUpdate): Promise<UpdatedPack> {
  const { name } = pack;
  try {
    const updated = await tryUpdate(place, packs, pack, how);
    return updated.ok ? updated.value : { name, status: 'failed', problem: updated.failure };
  } catch (error) {
    // The other packs have their turn all the same.
    return { name, status: 'failed', problem: systemFailure(pack.folder, error) };
  }
}

async function tryUpdate(
  place: Place,
  packs: string,
  pack: InstalledPack,
  { ref, force }: HowToUpdate,
): Promise<Result<UpdatedPack>> {
  const { name, note } = pack;
  if (note === null) {
    const next = advise('Add it again from its source', ['template', 'remove', name], ['template', 'add', 'SOURCE']);
    return fail('corrupt-file', 'Its pack.json is missing or cannot be read, so nobody knows its source.', next);
  }
  const edits = handEdits(place.world, pack) ?? [];
  if (edits.length > 0 && force !== true) {
    const files = edits.map(({ kind, path }) => `${path} (${kind})`).join(', ');
    const next = 'Save what you need, then give --force to go back to what the source has.';
    return fail('usage', `Files were changed by hand: ${files.slice(0, 500)}.`, next);
  }
  const source = packSource(place, note.source, ref ?? note.ref);
  if (!source.ok) return source;
  const fetched = await fetchPack(place, packs, source.value);
  if (!fetched.ok) return fetched;
  const installed = installPack(place, packs, name, fetched.value);
  if (!installed.ok) return installed;
  const changes = changesBetween(note.files, installed.value.files);
  const same = note.files.filter(({ path }) => !changes.some((change) => change.path === path));
  sayPowers(place, fetched.value, new Set(same.map(({ path }) => path)));
  const isSame = changes.length === 0 && edits.length === 0 && note.commit === installed.value.commit;
  return ok(
    isSame && note.ref === installed.value.ref
      ? { name, status: 'unchanged', note: installed.value }
      : { name, status: 'updated', from: note, note: installed.value, changes },
  );
}
