/** The templates a workflow names: each is looked for once per project and read once. */
import type { Failure, Result } from '../core/failure.ts';
import type { Checked, Problem } from '../store/yaml-text.ts';
import type { World } from '../world/world.ts';
import { type ConfigTemplate, loadConfigTemplate } from './config-template.ts';
import { resolvePath } from './matrix.ts';
import { type FoundTemplate, findTemplate, type TemplateKind, type TemplatePlace } from './places.ts';
import { loadPromptTemplate, type PromptTemplate } from './prompt-template.ts';

export interface ShelfInput {
  readonly world: World;
  readonly baseFolder: string;
  readonly home: string | undefined;
  readonly places: (projects: readonly string[]) => readonly TemplatePlace[];
}

/** A template, or what is wrong: a sentence about the name, or problems in the template's own files. */
export type Taken<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly trouble: string }
  | { readonly ok: false; readonly problems: readonly Problem[] };

export class Shelf {
  readonly #input: ShelfInput;
  readonly #places = new Map<string, readonly TemplatePlace[]>();
  readonly #found = new Map<string, Result<FoundTemplate>>();
  readonly #prompts = new Map<string, Checked<PromptTemplate>>();
  readonly #configs = new Map<string, Checked<ConfigTemplate>>();

  constructor(input: ShelfInput) {
    this.#input = input;
  }

  /** `project` is the folder whose own templates come first; null for those of the group. */
  prompt(name: string, project: string | null): Taken<PromptTemplate> {
    const found = this.#find('prompt', name, project);
    if (found.ok) return this.#readPrompt(found.value.path);
    const other = this.#find('config', name, project);
    if (!other.ok) return { ok: false, trouble: sentence(found.failure) };
    return { ok: false, trouble: `"${name}" is a config template; write "configTemplate: ${name}"` };
  }

  config(name: string, project: string | null): Taken<ConfigTemplate> {
    const found = this.#find('config', name, project);
    if (!found.ok) return { ok: false, trouble: sentence(found.failure) };
    const { path } = found.value;
    const loaded = this.#configs.get(path) ?? loadConfigTemplate(this.#input.world, path);
    this.#configs.set(path, loaded);
    return loaded;
  }

  /** The text for CLAUDE.md: a path when it has a "/" or ends in ".md", else the name of a prompt template. */
  claudeMd(given: string, project: string | null): Taken<PromptTemplate> {
    if (!given.includes('/') && !given.endsWith('.md')) return this.prompt(given, project);
    const path = resolvePath(this.#input, given);
    return path.ok ? this.#readPrompt(path.path) : { ok: false, trouble: `the path ${path.trouble}` };
  }

  #readPrompt(path: string): Checked<PromptTemplate> {
    const loaded = this.#prompts.get(path) ?? loadPromptTemplate(this.#input.world, path);
    this.#prompts.set(path, loaded);
    return loaded;
  }

  /** A team's templates may also lie beside its workflow. */
  #find(kind: TemplateKind, name: string, project: string | null): Result<FoundTemplate> {
    const { world, baseFolder, places } = this.#input;
    const from = project ?? baseFolder;
    const key = JSON.stringify([kind, name, from]);
    const known = this.#found.get(key);
    if (known !== undefined) return known;
    const folders = this.#places.get(from) ?? places([...new Set([from, baseFolder])]);
    this.#places.set(from, folders);
    const found = findTemplate(world, folders, kind, name);
    this.#found.set(key, found);
    return found;
  }
}

/** For the middle of a line: no capital, no full stop. */
function sentence({ message, next }: Failure): string {
  const whole = next === '' ? message : `${message} ${next}`;
  return whole.replace(/^T(?=here )/, 't').replace(/\.$/, '');
}
