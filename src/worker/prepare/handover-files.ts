/** Resume files of the handover system: copied into a worktree before the session and merged back after it. */
import { dirname, join, relative } from 'node:path';
import { updateExclusively } from '../../context/exclusive-update.ts';
import { mergeResume, nearestBase } from '../../context/handover/merge.ts';
import { resumeFilesIn, takesPart } from '../../context/handover/projects.ts';
import { describeFailure, fail, ok, type Result } from '../../core/failure.ts';
import { sessionLabel } from '../../core/id.ts';
import { conversationId, type SessionRecord } from '../../core/session-state.ts';
import { findRepository, type Git } from '../../git/git.ts';
import { askOwn } from '../../git/run-git.ts';
import { workUnderOurNames } from '../../git/stage.ts';
import { parseOwn } from '../../store/json.ts';
import type { SessionPaths } from '../../store/paths.ts';
import { systemFailure } from '../../store/system-failure.ts';

const bytesMax = 1024 * 1024;

export interface HandoverCopies {
  readonly takesPart: boolean;
  /** The user's project folder, absolute. */
  readonly home: string;
  /** The same folder in the worktree, real path. */
  readonly folder: string;
  readonly top: string;
  /** The commit from which the session started. */
  readonly base: string;
  /** The file that records the original content of the copies. */
  readonly memory: string;
  readonly who: string;
}

export function copiesOf(
  record: SessionRecord,
  paths: SessionPaths,
  workspace: { readonly path: string; readonly folder: string; readonly base: string },
): HandoverCopies {
  const { definition } = record;
  const { id, name, projectPath } = definition;
  const { path: top, folder, base } = workspace;
  const who = `session ${sessionLabel(id, name)} (${conversationId(record)})`;
  return { takesPart: takesPart(definition), home: projectPath, folder, top, base, memory: paths.handoverCopies, who };
}

/** Copies the project's resume files into the worktree, before an attempt. */
export async function copyIn(
  git: Git,
  record: SessionRecord,
  { paths, folder }: { readonly paths: SessionPaths; readonly folder: string },
): Promise<void> {
  const { definition, claudeSessionIds } = record;
  if (!takesPart(definition)) return;
  const top = findRepository(git.world.files, folder)?.top;
  if (top === undefined) return;
  // At the first attempt the worktree is still at its base.
  const workspace = record.workspace ?? { path: top, folder, base: 'HEAD' };
  await refreshCopies(git, copiesOf(record, paths, workspace), { hasWorked: claudeSessionIds.length > 0 });
}

export interface HandoverResult {
  /** Paths from the top of the worktree that are fully merged into the project. */
  readonly settled: readonly string[];
  /** Paths of resume files that the session created. */
  readonly fresh: readonly string[];
  /** Sentences about changes that could not be merged back. */
  readonly troubles: readonly string[];
  /**
   * Sentences about changed files that are missing in the user's folder, for example because another branch is checked
   * out.
   */
  readonly orphaned: readonly string[];
}

/** Merges what the session wrote into the project's own files. Idempotent. */
export async function copyBack(git: Git, copies: HandoverCopies): Promise<HandoverResult> {
  if (!copies.takesPart) return { settled: [], fresh: [], troubles: [], orphaned: [] };
  const memory = readMemory(git, copies);
  const settled: string[] = [];
  const troubles: string[] = [];
  for (const name of namesAt(git, copies.home)) {
    const copied = await copyOneBack(git, copies, name, memory);
    // A file that the session deleted is not restored.
    if (copied.ok && copied.value) settled.push(fromTop(copies, name));
    if (!copied.ok) troubles.push(describeFailure(copied.failure));
  }
  save(git, copies, memory);
  const [fresh, orphaned] = withoutOriginal(git, copies, memory);
  const sentences = orphaned.map(
    (name) => `${join(copies.home, name)} is missing. What the session wrote there ${stays}`,
  );
  return { settled, fresh: fresh.map((name) => fromTop(copies, name)), troubles, orphaned: sentences };
}

const stays = 'stays in its worktree, uncommitted.';

/** Resume files that the session wrote and only the worktree has, as paths from its top. */
export function freshFiles(git: Git, copies: HandoverCopies): string[] {
  if (!copies.takesPart) return [];
  return withoutOriginal(git, copies, readMemory(git, copies))
    .flat()
    .map((name) => fromTop(copies, name));
}

/** Files named like ours that are the session's work, as paths from the top. */
export async function workNotPlaced(git: Git, copies: HandoverCopies): Promise<readonly string[]> {
  const names = copies.takesPart ? [...readMemory(git, copies).keys()] : [];
  const placed = new Set(names.map((name) => fromTop(copies, name)));
  const found = await workUnderOurNames(git, copies.top, placed);
  return found.ok ? found.value : [];
}

/** Resume files without an original: those that the session created, and those that it changed. */
function withoutOriginal(git: Git, copies: HandoverCopies, memory: Memory): readonly [string[], string[]] {
  const known = new Set(namesIn(git, copies.home));
  const alone = namesIn(git, copies.folder).filter((name) => !known.has(name));
  const changed = alone.filter((name) => {
    const before = memory.get(name);
    // A file with recorded content was not created by the session: the project was moved or another branch lacks it.
    return before !== undefined && before !== textOf(git, join(copies.folder, name));
  });
  return [alone.filter((name) => !memory.has(name)), changed];
}

/** Before an attempt: merges earlier changes back, then copies the project's present files. */
async function refreshCopies(
  git: Git,
  copies: HandoverCopies,
  { hasWorked }: { readonly hasWorked: boolean },
): Promise<void> {
  const memory = readMemory(git, copies);
  for (const name of namesAt(git, copies.home)) {
    // Before the first attempt there is nothing to merge back. A file that cannot be merged stays.
    const copied = hasWorked ? await copyOneBack(git, copies, name, memory) : ok(true);
    if (!copied.ok || (!copied.value && (await isDeleted(git, copies, name, memory)))) continue;
    refresh(git, copies, name, memory);
  }
  save(git, copies, memory);
}

/** Deleted by the session. A file unknown to git was more likely removed by `git clean`. */
async function isDeleted(git: Git, copies: HandoverCopies, name: string, memory: Memory): Promise<boolean> {
  if (!memory.has(name)) return false;
  const committed = await before(git, copies, name);
  return committed.ok && committed.value.length > 0;
}

function namesIn({ world: { files } }: Git, folder: string): string[] {
  const root = files.realPath(folder) ?? folder;
  return resumeFilesIn(files, folder).map((file) => relative(root, file));
}

/** Excludes submodules and nested repositories, which only git fills. */
function namesAt(git: Git, home: string): string[] {
  const { files } = git.world;
  const own = findRepository(files, home)?.top;
  return namesIn(git, home).filter((name) => findRepository(files, dirname(join(home, name)))?.top === own);
}

function fromTop({ folder, top }: HandoverCopies, name: string): string {
  return relative(top, join(folder, name));
}

/** The last common content of each copy and its original, by path below the project. */
type Memory = Map<string, string>;

function readMemory({ world: { files } }: Git, { memory }: HandoverCopies): Memory {
  const kept = parseOwn<{ readonly files: Readonly<Record<string, string>> }>(files.readText(memory));
  const entries = Object.entries(kept?.files ?? {});
  return new Map(entries.map(([name, text]) => [name, Buffer.from(text, 'base64').toString('latin1')]));
}

/** If this is not saved, the files are merged again, which is harmless. */
function save({ world: { files } }: Git, copies: HandoverCopies, memory: Memory): void {
  if (memory.size === 0) return;
  const entries = [...memory].map(([name, text]) => [name, Buffer.from(text, 'latin1').toString('base64')]);
  const value = { version: 1, files: Object.fromEntries(entries) };
  ignoringSystemErrors(() => files.writeAtomic(copies.memory, `${JSON.stringify(value)}\n`, { durable: true }));
}

async function copyOneBack(git: Git, copies: HandoverCopies, name: string, memory: Memory): Promise<Result<boolean>> {
  const { files } = git.world;
  const [path, file] = [join(copies.home, name), join(copies.folder, name)];
  try {
    const theirs = readCopy(git, copies, name);
    if (!theirs.ok) return theirs;
    const known = memory.get(name);
    if (theirs.value === null || theirs.value === known) return ok(theirs.value !== null);
    const now = theirs.value;
    if (latin1(files.readBytes(path, 0, bytesMax + 1)) !== now) {
      const committed = await before(git, copies, name);
      if (!committed.ok) return committed;
      const base = nearestBase(now, [...(known === undefined ? [] : [known]), ...committed.value]);
      const updated = updateExclusively(files, {
        path,
        bytesMax,
        change: (bytes) => {
          if (bytes === null) return fail('not-found', `${path} is gone.`, `The session's version is ${file}.`);
          return ok(Buffer.from(mergeResume({ ours: latin1(bytes), base, theirs: now, who: copies.who }), 'latin1'));
        },
      });
      if (!updated.ok) return updated;
    }
    memory.set(name, now);
    return ok(true);
  } catch (error) {
    return { ok: false, failure: systemFailure(file, error) };
  }
}

/** The committed version; empty when git does not know the file. */
async function before(git: Git, { folder, base }: HandoverCopies, name: string): Promise<Result<string[]>> {
  const args = ['cat-file', '--filters', `${base}:./${name}`];
  const shown = await askOwn(git, folder, args, { encoding: 'latin1' });
  if (!shown.ok) return shown;
  return ok(shown.value.exitCode === 0 ? [shown.value.stdout] : []);
}

/** Null when there is none. Fails for links out of the worktree, special files and files that are too large. */
function readCopy({ world: { files } }: Git, { folder, top }: HandoverCopies, name: string): Result<string | null> {
  const file = join(folder, name);
  const real = files.realPath(file);
  if (real === null) return ok(null);
  const isOwn = real === join(files.realPath(folder) ?? folder, name) && real.startsWith(`${top}/`);
  const info = isOwn ? files.info(real) : null;
  if (info?.kind !== 'file' || info.size > bytesMax) {
    const message = `${file} is not a regular file of the worktree, or is larger than ${bytesMax} bytes.`;
    return fail('corrupt-file', message, 'The project keeps its own version.');
  }
  return ok(latin1(files.readBytes(real, 0, bytesMax)));
}

/** Copies the project's file to the worktree. The session can work without it. */
function refresh(git: Git, copies: HandoverCopies, name: string, memory: Memory): void {
  const { files } = git.world;
  const file = join(copies.folder, name);
  ignoringSystemErrors(() => {
    const bytes = files.readBytes(join(copies.home, name), 0, bytesMax + 1);
    const there = readCopy(git, copies, name);
    if (!there.ok || bytes.length > bytesMax) return;
    const text = latin1(bytes);
    if (there.value !== text) {
      if (!isWithin(git, copies, dirname(file))) return;
      const path = files.realPath(file) ?? file;
      files.makeFolder(dirname(path), 'project');
      // Write before recording. Otherwise, after a crash in between, git's version would look like the session's work.
      if (!updateExclusively(files, { path, bytesMax, change: () => ok(bytes) }).ok) return;
    }
    memory.set(name, text);
  });
}

/** Undefined on a system error. */
function ignoringSystemErrors<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch (error) {
    if (typeof (error as { code?: unknown }).code !== 'string') throw error;
    return undefined;
  }
}

function textOf({ world: { files } }: Git, path: string): string | null {
  return ignoringSystemErrors(() => latin1(files.readBytes(path, 0, bytesMax + 1))) ?? null;
}

/** Whether the folder, or its nearest existing parent, is in the worktree. A link could lead out of it. */
function isWithin({ world: { files } }: Git, { top }: HandoverCopies, folder: string): boolean {
  for (let path = folder; path !== dirname(path); path = dirname(path)) {
    if (files.entryKind(path) === null) continue;
    const real = files.realPath(path);
    return real !== null && (real === top || real.startsWith(`${top}/`)) && files.info(real)?.kind === 'folder';
  }
  return false;
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('latin1');
}
