/** A template of any kind for a list or a page about it. */
import { isObject } from '../store/json.ts';
import { readYaml, type Validated, wholeFile, yamlBytesMax } from '../store/yaml-text.ts';
import type { World } from '../system/world.ts';
import type { ConfigFile } from './config-layers.ts';
import { loadConfigTemplate } from './config-template.ts';
import { aliasesOf, type FoundTemplate } from './places.ts';
import { loadPromptTemplate } from './prompt-template.ts';
import { decodeText, readTextFile } from './text-file.ts';
import type { VariableSpec } from './variables.ts';

export interface TemplatePage {
  readonly description: string;
  readonly variables: readonly VariableSpec[];
  readonly aliases: readonly string[];
  /** The text of a prompt or workflow, or the files of a config. */
  readonly content: string | readonly ShownFile[];
}

export interface ShownFile {
  readonly path: string;
  readonly bytes: number;
  /** Null for a file that is not text. */
  readonly text: string | null;
}

/** Of a workflow only the text, because its sessions depend on where it is used. */
export function loadPage(world: World, { kind, path }: Pick<FoundTemplate, 'kind' | 'path'>): Validated<TemplatePage> {
  if (kind === 'config') {
    const config = loadConfigTemplate(world, path);
    if (!config.ok) return config;
    const { description, variables, files } = config.value;
    const content = shownFiles(files);
    return { ok: true, value: { description, variables, aliases: aliasesOf(world, path), content } };
  }
  const page = (text: string, description: string, variables: readonly VariableSpec[]) =>
    ({ ok: true, value: { description, variables, aliases: [], content: text } }) as const;
  if (kind === 'prompt') {
    const prompt = loadPromptTemplate(world, path);
    return prompt.ok ? page(prompt.value.body.text, prompt.value.description, prompt.value.variables) : prompt;
  }
  const read = readTextFile(world, path, yamlBytesMax);
  if (!read.ok) return { ok: false, problems: [wholeFile(path, read.trouble)] };
  const yaml = readYaml({ text: read.text, file: path });
  if (!yaml.ok) return yaml;
  const { value } = yaml.value;
  if (!isObject(value)) return { ok: false, problems: [wholeFile(path, 'is not a workflow: it has no keys')] };
  return page(read.text, typeof value.description === 'string' ? value.description : '', []);
}

export function shownFiles(files: readonly ConfigFile[]): ShownFile[] {
  return files.map(({ path, bytes, isText }) => {
    return { path, bytes: bytes.length, text: isText ? decodeText(bytes) : null };
  });
}

/** One variable as a line: `focus (enum: a, b; default "a"): its purpose`. */
export function describeVariable({
  name,
  description,
  required,
  type,
  values,
  default: fallback,
}: VariableSpec): string {
  const kind = values === undefined ? type : `${type}: ${values.join(', ')}`;
  const need = required ? 'required' : fallback === undefined ? 'optional' : `default ${JSON.stringify(fallback)}`;
  return `${name} (${kind}; ${need})${description === undefined ? '' : `: ${description}`}`;
}
