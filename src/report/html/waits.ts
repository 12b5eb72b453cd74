/** Why a session did not run, moment by moment: what is known of it alone, with what held for the whole group. */
import type { SessionId } from '../../core/group.ts';
import type { History, SessionHistory, Stretch } from './history.ts';
import { type Piece, paint, type Span, union } from './spans.ts';

export const waitReasons = [
  'slot',
  'cache',
  'dependency',
  'blocked',
  'limit',
  'budget',
  'backoff',
  'paused',
  'errors',
] as const;
/**
 * `slot`: nothing stood in its way but that others ran. `cache`: one of its kind was to fill the prompt cache first.
 * `errors`: nothing new starts because too much failed.
 */
export type WaitReason = (typeof waitReasons)[number];

export type Wait = Piece<WaitReason>;

interface Graph {
  /** Every session after its dependencies. */
  readonly order: readonly SessionId[];
  dependsOn(id: SessionId): readonly SessionId[];
}

/** The waits of every session, in order of time; from the first run on. Empty when dependencies do not count. */
export function waitsOf(history: History, graph: Graph): Map<SessionId, Wait[]> {
  const { from, to } = history;
  const found = new Map<SessionId, Wait[]>();
  if (from === undefined) return found;
  const blocked = new Map<SessionId, readonly Span[]>();
  for (const id of graph.order) {
    const dependencies = graph.dependsOn(id);
    const unmetUntil = dependencies.reduce(
      (latest, other) => Math.max(latest, history.sessions.get(other)?.completedAt ?? to),
      from,
    );
    const unmet: Span[] = unmetUntil > from ? [{ from, to: unmetUntil }] : [];
    const culprits = dependencies.flatMap((other) => [
      ...failuresOf(history.sessions.get(other)),
      ...(blocked.get(other) ?? []),
    ]);
    const hopeless = culprits.length === 0 ? [] : union(culprits);
    if (hopeless.length > 0) blocked.set(id, hopeless);
    const session = history.sessions.get(id);
    if (session === undefined) continue;
    const waits = session.stretches.flatMap((stretch) =>
      waitsIn(stretch, { history, warming: history.warming.get(id) ?? [], unmet, hopeless, from }),
    );
    if (waits.length > 0) found.set(id, waits);
  }
  return found;
}

function failuresOf(session: SessionHistory | undefined): Span[] {
  return session?.stretches.filter(({ rest }) => rest === 'failed') ?? [];
}

interface SchedulingContext {
  readonly history: History;
  readonly warming: readonly Span[];
  readonly unmet: readonly Span[];
  readonly hopeless: readonly Span[];
  readonly from: number;
}

/** Later layers hide earlier ones: the last that applies is what a person would name first. */
function waitsIn(stretch: Stretch, { history, warming, unmet, hopeless, from }: SchedulingContext): Wait[] {
  const begin = Math.max(stretch.from, from);
  if (stretch.rest === 'failed' || stretch.to <= begin) return [];
  const whole: Span = { from: begin, to: stretch.to };
  let pieces: Wait[] = [{ ...whole, kind: 'slot' }];
  const lay = (spans: readonly Span[], kind: WaitReason): void => {
    pieces = paint(pieces, spans, kind);
  };
  lay(warming, 'cache');
  lay(history.errors, 'errors');
  lay(history.dry, 'budget');
  if (stretch.notBefore !== undefined) {
    lay([{ from: begin, to: stretch.notBefore }], stretch.forLimit ? 'limit' : 'backoff');
  }
  lay(history.limits, 'limit');
  lay(history.held, 'paused');
  if (stretch.rest !== 'ready') lay([whole], stretch.rest);
  lay(unmet, 'dependency');
  if (unmet.length > 0) {
    for (const span of unmet) lay(within(hopeless, span), 'blocked');
  }
  for (const gap of history.gaps) lay([gap], gap.kind);
  return pieces;
}

function within(spans: readonly Span[], { from, to }: Span): Span[] {
  return spans
    .filter((span) => span.from < to && span.to > from)
    .map((span) => ({ from: Math.max(from, span.from), to: Math.min(to, span.to) }));
}
