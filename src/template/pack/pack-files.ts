/**
 * The files of a template pack, read from a folder that somebody else filled: only templates, only plain files, only as
 * much as a person would write. Everything that is wrong is told at once, by the name of the file.
 */
import { join } from 'node:path';
import type { Checked, Problem } from '../../store/yaml-text.ts';
import type { World } from '../../system/world.ts';
import { isTemplateName } from '../places.ts';

export const packFileBytesMax = 1024 * 1024;
export const packBytesMax = 8 * 1024 * 1024;
export const packFilesMax = 500;
const depthMax = 8;

export interface PackFile {
  /** Such as `configs/strict/CLAUDE.md`. */
  readonly path: string;
  readonly bytes: Uint8Array;
}

export interface GatheredPack {
  /** Sorted by path. */
  readonly files: readonly PackFile[];
  /** Files beside the templates that were not taken. */
  readonly leftOut: readonly string[];
  /** What stands before a path of `files` for people. */
  readonly shownRoot: string;
}

/** Where a pack may lie in a repository; the place that is meant for nothing else comes first. */
const packRoots = ['.claude-code-agent/templates', 'templates', '.'];
const kinds = ['prompts', 'configs', 'workflows'] as const;
type Kind = (typeof kinds)[number];

const nameRule = 'is no template name: 1 to 64 letters, digits, "-", "_" and ".", the first a letter or digit';

/** Names that systems without upper and lower case, or with another spelling of accents, take for the same. */
export function foldName(name: string): string {
  return name.normalize('NFC').toLowerCase();
}

/** What of a folder is the pack, `.` for the folder itself; null when there are no templates. */
export function findPackRoot(world: World, folder: string): string | null {
  return packRoots.find((candidate) => holdsTemplates(world, folder, candidate)) ?? null;
}

/** What cannot be part of a pack is a problem; throws the system's error. `shown` is the folder for people. */
export function gatherPack(world: World, folder: string, root: string, shown: string): Checked<GatheredPack> {
  const gathering = new Gathering(world, join(folder, root), join(shown, root, '/').replace(/^\.\//, ''));
  for (const kind of kinds) gathering.take(kind);
  return gathering.result();
}

function holdsTemplates(world: World, folder: string, root: string): boolean {
  let path = folder;
  for (const part of root.split('/')) {
    path = join(path, part);
    if (part !== '.' && world.files.entryKind(path) !== 'folder') return false;
  }
  return kinds.some((kind) => {
    const found = world.files.entryKind(join(path, kind));
    if (found === null || found === 'file') return false;
    // A link or a device is found, too, so that it is refused by name.
    return found !== 'folder' || world.files.list(join(path, kind)).some((name) => isTemplate(kind, name));
  });
}

function isTemplate(kind: Kind, name: string): boolean {
  return !name.startsWith('.') && (kind === 'configs' || stemOf(kind, name) !== null);
}

/** The template's name in a file name; null for files that are no templates. */
function stemOf(kind: Kind, name: string): string | null {
  const ending = kind === 'prompts' ? /\.md$/ : /\.ya?ml$/;
  return ending.test(name) ? name.replace(ending, '') : null;
}

class Gathering {
  readonly #world: World;
  readonly #root: string;
  /** Where the root lies in what the user gave, for sentences. */
  readonly #shownRoot: string;
  readonly #files: PackFile[] = [];
  readonly #leftOut: string[] = [];
  readonly #problems: Problem[] = [];
  /** By folded name: the first template or path that took it. */
  readonly #taken = new Map<string, string>();
  #bytes = 0;
  #full = false;

  constructor(world: World, root: string, shownRoot: string) {
    this.#world = world;
    this.#root = root;
    this.#shownRoot = shownRoot;
  }

  result(): Checked<GatheredPack> {
    if (this.#problems.length > 0) return { ok: false, problems: this.#problems };
    const files = this.#files.sort((a, b) => (a.path < b.path ? -1 : 1));
    return { ok: true, value: { files, leftOut: this.#leftOut, shownRoot: this.#shownRoot } };
  }

  take(kind: Kind): void {
    const found = this.#world.files.entryKind(join(this.#root, kind));
    if (found === null || found === 'file') return;
    if (found !== 'folder') {
      this.#refuse(kind, whatIs(found));
      return;
    }
    for (const name of this.#names(kind)) {
      // What people's systems and editors leave behind, and git's own files.
      if (!name.startsWith('.')) this.#takeTemplate(kind, name);
    }
  }

  #takeTemplate(kind: Kind, name: string): void {
    const path = `${kind}/${name}`;
    const found = this.#look(path);
    if (found === null) return;
    if (kind === 'configs' && found === 'folder') {
      if (!this.#isNamed(kind, path, name)) return;
      const before = this.#files.length + this.#problems.length;
      this.#takeFolder(path, 2);
      if (this.#files.length + this.#problems.length === before && !this.#full) this.#refuse(path, 'is empty');
      return;
    }
    const stem = kind === 'configs' ? null : stemOf(kind, name);
    if (found === 'folder') this.#refuse(path, 'is a folder: templates of this kind are single files');
    else if (stem === null) this.#leftOut.push(this.#shownRoot + path);
    else if (this.#isNamed(kind, path, stem)) this.#takeFile(path);
  }

  #takeFolder(folder: string, depth: number): void {
    if (depth > depthMax) {
      this.#refuse(folder, `lies more than ${depthMax} folders deep`);
      return;
    }
    for (const name of this.#names(folder)) {
      if (name.toLowerCase() === '.git' || name === '.DS_Store') continue;
      const path = `${folder}/${name}`;
      const found = this.#look(path);
      if (found === null || !this.#isAlone(path, path)) continue;
      if (found === 'folder') this.#takeFolder(path, depth + 1);
      else this.#takeFile(path);
    }
  }

  #takeFile(path: string): void {
    if (this.#full) return;
    const full = join(this.#root, path);
    const size = this.#world.files.info(full)?.size ?? 0;
    if (size > packFileBytesMax) {
      this.#refuse(path, `has ${size} bytes, more than ${packFileBytesMax / 1024 ** 2} MiB`);
      return;
    }
    if (this.#files.length === packFilesMax || this.#bytes + size > packBytesMax) {
      const what = this.#files.length === packFilesMax ? `${packFilesMax} files` : `${packBytesMax / 1024 ** 2} MiB`;
      this.#refuse(path, `is beyond the ${what} that a pack may have`);
      this.#full = true;
      return;
    }
    const bytes = this.#world.files.readBytes(full, 0, packFileBytesMax);
    this.#bytes += bytes.length;
    this.#files.push({ path, bytes });
  }

  /** Null when the entry was refused. */
  #look(path: string): 'file' | 'folder' | null {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is what this is for.
    if (/[\u0000-\u001f\u007f\\\ufffd]/.test(path)) {
      this.#refuse(JSON.stringify(path), 'has a name with a character that not every system can have');
      return null;
    }
    const found = this.#world.files.entryKind(join(this.#root, path));
    if (found === 'file' || found === 'folder') return found;
    this.#refuse(path, found === null ? 'cannot be read' : whatIs(found));
    return null;
  }

  #isNamed(kind: Kind, path: string, name: string): boolean {
    if (!isTemplateName(name)) {
      this.#refuse(path, `${JSON.stringify(name)} ${nameRule}`);
      return false;
    }
    return this.#isAlone(path, `${kind}/${name}`);
  }

  #isAlone(path: string, key: string): boolean {
    const folded = foldName(key);
    const other = this.#taken.get(folded);
    this.#taken.set(folded, other ?? path);
    if (other === undefined) return true;
    this.#refuse(path, `has the name of ${other}, as some systems and people see it`);
    return false;
  }

  #names(folder: string): string[] {
    return this.#full ? [] : this.#world.files.list(join(this.#root, folder));
  }

  #refuse(path: string, why: string): void {
    this.#problems.push({ file: this.#shownRoot + path, line: 1, column: 1, message: why });
  }
}

function whatIs(kind: 'link' | 'other'): string {
  return kind === 'link' ? 'is a symbolic link' : 'is no plain file: a pipe, a socket or a device';
}
