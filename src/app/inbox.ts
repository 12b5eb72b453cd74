/** Items that wait for a person, of one group or of all of them, and the answer to one. */
import { see } from '../core/advice.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import type { GroupId, SessionId } from '../core/group.ts';
import { quoted, sessionLabel } from '../core/id.ts';
import { type GivenAnswer, type Item, openItems } from '../core/item.ts';
import type { SessionRecord } from '../core/session-state.ts';
import type { GroupState } from '../core/state.ts';
import { closedText } from '../runner/item-events.ts';
import { groupIds } from '../store/group-store.ts';
import { groupPaths } from '../store/paths.ts';
import type { AppContext } from './app-context.ts';
import { type LoadedGroup, loadReferredGroup, loadReferredSession, loadWithRunner } from './resolve.ts';
import { type Done, submit } from './submit.ts';

export interface InboxItem extends Pick<Item, 'id' | 'kind' | 'text' | 'options' | 'since' | 'answerBy'> {
  readonly group: GroupId;
  readonly session: SessionId;
  /** Its name or number. */
  readonly label: string;
}

export function inboxOf(state: GroupState): InboxItem[] {
  if (state.status === 'archived') return [];
  return [...state.sessions.values()].flatMap((record) => {
    const { id: session, name } = record.definition;
    return openItems(record).map(({ id, kind, text, options, since, answerBy }): InboxItem => {
      const by = answerBy === undefined ? {} : { answerBy };
      return {
        id,
        group: state.group.id,
        session,
        label: sessionLabel(session, name),
        kind,
        text,
        options,
        since,
        ...by,
      };
    });
  });
}

/** Oldest first. A group that cannot be read has no items. */
export function readInbox(place: AppContext, reference?: string): Result<InboxItem[]> {
  const groups = reference === undefined ? allGroups(place) : onlyGroup(place, reference);
  if (!groups.ok) return groups;
  const items = groups.value.flatMap(({ state }) => inboxOf(state));
  return ok(items.toSorted((a, b) => a.since.localeCompare(b.since)));
}

function onlyGroup(place: AppContext, reference: string): Result<LoadedGroup[]> {
  const group = loadReferredGroup(place, reference);
  return group.ok ? ok([group.value]) : group;
}

function allGroups(place: AppContext): Result<LoadedGroup[]> {
  const { world } = place;
  const folder = place.root();
  if (!folder.ok) return folder;
  return ok(
    groupIds(world, folder.value).flatMap((groupId) => {
      const paths = groupPaths(folder.value, groupId);
      // Most groups have never asked for anything, and reading a whole log takes longer than looking into it.
      if (world.files.readText(paths.events)?.includes('"type":"item_opened"') !== true) return [];
      const group = loadWithRunner(world, { root: folder.value, groupId, paths });
      return group.ok ? [group.value] : [];
    }),
  );
}

interface FoundItem {
  readonly group: LoadedGroup;
  readonly record: SessionRecord;
  readonly item: Item;
}

/** By its id, the beginning of one, or the session that has no other open item. */
function findItem(place: AppContext, reference: string): Result<FoundItem> {
  if (reference.includes('/')) return onlyItemOf(place, reference);
  const groups = allGroups(place);
  if (!groups.ok) return groups;
  const found = groups.value.flatMap((group) =>
    [...group.state.sessions.values()].flatMap((record) =>
      (record.items ?? []).flatMap((item) => (item.id.startsWith(reference) ? [{ group, record, item }] : [])),
    ),
  );
  const [first, second] = found;
  if (first === undefined) return fail('not-found', `There is no item ${quoted(reference)}.`, see('inbox'));
  if (second === undefined) return ok(first);
  return fail('ambiguous', `${quoted(reference)} fits ${found.length} items.`, 'Give more of the id.');
}

function onlyItemOf(place: AppContext, reference: string): Result<FoundItem> {
  const session = loadReferredSession(place, reference);
  if (!session.ok) return session;
  const { record } = session.value;
  const [item, other] = openItems(record);
  const inbox = see('inbox', session.value.groupId);
  if (item === undefined) return fail('usage', `Session ${quoted(reference)} does not wait for an answer.`, inbox);
  if (other !== undefined) return fail('ambiguous', `Session ${quoted(reference)} asks for several things.`, inbox);
  return ok({ group: session.value, record, item });
}

export interface Answered extends FoundItem {
  readonly by: Done['by'];
}

/** Fails with `usage` when the item was answered or withdrawn before. */
export async function answerItem(place: AppContext, reference: string, given: GivenAnswer): Promise<Result<Answered>> {
  const found = findItem(place, reference);
  if (!found.ok) return found;
  const { group, record, item } = found.value;
  if (item.state !== 'open') return fail('usage', closedText(item), '');
  const sessionId = record.definition.id;
  const done = await submit(place, group, { kind: 'answer-item', sessionId, item: item.id, given });
  return done.ok ? ok({ ...found.value, by: done.value.by }) : done;
}
