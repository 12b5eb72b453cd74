/**
 * The projects in a folder: `01-planning/resume-context.md` in each folder of `02-projects` and of `02-builds/active`,
 * the folder itself if it is a project, and everything below the folders named in `.claude-code-agent/handover.json`.
 */
import { basename, dirname, join, relative, resolve } from 'node:path';
import type { SessionDefinition } from '../../core/group.ts';
import { isObject, parseJson, parseOwn } from '../../store/json.ts';
import type { Files } from '../../system/world.ts';
import { type ContextFiles, quietly, readProjectText } from '../hook-call.ts';
import { type ResumeFacts, readResumeFile } from './resume-file.ts';

export const resumeFileName = 'resume-context.md';
export const planningFolder = '01-planning';
/** The second is Nexus's folder since its version 5. */
const projectsFolders: readonly string[] = ['02-projects', '02-builds/active'];
/** Relative to the root, as are the folders it names. */
export const handoverConfig = join('.claude-code-agent', 'handover.json');

export interface HandoverProject {
  /** Name of its folder; of two with one name, the later has its path below the root. */
  readonly id: string;
  /** Absolute; `files_to_load` are relative to it. */
  readonly folder: string;
  readonly file: string;
  readonly facts: ResumeFacts;
  /** Its own update time, otherwise the file's; milliseconds since 1970. */
  readonly updatedMs: number;
}

export interface Discovery {
  readonly projects: readonly HandoverProject[];
  /** Unusable files, each with its path. */
  readonly troubles: readonly string[];
}

/** Limits for a folder that is not what it seems to be. */
const entriesMax = 5_000;
const depthMax = 5;
const skippedFolders: ReadonlySet<string> = new Set(['.git', 'node_modules']);

/** All projects below `root` (absolute), sorted by path. Throws nothing because of the files. */
export function findProjects(files: ContextFiles, root: string): Discovery {
  const search = new Search(files, root);
  for (const folder of projectsFolders.map((name) => join(root, name))) {
    for (const name of search.list(folder)) search.look(join(folder, name, planningFolder, resumeFileName));
  }
  search.look(join(root, planningFolder, resumeFileName));
  search.look(join(root, resumeFileName));
  const { folders, trouble } = configuredFolders(files, root);
  if (trouble !== null) search.troubles.push(trouble);
  for (const folder of folders) search.below(resolve(root, folder));
  return { projects: search.projects, troubles: search.troubles };
}

/** A session without the system treats these files like any others. */
export function takesPart({ context }: Pick<SessionDefinition, 'context'>): boolean {
  return context?.includes('handover') ?? true;
}

/** All resume files below the folder, with symlinks resolved. A target with another name is an ordinary file. */
export function resumeFilesIn(files: Files, folder: string): readonly string[] {
  const found = findProjects(files, folder).projects.flatMap(({ file }) => files.realPath(file) ?? []);
  return [...new Set(found)].filter((file) => basename(file) === resumeFileName);
}

export interface ConfiguredFolders {
  readonly folders: readonly string[];
  /** Why the file is unusable, with its path; null when it is usable, or missing. */
  readonly trouble: string | null;
}

export function configuredFolders(files: ContextFiles, root: string): ConfiguredFolders {
  const path = join(root, handoverConfig);
  const read = readProjectText(files, root, path);
  if (!read.ok) return { folders: [], trouble: read.trouble === 'does not exist' ? null : `${path} ${read.trouble}` };
  const value = parseJson(read.text);
  const folders = isObject(value) ? value.folders : undefined;
  if (Array.isArray(folders) && folders.every((folder) => typeof folder === 'string' && folder !== '')) {
    return { folders, trouble: null };
  }
  return { folders: [], trouble: `${path} does not have the form {"folders": ["path", ...]}` };
}

class Search {
  readonly projects: HandoverProject[] = [];
  readonly troubles: string[] = [];
  readonly #files: ContextFiles;
  readonly #root: string;
  readonly #seen = new Set<string>();
  #entries = 0;

  constructor(files: ContextFiles, root: string) {
    this.#files = files;
    this.#root = root;
  }

  list(folder: string): string[] {
    const names = quietly(() => this.#files.list(folder)) ?? [];
    const room = Math.max(0, entriesMax - this.#entries);
    this.#entries += Math.min(names.length, room);
    if (names.length > room) this.troubles.push(`${folder} has too many entries, so some were skipped`);
    return names.slice(0, room);
  }

  look(path: string): void {
    const file = quietly(() => this.#files.realPath(path));
    if (file === null || this.#seen.has(file)) return;
    this.#seen.add(file);
    const read = readProjectText(this.#files, this.#root, path);
    if (!read.ok) {
      this.troubles.push(`${path} ${read.trouble}`);
      return;
    }
    const parent = dirname(path);
    const folder = basename(parent) === planningFolder ? dirname(parent) : parent;
    const facts = readResumeFile(read.text);
    const said = Date.parse(facts.lastUpdated);
    const updatedMs = Number.isNaN(said) ? read.mtimeMs : said;
    this.projects.push({ id: this.#idOf(folder), folder, file: path, facts, updatedMs });
  }

  #idOf(folder: string): string {
    const name = basename(folder);
    return this.projects.some(({ id }) => id === name) ? relative(this.#root, folder) : name;
  }

  /** Everything below a folder that the configuration names; it must be below the root. */
  below(folder: string): void {
    const realRoot = quietly(() => this.#files.realPath(this.#root));
    const real = quietly(() => this.#files.realPath(folder));
    if (realRoot === null || real === null) return;
    if (real === realRoot || real.startsWith(`${realRoot}/`)) this.#descend(folder, 0);
    else this.troubles.push(`${folder} is outside of ${this.#root}`);
  }

  /** Symlinks are not followed: they may form a cycle. */
  #descend(folder: string, depth: number): void {
    if (depth > depthMax || quietly(() => this.#files.entryKind(folder)) !== 'folder') return;
    for (const name of this.list(folder)) {
      const path = join(folder, name);
      if (name === resumeFileName) this.look(path);
      else if (!skippedFolders.has(name)) this.#descend(path, depth + 1);
    }
  }
}

// The project of a session: named by the runner, by its id, by its transcript, or the most recent one.

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
