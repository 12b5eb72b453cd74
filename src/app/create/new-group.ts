/** Creates a group with a unique id, its sessions and copies of its templates. */
import { join } from 'node:path';
import { defined } from '../../core/defined.ts';
import type { EventBody } from '../../core/event.ts';
import { ok, type Result } from '../../core/failure.ts';
import type { ConfigTemplateRef, GroupDefinition, SessionDefinition, SessionId } from '../../core/group.ts';
import { makeGroupId, sessionLabel } from '../../core/id.ts';
import type { GroupState } from '../../core/state.ts';
import { createGroup, draftGroup } from '../../store/group-store.ts';
import type { GroupPaths } from '../../store/paths.ts';
import type { Validated } from '../../store/yaml-text.ts';
import type { World } from '../../system/world.ts';
import { type ConfigTemplate, freezeConfigTemplate } from '../../template/config-template.ts';
import { generatedConfig, type TemplateStore } from '../../worker/prepare/generated-config.ts';
import type { AppContext } from '../app-context.ts';

/** Groups of one slug created in the same second use the next free second in their id, up to this many. */
const idTriesMax = 60;

/** A group before it has an id and a creation time. */
export interface NewGroup {
  readonly definition: Omit<GroupDefinition, 'id' | 'createdAt'>;
  readonly sessions: readonly SessionDefinition[];
  readonly configTemplates: readonly ConfigTemplate[];
  readonly workflow?: string;
  readonly events?: readonly EventBody[];
  /** A folder of another group to copy. */
  readonly sharedConfig?: string;
}

/** Creates the whole group or nothing. Also fails for a faulty session configuration. */
export function createNewGroup(context: AppContext, root: string, group: NewGroup): Result<GroupState> {
  const usable = checkConfigs(context, group);
  if (!usable.ok) return usable;
  const { world } = context;
  const atMs = world.clock.now();
  const createdAt = new Date(atMs).toISOString();
  for (let tries = 1; ; tries += 1) {
    const id = makeGroupId(atMs + (tries - 1) * 1000, group.definition.slug);
    const definition = { ...group.definition, id, createdAt };
    const created = createGroup(
      world,
      root,
      definition,
      group.sessions,
      (paths) => fill(context, paths, group),
      group.events,
    );
    if (created.ok || created.failure.reason !== 'duplicate' || tries === idTriesMax) return created;
  }
}

function fill({ world }: AppContext, paths: GroupPaths, { configTemplates, workflow, sharedConfig }: NewGroup): void {
  for (const template of configTemplates) freezeConfigTemplate(world, template, paths.templates);
  if (workflow !== undefined) world.files.writeAtomic(paths.workflow, workflow);
  if (sharedConfig !== undefined) copyFolder(world, sharedConfig, paths.sharedConfig);
}

/** Copies regular files and folders. Symlinks are not followed. */
function copyFolder({ files }: World, from: string, to: string): void {
  if (files.entryKind(from) !== 'folder') return;
  files.makeFolder(to);
  for (const name of files.list(from)) {
    const [source, target] = [join(from, name), join(to, name)];
    const kind = files.entryKind(source);
    if (kind === 'folder') copyFolder({ files } as World, source, target);
    else if (kind === 'file') files.writeBytes(target, files.readBytes(source, 0, Number.MAX_SAFE_INTEGER));
  }
}

/** The state that the group would have. Writes nothing. */
export function draftState({ world }: AppContext, { definition, sessions }: NewGroup): Result<GroupState> {
  const atMs = world.clock.now();
  const id = makeGroupId(atMs, definition.slug);
  return draftGroup(world, { ...definition, id, createdAt: new Date(atMs).toISOString() }, sessions);
}

/** Looks up config templates that are not copied into the group yet. */
export function unfrozen(
  { configTemplates, sharedConfig = '' }: Pick<NewGroup, 'configTemplates' | 'sharedConfig'>,
  frozen?: TemplateStore,
): TemplateStore {
  return {
    sharedConfig: frozen?.sharedConfig ?? sharedConfig,
    load(digest): Validated<ConfigTemplate> {
      const value = configTemplates.find((template) => template.digest === digest);
      if (value !== undefined) return { ok: true, value };
      if (frozen === undefined) throw new Error(`Internal error: no config template ${digest} was loaded`);
      return frozen.load(digest);
    },
  };
}

function checkConfigs(context: AppContext, group: NewGroup): Result<void> {
  const state = draftState(context, group);
  if (!state.ok) return state;
  const sessions = [...state.value.sessions.values()].map(({ definition }) => definition);
  return checkConfigsOf(context, unfrozen(group), state.value.group, sessions);
}

/** Fails with the first session whose configuration is faulty, before anything is spent. */
export function checkConfigsOf(
  { world }: AppContext,
  store: TemplateStore,
  group: GroupDefinition,
  sessions: readonly SessionDefinition[],
): Result<void> {
  const seen = new Set<string>();
  for (const definition of sessions) {
    const { configTemplate, config, variables } = definition;
    const kind = JSON.stringify([configTemplate?.digest, config, variables]);
    if (seen.has(kind)) continue;
    seen.add(kind);
    const generated = generatedConfig(world, store, group, definition);
    if (generated.ok) continue;
    const message = `Session ${sessionLabel(definition.id, definition.name)}: ${generated.failure.message}`;
    return { ok: false, failure: { ...generated.failure, message } };
  }
  return ok(undefined);
}

export function templateReference({ name, path, digest }: ConfigTemplate): ConfigTemplateRef {
  return { name, origin: path, digest };
}

/** The session with its own id and the ids of its dependencies replaced. */
export function withIds(session: SessionDefinition, ids: ReadonlyMap<SessionId, SessionId>): SessionDefinition {
  const other = (id: SessionId): SessionId => ids.get(id) ?? id;
  const references = session.promptReferences?.map((one) => ({ ...one, sessionIds: one.sessionIds.map(other) }));
  return {
    ...session,
    id: other(session.id),
    dependsOn: session.dependsOn.map(other),
    ...defined({ promptReferences: references }),
  };
}
