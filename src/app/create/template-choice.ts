/** Resolves `--template` (a prompt or a config) and `--config-template` (a config). */

import { extname, resolve } from 'node:path';
import { see } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { GroupDefinition } from '../../core/group.ts';
import { quoted } from '../../core/id.ts';
import { problemsFailure } from '../../store/yaml-text.ts';
import { type ConfigTemplate, loadConfigTemplate } from '../../template/config-template.ts';
import { findTemplate, type TemplatePlace } from '../../template/places.ts';
import { loadPromptTemplate, type PromptTemplate } from '../../template/prompt-template.ts';
import type { AppContext } from '../app-context.ts';
import { templateFolders } from './named-template.ts';
import { templateReference } from './new-group.ts';

/** The value that removes the default template of the group. */
export const noTemplate = 'none';

export interface TemplateOptions {
  readonly template?: string | undefined;
  readonly configTemplate?: string | undefined;
}

export interface ChosenTemplates {
  readonly prompt?: PromptTemplate;
  readonly promptReference?: string;
  readonly config?: ConfigTemplate;
}

const next = see('template', 'list');

/** Loads the named templates. Fails for unknown and ambiguous names, and with the problems of a template. */
export function chooseTemplates(
  context: AppContext,
  places: readonly TemplatePlace[],
  { template, configTemplate }: TemplateOptions,
): Result<ChosenTemplates> {
  const config = configTemplate === undefined ? ok(undefined) : loadConfig(context, places, configTemplate);
  if (!config.ok) return config;
  const named: Result<ChosenTemplates> =
    template === undefined || template === noTemplate ? ok({}) : eitherKind(context, places, template);
  if (!named.ok) return named;
  if (config.value === undefined) return named;
  if (named.value.config !== undefined) {
    const message = `Both --template ${template} and --config-template ${configTemplate} are config templates.`;
    return fail('usage', message, 'Name one of them.');
  }
  return ok({ ...named.value, config: config.value });
}

/** Loads the text for CLAUDE.md. A name with "/" or ".md" is a path, else a prompt template. */
export function chooseClaudeMd(
  context: AppContext,
  places: readonly TemplatePlace[],
  given: string,
): Result<PromptTemplate> {
  const path = given.endsWith('.md') ? resolve(context.cwd, given) : pathOf(context, given);
  const found = path === null ? findTemplate(context.world, places, 'prompt', given) : ok({ path });
  if (!found.ok) return found;
  const loaded = loadPromptTemplate(context.world, found.value.path);
  return loaded.ok ? ok(loaded.value) : problemsFailure('The text for CLAUDE.md', loaded.problems);
}

/** Looks for a prompt and for a config; both is an error. */
function eitherKind(context: AppContext, places: readonly TemplatePlace[], name: string): Result<ChosenTemplates> {
  const path = pathOf(context, name);
  if (path !== null) return byPath(context, path);
  const prompt = findTemplate(context.world, places, 'prompt', name);
  const config = findTemplate(context.world, places, 'config', name);
  if (prompt.ok && config.ok) {
    const both = `a prompt template (${prompt.value.path}) and a config template (${config.value.path})`;
    const message = `${quoted(name)} is ${both}.`;
    return fail('ambiguous', message, 'Give the path of one, or name the config with --config-template.');
  }
  if (config.ok) return configAt(context, config.value.path);
  if (config.failure.reason === 'usage') return config;
  return prompt.ok ? promptAt(context, prompt.value.path, name) : prompt;
}

function pathOf(context: AppContext, reference: string): string | null {
  return reference.includes('/') ? resolve(context.cwd, reference) : null;
}

function byPath(context: AppContext, path: string): Result<ChosenTemplates> {
  const kind = context.world.files.info(path)?.kind;
  if (kind === 'folder') return configAt(context, path);
  if (kind === 'file' && extname(path) === '.md') return promptAt(context, path, path);
  return fail('not-found', `${path} is neither a prompt template (a .md file) nor a config template (a folder).`, next);
}

function promptAt(context: AppContext, path: string, promptReference: string): Result<ChosenTemplates> {
  const prompt = loadPromptTemplate(context.world, path);
  if (prompt.ok) return ok({ prompt: prompt.value, promptReference });
  return problemsFailure('The prompt template', prompt.problems);
}

function configAt(context: AppContext, path: string): Result<ChosenTemplates> {
  const config = loadConfigTemplate(context.world, path);
  if (config.ok) return ok({ config: config.value });
  return problemsFailure('The config template', config.problems);
}

function loadConfig(context: AppContext, places: readonly TemplatePlace[], name: string) {
  const path = pathOf(context, name);
  const found = path === null ? findTemplate(context.world, places, 'config', name) : ok({ path });
  if (!found.ok) return found;
  const chosen = configAt(context, found.value.path);
  return chosen.ok ? ok(chosen.value.config) : chosen;
}

export interface GroupTemplates {
  readonly definition: Pick<GroupDefinition, 'template' | 'configTemplate'>;
  readonly configTemplates: readonly ConfigTemplate[];
}

/** Default templates of a group. The prompt is stored by name, because a project may have its own one of that name. */
export function groupTemplates(context: AppContext, given: TemplateOptions): Result<GroupTemplates> {
  const chosen = chooseTemplates(context, templateFolders(context), given);
  if (!chosen.ok) return chosen;
  const { promptReference, config } = chosen.value;
  return ok({
    definition: {
      ...defined({ template: promptReference }),
      ...(config === undefined ? {} : { configTemplate: templateReference(config) }),
    },
    configTemplates: config === undefined ? [] : [config],
  });
}
