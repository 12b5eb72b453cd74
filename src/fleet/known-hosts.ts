/** The hosts of a fleet as a runner sees them, with their refused logins, and the messages about them. */
import { advise, adviseInOrder } from '../core/advice.ts';
import { defined } from '../core/defined.ts';
import type { HostSlots, Needs } from '../core/plan/decision.ts';
import type { FleetStanding } from '../core/progress.ts';
import type { FleetLink } from './engine-link.ts';
import { isCompatible, isLost, isSilent, type RegisteredHost, takesNew, withLogin } from './registry.ts';
import type { RefusedLogin } from './wire.ts';

const forgottenMs = 8_000;

export class KnownHosts {
  readonly #link: Pick<FleetLink, 'hosts' | 'refuseLogin'>;
  #listed: readonly RegisteredHost[] | null = null;
  #listedAtMs = 0;
  readonly #nowMs: () => number;
  /** Hosts when they were last listed, and the time, including removed ones. */
  readonly #known = new Map<string, { readonly host: RegisteredHost; readonly listedAtMs: number }>();
  #firstListedAtMs: number | null = null;
  /** When Redis stopped answering, and when it answered again. */
  #failedAtMs: number | null = null;
  #answersSinceMs = Number.NEGATIVE_INFINITY;
  /** Why git could not reach a host, and until when no new session is sent there. */
  readonly #unreached = new Map<string, { readonly why: string; readonly untilMs: number }>();
  readonly #refused = new Map<string, RefusedLogin>();

  /** `nowMs`: any monotonic clock. */
  constructor(link: Pick<FleetLink, 'hosts' | 'refuseLogin'>, nowMs: () => number) {
    this.#link = link;
    this.#nowMs = nowMs;
  }

  /**
   * The last list, with each host's silence; null = unknown yet. Times without an answer of Redis do not count as
   * silence.
   */
  get all(): readonly RegisteredHost[] | null {
    const nowMs = this.#failedAtMs ?? this.#nowMs();
    const heard = this.#listed?.map((host) => {
      const silentMs = host.silentMs + nowMs - this.#listedAtMs;
      return { ...host, silentMs: Math.min(silentMs, nowMs - this.#answersSinceMs) };
    });
    return heard?.map((host) => this.#reached(withLogin(host, this.#refused.get(host.name) ?? null))) ?? null;
  }

  #reached(host: RegisteredHost): RegisteredHost {
    const { why, untilMs } = this.#unreached.get(host.name) ?? { why: '', untilMs: 0 };
    return untilMs > this.#nowMs() ? { ...host, refusal: why } : host;
  }

  /** Milliseconds for which Redis has not answered; undefined = it answers. */
  get redisSilentMs(): number | undefined {
    return this.#failedAtMs === null ? undefined : this.#nowMs() - this.#failedAtMs;
  }

  leaseMsOf(host: string): number {
    return this.#known.get(host)?.host.leaseMs ?? 0;
  }

  /** It was removed. An engine that lost its data gets live hosts again with their next heartbeats. */
  isForgotten(host: string): boolean {
    const since = this.#known.get(host)?.listedAtMs ?? this.#firstListedAtMs;
    return since !== null && this.#listedAtMs - since >= forgottenMs;
  }

  /** See HostEntry; null = the host is unknown yet. */
  codeUrlOf(host: string): string | undefined | null {
    const known = this.#known.get(host);
    return known === undefined ? null : known.host.codeUrl;
  }

  /** Sessions go to other hosts for a while. */
  avoid(host: string, why: string): void {
    this.#unreached.set(host, { why, untilMs: this.#nowMs() + avoidMs });
  }

  async list(): Promise<void> {
    const listed = await this.#link.hosts();
    if (!listed.ok) {
      this.#failedAtMs ??= this.#nowMs();
      return;
    }
    if (this.#failedAtMs !== null) this.#answersSinceMs = this.#nowMs();
    this.#failedAtMs = null;
    this.#listed = listed.value;
    this.#listedAtMs = this.#nowMs();
    const listedAtMs = this.#listedAtMs;
    this.#firstListedAtMs ??= listedAtMs;
    for (const host of listed.value) this.#known.set(host.name, { host, listedAtMs });
  }

  /** claude was refused with the present login of the host. If that cannot be recorded, it holds for this run. */
  async refuse(host: string, trouble: string): Promise<void> {
    const refused = { trouble, ...defined({ key: this.#known.get(host)?.host.abilities.loginKey }) };
    this.#refused.set(host, refused);
    const told = await this.#link.refuseLogin(host, refused);
    if (told.ok) await this.list();
    if (told.ok && this.#refused.get(host) === refused) this.#refused.delete(host);
  }
}

/** How long no session is sent to a host that git could not reach. */
const avoidMs = 60_000;

/** Longer than it takes for sessions of a lost host to continue elsewhere. */
const stillMs = 10 * 60_000;

export function standingOf(hosts: readonly RegisteredHost[]): FleetStanding {
  const standing = { up: 0, drained: 0, refusing: 0, lost: 0, silent: {} as Record<string, number>, used: 0, slots: 0 };
  for (const host of hosts) {
    // Its sessions are not lost at once.
    if (isSilent(host) && host.silentMs <= host.leaseMs + stillMs) standing.silent[host.name] = host.silentMs;
    if (isLost(host)) standing.lost += 1;
    else if (host.isDrained) standing.drained += 1;
    else if (takesNew(host)) standing.up += 1;
    else if (!isSilent(host)) standing.refusing += 1;
    if (isLost(host)) continue;
    standing.used += host.used;
    standing.slots += host.slots;
  }
  return standing;
}

/** Text about a slot that is waited for. `hosts`: null = unknown yet. */
export function describeHosts(hosts: readonly RegisteredHost[] | null, needs: Needs): HostSlots {
  if (hosts === null) return { text: 'the hosts of the fleet have not answered yet', isUnknown: true };
  const fitting = fittingHosts(hosts, needs);
  if (fitting.length === 0) return noneFits(hosts, needs);
  const alive = fitting.filter((one) => !isLost(one));
  if (alive.length === 0) {
    const cure = advise('Start it again; how they stand shows', ['host', 'list']);
    return { text: `nothing is heard of ${namesOf(fitting)}`, cure };
  }
  if (alive.every(({ isDrained }) => isDrained)) {
    const resumed = alive.map(({ name }) => ['host', 'resume', name]);
    const drained = `${namesOf(alive)} ${alive.length === 1 ? 'is' : 'are'} drained`;
    return { text: drained, cure: adviseInOrder('Resume it with', ...resumed) };
  }
  if (!alive.some(isCompatible)) {
    const text = `the claude-code-agent of ${namesOf(alive)} is incompatible with this one`;
    const updates = alive.map(({ name }) => ['host', 'add', name, '--ssh', 'USER@HOST']);
    return { text, cure: adviseInOrder('Install this version there with', ...updates) };
  }
  const refused = fitting.filter(({ loginTrouble }) => loginTrouble !== undefined);
  const logins = refused.length === 0 ? '' : `; the login was refused on ${namesOf(refused)}`;
  return { text: `${howMany(alive)}${logins}` };
}

function noneFits(hosts: readonly RegisteredHost[], { requires = [], host }: Needs): HostSlots {
  const joining = ['host', 'add', host ?? 'NAME', '--ssh', 'USER@HOST'];
  const command = [...joining, ...requires.flatMap((label) => ['--label', label])];
  if (hosts.length === 0) return { text: 'no host has joined the fleet', cure: advise('Add one with', command) };
  if (host !== undefined && !hosts.some(({ name }) => name === host)) {
    return { text: `no host has that name; there is ${namesOf(hosts)}`, cure: advise('Add it with', command) };
  }
  const labels = [...new Set(hosts.flatMap((one) => one.labels))].toSorted();
  const known = labels.length === 0 ? 'none has any label' : `the labels there are: ${labels.join(', ')}`;
  const what = host === undefined ? 'no host of the fleet has that' : 'that host does not have it';
  return { text: `${what}; ${known}`, cure: advise('Add one that has it with', command) };
}

function howMany(alive: readonly RegisteredHost[]): string {
  const open = alive.filter(takesNew);
  if (open.length === 0) return `${plural(alive.length, 'such host')} take${alive.length === 1 ? 's' : ''} nothing new`;
  const slots = open.reduce((sum, one) => sum + one.slots, 0);
  const free = open.reduce((sum, one) => sum + Math.max(0, one.slots - one.used), 0);
  const state = free === 0 ? 'all busy' : `${free} free, one is being taken`;
  return `${plural(open.length, 'host')}, ${plural(slots, 'slot')}, ${state}`;
}

/** All fitting hosts when the login was refused on each; empty otherwise. */
export function withoutLogin(hosts: readonly RegisteredHost[] | null, needs: Needs): readonly string[] {
  // A drained host runs nothing until it is resumed.
  const serving = fittingHosts(hosts ?? [], needs).filter(({ isDrained }) => !isDrained);
  return serving.every(({ loginTrouble }) => loginTrouble !== undefined) ? serving.map(({ name }) => name) : [];
}

export function fittingHosts(
  hosts: readonly RegisteredHost[],
  { requires = [], host }: Needs,
): readonly RegisteredHost[] {
  return hosts.filter(
    ({ name, labels }) => (host === undefined || host === name) && requires.every((label) => labels.includes(label)),
  );
}

function namesOf(hosts: readonly RegisteredHost[]): string {
  return hosts.map(({ name }) => name).join(', ');
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
