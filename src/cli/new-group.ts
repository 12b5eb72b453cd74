/** How groups come into being: with an id that nobody has, their sessions, and the templates they are going to use. */
import type { Result } from '../core/failure.ts';
import type { ConfigTemplateRef, GroupDefinition, SessionDefinition } from '../core/group.ts';
import { makeGroupId } from '../core/id.ts';
import type { GroupState } from '../core/state.ts';
import { createGroup } from '../store/group-store.ts';
import type { GroupPaths } from '../store/paths.ts';
import { type ConfigTemplate, freezeConfigTemplate } from '../template/config-template.ts';
import type { Context } from './context.ts';

/** Groups of one slug made in the same second get the next free second in their id; more than this is no accident. */
const idTriesMax = 60;

/** A group without id and time, which it gets when it is created. */
export interface NewGroup {
  readonly definition: Omit<GroupDefinition, 'id' | 'createdAt'>;
  readonly sessions: readonly SessionDefinition[];
  /** Copied into the group's folder under their digests. */
  readonly configTemplates: readonly ConfigTemplate[];
  /** Text of the workflow it is made from. */
  readonly workflow?: string;
}

/** Creates the group as a whole or not at all. Fails as `createGroup` does. */
export function createNewGroup(context: Context, root: string, group: NewGroup): Result<GroupState> {
  const { world } = context;
  const atMs = world.clock.now();
  const createdAt = new Date(atMs).toISOString();
  for (let tries = 1; ; tries += 1) {
    const id = makeGroupId(atMs + (tries - 1) * 1000, group.definition.slug);
    const definition = { ...group.definition, id, createdAt };
    const created = createGroup(world, root, definition, group.sessions, (paths) => fill(context, paths, group));
    if (created.ok || created.failure.reason !== 'duplicate' || tries === idTriesMax) return created;
  }
}

function fill({ world }: Context, paths: GroupPaths, { configTemplates, workflow }: NewGroup): void {
  for (const template of configTemplates) freezeConfigTemplate(world, template, paths.templates);
  if (workflow !== undefined) world.files.writeAtomic(paths.workflow, workflow);
}

/** How a definition names a template. */
export function referenceTo({ name, path, digest }: ConfigTemplate): ConfigTemplateRef {
  return { name, origin: path, digest };
}
