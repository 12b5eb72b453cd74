/** Lists and removes the progress files of a project. */
import {
  findProgress,
  hoursOf,
  legacyName,
  type ProgressFile,
  type ProgressHeader,
  progressFolder,
  readProgressText,
} from '../../context/cpm/state.ts';
import { see } from '../../core/advice.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { quoted } from '../../core/id.ts';
import type { Files } from '../../system/world.ts';
import type { AppContext } from '../app-context.ts';
import { briefPath, folderNamed, tryPath } from '../path-argument.ts';

/** The reference for the file without an id in its name. */
const legacyReference = 'legacy';
/** Shown as the skill of a summary. */
const summarySkill = 'compact summary';

export const isSummary = ({ header }: ListedProgress): boolean => header.skill === summarySkill;

export interface ListedProgress {
  readonly file: ProgressFile;
  /** The id, or `legacy`. */
  readonly id: string;
  readonly header: ProgressHeader;
  readonly text: string;
  /** The file is longer than the part that was read. */
  readonly truncated: boolean;
  /** Completes a sentence that begins with the path; null = readable. */
  readonly trouble: string | null;
}

export interface ProjectProgress {
  readonly folder: string;
  /** Newest first, then the legacy file, then compaction summaries, which have the id of their session. */
  readonly listed: readonly ListedProgress[];
  /** Files without a valid id in their name. */
  readonly oddNames: number;
}

/** Fails with `usage` if `project` is not a folder, and with `not-found` if docs/plans cannot be read. */
export function loadProgress(context: AppContext, project: string | undefined): Result<ProjectProgress> {
  const { files, clock } = context.world;
  const folder = folderNamed(context, project, 'project', 'Give the path of an existing folder to --project.');
  if (!folder.ok) return folder;
  const found = findProgress(files, folder.value, clock.now());
  if (found.trouble !== null) {
    const message = `In ${briefPath(folder.value)}, ${found.trouble}.`;
    return fail('not-found', message, 'Check the permissions of that folder.');
  }
  const progress = [...found.sessions, ...(found.legacy === null ? [] : [found.legacy])];
  const listed = [
    ...progress.map((file) => listedOf(context, folder.value, file)),
    ...found.summaries.map((file) => ({ ...listedOf(context, folder.value, file), header: { skill: summarySkill } })),
  ];
  return ok({ folder: folder.value, listed, oddNames: found.oddNames });
}

function listedOf({ world }: AppContext, folder: string, file: ProgressFile): ListedProgress {
  const base = { file, id: file.sessionId ?? legacyReference };
  const read = readProgressText(world.files, folder, file.path);
  if (!read.ok) return { ...base, header: {}, text: '', truncated: false, trouble: read.trouble };
  return { ...base, header: read.header, text: read.text, truncated: read.truncated, trouble: null };
}

/** Finds a file by id, unique prefix, `legacy` or file name. Prefers progress to its summary. */
export function findListed({ folder, listed }: ProjectProgress, reference: string): Result<ListedProgress> {
  const exact = listed.find(({ id, file }) => id === reference || file.name === reference);
  if (exact !== undefined) return ok(exact);
  const next = see('cpm', 'list', '--project', folder);
  const first = (id: string) => listed.findIndex((other) => other.id === id);
  const named = listed.filter(({ id }, index) => id.startsWith(reference) && first(id) === index);
  const [one, ...more] = reference === '' ? [] : named;
  if (one === undefined) return fail('not-found', `No progress file belongs to ${quoted(reference)}.`, next);
  if (more.length === 0) return ok(one);
  const candidates = [one, ...more].map(({ id }) => id).join(', ');
  return fail(
    'ambiguous',
    `${quoted(reference)} matches several ids: ${candidates}.`,
    'Give more characters of the id.',
  );
}

/** The JSON of a progress file, without invalid times. */
export function plainProgress({ id, file, header, trouble }: ListedProgress): object {
  const modified = new Date(file.mtimeMs);
  return {
    id,
    file: `${progressFolder}/${file.sessionId === null ? legacyName : file.name}`,
    ...header,
    ...(Number.isNaN(modified.getTime()) ? {} : { modified: modified.toISOString() }),
    ageHours: hoursOf(file.ageMs),
    stale: file.stale,
    ...(trouble === null ? {} : { trouble }),
  };
}

/** The named files with their summaries; without names, the stale ones. */
export function chooseProgress(progress: ProjectProgress, ids: readonly string[]): Result<readonly ListedProgress[]> {
  const ofSession = (session: string) => progress.listed.filter(({ id }) => id === session);
  if (ids.length === 0) {
    return ok(progress.listed.filter(({ id }) => ofSession(id).every(({ file }) => file.stale)));
  }
  const chosen = new Set<ListedProgress>();
  for (const id of ids) {
    const found = findListed(progress, id);
    if (!found.ok) return found;
    for (const one of ofSession(found.value.id)) chosen.add(one);
  }
  return ok([...chosen]);
}

/** Why the file cannot be removed; null if it can. Only regular files inside the project are removed. */
export function removalProblem(files: Files, folder: string, { file }: ListedProgress): string | null {
  const looked = tryPath(() => {
    const root = files.realPath(folder);
    const path = files.realPath(file.path);
    const kind = files.entryKind(file.path);
    // The file is already gone.
    return kind === null || (kind === 'file' && root !== null && path?.startsWith(`${root}/`) === true);
  });
  if (!looked.ok) return looked.trouble;
  return looked.value ? null : 'is not a regular file of the project';
}

/** Returns the names of removed files, and the failures. */
export function removeProgress(
  { world: { files } }: AppContext,
  chosen: readonly ListedProgress[],
): { readonly removed: readonly string[]; readonly failed: readonly string[] } {
  const results = chosen.map(({ file }) => ({ file, done: tryPath(() => files.remove(file.path)) }));
  return {
    removed: results.flatMap(({ file, done }) => (done.ok ? [file.name] : [])),
    failed: results.flatMap(({ file, done }) => (done.ok ? [] : [`${progressFolder}/${file.name} ${done.trouble}`])),
  };
}
