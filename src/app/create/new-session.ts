/** A session that is added to a group by hand: everything about it is looked at before anybody is asked. */

import { resolve } from 'node:path';
import { see } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import type {
  ConfigTemplateRef,
  ContextName,
  GroupId,
  SessionConfig,
  SessionDefinition,
  SessionId,
} from '../../core/group.ts';
import { quoted } from '../../core/id.ts';
import type { GroupState } from '../../core/state.ts';
import { nextGroupStatus } from '../../core/status.ts';
import { additionProblem, nextSessionId } from '../../runner/edit-answers.ts';
import { problemsFailure } from '../../store/yaml-text.ts';
import { type ConfigTemplate, freezeConfigTemplate } from '../../template/config-template.ts';
import type { LaterPlace } from '../../template/render.ts';
import type { GivenWork, WorkSettings } from '../../template/workflow/work-settings.ts';
import { frozenTemplates, generatedConfig } from '../../worker/prepare/generated-config.ts';
import { briefPath, lookAt, tryPath } from '../path-argument.ts';
import type { Place } from '../place.ts';
import { findSessionOf, type LoadedGroup, resolveGroup } from '../resolve.ts';
import { submit } from '../submit.ts';
import { referencesOf } from './session-references.ts';
import { readTask, type TaskOptions } from './session-task.ts';
import { workOf } from './session-work.ts';

export interface NewSessionOptions extends Omit<TaskOptions, 'claudeMdTemplate'> {
  /** A folder; a relative path is meant from the place's own. */
  readonly project: string;
  readonly description?: string | undefined;
  /** Ids, numbers or names of sessions of the group. */
  readonly dependsOn?: readonly string[] | undefined;
  readonly model?: string | undefined;
  readonly maxBudgetUsd?: number | undefined;
  readonly permissionMode?: SessionDefinition['permissionMode'] | undefined;
  readonly allowedTools?: readonly string[] | undefined;
  readonly context?: readonly ContextName[] | undefined;
  readonly retries?: number | undefined;
  readonly timeoutMs?: number | undefined;
  readonly stallTimeoutMs?: number | undefined;
  readonly untrusted?: boolean | undefined;
  readonly memoryBytes?: number | undefined;
  readonly maxProcesses?: number | undefined;
  /** Labels, and the name, of the machine on which it works. */
  readonly requires?: readonly string[] | undefined;
  readonly host?: string | undefined;
  /** Where it works, and how its work is checked. */
  readonly work?: GivenWork | undefined;
  /** What is generated into its config dir. */
  readonly config?: Omit<SessionConfig, 'claudeMdText'> | undefined;
}

export interface AddedSession {
  readonly sessionId: SessionId;
  /** Sentences about commands that come from files of the project. */
  readonly notes: readonly string[];
}

/** Everything but what depends on the group's present sessions. */
export interface Draft {
  readonly definition: Omit<SessionDefinition, 'id' | 'dependsOn'>;
  /** Places of the prompt that name other sessions; null: the prompt is kept, with its references. */
  readonly later: readonly LaterPlace[] | null;
  readonly configTemplate?: ConfigTemplate;
  /** What the user should know once the session is added. */
  readonly notes: readonly string[];
}

/** Adds it, also to a group that is running. Fails with `usage` and everything that is wrong with it. */
export async function addSession(
  place: Place,
  group: LoadedGroup,
  given: NewSessionOptions,
): Promise<Result<AddedSession>> {
  const draft = await draftOf(place, group, given);
  if (!draft.ok) return draft;
  // A mistake is told before anybody is asked; what may have changed meanwhile is checked again then.
  const dependencies = withinGroup(place, group.groupId, given.dependsOn ?? []);
  if (!dependencies.ok) return dependencies;
  const possible = newSession(place, group.state, draft.value, dependencies.value);
  if (!possible.ok) return possible;
  const { configTemplate, notes } = draft.value;
  const usable = checkConfig(place, group, possible.value, configTemplate);
  if (!usable.ok) return usable;
  // Before the session that names it; a copy that nobody names does no harm.
  if (configTemplate !== undefined) freezeConfigTemplate(place.world, configTemplate, group.paths.templates);
  const { id: _id, ...session } = possible.value;
  const added = await submit(place, group, { kind: 'add-session', session });
  if (!added.ok) return added;
  const { sessionId } = added.value;
  return sessionId === undefined ? fail('internal', 'The new session was not named.', '') : ok({ sessionId, notes });
}

/** A configuration that claude would ignore, or that nothing beats, is told now and not when it is to be used. */
export function checkConfig(
  place: Place,
  { state, paths }: LoadedGroup,
  session: SessionDefinition,
  own: ConfigTemplate | undefined,
): Result<unknown> {
  const frozen = frozenTemplates(place.world, paths);
  const load = (digest: string) => (own?.digest === digest ? ({ ok: true, value: own } as const) : frozen.load(digest));
  return generatedConfig(place.world, { ...frozen, load }, state.group, session);
}

/** Of a session that is edited (`kept`) what is not given stays as it is. */
export async function draftOf(
  place: Place,
  group: LoadedGroup,
  given: Omit<NewSessionOptions, 'project'> & { readonly project?: string | undefined },
  kept?: SessionDefinition,
): Promise<Result<Draft>> {
  const projectPath =
    given.project === undefined && kept !== undefined ? ok(kept.projectPath) : projectOf(place, given.project ?? '');
  if (!projectPath.ok) return projectPath;
  const isWorkKept = kept !== undefined && given.project === undefined && !isAnyGiven(given.work ?? {});
  const work = isWorkKept ? ok({ settings: {}, notes: [] }) : workOf(place, projectPath.value, given.work ?? {}, kept);
  if (!work.ok) return work;
  const { claudeMdTemplate } = given.config ?? {};
  const wanted = { ...kept?.config, ...given.config };
  const groupConfig = wanted.inheritFromGroup === false ? ok(undefined) : groupConfigOf(place, group);
  if (!groupConfig.ok) return groupConfig;
  const ownConfig = kept === undefined ? ok(undefined) : frozenConfig(place, group, kept.configTemplate);
  if (!ownConfig.ok) return ownConfig;
  const surroundings = {
    group: group.state.group,
    groupConfig: groupConfig.value,
    projectPath: projectPath.value,
    ...(kept === undefined ? {} : { kept: { definition: kept, configTemplate: ownConfig.value } }),
  };
  const task = await readTask(place, surroundings, { name: kept?.name, ...given, claudeMdTemplate });
  if (!task.ok) return task;
  const { claudeMdText } = task.value;
  const config: SessionConfig = { ...wanted, ...defined({ claudeMdText }) };
  if (config.generateSettings === false && config.settingsOverride !== undefined) {
    return fail('usage', '--settings-override has no effect with --no-generate-settings.', 'Leave one of them out.');
  }
  const { name, model, maxBudgetUsd, permissionMode, allowedTools, context: systems } = given;
  const { retries, timeoutMs, stallTimeoutMs, untrusted, memoryBytes, maxProcesses, requires, host } = given;
  const definition = {
    ...(kept === undefined ? {} : omit(kept, [...saidAnew, ...(isWorkKept ? [] : workKeys)])),
    ...defined({ name }),
    description: given.description ?? kept?.description ?? '',
    projectPath: projectPath.value,
    ...task.value.definition,
    ...(Object.keys(config).length === 0 ? {} : { config }),
    ...defined({
      model,
      permissionMode,
      allowedTools,
      maxBudgetUsd,
      context: systems,
      retries,
      timeoutMs,
      stallTimeoutMs,
    }),
    ...(untrusted === true ? { untrusted: true as const } : {}),
    ...defined({ memoryBytes, maxProcesses }),
    ...(requires === undefined ? {} : { requires: [...new Set(requires)] }),
    ...defined({ host }),
    ...work.value.settings,
    createdAt: kept?.createdAt ?? new Date(place.world.clock.now()).toISOString(),
  };
  const { later, configTemplate } = task.value;
  const { notes } = work.value;
  return ok({ definition, later, notes, ...defined({ configTemplate }) });
}

function isAnyGiven(given: GivenWork): boolean {
  return Object.values(given).some((value) => value !== undefined);
}

/** What every draft says anew, and what only the group can say. */
const saidAnew = ['id', 'dependsOn', 'promptReferences', 'template', 'variables', 'configTemplate', 'config'] as const;

/** What `workOf` says. */
const workKeys = [
  'repository',
  'isolate',
  'accept',
  'acceptRetries',
  'acceptTimeoutMs',
  'setup',
  'setupTimeoutMs',
  'expectChanges',
  'noCommit',
] as const satisfies readonly (keyof WorkSettings)[];

function omit(session: SessionDefinition, names: readonly (keyof SessionDefinition)[]): Partial<SessionDefinition> {
  const left = Object.entries(session).filter(([name]) => !names.includes(name as keyof SessionDefinition));
  return Object.fromEntries(left);
}

function groupConfigOf(place: Place, group: LoadedGroup): Result<ConfigTemplate | undefined> {
  return frozenConfig(place, group, group.state.group.configTemplate);
}

function frozenConfig(
  place: Place,
  { paths }: LoadedGroup,
  template: ConfigTemplateRef | undefined,
): Result<ConfigTemplate | undefined> {
  if (template === undefined) return ok(undefined);
  const loaded = frozenTemplates(place.world, paths).load(template.digest);
  if (loaded.ok) return ok(loaded.value);
  return problemsFailure(`The config template ${template.name}`, loaded.problems, 'Create the group again.');
}

/** The project's absolute path without symbolic links: claude keeps a conversation under exactly that path. */
function projectOf(place: Place, project: string): Result<string> {
  const next = 'Give the path of an existing folder to --project.';
  if (project === '') return fail('usage', 'The path of the project is empty.', next);
  const path = resolve(place.cwd, project);
  const { files } = place.world;
  const found = lookAt(files, path);
  if (!found.ok) return fail('usage', `The project ${briefPath(path)} ${found.trouble}.`, next);
  if (found.value !== 'folder') return fail('usage', `The project ${briefPath(path)} is not a folder.`, next);
  // Looking through the folder takes the right to enter it, which claude needs as well.
  const entered = lookAt(files, `${path}/.`);
  if (!entered.ok) return fail('usage', `The project ${briefPath(path)} ${entered.trouble}.`, next);
  const real = tryPath(() => files.realPath(path));
  if (!real.ok) return fail('usage', `The project ${briefPath(path)} ${real.trouble}.`, next);
  return real.value === null ? fail('usage', `The project ${briefPath(path)} is gone.`, next) : ok(real.value);
}

/** The ids of what `--depends-on` names; `own` is how the session itself is called. */
export function dependenciesOf(
  state: GroupState,
  dependencies: readonly string[],
  own: string | undefined,
): Result<SessionId[]> {
  const dependsOn = new Set<SessionId>();
  for (const reference of dependencies) {
    const found = findSessionOf(state, reference);
    if (!found.ok) return reference === own ? needsItself(reference) : found;
    dependsOn.add(found.value);
  }
  return ok([...dependsOn]);
}

/** The session as it would be added to the group as it is now. */
function newSession(
  place: Place,
  state: GroupState,
  draft: Draft,
  dependencies: readonly string[],
): Result<SessionDefinition> {
  const { id: groupId } = state.group;
  if (nextGroupStatus(state.status, 'session_added') === null) {
    return fail(
      'illegal-transition',
      `Group ${groupId} is ${state.status}.`,
      'Create a new group for further sessions.',
    );
  }
  const dependsOn = dependenciesOf(state, dependencies, draft.definition.name);
  if (!dependsOn.ok) return dependsOn;
  const id = nextSessionId(place.world, state);
  const references = referencesOf(state, draft.later ?? [], dependsOn.value);
  if (!references.ok) return references;
  const session: SessionDefinition = {
    id,
    ...draft.definition,
    dependsOn: dependsOn.value,
    ...(references.value.length === 0 ? {} : { promptReferences: references.value }),
  };
  return additionProblem(state, session) ?? ok(session);
}

/**
 * What names each dependency within the group: `<group>/<session>` is fine too, but only with the group that the
 * session is added to. Looked up once, because a slug may mean a newer group a moment later.
 */
export function withinGroup(place: Place, groupId: GroupId, references: readonly string[]): Result<readonly string[]> {
  const names: string[] = [];
  for (const reference of references) {
    const slash = reference.indexOf('/');
    const named = slash < 0 ? ok({ groupId }) : resolveGroup(place, reference.slice(0, slash));
    if (!named.ok) return named;
    if (named.value.groupId !== groupId) return needsOtherGroup(groupId, reference, named.value.groupId);
    names.push(reference.slice(slash + 1));
  }
  return ok(names);
}

function needsOtherGroup(groupId: GroupId, reference: string, other: GroupId): Result<never> {
  const message = `${quoted(reference)} names the group ${other}, and a session can only depend on its own group’s.`;
  return fail('usage', message, see('session', 'list', groupId));
}

function needsItself(name: string): Result<never> {
  const message = `The session would wait for itself: ${name} -> ${name}.`;
  return fail('cycle', message, `Leave out --depends-on ${name}.`);
}
