/**
 * app/template/: templates and packs as commands change and check them. This file gets the files of a pack from
 * where a user says it is: a git repository or a folder.
 */
import { join, resolve } from 'node:path';
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { checkOut, commitIn } from '../../git/checkout.ts';
import { type Login, parseRef, parseRepository } from '../../git/source.ts';
import { problemsFailure } from '../../store/yaml-text.ts';
import { makeFetchFolder, type Placement, placePack } from '../../template/pack/pack.ts';
import { checkPack } from '../../template/pack/pack-check.ts';
import { findPackRoot, type GatheredPack, gatherPack } from '../../template/pack/pack-files.ts';
import type { PackNote, PackOrigin } from '../../template/pack/pack-note.ts';
import { powersOf } from '../../template/pack/pack-powers.ts';
import { packsFolder, templatePlaces, userTemplates } from '../../template/places.ts';
import { safeLine } from '../../view/terminal-text.ts';
import { whileBusy } from '../live-runner.ts';
import { briefPath, lookAt } from '../path-argument.ts';
import type { Place } from '../place.ts';

export interface PackSource {
  /** What is stored and shown: a URL without a password, or an absolute path. */
  readonly source: string;
  readonly kind: 'repository' | 'folder';
  readonly ref?: string;
  readonly login?: Login;
}

export interface FetchedPack {
  readonly origin: PackOrigin;
  readonly pack: GatheredPack;
}

/** Folder of the user's template packs. Fails with `usage` when the environment names none. */
export function packsOf(place: Place): Result<string> {
  const templates = userTemplates(place.env);
  return templates.ok ? ok(packsFolder(templates.value)) : templates;
}

/** What an address and a ref mean, seen from where the user is. Fails with `usage` or `not-found`. */
export function packSource(place: Place, address: string, ref: string | undefined): Result<PackSource> {
  const repository = parseRepository(address);
  if (!repository.ok) return repository;
  const wanted = ref === undefined ? ok(undefined) : parseRef(ref);
  if (!wanted.ok) return wanted;
  const more = defined({ ref: wanted.value });
  if (repository.value !== null) {
    const { url, login } = repository.value;
    return ok({ source: url, kind: 'repository', ...more, ...defined({ login }) });
  }
  const path = resolve(place.cwd, address);
  const found = lookAt(place.world.files, path);
  const next = 'Give the URL of a git repository, or the path of a folder with templates.';
  if (!found.ok) return fail('not-found', `${briefPath(path)} ${found.trouble}.`, next);
  if (found.value !== 'folder') return fail('usage', `${briefPath(path)} is not a folder.`, next);
  // A folder is taken as it is now; what was committed there only counts when a ref or a bare repository says so.
  const isRepository = wanted.value !== undefined || isBare(place, path);
  return ok({ source: path, kind: isRepository ? 'repository' : 'folder', ...more });
}

function isBare({ world: { files } }: Place, path: string): boolean {
  const kindOf = (name: string) => files.entryKind(join(path, name));
  return kindOf('HEAD') === 'file' && kindOf('objects') === 'folder' && kindOf('refs') === 'folder';
}

/** The pack's files, read. Only inside `withPacks`. Fails when git does, or when a file cannot be part of a pack. */
export async function fetchPack(place: Place, packs: string, from: PackSource): Promise<Result<FetchedPack>> {
  const { world, env } = place;
  const { source, kind, ref, login } = from;
  const git = { world, env };
  if (kind === 'folder') {
    const pack = gather(place, source, source);
    if (!pack.ok) return pack;
    const commit = await commitIn(git, source);
    return ok({ origin: { source, ...(commit === null ? {} : { commit }) }, pack: pack.value });
  }
  const folder = makeFetchFolder(world, packs);
  try {
    const wanted = defined({ ref });
    const input = { repository: source, folder, ...wanted, ...defined({ login }) };
    const checkedOut = await whileBusy(place, `Fetching ${source}`, () => checkOut(git, input));
    if (!checkedOut.ok) return checkedOut;
    const pack = gather(place, folder, '');
    if (!pack.ok) return pack;
    return ok({ origin: { source, ...wanted, commit: checkedOut.value.commit }, pack: pack.value });
  } finally {
    world.files.remove(folder);
  }
}

/** `shown` is the folder as people know it; empty for one that is gone soon. */
function gather(place: Place, folder: string, shown: string): Result<GatheredPack> {
  const root = findPackRoot(place.world, folder);
  if (root === null) {
    const message = 'There are no templates: no prompts/<name>.md, configs/<name>/ or workflows/<name>.yaml.';
    return fail('usage', message, 'A pack has them at its top, in templates/ or in .claude-code-agent/templates/.');
  }
  const pack = gatherPack(place.world, folder, root, shown);
  return pack.ok ? ok(pack.value) : problemsFailure('The pack', pack.problems);
}

/** Checks the fetched files and puts them in place. Only inside `withPacks`; fails with `usage`. */
export function installPack(place: Place, packs: string, name: string, fetched: FetchedPack): Result<PackNote> {
  const { world, env, packageRoot } = place;
  const { files, shownRoot } = fetched.pack;
  const places = (projects: readonly string[]) => templatePlaces({ env, packageRoot, projects });
  const check: Placement['check'] = (folder) => checkPack(world, { folder, files, places, home: env.HOME });
  const placed = placePack(world, packs, { name, origin: fetched.origin, files, shownRoot, check });
  return placed.ok ? ok(placed.value) : problemsFailure('The pack', placed.problems);
}

/** Tells which files of a pack can start programs; `before` are those that were known already. */
export function sayPowers(place: Place, { pack }: FetchedPack, before: ReadonlySet<string> = new Set()): void {
  const powers = powersOf(pack.files.filter(({ path }) => !before.has(path)));
  if (powers.length === 0) return;
  place.notes.line('These files can start programs in your sessions; read them before you use the pack:');
  for (const power of powers) place.notes.line(`  ${safeLine(power, 400)}`);
}

/** The commit as people write it, or nothing. */
export function shortCommit(commit: string | undefined): string {
  return commit === undefined ? '' : commit.slice(0, 10);
}
