/** A session that is changed after it was added: looked at like a new one, and only what was given becomes another. */
import { changesOf, editProblem, type SessionChanges } from '../../core/edit.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { SessionDefinition } from '../../core/group.ts';
import { freezeConfigTemplate } from '../../template/config-template.ts';
import type { Place } from '../place.ts';
import type { LoadedSession } from '../resolve.ts';
import { submit } from '../submit.ts';
import {
  checkConfig,
  type Draft,
  dependenciesOf,
  draftOf,
  type NewSessionOptions,
  withinGroup,
} from './new-session.ts';
import { referencesOf } from './session-references.ts';

/** Settings that can be taken away. */
export type Removable = Exclude<
  keyof SessionDefinition,
  'id' | 'createdAt' | 'description' | 'projectPath' | 'prompt' | 'dependsOn'
>;

export interface EditOptions extends Omit<NewSessionOptions, 'project'> {
  readonly project?: string | undefined;
  readonly without?: readonly Removable[];
}

export interface EditedSession {
  /** Names of the settings that are other ones now. */
  readonly changed: readonly string[];
  /** Sentences about commands that come from files of the project. */
  readonly notes: readonly string[];
}

/** Edits it, also in a group that is running. Fails with `usage` and everything that is wrong with it. */
export async function editSession(
  place: Place,
  session: LoadedSession,
  given: EditOptions,
): Promise<Result<EditedSession>> {
  const { record, state, sessionId, paths } = session;
  // Whoever cannot edit it at all is not asked for a prompt on standard input first.
  const editable = editProblem(state, record, record.definition);
  if (editable !== null) return editable;
  const draft = await draftOf(place, session, given, record.definition);
  if (!draft.ok) return draft;
  const edited = definitionOf(place, session, given, draft.value);
  if (!edited.ok) return edited;
  const changes = changesOf(record.definition, edited.value);
  const { configTemplate, notes } = draft.value;
  const changed = Object.keys(changes);
  if (changed.length === 0) return ok({ changed, notes });
  const usable = editProblem(state, record, edited.value) ?? checkConfig(place, session, edited.value, configTemplate);
  if (!usable.ok) return usable;
  // As with a new session: before what names it.
  if (configTemplate !== undefined) freezeConfigTemplate(place.world, configTemplate, paths.templates);
  const done = await submit(place, session, { kind: 'edit-session', sessionId, changes: changes as SessionChanges });
  return done.ok ? ok({ changed, notes }) : done;
}

function definitionOf(
  place: Place,
  { state, groupId, record: { definition: before } }: LoadedSession,
  given: EditOptions,
  { definition, later }: Draft,
): Result<SessionDefinition> {
  const named = given.dependsOn === undefined ? ok(null) : withinGroup(place, groupId, given.dependsOn);
  if (!named.ok) return named;
  const own = given.name ?? before.name;
  const dependsOn = named.value === null ? ok(before.dependsOn) : dependenciesOf(state, named.value, own);
  if (!dependsOn.ok) return dependsOn;
  const references = later === null ? ok(before.promptReferences ?? []) : referencesOf(state, later, dependsOn.value);
  if (!references.ok) return references;
  if (dependsOn.value.includes(before.id)) {
    return fail('cycle', `The session would wait for itself: ${own}.`, `Leave out --depends-on ${own}.`);
  }
  const whole: SessionDefinition = {
    ...definition,
    id: before.id,
    dependsOn: dependsOn.value,
    ...(references.value.length === 0 ? {} : { promptReferences: references.value }),
  };
  const without = new Set<string>(given.without ?? []);
  return ok(
    Object.fromEntries(Object.entries(whole).filter(([name]) => !without.has(name))) as unknown as SessionDefinition,
  );
}
