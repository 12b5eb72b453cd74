/** A template of any kind for a list or a page about it: its purpose and its problems. */
import { basename, extname } from 'node:path';
import { isObject } from '../store/json.ts';
import { readYaml, type Validated, wholeFile, yamlBytesMax } from '../store/yaml-text.ts';
import type { World } from '../system/world.ts';
import { type ConfigTemplate, loadConfigTemplate } from './config-template.ts';
import { aliasesOf, type FoundTemplate } from './places.ts';
import { loadPromptTemplate, type PromptTemplate } from './prompt-template.ts';
import { readTextFile } from './text-file.ts';
import type { VariableSpec } from './variables.ts';

export interface WorkflowDescription {
  readonly name: string;
  readonly description: string;
  readonly text: string;
}

export type LoadedTemplate =
  | { readonly kind: 'prompt'; readonly prompt: PromptTemplate }
  | { readonly kind: 'config'; readonly config: ConfigTemplate; readonly aliases: readonly string[] }
  | { readonly kind: 'workflow'; readonly workflow: WorkflowDescription };

/** Loads it; of a workflow only the text, because its sessions depend on where it is used. */
export function loadTemplate(
  world: World,
  { kind, path }: Pick<FoundTemplate, 'kind' | 'path'>,
): Validated<LoadedTemplate> {
  switch (kind) {
    case 'prompt': {
      const prompt = loadPromptTemplate(world, path);
      return prompt.ok ? { ok: true, value: { kind, prompt: prompt.value } } : prompt;
    }
    case 'config': {
      const config = loadConfigTemplate(world, path);
      if (!config.ok) return config;
      return { ok: true, value: { kind, config: config.value, aliases: aliasesOf(world, path) } };
    }
    case 'workflow': {
      const workflow = readWorkflowText(world, path);
      return workflow.ok ? { ok: true, value: { kind, workflow: workflow.value } } : workflow;
    }
  }
}

function readWorkflowText(world: World, path: string): Validated<WorkflowDescription> {
  const read = readTextFile(world, path, yamlBytesMax);
  if (!read.ok) return { ok: false, problems: [wholeFile(path, read.trouble)] };
  const yaml = readYaml({ text: read.text, file: path });
  if (!yaml.ok) return yaml;
  const { value } = yaml.value;
  if (!isObject(value)) return { ok: false, problems: [wholeFile(path, 'is not a workflow: it has no keys')] };
  const said = Object.hasOwn(value, 'description') ? value.description : '';
  const name = basename(path, extname(path));
  return { ok: true, value: { name, description: typeof said === 'string' ? said : '', text: read.text } };
}

export function templateDescription(loaded: LoadedTemplate): string {
  if (loaded.kind === 'prompt') return loaded.prompt.description;
  return loaded.kind === 'config' ? loaded.config.description : loaded.workflow.description;
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
