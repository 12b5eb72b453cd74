/**
 * Resume files of the handover system belong to the user's own checkout, and a session in a worktree works on copies of
 * them: they are brought up to date before it starts, and what it wrote goes back when its work is done.
 */
import { dirname, join, relative } from 'node:path';
import { updateExclusively } from '../context/exclusive-update.ts';
import { mergeResume, nearestBase } from '../context/handover/merge.ts';
import { findProjects, type HandoverProject } from '../context/handover/projects.ts';
import { describeFailure, fail, ok, type Result } from '../core/failure.ts';
import type { ContextName } from '../core/group.ts';
import { sessionLabel, sessionUuid } from '../core/id.ts';
import type { SessionRecord } from '../core/session-state.ts';
import type { Git } from '../git/git.ts';
import { askOwn } from '../git/own.ts';
import { findRepository } from '../git/repository.ts';
import type { SessionPaths } from '../store/paths.ts';
import { fields, isText, parseJson, valuesOf } from '../store/shape.ts';
import { systemFailure } from '../store/system-failure.ts';
import { noteHandover } from './session-context.ts';

/** What is larger is no resume file. */
const bytesMax = 1024 * 1024;

export interface HandoverCopies {
  /** The user's own folder with the projects, absolute. */
  readonly home: string;
  /** The same folder in the worktree, absolute, links resolved. */
  readonly folder: string;
  /** Root of the worktree. */
  readonly top: string;
  /** A commit as it was before the session. */
  readonly base: string;
  /** The file that remembers what the copies began as. */
  readonly memory: string;
  /** The session, for people. */
  readonly who: string;
}

export function copiesOf(
  { definition, claudeSessionIds }: SessionRecord,
  paths: SessionPaths,
  workspace: { readonly path: string; readonly folder: string; readonly base: string },
): HandoverCopies {
  const { id, name, projectPath } = definition;
  const { path: top, folder, base } = workspace;
  const who = `session ${sessionLabel(id, name)} (${claudeSessionIds.at(-1) ?? sessionUuid(id)})`;
  return { home: projectPath, folder, top, base, memory: paths.handoverCopies, who };
}

/** Before an attempt: the project learns the session's id, its hooks which project it is, and a worktree its state. */
export async function prepareHandover(
  git: Git,
  systems: readonly ContextName[],
  record: SessionRecord,
  { paths, folder }: { readonly paths: SessionPaths; readonly folder: string },
): Promise<void> {
  const { definition, claudeSessionIds } = record;
  const { projectPath, id } = definition;
  noteHandover(git.world, systems, { projectPath, paths }, claudeSessionIds.at(-1) ?? sessionUuid(id));
  const top = findRepository(git.world.files, folder)?.top;
  // Also without its hooks the session may write there.
  if (record.isolated !== true || top === undefined) return;
  // In the first attempt nothing but what it begins from is checked out.
  const workspace = record.workspace ?? { path: top, folder, base: 'HEAD' };
  await bringUpToDate(git, copiesOf(record, paths, workspace));
}

export interface CarriedBack {
  /** Paths from the top of the worktree: the project has all that the session wrote there. */
  readonly settled: readonly string[];
  /** See freshFiles. */
  readonly fresh: readonly string[];
  /** Sentences: what the session wrote and the project does not have. */
  readonly troubles: readonly string[];
}

/** Brings what the session wrote into the project's own files; said again, it changes nothing. */
export async function carryBack(git: Git, copies: HandoverCopies): Promise<CarriedBack> {
  const { top } = copies;
  const own = findProjects(git.world.files, copies.home).projects;
  const memory = readMemory(git, copies);
  const settled: string[] = [];
  const troubles: string[] = [];
  for (const project of own) {
    const carried = await carryOne(git, copies, project, memory);
    // One that the session deleted may be meant to go.
    if (carried.ok && carried.value) settled.push(relative(top, copyOf(copies, project)));
    if (!carried.ok) troubles.push(describeFailure(carried.failure));
  }
  return { settled, fresh: freshFiles(git, copies), troubles };
}

/** Resume files that only the worktree has, by paths from its top: of projects that the session began. */
export function freshFiles({ world: { files } }: Git, copies: HandoverCopies): string[] {
  const { home, folder, top } = copies;
  const known = new Set(findProjects(files, home).projects.map((project) => copyOf(copies, project)));
  const all = findProjects(files, folder).projects.map(({ file }) => file);
  return all.filter((file) => !known.has(file)).map((file) => relative(top, file));
}

/** Before the session starts: what it wrote earlier goes back, and it gets the project's files as they are now. */
async function bringUpToDate(git: Git, copies: HandoverCopies): Promise<void> {
  const own = findProjects(git.world.files, copies.home).projects;
  const memory = readMemory(git, copies);
  for (const project of own) {
    // What cannot be carried back must not be overwritten.
    const carried = await carryOne(git, copies, project, memory);
    if (carried.ok) refresh(git, copies, project, memory);
  }
}

function copyOf({ home, folder }: HandoverCopies, { file }: HandoverProject): string {
  return join(folder, relative(home, file));
}

/** What each copy was when it last was the same as the project's file or was carried back, by paths from the home. */
type Memory = Map<string, string>;

const isMemory = fields({ files: valuesOf(isText) });

function readMemory({ world: { files } }: Git, { memory }: HandoverCopies): Memory {
  const value = parseJson(files.readText(memory) ?? '');
  if (!isMemory(value)) return new Map();
  const { files: texts } = value as { readonly files: Readonly<Record<string, string>> };
  return new Map(Object.entries(texts).map(([name, text]) => [name, Buffer.from(text, 'base64').toString('latin1')]));
}

function remember({ world: { files } }: Git, copies: HandoverCopies, name: string, text: string, memory: Memory): void {
  if (memory.get(name) === text) return;
  memory.set(name, text);
  const texts = [...memory].map(([key, value]) => [key, Buffer.from(value, 'latin1').toString('base64')]);
  const value = { version: 1, files: Object.fromEntries(texts) };
  files.writeAtomic(copies.memory, `${JSON.stringify(value)}\n`, { durable: true });
}

/** False when there is no copy. */
async function carryOne(
  git: Git,
  copies: HandoverCopies,
  project: HandoverProject,
  memory: Memory,
): Promise<Result<boolean>> {
  const { files, clock } = git.world;
  const name = relative(copies.home, project.file);
  const file = copyOf(copies, project);
  try {
    const theirs = readCopy(git, copies, file);
    if (!theirs.ok) return theirs;
    if (theirs.value === null || theirs.value === memory.get(name)) return ok(theirs.value !== null);
    const path = files.realPath(project.file) ?? project.file;
    const now = theirs.value;
    if (latin1(files.readBytes(path, 0, bytesMax + 1)) !== now) {
      const known = memory.get(name);
      const committed = await before(git, copies, name);
      if (!committed.ok) return committed;
      const base = nearestBase(now, [...(known === undefined ? [] : [known]), ...committed.value]);
      const updated = updateExclusively(files, {
        path,
        nowMs: clock.now(),
        bytesMax,
        change: (bytes) => {
          if (bytes === null) return fail('not-found', `${project.file} is gone.`, `The session's own is ${file}.`);
          return ok(Buffer.from(mergeResume({ ours: latin1(bytes), base, theirs: now, who: copies.who }), 'latin1'));
        },
      });
      if (!updated.ok) return updated;
    }
    remember(git, copies, name, now, memory);
    return ok(true);
  } catch (error) {
    return { ok: false, failure: systemFailure(file, error) };
  }
}

/**
 * As git has it: a session that puts its worktree back has not written what stands there then, and the project keeps
 * what it has. Nothing where git does not know the file.
 */
async function before(git: Git, { folder, base }: HandoverCopies, name: string): Promise<Result<string[]>> {
  const shown = await askOwn(git, folder, ['cat-file', '--filters', `${base}:./${name}`]);
  if (!shown.ok) return shown;
  return ok(shown.value.exitCode === 0 ? [latin1(Buffer.from(shown.value.stdout))] : []);
}

/** Null when there is none. Fails when it is nothing that the project could take. */
function readCopy({ world: { files } }: Git, { top }: HandoverCopies, file: string): Result<string | null> {
  const real = files.realPath(file);
  if (real === null) return ok(null);
  const info = real.startsWith(`${top}/`) ? files.info(real) : null;
  if (info?.kind !== 'file' || info.size > bytesMax) {
    const message = `${file} is no regular file of the worktree, or larger than ${bytesMax} bytes.`;
    return fail('corrupt-file', message, 'The project keeps its own.');
  }
  return ok(latin1(files.readBytes(real, 0, bytesMax)));
}

/** The project has all of the copy; now the copy gets all of the project. A session without it works all the same. */
function refresh(git: Git, copies: HandoverCopies, project: HandoverProject, memory: Memory): void {
  const { files, clock } = git.world;
  const file = copyOf(copies, project);
  try {
    const bytes = files.readBytes(project.file, 0, bytesMax + 1);
    const there = readCopy(git, copies, file);
    if (!there.ok || bytes.length > bytesMax) return;
    const text = latin1(bytes);
    if (there.value !== text) {
      if (!isWithin(git, copies, dirname(file))) return;
      const path = files.realPath(file) ?? file;
      files.makeFolder(dirname(path), 'project');
      // Before it is remembered: else, after a crash in between, what git has would look like the session's work.
      if (!updateExclusively(files, { path, nowMs: clock.now(), bytesMax, change: () => ok(bytes) }).ok) return;
    }
    remember(git, copies, relative(copies.home, project.file), text, memory);
  } catch (error) {
    if (typeof (error as { code?: unknown }).code !== 'string') throw error;
  }
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
