/** What is known while one session of a workflow is filled in, and the values that its templates get. */
import { type IsolationMode, plainSettings } from '../../core/definitions.ts';
import type { YamlPath } from '../../store/yaml-text.ts';
import type { World } from '../../system/world.ts';
import type { ConfigTemplate } from '../config-template.ts';
import { settingsIn } from '../setting-schema.ts';
import { resolveVariables, type VariableSpec } from '../variables.ts';
import type { Families, Instance } from './expand.ts';
import type { Wiring } from './graph.ts';
import type { Problems } from './problems.ts';
import type { ProjectShelf } from './project-file.ts';
import type { GroupSpec, SessionSpec } from './schema.ts';
import { noRepository, type Shelf, type Taken } from './shelf.ts';
import type { Scope } from './text.ts';

/** What all sessions of a workflow share. */
export interface SessionContext {
  readonly world: World;
  readonly baseFolder: string;
  readonly home: string | undefined;
  /** Whether folders must exist and all values are known. */
  readonly looksUp: boolean;
  readonly problems: Problems;
  readonly shelf: Shelf;
  readonly group: GroupSpec;
  readonly about: { readonly name: string; readonly slug: string };
  readonly groupConfigTemplate: ConfigTemplate | undefined;
  /** The workflow's own variables and their values. */
  readonly variables: readonly VariableSpec[];
  readonly values: Readonly<Record<string, string>>;
  readonly families: Families;
  /** Absent when the dependencies make no sense; then nothing is said about who may use whose result. */
  readonly wiring: Wiring | undefined;
  /** Sessions of the file whose config was checked already. */
  readonly checkedConfigs: Set<string>;
  readonly projects: ProjectShelf;
  /** Of the sessions that were drafted already; those that come before are. */
  readonly isolations: Map<Instance, IsolationMode | undefined>;
}

/** All that is needed to fill in the texts of one session. */
export interface SessionView {
  readonly instance: Instance;
  readonly spec: SessionSpec;
  readonly path: YamlPath;
  readonly projectPath: string;
  readonly scope: Scope;
  /** Values of the session's own `vars`. */
  readonly vars: Readonly<Record<string, string>>;
}

/** Whether what the project's repository says has an effect. */
export function isUntrusted({ spec }: Pick<SessionView, 'spec'>, { group }: Pick<SessionContext, 'group'>): boolean {
  const { untrusted = false } = { ...settingsIn(plainSettings, group), ...settingsIn(plainSettings, spec) };
  return untrusted;
}

/** The folder in which, and above which, templates of the session are looked for first. */
export function templateFolder(view: SessionView, context: SessionContext): string {
  return isUntrusted(view, context) ? noRepository : view.projectPath;
}

/** The template, or undefined with its problems told. */
export function taken<T>(template: Taken<T>, path: YamlPath, problems: Problems): T | undefined {
  if (template.ok) return template.value;
  if ('problems' in template) problems.add(...template.problems);
  else problems.at(path, template.trouble);
  return undefined;
}

/** The values of a template's variables: the session's own, then the workflow's, then the template's defaults. */
export function valuesFor(
  specs: readonly VariableSpec[],
  noun: string,
  at: YamlPath,
  { spec, vars }: SessionView,
  { world, baseFolder, looksUp, values, variables, problems }: SessionContext,
): Readonly<Record<string, string>> {
  const fromFile = new Set(variables.filter(({ type }) => type === 'file').map(({ name }) => name));
  const eased = specs.map((one): VariableSpec => {
    const own = spec.vars !== undefined && Object.hasOwn(spec.vars, one.name);
    // A value of the workflow that came out of a file is no path any more.
    const isRead = one.type === 'file' && !own && fromFile.has(one.name);
    const isFilled = own ? String(spec.vars?.[one.name]) !== vars[one.name] : Object.hasOwn(values, one.name);
    const isGuess = !looksUp && isFilled;
    // A guess may be blank where the value that is given one day is not.
    return isRead || isGuess ? { ...one, type: 'string', required: one.required && !isGuess } : one;
  });
  const resolved = resolveVariables(eased, { ...values, ...vars }, { world, folder: baseFolder });
  for (const problem of resolved.problems) problems.at(at, `${noun}: ${problem}`);
  // What has no value is told already; its places need not be told as well.
  return { ...Object.fromEntries(specs.map(({ name }) => [name, ''])), ...resolved.values };
}
