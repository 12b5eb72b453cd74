/** Resume files of the handover system: copied into a worktree before the session, carried back after it. */
import { dirname, join, relative } from 'node:path';
import { updateExclusively } from '../../context/exclusive-update.ts';
import { mergeResume, nearestBase } from '../../context/handover/merge.ts';
import { resumeFilesIn, takesPart } from '../../context/handover/projects.ts';
import { describeFailure, fail, ok, type Result } from '../../core/failure.ts';
import { sessionLabel } from '../../core/id.ts';
import { conversationId, type SessionRecord } from '../../core/session-state.ts';
import type { Git } from '../../git/git.ts';
import { findRepository } from '../../git/git.ts';
import { askOwn } from '../../git/run-git.ts';
import { workUnderOurNames } from '../../git/stage.ts';
import { parseOwn } from '../../store/json.ts';
import type { SessionPaths } from '../../store/paths.ts';
import { systemFailure } from '../../store/system-failure.ts';

/** What is larger is no resume file. */
const bytesMax = 1024 * 1024;

export interface HandoverCopies {
  readonly takesPart: boolean;
  /** The user's own folder with the projects, absolute. */
  readonly home: string;
  /** The same folder in the worktree, absolute, links resolved. */
  readonly folder: string;
  readonly top: string;
  /** A commit as it was before the session. */
  readonly base: string;
  /** The file that remembers what the copies began as. */
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

/** Before an attempt in a worktree: it gets the state of its project. */
export async function copyIn(
  git: Git,
  record: SessionRecord,
  { paths, folder }: { readonly paths: SessionPaths; readonly folder: string },
): Promise<void> {
  const { definition, claudeSessionIds } = record;
  if (!takesPart(definition)) return;
  const top = findRepository(git.world.files, folder)?.top;
  if (top === undefined) return;
  // In the first attempt nothing but what it begins from is checked out.
  const workspace = record.workspace ?? { path: top, folder, base: 'HEAD' };
  await bringUpToDate(git, copiesOf(record, paths, workspace), { hasWorked: claudeSessionIds.length > 0 });
}

export interface HandoverResult {
  /** Paths from the top of the worktree: the project has all that the session wrote there. */
  readonly settled: readonly string[];
  /** Of projects that the session began, likewise. */
  readonly fresh: readonly string[];
  /** Sentences: what the session wrote and the project does not have. */
  readonly troubles: readonly string[];
  /** The same of projects that are gone from the user's folder, for example because another branch is checked out. */
  readonly homeless: readonly string[];
}

/** Brings what the session wrote into the project's own files. Said again, it takes nothing away. */
export async function copyBack(git: Git, copies: HandoverCopies): Promise<HandoverResult> {
  if (!copies.takesPart) return { settled: [], fresh: [], troubles: [], homeless: [] };
  const memory = readMemory(git, copies);
  const settled: string[] = [];
  const troubles: string[] = [];
  for (const name of namesAt(git, copies.home)) {
    const carried = await carryOne(git, copies, name, memory);
    // One that the session deleted may be meant to go.
    if (carried.ok && carried.value) settled.push(fromTop(copies, name));
    if (!carried.ok) troubles.push(describeFailure(carried.failure));
  }
  save(git, copies, memory);
  const [fresh, homeless] = withoutHome(git, copies, memory);
  const sentences = homeless.map((name) => `${join(copies.home, name)} is gone; what the session wrote of it ${stays}`);
  return { settled, fresh: fresh.map((name) => fromTop(copies, name)), troubles, homeless: sentences };
}

const stays = 'stays in its worktree, in no commit.';

/** Resume files that only the worktree has and the session wrote, by paths from its top. */
export function freshFiles(git: Git, copies: HandoverCopies): string[] {
  if (!copies.takesPart) return [];
  return withoutHome(git, copies, readMemory(git, copies))
    .flat()
    .map((name) => fromTop(copies, name));
}

/** Files with a name of ours that are the session's work, by paths from the top; none if git cannot read it. */
export async function workNotPlaced(git: Git, copies: HandoverCopies): Promise<readonly string[]> {
  const names = copies.takesPart ? [...readMemory(git, copies).texts.keys()] : [];
  const placed = new Set(names.map((name) => fromTop(copies, name)));
  const found = await workUnderOurNames(git, copies.top, placed);
  return found.ok ? found.value : [];
}

/** Names of those that the session began, and of others that it changed. */
function withoutHome(git: Git, copies: HandoverCopies, memory: Memory): readonly [string[], string[]] {
  const known = new Set(namesIn(git, copies.home));
  const alone = namesIn(git, copies.folder).filter((name) => !known.has(name));
  const changed = alone.filter((name) => {
    const before = memory.texts.get(name);
    // A project that was moved, or that another branch lacks, was not begun by the session.
    return before !== undefined && before !== textOf(git, join(copies.folder, name));
  });
  return [alone.filter((name) => !memory.texts.has(name)), changed];
}

/** Before the session starts: what it wrote earlier goes back, and it gets the project's files as they are now. */
async function bringUpToDate(
  git: Git,
  copies: HandoverCopies,
  { hasWorked }: { readonly hasWorked: boolean },
): Promise<void> {
  const memory = readMemory(git, copies);
  for (const name of namesAt(git, copies.home)) {
    // What was put there before the session ran is no word of its own. What cannot be carried back stays.
    const carried = hasWorked ? await carryOne(git, copies, name, memory) : ok(true);
    if (!carried.ok || (!carried.value && (await isDeleted(git, copies, name, memory)))) continue;
    refresh(git, copies, name, memory);
  }
  save(git, copies, memory);
}

/** By the session. One that git does not know went with a `git clean` more likely. */
async function isDeleted(git: Git, copies: HandoverCopies, name: string, memory: Memory): Promise<boolean> {
  if (!memory.texts.has(name)) return false;
  const committed = await before(git, copies, name);
  return committed.ok && committed.value.length > 0;
}

/** All resume files in the folder, by their paths below it. */
function namesIn({ world: { files } }: Git, folder: string): string[] {
  const root = files.realPath(folder) ?? folder;
  return resumeFilesIn(files, folder).map((file) => relative(root, file));
}

/** Those which a worktree can hold: a submodule, or another repository within, is filled by git alone. */
function namesAt(git: Git, home: string): string[] {
  const { files } = git.world;
  const own = findRepository(files, home)?.top;
  return namesIn(git, home).filter((name) => findRepository(files, dirname(join(home, name)))?.top === own);
}

function fromTop({ folder, top }: HandoverCopies, name: string): string {
  return relative(top, join(folder, name));
}

/** What each copy was when it last was the same as the project's file or was carried back, by paths from the home. */
interface Memory {
  readonly texts: Map<string, string>;
  isNews: boolean;
}

function readMemory({ world: { files } }: Git, { memory }: HandoverCopies): Memory {
  const kept = parseOwn<{ readonly files: Readonly<Record<string, string>> }>(files.readText(memory));
  const entries = Object.entries(kept?.files ?? {}).map(([name, text]) => [
    name,
    Buffer.from(text, 'base64').toString('latin1'),
  ]);
  return { texts: new Map(entries as [string, string][]), isNews: false };
}

function remember(memory: Memory, name: string, text: string): void {
  memory.isNews ||= memory.texts.get(name) !== text;
  memory.texts.set(name, text);
}

/** Once for all: what is not saved is carried back again, which takes nothing away. */
function save({ world: { files } }: Git, copies: HandoverCopies, { texts, isNews }: Memory): void {
  if (!isNews) return;
  const entries = [...texts].map(([name, text]) => [name, Buffer.from(text, 'latin1').toString('base64')]);
  const value = { version: 1, files: Object.fromEntries(entries) };
  quietly(() => files.writeAtomic(copies.memory, `${JSON.stringify(value)}\n`, { durable: true }));
}

async function carryOne(git: Git, copies: HandoverCopies, name: string, memory: Memory): Promise<Result<boolean>> {
  const { files } = git.world;
  const [path, file] = [join(copies.home, name), join(copies.folder, name)];
  try {
    const theirs = readCopy(git, copies, name);
    if (!theirs.ok) return theirs;
    const known = memory.texts.get(name);
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
          if (bytes === null) return fail('not-found', `${path} is gone.`, `The session's own is ${file}.`);
          return ok(Buffer.from(mergeResume({ ours: latin1(bytes), base, theirs: now, who: copies.who }), 'latin1'));
        },
      });
      if (!updated.ok) return updated;
    }
    remember(memory, name, now);
    return ok(true);
  } catch (error) {
    return { ok: false, failure: systemFailure(file, error) };
  }
}

/** As git has it: a session that only restores a file has not written it. Empty where git does not know it. */
async function before(git: Git, { folder, base }: HandoverCopies, name: string): Promise<Result<string[]>> {
  const args = ['cat-file', '--filters', `${base}:./${name}`];
  const shown = await askOwn(git, folder, args, { encoding: 'latin1' });
  if (!shown.ok) return shown;
  return ok(shown.value.exitCode === 0 ? [shown.value.stdout] : []);
}

/** Null when there is none. Fails when it is nothing that the project could take, or a link to what is not the copy. */
function readCopy({ world: { files } }: Git, { folder, top }: HandoverCopies, name: string): Result<string | null> {
  const file = join(folder, name);
  const real = files.realPath(file);
  if (real === null) return ok(null);
  const isOwn = real === join(files.realPath(folder) ?? folder, name) && real.startsWith(`${top}/`);
  const info = isOwn ? files.info(real) : null;
  if (info?.kind !== 'file' || info.size > bytesMax) {
    const message = `${file} is no regular file of the worktree, or larger than ${bytesMax} bytes.`;
    return fail('corrupt-file', message, 'The project keeps its own.');
  }
  return ok(latin1(files.readBytes(real, 0, bytesMax)));
}

/** The project has all of the copy; now the copy gets all of the project. A session without it works all the same. */
function refresh(git: Git, copies: HandoverCopies, name: string, memory: Memory): void {
  const { files } = git.world;
  const file = join(copies.folder, name);
  quietly(() => {
    const bytes = files.readBytes(join(copies.home, name), 0, bytesMax + 1);
    const there = readCopy(git, copies, name);
    if (!there.ok || bytes.length > bytesMax) return;
    const text = latin1(bytes);
    if (there.value !== text) {
      if (!isWithin(git, copies, dirname(file))) return;
      const path = files.realPath(file) ?? file;
      files.makeFolder(dirname(path), 'project');
      // Before it is remembered: else, after a crash in between, what git has would look like the session's work.
      if (!updateExclusively(files, { path, bytesMax, change: () => ok(bytes) }).ok) return;
    }
    remember(memory, name, text);
  });
}

/** Undefined for what the system refuses. */
function quietly<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch (error) {
    if (typeof (error as { code?: unknown }).code !== 'string') throw error;
    return undefined;
  }
}

/** Null when it cannot be read. */
function textOf({ world: { files } }: Git, path: string): string | null {
  return quietly(() => latin1(files.readBytes(path, 0, bytesMax + 1))) ?? null;
}

/** Whether the folder, or the nearest one above it that is there, is in the worktree: links could lead elsewhere. */
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
