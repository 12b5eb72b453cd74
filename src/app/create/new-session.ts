/** `session add` and `session edit`. Everything is checked before anything is logged. */

import { resolve } from 'node:path';
import { see } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import { type ChangesOf, plainSettings, type SessionSettings, workSettings } from '../../core/definitions.ts';
import { changed, changesOf, editProblem, type SessionChanges } from '../../core/edit.ts';
import { describeFailure, fail, ok, type Result } from '../../core/failure.ts';
import type { ConfigTemplateRef, SessionConfig, SessionDefinition, SessionId } from '../../core/group.ts';
import { quoted } from '../../core/id.ts';
import { ownDefinition } from '../../core/session-state.ts';
import { optionOf, pickSettings, storedSettings, withShared } from '../../core/setting-values.ts';
import { isRehearsal } from '../../core/state.ts';
import { findRepository } from '../../git/git.ts';
import { nextSessionId } from '../../runner/request-answers.ts';
import { loadGroup } from '../../store/group-store.ts';
import { problemsFailure } from '../../store/yaml-text.ts';
import type { World } from '../../system/world.ts';
import { type ConfigTemplate, freezeConfigTemplate } from '../../template/config-template.ts';
import type { LaterPlace } from '../../template/render.ts';
import { realFolder } from '../../template/workflow/matrix.ts';
import { commandsOf, type ProjectCommand, projectFileFor } from '../../template/workflow/project-file.ts';
import {
  type GivenWork,
  type ResolvedWork,
  resolveWork,
  workFaults,
  workNames,
} from '../../template/workflow/work-settings.ts';
import { frozenTemplates, generatedConfig } from '../../worker/prepare/generated-config.ts';
import type { AppContext } from '../app-context.ts';
import { submit } from '../group-commands.ts';
import { briefPath } from '../path-argument.ts';
import { findSessionOf, type LoadedGroup, type LoadedSession, resolveGroup } from '../resolve.ts';
import { startCheck } from '../run/run-check.ts';
import { unfrozen } from './new-group.ts';
import { readSessionTask, referencesOf, type TaskOptions } from './session-task.ts';

/** Given settings. Null removes a setting; false means no command, even if the project file sets one. */
type GivenSettings = Omit<ChangesOf<SessionSettings>, 'outputSchema' | keyof GivenWork> & GivenWork;

export interface NewSessionOptions extends GivenSettings, Omit<TaskOptions, 'claudeMdTemplate' | 'name'> {
  /** A folder; relative paths start at the current folder. */
  readonly project: string;
  /** Ids, numbers or names of sessions of the group; null removes all. */
  readonly dependsOn?: readonly string[] | null;
  /** Settings for the generated config dir. */
  readonly config?: Omit<SessionConfig, 'claudeMdText'>;
}

/** A checked session before its dependencies are resolved. */
export interface Draft {
  readonly definition: Omit<SessionDefinition, 'id' | 'dependsOn'>;
  /** References of the prompt to other sessions; null = the prompt is kept. */
  readonly later: readonly LaterPlace[] | null;
  readonly configTemplate?: ConfigTemplate;
  /** Notes to print after the session is added. */
  readonly notes: readonly string[];
}

/** Works even while the group runs. Fails with `usage` and all problems. */
export async function addSession(
  context: AppContext,
  group: LoadedGroup,
  given: NewSessionOptions,
): Promise<Result<{ readonly sessionId: SessionId; readonly notes: readonly string[] }>> {
  const draft = await draftOf(context, group, given);
  if (!draft.ok) return draft;
  const possible = completed(context, group, draft.value, given.dependsOn);
  if (!possible.ok) return possible;
  const { configTemplate, notes } = draft.value;
  const usable = checkConfig(context, group, withShared(possible.value, group.state.group.config), configTemplate);
  if (!usable.ok) return usable;
  // Copy the template before the session refers to it; an unused copy is harmless.
  if (configTemplate !== undefined) freezeConfigTemplate(context.world, configTemplate, group.paths.templates);
  const { id: _id, ...session } = possible.value;
  const added = await submit(context, group, { kind: 'add-session', session });
  if (!added.ok) return added;
  const { sessionId } = added.value;
  if (sessionId === undefined) return fail('internal', 'The new session was not named.', '');
  return ok({ sessionId, notes: [...notes, ...(await startNotes(context, group, sessionId))] });
}

/** Notes on problems that would prevent the start, and that can be fixed before the run. */
async function startNotes(context: AppContext, group: LoadedGroup, id: SessionId): Promise<string[]> {
  const state = loadGroup(context.world, group.root, group.groupId);
  const session = state.ok ? state.value.sessions.get(id) : undefined;
  if (!state.ok || session === undefined) return [];
  const check = startCheck(context, state.value, isRehearsal(state.value));
  const results = await check(id, session.definition.permissionMode ?? '');
  return results.flatMap((result) => (result.ok ? [] : [`It cannot start yet: ${describeFailure(result.failure)}`]));
}

/** Reports a faulty configuration now, instead of at the start of the session. */
function checkConfig(
  context: AppContext,
  { state, paths }: LoadedGroup,
  session: SessionDefinition,
  own: ConfigTemplate | undefined,
): Result<unknown> {
  const fresh = own === undefined ? [] : [own];
  const store = unfrozen({ configTemplates: fresh }, frozenTemplates(context.world, paths));
  return generatedConfig(context.world, store, state.group, session);
}

/** `kept`: the edited session, which provides the settings that are not given. */
export async function draftOf(
  context: AppContext,
  group: LoadedGroup,
  given: Omit<NewSessionOptions, 'project'> & { readonly project?: string | undefined },
  kept?: SessionDefinition,
): Promise<Result<Draft>> {
  const projectPath =
    given.project === undefined && kept !== undefined ? ok(kept.projectPath) : projectOf(context, given.project ?? '');
  if (!projectPath.ok) return projectPath;
  if (given.host) {
    const known = await (await import('../fleet/init.ts')).checkHostName(context, group.root, given.host);
    if (!known.ok) return known;
  }
  const ofGroup = group.state.group.config;
  const untrusted = ((given.untrusted === undefined ? kept?.untrusted : given.untrusted) ?? ofGroup.untrusted) === true;
  const work = pickSettings(workSettings, given) as GivenWork;
  const before = kept === undefined ? undefined : withShared(kept, ofGroup);
  const isSame = before !== undefined && given.project === undefined && untrusted === (before.untrusted === true);
  const isWorkKept = isSame && Object.keys(work).length === 0;
  const resolved = isWorkKept
    ? ok({ settings: {}, notes: [] })
    : workOf(context, projectPath.value, untrusted, work, before);
  if (!resolved.ok) return resolved;
  const { claudeMdTemplate } = given.config ?? {};
  const wanted = { ...kept?.config, ...given.config };
  const ofTemplate = wanted.inheritFromGroup === false ? undefined : group.state.group.configTemplate;
  const groupConfig = frozenConfig(context, group, ofTemplate);
  if (!groupConfig.ok) return groupConfig;
  const ownConfig = frozenConfig(context, group, kept?.configTemplate);
  if (!ownConfig.ok) return ownConfig;
  const surroundings = {
    group: group.state.group,
    groupConfig: groupConfig.value,
    projectPath: projectPath.value,
    untrusted,
    ...(kept === undefined ? {} : { kept: { definition: kept, configTemplate: ownConfig.value } }),
  };
  const task = await readSessionTask(context, surroundings, {
    ...given,
    name: given.name ?? kept?.name,
    claudeMdTemplate,
  });
  if (!task.ok) return task;
  const { claudeMdText } = task.value;
  const config: SessionConfig = { ...wanted, ...defined({ claudeMdText }) };
  if (config.generateSettings === false && config.settingsOverride !== undefined) {
    return fail('usage', '--settings-override has no effect with --no-generate-settings.', 'Leave one of them out.');
  }
  const { outputSchema: _, ...plain } = pickSettings(plainSettings, given);
  const left = kept === undefined ? {} : omit(kept, [...alwaysSet, ...(isWorkKept ? [] : workKeys)]);
  const unset = {
    description: '',
    ...left,
    projectPath: projectPath.value,
    ...task.value.definition,
    ...(Object.keys(config).length === 0 ? {} : { config }),
  };
  const definition = {
    ...storedSettings(plainSettings, changed<Partial<SessionDefinition> & typeof unset>(unset, plain), ofGroup),
    ...resolved.value.settings,
    createdAt: kept?.createdAt ?? new Date(context.world.clock.now()).toISOString(),
  };
  const { later, configTemplate } = task.value;
  const { notes } = resolved.value;
  return ok({ definition, later, notes, ...defined({ configTemplate }) });
}

/** Fields that a draft or the group always sets. */
const alwaysSet = ['id', 'dependsOn', 'promptReferences', 'template', 'variables', 'configTemplate', 'config'] as const;
const workKeys = ['repository', ...workNames] as const;

function omit(session: SessionDefinition, names: readonly (keyof SessionDefinition)[]): Partial<SessionDefinition> {
  const left = Object.entries(session).filter(([name]) => !names.includes(name as keyof SessionDefinition));
  return Object.fromEntries(left);
}

function frozenConfig(
  context: AppContext,
  { paths }: LoadedGroup,
  template: ConfigTemplateRef | undefined,
): Result<ConfigTemplate | undefined> {
  if (template === undefined) return ok(undefined);
  const loaded = frozenTemplates(context.world, paths).load(template.digest);
  if (loaded.ok) return ok(loaded.value);
  return problemsFailure(`The config template ${template.name}`, loaded.problems, 'Create the group again.');
}

/** The absolute path without symlinks, because claude stores conversations under exactly that path. */
function projectOf(context: AppContext, project: string): Result<string> {
  const next = 'Give the path of an existing folder to --project.';
  if (project === '') return fail('usage', 'The path of the project is empty.', next);
  const path = resolve(context.cwd, project);
  const real = realFolder(context.world, path);
  return real.ok ? real : fail('usage', `The project ${briefPath(path)} ${real.trouble}.`, next);
}

/** Resolves `--depends-on`: names without a group, or `<group>/<session>` of this group. */
function dependenciesOf(
  context: AppContext,
  { state, groupId }: LoadedGroup,
  references: readonly string[],
): Result<SessionId[]> {
  const dependsOn = new Set<SessionId>();
  for (const reference of references) {
    const slash = reference.indexOf('/');
    const named = slash < 0 ? ok({ groupId }) : resolveGroup(context, reference.slice(0, slash));
    if (!named.ok) return named;
    const other = named.value.groupId;
    if (other !== groupId) {
      const message = `${quoted(reference)} is in group ${other}, but sessions can only depend on their own group.`;
      return fail('usage', message, see('session', 'list', groupId));
    }
    const found = findSessionOf(state, reference.slice(slash + 1));
    if (!found.ok) return found;
    dependsOn.add(found.value);
  }
  return ok([...dependsOn]);
}

/** The draft with its dependencies and references; an edited session (`kept`) keeps what is absent. */
function completed(
  context: AppContext,
  group: LoadedGroup,
  { definition, later }: Draft,
  dependencies: readonly string[] | null | undefined,
  kept?: SessionDefinition,
): Result<SessionDefinition> {
  const isKept = kept !== undefined && dependencies === undefined;
  const dependsOn = isKept ? ok([...kept.dependsOn]) : dependenciesOf(context, group, dependencies ?? []);
  if (!dependsOn.ok) return dependsOn;
  const references =
    later === null ? ok(kept?.promptReferences ?? []) : referencesOf(group.state, later, dependsOn.value);
  if (!references.ok) return references;
  return ok({
    id: kept?.id ?? nextSessionId(context.world, group.state),
    ...definition,
    dependsOn: dependsOn.value,
    ...(references.value.length === 0 ? {} : { promptReferences: references.value }),
  });
}

export interface EditOptions extends Omit<NewSessionOptions, 'project'> {
  readonly project?: string;
}

/** Works even while the group runs. Fails with `usage` and all problems. */
export async function editSession(
  context: AppContext,
  session: LoadedSession,
  given: EditOptions,
): Promise<Result<{ readonly changed: readonly string[]; readonly notes: readonly string[] }>> {
  const { record, state, sessionId, paths } = session;
  // Check first, so that no prompt is read for a session that cannot be edited.
  const editable = editProblem(state, record, ownDefinition(record));
  if (editable !== null) return editable;
  const before = ownDefinition(record);
  const draft = await draftOf(context, session, given, before);
  if (!draft.ok) return draft;
  const edited = completed(context, session, draft.value, given.dependsOn, before);
  if (!edited.ok) return edited;
  const changes = changesOf(before, edited.value);
  const { configTemplate, notes } = draft.value;
  const changed = Object.keys(changes);
  if (changed.length === 0) return ok({ changed, notes });
  const effective = withShared(edited.value, state.group.config);
  const usable = checkConfig(context, session, effective, configTemplate);
  if (!usable.ok) return usable;
  // Copy the template before the session refers to it.
  if (configTemplate !== undefined) freezeConfigTemplate(context.world, configTemplate, paths.templates);
  const done = await submit(context, session, { kind: 'edit-session', sessionId, changes: changes as SessionChanges });
  return done.ok ? ok({ changed, notes }) : done;
}

/** Most project files whose commands are listed. */
const filesShownMax = 20;

/** Merges the given settings with those of the project file; an edited session (`kept`) keeps the others. */
function workOf(
  { world }: AppContext,
  projectPath: string,
  untrusted: boolean,
  requested: GivenWork,
  kept?: SessionDefinition,
): Result<{ readonly settings: ResolvedWork; readonly notes: readonly string[] }> {
  const isSame = kept?.projectPath === projectPath && untrusted === (kept.untrusted === true);
  const file = isSame || untrusted ? ok(null) : projectFileFor(world, projectPath);
  if (!file.ok) return problemsFailure('The project file', file.problems);
  const repository = findRepository(world.files, projectPath)?.repository ?? null;
  const ofProject = file.value;
  const own = { ...(kept === undefined ? {} : keptWork(world, kept, isSame)), ...requested };
  const settings = resolveWork([own, ...(ofProject === null ? [] : [ofProject.work])], repository);
  const [fault] = workFaults({ ...requested, isolate: own.isolate }, settings, repository);
  if (fault !== undefined) return fail('usage', `${optionFor(fault.key, own)} ${fault.problem}.`, 'Leave it out.');
  if (settings.isolate === 'worktree' && repository === null) {
    const wanted =
      own.isolate === undefined ? `${briefPath(ofProject?.path ?? '')} requests a worktree, but the` : 'The';
    const next = 'Make it a repository with git init and a first commit, or give --isolate none.';
    return fail('usage', `${wanted} project ${briefPath(projectPath)} is not in a git repository.`, next);
  }
  const notes = projectNotes(commandsOf(ofProject, [own], settings), 'leave them out with --no-accept and --no-setup');
  return ok({ settings, notes });
}

/** The settings of the edited session; in another project, without those of the old project file. */
function keptWork(world: World, kept: SessionDefinition, isSame: boolean): GivenWork {
  const file = isSame || kept.untrusted === true ? ok(null) : projectFileFor(world, kept.projectPath);
  const brought = new Map<string, unknown>(file.ok ? Object.entries(file.value?.work ?? {}) : []);
  return Object.fromEntries(
    Object.entries(pickSettings(workSettings, kept)).filter(([key, value]) => value !== brought.get(key)),
  );
}

function optionFor(key: keyof GivenWork, own: GivenWork): string {
  const name = optionOf(key, workSettings[key]);
  return own[key] === false ? `--no-${name}` : `--${name}`;
}

/** Names the commands of project files, because the user may not have written them. */
export function projectNotes(commands: readonly ProjectCommand[], cure: string): string[] {
  const byFile = Map.groupBy(commands, ({ file }) => file);
  const notes = [...byFile].map(([file, own]) => {
    const what = own.map(({ key, command }) => `${key} ${quoted(command)}`).join(' and ');
    return `${briefPath(file)} sets ${what}; ${cure}.`;
  });
  const hidden = notes.length - filesShownMax;
  if (hidden <= 1) return notes;
  return [...notes.slice(0, filesShownMax), `${hidden} more project files set commands.`];
}
