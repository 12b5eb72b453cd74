/** `group copy`: all sessions start over, or only a given session and its dependents. */
import { resolve } from 'node:path';
import { advise } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import type { EventBody, InheritedFrom } from '../../core/event.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { allDependentsOf } from '../../core/graph.ts';
import type { ConfigTemplateRef, GroupId, SessionId } from '../../core/group.ts';
import { makeSessionId, sessionNumber } from '../../core/id.ts';
import { planOf } from '../../core/plan/plan.ts';
import { ownDefinition, type SessionRecord } from '../../core/session-state.ts';
import { type GroupState, isRehearsal } from '../../core/state.ts';
import { commitOf } from '../../git/run-git.ts';
import { repositoryDir } from '../../git/worktrees/worktree.ts';
import type { ConfigTemplate } from '../../template/config-template.ts';
import { readTextFile } from '../../template/text-file.ts';
import { titleOf } from '../../view/wording.ts';
import { frozenTemplates } from '../../worker/prepare/generated-config.ts';
import type { AppContext } from '../app-context.ts';
import { findSessionOf, type LoadedGroup } from '../resolve.ts';
import { rehearsalFor } from '../run/run-here.ts';
import { createNewGroup, type NewGroup, withIds } from './new-group.ts';

export interface CopyOptions {
  /** Id, number or name: this session and its dependents start over; other completed sessions keep their results. */
  readonly from?: string | undefined;
  /** The script of a rehearsal, true for the default script, false for a real copy; absent = like the original. */
  readonly rehearse?: string | boolean | undefined;
  readonly name?: string | undefined;
}

const workflowBytesMax = 16 * 1024 * 1024;

export async function copyGroup(
  context: AppContext,
  { root, groupId, paths, state }: LoadedGroup,
  { from, name, rehearse }: CopyOptions,
): Promise<Result<GroupId>> {
  const { world } = context;
  const rehearsal = await rehearsalOf(context, state, rehearse);
  if (!rehearsal.ok) return rehearsal;
  if (state.sessions.size === 0) {
    const next = advise('Add one with', ['session', 'add', groupId, '--project', 'DIR', '--prompt', 'TEXT']);
    return fail('usage', `Group ${groupId} has no sessions.`, next);
  }
  const kept = from === undefined ? ok([]) : keptFrom(state, from, rehearsal.value !== null);
  if (!kept.ok) return kept;
  const lost = await lostWork(context, kept.value);
  if (lost !== null) {
    const next = advise('Run that session again, too, with', ['group', 'copy', groupId]);
    return fail('not-found', `The work of session ${titleOf(state, lost)} is no longer in its repository.`, next);
  }
  const templates = templatesOf(context, state, paths);
  if (!templates.ok) return templates;
  const workflow = readTextFile(world, paths.workflow, workflowBytesMax);
  const ids = new Map(
    [...state.sessions.keys()].map((id) => [id, makeSessionId(sessionNumber(id), world.random.uuid())]),
  );
  const createdAt = new Date(world.clock.now()).toISOString();
  const { id: _id, createdAt: _createdAt, ...definition } = state.group;
  const copy: NewGroup = {
    definition: { ...definition, ...defined({ name }) },
    sessions: [...state.sessions.values()].map((record) => ({ ...withIds(ownDefinition(record), ids), createdAt })),
    configTemplates: templates.value,
    sharedConfig: paths.sharedConfig,
    ...(workflow.ok ? { workflow: workflow.text } : {}),
    events: [
      ...(rehearsal.value === null ? [] : [rehearsal.value]),
      ...kept.value.map((record) => inherited(groupId, record, ids)),
    ],
  };
  const created = createNewGroup(context, root, copy);
  return created.ok ? ok(created.value.group.id) : created;
}

async function rehearsalOf(
  context: AppContext,
  state: GroupState,
  rehearse: CopyOptions['rehearse'],
): Promise<Result<EventBody | null>> {
  if (rehearse === false || (rehearse === undefined && !isRehearsal(state))) return ok(null);
  if (typeof rehearse === 'string') {
    const usable = await rehearsalFor(context, rehearse);
    if (!usable.ok) return usable;
    return ok({ type: 'rehearsal_chosen', script: resolve(context.cwd, rehearse) });
  }
  const script = (state.run ?? state.rehearsal)?.script;
  return ok({ type: 'rehearsal_chosen', ...defined({ script }) });
}

/** The completed sessions to keep: all except the given one and the dependents of sessions that start over. */
function keptFrom(state: GroupState, reference: string, isRehearsed: boolean): Result<SessionRecord[]> {
  const first = findSessionOf(state, reference);
  if (!first.ok) return first;
  if (isRehearsal(state) && !isRehearsed) {
    const message = `Group ${state.group.id} is a rehearsal, so a real copy cannot keep its results.`;
    return fail('usage', message, advise('Leave out --from', ['group', 'copy', state.group.id, '--real']));
  }
  const { graph } = planOf(state).graph;
  const rerun = new Set<SessionId>();
  for (const [id, record] of state.sessions) {
    if (id !== first.value && record.state.status === 'completed') continue;
    rerun.add(id);
    for (const dependent of allDependentsOf(graph, id)) rerun.add(dependent);
  }
  return ok([...state.sessions.values()].filter(({ definition: { id } }) => !rerun.has(id)));
}

function inherited(groupId: GroupId, record: SessionRecord, ids: ReadonlyMap<SessionId, SessionId>): EventBody {
  const { definition, state, workspace, mergedInto, isolated } = record;
  if (state.status !== 'completed') throw new Error(`Internal error: ${definition.id} is ${state.status}`);
  const { status: _status, ...answer } = state;
  const from: InheritedFrom = record.inherited ?? { groupId, sessionId: definition.id };
  return {
    type: 'session_inherited',
    sessionId: ids.get(definition.id) ?? definition.id,
    from,
    ...answer,
    isolated: isolated === true,
    ...defined({ workspace, mergedInto }),
  };
}

/** The templates as the original copied them, even if they have changed since. */
function templatesOf(context: AppContext, state: GroupState, paths: LoadedGroup['paths']): Result<ConfigTemplate[]> {
  const store = frozenTemplates(context.world, paths);
  const named = [state.group, ...[...state.sessions.values()].map(({ definition }) => definition)];
  const references = new Map<string, ConfigTemplateRef>();
  for (const { configTemplate } of named) if (configTemplate) references.set(configTemplate.digest, configTemplate);
  const templates: ConfigTemplate[] = [];
  for (const { name, origin, digest } of references.values()) {
    const loaded = store.load(digest);
    if (!loaded.ok) {
      const message = `The copy of the config template ${name} in group ${state.group.id} cannot be read.`;
      return fail('config-invalid', message, 'Create the group again.');
    }
    templates.push({ ...loaded.value, name, path: origin });
  }
  return ok(templates);
}

/** The first session whose last commit is missing in its repository, or null. */
async function lostWork(context: AppContext, kept: readonly SessionRecord[]): Promise<SessionId | null> {
  for (const { definition, state, workspace } of kept) {
    const work = state.status === 'completed' ? state.work : undefined;
    const repository = workspace?.repository ?? definition.repository;
    if (work === undefined || repository === undefined) continue;
    if (context.world.files.info(repository)?.kind !== 'folder') return definition.id;
    const commit = await commitOf(context, repositoryDir(repository), work.commit);
    if (!commit.ok || commit.value === null) return definition.id;
    if (workspace === undefined) continue;
    const tip = await commitOf(context, repositoryDir(repository), `refs/heads/${workspace.branch}`);
    if (!tip.ok || tip.value === null) return definition.id;
  }
  return null;
}
