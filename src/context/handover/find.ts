/** The project of a session: named by the runner, by its id, by its transcript, or the most recent one. */
import { join, relative } from 'node:path';
import { parseOwn } from '../../store/json.ts';
import { type ContextFiles, quietly } from '../hook-call.ts';
import { findProjects, type HandoverProject } from './projects.ts';

export type FoundBy = 'runner' | 'session_ids' | 'session_id' | 'transcript' | 'folder' | 'most recent';

export interface Found {
  readonly project: HandoverProject;
  readonly by: FoundBy;
}

/** The runner's JSON file for the hooks of a worker, which may work in a copy of the project. */
export interface ProjectAssignment {
  /** Absolute: the user's folder that contains the project. */
  readonly root: string;
  /** The project's resume file, relative to the root. */
  readonly file: string;
}

export const assignmentFileName = 'handover.json';

/** Null when the runner names no project. */
export function readAssignment(files: ContextFiles, sessionFolder: string | undefined): ProjectAssignment | null {
  return sessionFolder === undefined
    ? null
    : parseOwn<ProjectAssignment>(files.readText(join(sessionFolder, assignmentFileName)));
}

/** The project that the runner names; `root` is the folder in which the projects were found. */
export function findAssigned(
  projects: readonly HandoverProject[],
  root: string,
  belonging: ProjectAssignment | null,
): Found | null {
  const project = projects.find(({ file }) => relative(root, file) === belonging?.file);
  return project === undefined ? null : { project, by: 'runner' };
}

/**
 * The project whose list has the id, otherwise the one whose legacy field has it. A session that moved between projects
 * is in both lists: the one it last wrote to counts.
 */
export function findBySession(projects: readonly HandoverProject[], sessionId: string | undefined): Found | null {
  if (sessionId === undefined || sessionId === '' || sessionId === 'unknown') return null;
  const legacy = projects.filter(({ facts }) => facts.sessionId === sessionId);
  const listed = projects.filter(({ facts }) => facts.sessionIds.includes(sessionId));
  const both = listed.filter((project) => legacy.includes(project));
  const project = mostRecent(both.length > 0 ? both : listed);
  if (project !== null) return { project, by: 'session_ids' };
  const old = mostRecent(legacy);
  return old === null ? null : { project: old, by: 'session_id' };
}

export function findByFolder(projects: readonly HandoverProject[], folder: string): Found | null {
  const project = projects.find((one) => one.folder === folder);
  return project === undefined ? null : { project, by: 'folder' };
}

export function findMostRecent(projects: readonly HandoverProject[]): Found | null {
  const project = mostRecent(projects);
  return project === null ? null : { project, by: 'most recent' };
}

function mostRecent(projects: readonly HandoverProject[]): HandoverProject | null {
  return projects.reduce<HandoverProject | null>(
    (best, project) => (best === null || project.updatedMs > best.updatedMs ? project : best),
    null,
  );
}

/** Enough for the session's last actions; a transcript may have hundreds of megabytes. */
const tailBytes = 1024 * 1024;

/**
 * The project whose files the transcript mentioned last. Tool inputs count more than outputs: a listing names every
 * project.
 */
export function findByTranscript(
  files: ContextFiles,
  projects: readonly HandoverProject[],
  root: string,
  transcriptPath: string | undefined,
): Found | null {
  // In a transcript, paths are inside JSON texts.
  const needleOf = ({ folder }: HandoverProject): string => JSON.stringify(`${relative(root, folder)}/`).slice(1, -1);
  const byNeedle = new Map(projects.filter(({ folder }) => folder !== root).map((one) => [needleOf(one), one]));
  if (transcriptPath === undefined || byNeedle.size === 0) return null;
  // Not as the end of a longer name.
  const needles = [...byNeedle.keys()].map((needle) => needle.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  const mention = new RegExp(`(?<![\\w.-])(?:${needles.join('|')})`, 'g');
  let said: HandoverProject | undefined;
  for (const line of tailLines(files, transcriptPath).reverse()) {
    const project = byNeedle.get(line.match(mention)?.at(-1) ?? '');
    if (project !== undefined && line.includes('"tool_use"')) return { project, by: 'transcript' };
    said ??= project;
  }
  return said === undefined ? null : { project: said, by: 'transcript' };
}

function tailLines(files: ContextFiles, path: string): string[] {
  const bytes = quietly(() => {
    const info = files.info(path);
    return info?.kind === 'file' ? files.readBytes(path, Math.max(0, info.size - tailBytes), tailBytes) : null;
  });
  return new TextDecoder().decode(bytes ?? new Uint8Array(0)).split('\n');
}

// The only possible project of a folder; checked at every start of a session.

/**
 * The project of a session that starts in `folder` (absolute) with an unknown id: the folder itself, or the only
 * project it contains. Null with none, or several.
 */
export function handoverProjectHere(files: ContextFiles, folder: string): HandoverProject | null {
  const { projects } = findProjects(files, folder);
  const own = findByFolder(projects, folder)?.project;
  return own ?? (projects.length === 1 ? (projects[0] ?? null) : null);
}
