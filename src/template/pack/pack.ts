/**
 * template/pack/: installed template packs. This file: one folder each below the user's templates. A pack appears,
 * changes and goes as a whole: it is written and checked under another name and then renamed; what a crash leaves is
 * put right by the next command.
 */

import { dirname, join } from 'node:path';
import { advise } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { systemFailure } from '../../store/system-failure.ts';
import type { Checked, Problem } from '../../store/yaml-text.ts';
import type { World } from '../../system/world.ts';
import { isTemplateName } from '../places.ts';
import { foldName, type PackFile, packFileBytesMax } from './pack-files.ts';
import {
  changesBetween,
  digestOf,
  noteFile,
  noteFiles,
  type PackChange,
  type PackFileNote,
  type PackNote,
  type PackOrigin,
  readNote,
  sha256,
} from './pack-note.ts';

/** A folder below the packs. */
export interface InstalledPack {
  readonly name: string;
  readonly folder: string;
  /** Null when pack.json is missing or cannot be read. */
  readonly note: PackNote | null;
}

export interface Placement {
  readonly name: string;
  readonly origin: PackOrigin;
  readonly files: readonly PackFile[];
  /** What stands before the path of a file for people. */
  readonly shownRoot: string;
  /** What is wrong with the templates in that folder, which will get another name once nothing is. */
  readonly check: (folder: string) => readonly Problem[];
}

/** Beginnings of names that no pack can have. */
const fresh = '.new-';
const replaced = '.old-';
const fetched = '.fetch-';
const lockFile = '.lock';

/** Sorted by name; throws the system's error. */
export function listPacks(world: World, packs: string): InstalledPack[] {
  return world.files
    .list(packs)
    .filter((name) => isTemplateName(name) && world.files.entryKind(join(packs, name)) === 'folder')
    .map((name) => ({ name, folder: join(packs, name), note: readNote(world, join(packs, name)) }));
}

/** Fails with `not-found`; throws the system's error. */
export function findPack(world: World, packs: string, name: string): Result<InstalledPack> {
  const installed = listPacks(world, packs);
  const found = installed.find((pack) => pack.name === name);
  if (found !== undefined) return ok(found);
  const names = installed.map((pack) => pack.name).join(', ');
  const add = advise('There are none yet; add one with', ['template', 'add', 'SOURCE']);
  const next = names === '' ? add : `Installed are: ${names}.`;
  return fail('not-found', `There is no template pack ${JSON.stringify(name.slice(0, 100))}.`, next);
}

/** The pack that has this name already, written in any way; throws the system's error. */
export function packNamed(world: World, packs: string, name: string): InstalledPack | undefined {
  return listPacks(world, packs).find((pack) => foldName(pack.name) === foldName(name));
}

/**
 * Does something with the packs while nobody else does, after leftovers were put right. The folder is made only when
 * `make` is given. Fails with `busy` while another process holds the packs, and with `write-failed`.
 */
export async function withPacks<T>(
  world: World,
  packs: string,
  action: () => Result<T> | Promise<Result<T>>,
  options: { readonly make?: true } = {},
): Promise<Result<T>> {
  try {
    if (options.make === true) world.files.makeFolder(packs);
    else if (world.files.info(packs) === null) return await action();
    const holder = { identity: world.machine.self, runId: world.random.uuid() };
    const lock = world.locks.tryLock(join(packs, lockFile), holder);
    if (lock === null) {
      return fail('busy', 'Another command is changing the template packs.', 'Try again when it has ended.');
    }
    try {
      mendPacks(world, packs);
      return await action();
    } finally {
      lock.release();
    }
  } catch (error) {
    return { ok: false, failure: systemFailure(packs, error) };
  }
}

/** Finishes or takes back what a crash interrupted; only for the holder of the lock. */
function mendPacks(world: World, packs: string): void {
  for (const name of world.files.list(packs)) {
    const path = join(packs, name);
    const pack = name.slice(replaced.length);
    if (name.startsWith(replaced) && isTemplateName(pack) && world.files.entryKind(join(packs, pack)) === null) {
      world.files.rename(path, join(packs, pack));
    } else if ([fresh, replaced, fetched].some((start) => name.startsWith(start))) {
      world.files.remove(path);
    }
  }
}

/** A new empty folder that `withPacks` clears away if nobody else does. */
export function makeFetchFolder(world: World, packs: string): string {
  const folder = join(packs, `${fetched}${world.random.uuid()}`);
  world.files.makeFolder(folder);
  return folder;
}

/**
 * Puts a pack in place, instead of the one that has its name. Only inside `withPacks`. When a template is
 * not valid, or the system's error is thrown, everything is as it was.
 */
export function placePack(world: World, packs: string, placement: Placement): Checked<PackNote> {
  const { name, origin, files, shownRoot, check } = placement;
  const folder = join(packs, fresh + name);
  try {
    world.files.makeFolder(folder);
    for (const { path, bytes } of files) {
      world.files.makeFolder(dirname(join(folder, path)));
      world.files.writeBytes(join(folder, path), bytes, { durable: true });
    }
    const problems = check(folder);
    if (problems.length > 0) {
      const shown = problems.map((problem) => ({ ...problem, file: shownRoot + withoutFolder(problem.file, folder) }));
      return { ok: false, problems: shown };
    }
    const note = newNote(world, packs, { name, origin, files: noteFiles(files) });
    world.files.writeAtomic(join(folder, noteFile), `${JSON.stringify(note, null, 2)}\n`, { durable: true });
    swap(world, packs, name);
    return { ok: true, value: note };
  } finally {
    world.files.remove(folder);
  }
}

function newNote(
  world: World,
  packs: string,
  { name, origin, files }: { name: string; origin: PackOrigin; files: readonly PackFileNote[] },
): PackNote {
  const before = readNote(world, join(packs, name));
  const now = new Date(world.clock.now()).toISOString();
  const digest = digestOf(files);
  const updatedAt = before === null || before.digest === digest ? before?.updatedAt : now;
  return {
    version: 1,
    name,
    ...origin,
    addedAt: before?.addedAt ?? now,
    ...defined({ updatedAt }),
    files,
    digest,
  };
}

/** A rename cannot replace a folder that is not empty, so the old one steps aside first. */
function swap(world: World, packs: string, name: string): void {
  const place = join(packs, name);
  const aside = join(packs, replaced + name);
  const isNew = world.files.entryKind(place) === null;
  if (!isNew) world.files.rename(place, aside);
  try {
    world.files.rename(join(packs, fresh + name), place);
  } catch (error) {
    if (!isNew) world.files.rename(aside, place);
    throw error;
  }
  world.files.remove(aside);
}

/** Takes the pack away in one step. Only inside `withPacks`; throws the system's error. */
export function removePack(world: World, packs: string, name: string): void {
  const aside = join(packs, fresh + name);
  world.files.rename(join(packs, name), aside);
  world.files.remove(aside);
}

/** What was changed by hand since the pack was written; null when nobody can tell. Throws the system's error. */
export function handEdits(world: World, pack: InstalledPack): PackChange[] | null {
  if (pack.note === null) return null;
  return changesBetween(pack.note.files, filesIn(world, pack.folder));
}

/** Whatever lies there, links and devices too. */
function filesIn(world: World, folder: string, below = ''): PackFileNote[] {
  return world.files.list(join(folder, below)).flatMap((name): PackFileNote[] => {
    const path = below === '' ? name : `${below}/${name}`;
    if (path === noteFile || name === '.DS_Store') return [];
    const kind = world.files.entryKind(join(folder, path));
    if (kind === 'folder') return filesIn(world, folder, path);
    // Nothing that we copied is larger, so the rest makes no difference.
    const bytes = kind === 'file' ? world.files.readBytes(join(folder, path), 0, packFileBytesMax + 1) : null;
    return [{ path, bytes: bytes?.length ?? 0, sha256: bytes === null ? `${kind}` : sha256(bytes) }];
  });
}

function withoutFolder(path: string, folder: string): string {
  return path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path;
}
