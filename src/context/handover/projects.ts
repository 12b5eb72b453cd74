/**
 * Which projects a folder holds: `01-planning/resume-context.md` in each folder of `02-projects` and of
 * `02-builds/active`, the folder itself when it is a project, and whatever lies below the folders named in
 * `.claude-code-agent/handover.json`.
 */
import { basename, dirname, join, relative, resolve } from 'node:path';
import type { SessionDefinition } from '../../core/group.ts';
import { isObject, parseJson } from '../../store/json.ts';
import type { Files } from '../../system/world.ts';
import { type ContextFiles, quietly, readProjectText } from '../hook-call.ts';
import { type ResumeFacts, readResumeFile } from './resume-file.ts';

export const resumeFileName = 'resume-context.md';
export const planningFolder = '01-planning';
/** The second is where Nexus has them since its version 5. */
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
  /** When it was last updated by its own word, else by the file's time; milliseconds since 1970. */
  readonly updatedMs: number;
}

export interface Discovery {
  readonly projects: readonly HandoverProject[];
  /** What was found but could not be used, each with its path. */
  readonly troubles: readonly string[];
}

/** Bounds for a project that is not what it seems to be. */
const entriesMax = 5_000;
const depthMax = 5;
const skippedFolders: ReadonlySet<string> = new Set(['.git', 'node_modules']);

/** All projects below `root` (absolute), sorted by their place. Throws nothing that the files could cause. */
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

/** A session without the system does with these files what it likes, as with all others. */
export function takesPart({ context }: Pick<SessionDefinition, 'context'>): boolean {
  return context?.includes('handover') ?? true;
}

/**
 * All resume files below the folder, as what links lead to. One of another name, to which a link leads, is work like
 * any other file.
 */
export function resumeFilesIn(files: Files, folder: string): readonly string[] {
  const found = findProjects(files, folder).projects.flatMap(({ file }) => files.realPath(file) ?? []);
  return [...new Set(found)].filter((file) => basename(file) === resumeFileName);
}

export interface ConfiguredFolders {
  readonly folders: readonly string[];
  /** Why the file cannot be used, with its path; null when it can, or is not there. */
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
  return { folders: [], trouble: `${path} is not of the form {"folders": ["path", ...]}` };
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
    if (names.length > room) this.troubles.push(`${folder} holds too much to look at all of it`);
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

  /** Everything below a folder that the configuration names; it must lie below the root. */
  below(folder: string): void {
    const realRoot = quietly(() => this.#files.realPath(this.#root));
    const real = quietly(() => this.#files.realPath(folder));
    if (realRoot === null || real === null) return;
    if (real === realRoot || real.startsWith(`${realRoot}/`)) this.#descend(folder, 0);
    else this.troubles.push(`${folder} lies outside of ${this.#root}`);
  }

  /** Links are not followed: they may lead in a circle. */
  #descend(folder: string, depth: number): void {
    if (depth > depthMax || quietly(() => this.#files.entryKind(folder)) !== 'folder') return;
    for (const name of this.list(folder)) {
      const path = join(folder, name);
      if (name === resumeFileName) this.look(path);
      else if (!skippedFolders.has(name)) this.#descend(path, depth + 1);
    }
  }
}
