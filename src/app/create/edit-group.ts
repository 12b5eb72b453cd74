/** `group edit`: changes settings and description of a group, and its sessions from a workflow. */
import { defined } from '../../core/defined.ts';
import { changed, changesOf, type GroupChanges, groupDescription, type SessionChanges } from '../../core/edit.ts';
import { ok, type Result } from '../../core/failure.ts';
import type { GroupDefinition, GroupDescription, SessionDefinition, SessionId } from '../../core/group.ts';
import { ownDefinition } from '../../core/session-state.ts';
import { withShared } from '../../core/setting-values.ts';
import type { GroupEdit } from '../../store/requests.ts';
import { type ConfigTemplate, freezeConfigTemplate } from '../../template/config-template.ts';
import { parseGiven } from '../../template/variables.ts';
import { frozenTemplates } from '../../worker/prepare/generated-config.ts';
import type { AppContext } from '../app-context.ts';
import { submit } from '../group-commands.ts';
import type { LoadedGroup } from '../resolve.ts';
import { groupTemplates, type TemplateOptions } from './named-template.ts';
import { checkConfigsOf, type NewGroup, unfrozen, withIds } from './new-group.ts';

export interface GroupEditOptions extends TemplateOptions {
  readonly config: NonNullable<GroupChanges['config']>;
  readonly name?: string | undefined;
  readonly description?: string | undefined;
  readonly vars: readonly string[];
  /** Path of a workflow file, name of a workflow template, or the text of a workflow. */
  readonly workflow?: string | { readonly text: string } | undefined;
}

export interface EditedGroup {
  readonly changed: readonly string[];
  readonly added: readonly SessionDefinition[];
  readonly edited: readonly { readonly session: SessionDefinition; readonly changed: readonly string[] }[];
  readonly kept: readonly SessionDefinition[];
}

/** Applies all changes or none. Fails with `usage` and all problems. */
export async function editGroup(
  context: AppContext,
  group: LoadedGroup,
  given: GroupEditOptions,
): Promise<Result<EditedGroup>> {
  const templates = groupTemplates(context, given);
  if (!templates.ok) return templates;
  const vars = parseGiven(given.vars);
  if (!vars.ok) return vars;
  const workflow =
    given.workflow === undefined ? ok(null) : await workflowOf(context, group, given.workflow, given.vars);
  if (!workflow.ok) return workflow;
  const wanted = describe(group, given, templates.value.definition, workflow.value, vars.value);
  const sessions = workflow.value === null ? nothing : sessionsOf(group, workflow.value);
  const { added, edits, kept } = sessions;
  const config = changesOf(group.state.group.config, changed(group.state.group.config, given.config));
  const edit: GroupEdit = {
    ...(Object.keys(config).length === 0 ? {} : { config }),
    ...(Object.keys(wanted).length === 0 ? {} : { group: wanted }),
    ...(added.length === 0 ? {} : { add: added }),
    ...(edits.length === 0 ? {} : { edit: edits.map(({ session, changes }) => ({ sessionId: session.id, changes })) }),
  };
  const edited = edits.map(({ session, changes }) => ({ session, changed: Object.keys(changes) }));
  const outcome: EditedGroup = { changed: [...Object.keys(config), ...Object.keys(wanted)], added, edited, kept };
  if (Object.keys(edit).length === 0) return ok(outcome);
  const frozen = [...templates.value.configTemplates, ...(workflow.value?.configTemplates ?? [])];
  const usable = checkSessions(context, group, edit, frozen);
  if (!usable.ok) return usable;
  // Copy the template before the group refers to it; an unused copy is harmless.
  for (const template of frozen) freezeConfigTemplate(context.world, template, group.paths.templates);
  const done = await submit(context, group, { kind: 'edit-group', ...edit });
  if (!done.ok) return done;
  if (workflow.value?.workflow !== undefined) {
    context.world.files.writeAtomic(group.paths.workflow, workflow.value.workflow);
  }
  return ok(outcome);
}

const nothing: Sessions = { added: [], edits: [], kept: [] };

/** Variables keep the values with which the group was created. */
async function workflowOf(
  context: AppContext,
  { state }: LoadedGroup,
  named: string | { readonly text: string },
  vars: readonly string[],
): Promise<Result<NewGroup>> {
  const { readWorkflow } = await import('./workflow-group.ts');
  const known = Object.entries(state.group.variables ?? {});
  const given = new Set(vars.map((pair) => pair.slice(0, pair.indexOf('='))));
  const pairs = [...vars, ...known.filter(([name]) => !given.has(name)).map(([name, value]) => `${name}=${value}`)];
  return readWorkflow(
    context,
    named,
    pairs,
    known.map(([name]) => name),
  );
}

function describe(
  { state }: LoadedGroup,
  { name, description }: GroupEditOptions,
  templates: Pick<GroupDefinition, 'template' | 'configTemplate'>,
  workflow: NewGroup | null,
  vars: Readonly<Record<string, string>>,
): NonNullable<GroupChanges['group']> {
  const before = groupDescription(state);
  const variables = { ...before.variables, ...workflow?.definition.variables, ...vars };
  const ofWorkflow = workflow?.definition.workflow;
  const after: GroupDescription = {
    ...before,
    ...defined({ name, description }),
    ...templates,
    ...(Object.keys(variables).length === 0 ? {} : { variables }),
    ...defined({ workflow: ofWorkflow }),
  };
  return changesOf(before, after);
}

interface Sessions {
  readonly added: readonly SessionDefinition[];
  readonly edits: readonly { readonly session: SessionDefinition; readonly changes: SessionChanges }[];
  readonly kept: readonly SessionDefinition[];
}

/** Sessions are matched by name. Sessions that the file does not name are kept. */
function sessionsOf({ state }: LoadedGroup, workflow: NewGroup): Sessions {
  const byName = new Map([...state.sessions.values()].map((record) => [record.definition.name, record]));
  const ids = new Map<SessionId, SessionId>();
  for (const { id, name } of workflow.sessions) {
    const known = name === undefined ? undefined : byName.get(name)?.definition.id;
    if (known !== undefined) ids.set(id, known);
  }
  const sessions: { added: SessionDefinition[]; edits: Sessions['edits'][number][]; kept: SessionDefinition[] } = {
    added: [],
    edits: [],
    kept: [],
  };
  for (const drafted of workflow.sessions) {
    const session = withIds(drafted, ids);
    const record = state.sessions.get(session.id);
    if (record === undefined) {
      sessions.added.push(session);
      continue;
    }
    const own = ownDefinition(record);
    const { createdAt } = own;
    const changes: SessionChanges = changesOf(own, { ...session, createdAt });
    if (Object.keys(changes).length === 0) continue;
    if (record.state.status === 'completed') sessions.kept.push(record.definition);
    else sessions.edits.push({ session: record.definition, changes });
  }
  return sessions;
}

/** Checks the configuration of every session that has not completed. */
function checkSessions(
  context: AppContext,
  { state, paths }: LoadedGroup,
  { config = {}, group = {}, add = [], edit = [] }: GroupEdit,
  fresh: readonly ConfigTemplate[],
): Result<void> {
  if (fresh.length === 0 && add.length === 0 && edit.length === 0) return ok(undefined);
  const store = unfrozen({ configTemplates: fresh }, frozenTemplates(context.world, paths));
  const definition: GroupDefinition = { ...state.group, ...changed<GroupDescription>(groupDescription(state), group) };
  const edits = new Map(edit.map(({ sessionId, changes }) => [sessionId, changes]));
  const open = [...state.sessions.values()].filter((record) => record.state.status !== 'completed');
  const sessions = open.map((record) =>
    changed<SessionDefinition>(ownDefinition(record), edits.get(record.definition.id) ?? {}),
  );
  const settings = changed(state.group.config, config);
  const all = [...sessions, ...add].map((session) => withShared(session, settings));
  return checkConfigsOf(context, store, definition, all);
}
