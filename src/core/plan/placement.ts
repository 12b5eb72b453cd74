/** Which sessions may or must run on other hosts, and where the next attempt of a session runs. */
import { type Advice, advise, adviseInOrder } from '../advice.ts';
import { defined } from '../defined.ts';
import { type SlotLease, thisMachine } from '../event.ts';
import type { GroupConfig, SessionDefinition } from '../group.ts';
import { numberedName } from '../id.ts';
import type { SessionRecord } from '../session-state.ts';
import type { GroupState } from '../state.ts';
import type { FleetView, GroupHold, Needs, SlotWish } from './decision.ts';

function needsOf({ requires, host }: SessionDefinition): Needs {
  return defined({ requires, host });
}

export function slotRequestOf(record: SessionRecord): SlotWish {
  const { definition } = record;
  const prefer = lastHost(record);
  return {
    do: 'wish',
    sessionId: definition.id,
    needs: needsOf(definition),
    ...defined({ prefer }),
  };
}

/** The host with the session's files and caches; undefined = none, or it was lost with them. */
function lastHost({ definition, host, lost = [], state }: SessionRecord): string | undefined {
  if (host === undefined || host === thisMachine || definition.host !== undefined) return undefined;
  const isLost = state.status === 'paused' && state.reason === 'host-lost';
  return isLost || lost.some(({ attempt }) => attempt.place?.host === host) ? undefined : host;
}

export function hasHostConstraints({ requires, host }: Needs): boolean {
  return host !== undefined || (requires !== undefined && requires.length > 0);
}

/** It does not run on this machine, by its own or its group's setting. */
export function requiresRemote({ where }: Pick<GroupConfig, 'where'>, definition: SessionDefinition): boolean {
  return where === 'fleet' || hasHostConstraints(definition);
}

export interface LocalRoom {
  readonly places: number;
  /** What is scarce, if not the slots themselves. */
  readonly wait: GroupHold | null;
}

export type SessionPlacement =
  | { readonly at: 'here' }
  | { readonly at: 'elsewhere'; readonly place: SlotLease }
  | { readonly at: 'wish'; readonly hold: GroupHold }
  | { readonly at: 'nowhere'; readonly hold: GroupHold };

const here: SessionPlacement = { at: 'here' };

export interface PlacementLimits {
  readonly room: LocalRoom;
  readonly wishesMax: number;
}

/** Finds the placement of sessions, one after another in starting order. */
export class PlacementFinder {
  readonly #config: GroupConfig;
  readonly #fleet: FleetView | null;
  readonly #room: LocalRoom;
  /** Attempts that run here, including newly placed ones. */
  #locals = 0;
  #begun = 0;
  #wishes: number;

  constructor(state: GroupState, fleet: FleetView | null, { room, wishesMax }: PlacementLimits) {
    this.#config = state.group.config;
    this.#fleet = fleet;
    this.#room = room;
    this.#wishes = wishesMax;
    for (const id of state.running) if (!isElsewhere(state.sessions.get(id))) this.#locals += 1;
  }

  of(record: SessionRecord, isolated: boolean): SessionPlacement {
    const { definition, finished } = record;
    const fleet = this.#fleet;
    // If only acceptance is left, the work is here.
    const must = requiresRemote(this.#config, definition) && finished === undefined;
    if (must && fleet === null) return { at: 'nowhere', hold: noFleet(definition) };
    if (must && this.#config.where === 'local') return { at: 'nowhere', hold: keptHere(definition) };
    if (must && !isolated) return { at: 'nowhere', hold: inPlace(definition) };
    const may = fleet !== null && isolated && this.#config.where !== 'local' && finished === undefined;
    if (!may) return this.#here(null);
    const place = fleet.granted.get(definition.id);
    if (place !== undefined) return { at: 'elsewhere', place };
    // The host with its files and caches is asked first, as long as others wait for it.
    const isAwaited = lastHost(record) !== undefined && !fleet.staleSlotRequests.has(definition.id);
    const refused = must ? fleet.withoutLogin(needsOf(definition)) : [];
    if (refused.length > 0) return { at: 'nowhere', hold: noLogin(definition, refused) };
    if (must || isAwaited || this.#locals >= fleet.localSlots) return this.#wish(fleet, definition);
    return this.#here(() => this.#wish(fleet, definition));
  }

  /** Slot requests that stay without a grant do not delay the preparation of other sessions. */
  #wish(fleet: FleetView, definition: SessionDefinition): SessionPlacement {
    if (fleet.staleSlotRequests.has(definition.id)) return wish(fleet, definition);
    if (this.#wishes <= 0) return { at: 'nowhere', hold: busy };
    this.#wishes -= 1;
    return wish(fleet, definition);
  }

  take(spot: SessionPlacement): void {
    if (spot.at !== 'here') return;
    this.#locals += 1;
    this.#begun += 1;
  }

  /** `instead`: the alternative when this machine is full. */
  #here(instead: (() => SessionPlacement) | null): SessionPlacement {
    if (this.#begun < this.#room.places) return here;
    if (instead !== null) return instead();
    return { at: 'nowhere', hold: this.#room.wait ?? busy };
  }
}

const busy: GroupHold = { reason: 'starting', message: 'Other sessions are still starting up.' };

export function isElsewhere(record: SessionRecord | undefined): boolean {
  return record?.state.status === 'running' && record.state.attempt.place !== undefined;
}

function wish(fleet: FleetView, definition: SessionDefinition): SessionPlacement {
  const { text, cure, isUnknown } = fleet.describe(needsOf(definition));
  const message = `It waits for a slot ${wanted(definition)}: ${text}.`;
  // The reason is reported again once the hosts are known.
  const reason = isUnknown ? 'starting' : 'host';
  return { at: 'wish', hold: { reason, message, ...defined({ advice: cure }) } };
}

function wanted({ requires = [], host }: Needs): string {
  const labels = requires.length === 0 ? '' : ` with ${requires.join(' and ')}`;
  if (host !== undefined) return `of the host ${host}${labels}`;
  return labels === '' ? 'of another host' : labels.trim();
}

function refusal(definition: SessionDefinition, why: string, advice: Advice): GroupHold {
  return { reason: 'no-host', message: `${isToWork(definition)}, ${why}.`, advice };
}

function isToWork(definition: SessionDefinition): string {
  return `Session ${numberedName(definition.id, definition.name)} is to work ${asked(definition)}`;
}

/** Requirements that no host satisfies, of all pending sessions that must run elsewhere. */
export function unsatisfiableRequirements(
  { group: { config }, sessions, only }: GroupState,
  describe: FleetView['describe'],
): ReadonlyMap<string, { readonly message: string; readonly advice: Advice }> {
  const lacks = new Map<string, { readonly message: string; readonly advice: Advice }>();
  const open = [...sessions.values()].filter(
    ({ definition, state }) => state.status !== 'completed' && only?.has(definition.id) !== false,
  );
  const elsewhere = config.where === 'local' ? [] : open.filter(({ definition }) => requiresRemote(config, definition));
  for (const [needs, alike] of Map.groupBy(elsewhere, ({ definition }) => JSON.stringify(needsOf(definition)))) {
    const { definition } = alike[0] as SessionRecord;
    const { text, cure } = describe(needsOf(definition));
    const others = alike.length > 1 ? `, as ${alike.length - 1} more` : '';
    if (cure !== undefined) lacks.set(needs, { message: `${isToWork(definition)}${others}: ${text}.`, advice: cure });
  }
  return lacks;
}

function asked(definition: SessionDefinition): string {
  const { requires = [], host } = definition;
  if (host !== undefined) return `on the host ${host}`;
  return requires.length === 0 ? 'on another host' : `on a host with ${requires.join(' and ')}`;
}

function noFleet(definition: SessionDefinition): GroupHold {
  return refusal(
    definition,
    'and no fleet is set up here',
    advise('Set one up with', ['fleet', 'init', '--redis', 'URL']),
  );
}

/** Once its login has changed, a host takes sessions again. */
function noLogin(definition: SessionDefinition, hosts: readonly string[]): GroupHold {
  const listed = hosts.length === 1 ? hosts[0] : `${hosts.slice(0, -1).join(', ')} and ${hosts.at(-1)}`;
  const resumed = hosts.map((name) => ['host', 'resume', name]);
  const advice = adviseInOrder('Log in there, or retry with', ...resumed);
  return refusal(definition, `and the login was refused on ${listed}`, advice);
}

function keptHere(definition: SessionDefinition): GroupHold {
  return refusal(definition, 'and its group runs only on this host', advise('Run it with --where any.'));
}

function inPlace(definition: SessionDefinition): GroupHold {
  const why = 'but without a worktree it must run in the project folder, which is here';
  return refusal(
    definition,
    why,
    advise('Give it a worktree with --isolate worktree, or remove --requires and --host.'),
  );
}
