/**
 * The projects in a folder: `01-planning/resume-context.md` in each folder of `02-projects` and of `02-builds/active`,
 * the folder itself if it is a project, and everything below the folders named in `.claude-code-agent/handover.json`.
 */
import { basename, dirname, join, relative, resolve } from 'node:path';
import type { SessionDefinition } from '../../core/group.ts';
import { isObject, parseJson } from '../../store/json.ts';
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
