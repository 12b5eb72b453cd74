/** The templates named in a workflow: each is looked up once per project and read once. */
import { describeFailure, type Failure, type Result } from '../../core/failure.ts';
import { quoted } from '../../core/id.ts';
import type { Problem, Validated } from '../../store/yaml-text.ts';
import { tryPath } from '../../system/system-error.ts';
import type { World } from '../../system/world.ts';
import { type ConfigTemplate, loadConfigTemplate } from '../config-template.ts';
import { type FoundTemplate, findTemplate, type TemplateKind, type TemplatePlace } from '../places.ts';
import { loadPromptTemplate, type PromptTemplate } from '../prompt-template.ts';
import { resolvePath } from './matrix.ts';

export interface TemplateCacheInput {
  readonly world: World;
  readonly baseFolder: string;
  readonly home: string | undefined;
  readonly places: (projects: readonly string[]) => readonly TemplatePlace[];
}

/** A template, or the problem: a sentence about the name, or problems in the template's own files. */
export type CachedTemplate<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly trouble: string }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** In place of a project: templates in repositories are not used, not even next to the workflow. */
export const noRepository = '';

export class TemplateCache {
  readonly #input: TemplateCacheInput;
  readonly #once = memoize();

  constructor(input: TemplateCacheInput) {
    this.#input = input;
  }

  /** The stored form of `name`: a path must mean the same from any folder. */
  reference(name: string): string {
    const path = isPath(name) ? resolvePath(this.#input, name) : null;
    return path?.ok ? path.value : name;
  }

  /** By name or path. `project`: the folder whose own templates come first; null for those of the group. */
  prompt(name: string, project: string | null): CachedTemplate<PromptTemplate> {
    if (isPath(name)) return this.#at(name, (path) => this.#readPrompt(path));
    const found = this.#find('prompt', name, project);
    if (found.ok) return this.#readPrompt(found.value.path);
    const other = this.#find('config', name, project);
    if (!other.ok) return { ok: false, trouble: sentence(found.failure) };
    return { ok: false, trouble: `"${name}" is a config template; write "configTemplate: ${name}"` };
  }

  config(name: string, project: string | null): CachedTemplate<ConfigTemplate> {
    const read = (path: string) => this.#once(`config ${path}`, () => loadConfigTemplate(this.#input.world, path));
    if (isPath(name)) return this.#at(name, read);
    const found = this.#find('config', name, project);
    return found.ok ? read(found.value.path) : { ok: false, trouble: sentence(found.failure) };
  }

  /** The text for CLAUDE.md: a path if it has a "/" or ends in ".md", otherwise the name of a prompt template. */
  claudeMd(given: string, project: string | null): CachedTemplate<PromptTemplate> {
    if (!given.endsWith('.md')) return this.prompt(given, project);
    return this.#at(given, (path) => this.#readPrompt(path));
  }

  #at<T>(given: string, read: (path: string) => Validated<T>): CachedTemplate<T> {
    const path = resolvePath(this.#input, given);
    if (!path.ok) return { ok: false, trouble: `the path ${quoted(given)} ${path.trouble}` };
    const { files } = this.#input.world;
    const info = tryPath(() => files.info(path.value));
    if (info.ok && info.value !== null) return read(path.value);
    return { ok: false, trouble: `${path.value} ${info.ok ? 'does not exist' : info.trouble}` };
  }

  #readPrompt(path: string): Validated<PromptTemplate> {
    return this.#once(`prompt ${path}`, () => loadPromptTemplate(this.#input.world, path));
  }

  /** A team's templates may also be next to its workflow. */
  #find(kind: TemplateKind, name: string, project: string | null): Result<FoundTemplate> {
    const { world, baseFolder, places } = this.#input;
    const from = project ?? baseFolder;
    const near = from === noRepository ? [] : [...new Set([from, baseFolder])];
    const folders = this.#once(`places ${from}`, () => places(near));
    return this.#once(JSON.stringify([kind, name, from]), () => findTemplate(world, folders, kind, name));
  }
}

/** Caches the result for each key. */
export function memoize() {
  const known = new Map<string, unknown>();
  return <T>(key: string, make: () => T): T => {
    if (!known.has(key)) known.set(key, make());
    return known.get(key) as T;
  };
}

/** As in command options: a text with a "/" is a path, relative to the workflow's folder. */
function isPath(reference: string): boolean {
  return reference.includes('/');
}

/** For the middle of a line: no capital, no full stop. */
function sentence(failure: Failure): string {
  return describeFailure(failure)
    .replace(/^T(?=here )/, 't')
    .replace(/\.$/, '');
}
