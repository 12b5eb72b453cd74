/** Open items of one or all groups, and the answer to an item. */
import { see } from '../core/advice.ts';
import { defined } from '../core/defined.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import type { GroupId, SessionId } from '../core/group.ts';
import { quoted, sessionLabel } from '../core/id.ts';
import { type GivenAnswer, type Item, openItems } from '../core/item.ts';
import { openWaveItem } from '../core/plan/waves.ts';
import type { SessionRecord } from '../core/session-state.ts';
import { promptProblem } from '../core/setting-values.ts';
import type { GroupState, WaveItem } from '../core/state.ts';
import { closedText } from '../runner/item-events.ts';
import { groupIds } from '../store/group-store.ts';
import { groupPaths } from '../store/paths.ts';
import type { AppContext } from './app-context.ts';
import { type CommandOf, type Done, submit } from './group-commands.ts';
import { type LoadedGroup, loadReferredGroup, loadReferredSession, loadWithRunner } from './resolve.ts';

export interface InboxItem extends Pick<Item, 'id' | 'text' | 'options' | 'firstOptions' | 'since' | 'answerBy'> {
  readonly kind: Item['kind'] | WaveItem['kind'];
  readonly group: GroupId;
  /** Of a guard: files with the difference and with what the commands printed. */
  readonly diff?: string;
  readonly logs?: readonly string[];
  /** Null for a wave. */
  readonly session: SessionId | null;
  /** The name or number of the session. */
  readonly label: string;
}

export function inboxOf(state: GroupState): InboxItem[] {
  if (state.status === 'archived') return [];
  const wave = openWaveItem(state);
  const ofWave = wave === undefined ? [] : [{ ...shown(wave), group: state.group.id, session: null, label: '' }];
  const ofSessions = [...state.sessions.values()].flatMap((record) => {
    const { id: session, name } = record.definition;
    return openItems(record).map((item): InboxItem => {
      const { diff, logs } = item.kind === 'guard' ? (item.input as Pick<InboxItem, 'diff' | 'logs'>) : {};
      const more = defined({ firstOptions: item.firstOptions, answerBy: item.answerBy, diff, logs });
      return { ...shown(item), group: state.group.id, session, label: sessionLabel(session, name), ...more };
    });
  });
  return [...ofWave, ...ofSessions];
}

function shown({ id, kind, text, options, since }: Item | WaveItem) {
  return { id, kind, text, options, since };
}

/** Oldest first. A group that cannot be read has no items. */
export function readInbox(context: AppContext, reference?: string): Result<InboxItem[]> {
  const groups = reference === undefined ? allGroups(context) : onlyGroup(context, reference);
  if (!groups.ok) return groups;
  const items = groups.value.flatMap(({ state }) => inboxOf(state));
  return ok(items.toSorted((a, b) => a.since.localeCompare(b.since)));
}

function onlyGroup(context: AppContext, reference: string): Result<LoadedGroup[]> {
  const group = loadReferredGroup(context, reference);
  return group.ok ? ok([group.value]) : group;
}

function allGroups(context: AppContext): Result<LoadedGroup[]> {
  const { world } = context;
  const folder = context.root();
  if (!folder.ok) return folder;
  return ok(
    groupIds(world, folder.value).flatMap((groupId) => {
      const paths = groupPaths(folder.value, groupId);
      // Most groups have no items, and a text search is much faster than reading the whole log.
      if (world.files.readText(paths.events)?.includes('"type":"item_opened"') !== true) return [];
      const group = loadWithRunner(world, { root: folder.value, groupId, paths });
      return group.ok ? [group.value] : [];
    }),
  );
}

interface FoundItem {
  readonly group: LoadedGroup;
  /** Absent for a wave. */
  readonly record?: SessionRecord;
  readonly item: Item | WaveItem;
}

/** By id, unique prefix, a session with a single open item, or a group whose wave waits. */
function findItem(context: AppContext, reference: string): Result<FoundItem> {
  if (reference.includes('/')) return onlyItemOf(context, reference);
  const groups = allGroups(context);
  if (!groups.ok) return groups;
  const all = groups.value.flatMap((group): FoundItem[] => [
    ...group.state.waves.items.map((item) => ({ group, item })),
    ...[...group.state.sessions.values()].flatMap((record) =>
      (record.items ?? []).map((item) => ({ group, record, item })),
    ),
  ]);
  const found = all.filter(({ item }) => item.id.startsWith(reference));
  const [first, second] = found;
  const ofGroup = first === undefined ? loadReferredGroup(context, reference) : undefined;
  const wave = ofGroup?.ok ? ofGroup.value.state.waves.items.at(-1) : undefined;
  if (ofGroup?.ok && wave !== undefined) return ok({ group: ofGroup.value, item: wave });
  if (first === undefined) return fail('not-found', `There is no item ${quoted(reference)}.`, see('inbox'));
  if (second === undefined) return ok(first);
  return fail('ambiguous', `${quoted(reference)} matches ${found.length} items.`, 'Give more of the id.');
}

function onlyItemOf(context: AppContext, reference: string): Result<FoundItem> {
  const session = loadReferredSession(context, reference);
  if (!session.ok) return session;
  const { record } = session.value;
  const [item, other] = openItems(record);
  const inbox = see('inbox', session.value.groupId);
  if (item === undefined) return fail('usage', `Session ${quoted(reference)} does not wait for an answer.`, inbox);
  if (other !== undefined) return fail('ambiguous', `Session ${quoted(reference)} has several open items.`, inbox);
  return ok({ group: session.value, record, item });
}

/** The group as it is after the answer. */
export interface Answered extends FoundItem {
  readonly by: Done['by'];
}

/** Fails with `usage` when the item was answered or withdrawn before. */
export async function answerItem(
  context: AppContext,
  reference: string,
  given: GivenAnswer,
): Promise<Result<Answered>> {
  const found = findItem(context, reference);
  if (!found.ok) return found;
  const { group, record, item } = found.value;
  if (item.state !== 'open') return fail('usage', closedText(item), '');
  const command: Result<CommandOf<'answer-item' | 'decide-wave'>> =
    record === undefined
      ? waveCommand(item.id, given)
      : ok({ kind: 'answer-item', sessionId: record.definition.id, item: item.id, given });
  if (!command.ok) return command;
  const done = await submit(context, group, command.value);
  if (!done.ok) return done;
  const now = loadReferredGroup(context, group.groupId);
  if (!now.ok) return now;
  const current = record && now.value.state.sessions.get(record.definition.id);
  return ok({ group: now.value, item, by: done.value.by, ...defined({ record: current }) });
}

function waveCommand(item: string, { text, options, note, always }: GivenAnswer): Result<CommandOf<'decide-wave'>> {
  if ((text !== 'continue' && text !== 'stop') || options !== undefined || always === true)
    return fail('usage', 'A wave takes "continue" or "stop".', 'Add a sentence for later prompts with --note.');
  const problem = note === undefined ? null : promptProblem(note);
  if (problem !== null) return fail('usage', `The note ${problem}.`, '');
  return ok({ kind: 'decide-wave', item, decision: text, ...defined({ note }) });
}
