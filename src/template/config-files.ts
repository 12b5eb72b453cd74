/** The files of a config template: only the known ones, only regular ones, and not too many. */
import { basename, join } from 'node:path';
import type { Checked, Problem } from '../store/yaml-text.ts';
import type { World } from '../system/world.ts';
import type { ConfigFile } from './config-file.ts';
import { readBytesFile, sizeText, systemCode, textOf } from './text-file.ts';

const fileBytesMax = 1024 ** 2;
const wholeBytesMax = 8 * 1024 ** 2;
const filesMax = 500;
/** Files and folders that are looked at. */
const entriesMax = 2_000;
const problemsMax = 100;
const depthMax = 8;
const pathLengthMax = 1_000;

const topFiles: ReadonlySet<string> = new Set(['CLAUDE.md', 'settings.json', 'mcp.json', '.mcp.json', 'config.yaml']);
const topFolders: ReadonlySet<string> = new Set(['commands', 'skills', 'agents', 'rules']);
/** What file managers and git leave in folders. */
const litter = /^(?:\.DS_Store|Thumbs\.db|desktop\.ini|\.gitkeep|\.gitignore|\.gitattributes)$/i;
const readme = /^README(?:\.\w+)?$/i;
const allowed =
  'a config template holds CLAUDE.md, settings.json, mcp.json, commands, skills, agents, rules, config.yaml';

export interface ConfigFiles {
  readonly name: string;
  /** By path. */
  readonly files: readonly ConfigFile[];
}

/** Reads the folder; every problem at once. The folder itself may be a link, nothing in it may. */
export function readConfigFiles(world: World, folder: string): Checked<ConfigFiles> {
  const trouble = folderTrouble(world, folder);
  if (trouble !== null) return { ok: false, problems: [{ file: folder, line: 1, column: 1, message: trouble }] };
  const walk = new Walk(world, folder);
  walk.top();
  const { files, problems } = walk;
  if (problems.length > 0) return { ok: false, problems };
  files.sort((a, b) => (a.path < b.path ? -1 : 1));
  return { ok: true, value: { name: basename(folder), files } };
}

function folderTrouble({ files }: World, folder: string): string | null {
  if (folder.includes('\0')) return 'cannot be a path: it holds a NUL character';
  try {
    const info = files.info(folder);
    if (info === null) return 'does not exist';
    return info.kind === 'folder' ? null : 'is not a folder';
  } catch (error) {
    return `cannot be read (${systemCode(error)})`;
  }
}

class Walk {
  readonly files: ConfigFile[] = [];
  readonly problems: Problem[] = [];
  readonly #world: World;
  readonly #folder: string;
  #bytes = 0;
  #entries = 0;
  #isFull = false;

  constructor(world: World, folder: string) {
    this.#world = world;
    this.#folder = folder;
  }

  report(path: string, message: string): void {
    this.problems.push({ file: join(this.#folder, path), line: 1, column: 1, message });
  }

  top(): void {
    const names = this.#list('');
    for (const name of names) {
      if (litter.test(name) || readme.test(name) || this.#isFull) continue;
      const isFolder = topFolders.has(name);
      if (!isFolder && !topFiles.has(name)) this.#stranger(name);
      else this.#entry(name, 1, isFolder ? 'folder' : 'file');
    }
    if (names.includes('mcp.json') && names.includes('.mcp.json')) {
      this.report('.mcp.json', 'stands beside mcp.json, which means the same; keep one of them');
    }
  }

  #stranger(name: string): void {
    if (this.problems.length >= problemsMax) this.#full(`has more than ${problemsMax} problems`);
    else this.report(name, `does not belong here; ${allowed}`);
  }

  /** `wanted` is what the entry has to be; absent when it may be either. */
  #entry(path: string, depth: number, wanted?: 'file' | 'folder'): void {
    if (this.#isFull) return;
    this.#entries += 1;
    if (this.#entries > entriesMax || this.problems.length >= problemsMax) {
      this.#full(
        `has more than ${this.problems.length >= problemsMax ? `${problemsMax} problems` : `${entriesMax} entries`}`,
      );
      return;
    }
    const kind = this.#kind(path);
    if (kind === null) return;
    if (kind === 'link') this.report(path, 'is a symbolic link; put a copy of what it leads to in its place');
    else if (kind === 'other') this.report(path, 'is neither a file nor a folder');
    else if (wanted !== undefined && kind !== wanted) this.report(path, `is a ${kind}, it has to be a ${wanted}`);
    else if (kind === 'file') this.#file(path);
    else if (depth >= depthMax) this.report(path, `lies more than ${depthMax} folders deep`);
    else for (const name of this.#list(path)) if (!litter.test(name)) this.#entry(`${path}/${name}`, depth + 1);
  }

  #file(path: string): void {
    const read = readBytesFile(this.#world, join(this.#folder, path), fileBytesMax);
    const fault = pathFault(path) ?? (read.ok ? null : read.trouble);
    if (fault !== null || !read.ok) {
      this.report(path, fault ?? '');
      return;
    }
    this.#bytes += read.bytes.length;
    if (this.#bytes > wholeBytesMax) this.#full(`all files together are larger than ${sizeText(wholeBytesMax)}`);
    else if (this.files.length >= filesMax) this.#full(`has more than ${filesMax} files`);
    else {
      const text = textOf(read.bytes);
      const isText = text !== null && !text.includes('\0');
      this.files.push({ path: path === '.mcp.json' ? 'mcp.json' : path, bytes: read.bytes, isText });
    }
  }

  /** Nothing more is read. */
  #full(message: string): void {
    this.#isFull = true;
    this.report('', message);
  }

  #kind(path: string): ReturnType<World['files']['entryKind']> {
    try {
      const kind = this.#world.files.entryKind(join(this.#folder, path));
      if (kind === null) this.report(path, 'cannot be read: it vanished, or its name is not UTF-8');
      return kind;
    } catch (error) {
      this.report(path, `cannot be read (${systemCode(error)})`);
      return null;
    }
  }

  #list(path: string): string[] {
    try {
      return this.#world.files.list(join(this.#folder, path));
    } catch (error) {
      this.report(path, `cannot be read (${systemCode(error)})`);
      return [];
    }
  }
}

/** Names that would be something else on another system, or that hide what they are. */
function pathFault(path: string): string | null {
  if (path.length > pathLengthMax) return `has a path of more than ${pathLengthMax} characters`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is what this is for.
  return /[\\\u0000-\u001f\u007f]/.test(path) ? 'has a name with a backslash or a control character' : null;
}
