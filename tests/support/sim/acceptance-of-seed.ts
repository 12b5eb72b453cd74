/**
 * Which sessions of a scenario have an acceptance command, and what their commands do; with separate random numbers.
 */
import type { GroupConfig } from '../../../src/core/group.ts';
import { type Cell, type DecisionKind, isWorkKind } from './coverage.ts';
import type { AcceptanceSketch, CommandBehaviour, SimulatedSession, TimedAct } from './scenario.ts';
import { type Seeded, seededFor } from './seeded.ts';

/** Scenarios about budgets have none, because every further attempt changes the distribution of the budget. */
const plain: ReadonlySet<DecisionKind> = new Set(['stop-top-up', 'stop-budget', 'warn-budget']);

/** A fault on a command must find it running. */
const needsLongCommands: ReadonlySet<DecisionKind> = new Set(['stop-accept', 'freeze', 'thaw']);

/** The same sessions, some of them with an acceptance command. */
export function withAcceptance(
  seed: number,
  sessions: readonly SimulatedSession[],
  { decision }: Cell,
): SimulatedSession[] {
  const luck = seededFor(seed, 'acceptance');
  const share = isWorkKind(decision) ? 0.9 : !plain.has(decision) && luck.chance(0.3) ? 0.4 : 0;
  const fails = decision === 'reject' ? 0.8 : 0.35;
  // More of them would only make the scenario longer.
  const most = decision === 'stop-accept' ? luck.pick([1, 1, 2]) : isWorkKind(decision) ? 2 : sessions.length;
  return sessions
    .slice(0, most)
    .map((session) =>
      luck.chance(share)
        ? { ...session, acceptance: acceptanceFor(luck, fails, needsLongCommands.has(decision)) }
        : session,
    );
}

function acceptanceFor(luck: Seeded, fails: number, isLong: boolean): AcceptanceSketch {
  const behaviours = Array.from({ length: 4 }, () => commandFor(luck, fails, isLong));
  const retries = luck.pick([undefined, 0, 1, 2]);
  return {
    ...(retries === undefined ? {} : { retries }),
    timeoutMs: luck.int(isLong ? 6_000 : 2_500, 7_000),
    behaviours,
  };
}

function commandFor(luck: Seeded, fails: number, isLong: boolean): CommandBehaviour {
  return {
    ending: isLong
      ? luck.pick(['succeeds', 'hangs', 'hangs'] as const)
      : luck.chance(fails)
        ? luck.pick(['fails', 'fails', 'fails', 'hangs', 'killed'] as const)
        : 'succeeds',
    workMs: isLong ? luck.int(2_000, 4_000) : luck.int(50, 1_800),
    term: luck.pick(['obeyed', 'obeyed', 'obeyed', 'slow', 'ignored', 'success']),
    child: luck.pick(['none', 'none', 'none', 'marked', 'wiped', 'stubborn', 'wiped-stubborn']),
  };
}

/** Half of the scenarios limit concurrent commands to one, so that others must wait. */
export function commandSlotsOf(seed: number): Pick<GroupConfig, 'commandsAtOnce'> {
  return seededFor(seed, 'command slots').chance(0.5) ? { commandsAtOnce: 1 } : {};
}

/** Stops of commands must be tried again and again, because commands run only briefly. */
export function stopsOfCommands(seed: number): TimedAct[] {
  const luck = seededFor(seed, 'stops of commands');
  return Array.from({ length: 8 }, (_, index): TimedAct => {
    const atMs = 1_500 + index * 1_800 + luck.int(0, 1_700);
    return luck.chance(0.6)
      ? { atMs, do: 'signal', signal: luck.pick(['SIGINT', 'SIGTERM']) }
      : { atMs, do: 'session-pause', index: luck.int(0, 1) };
  });
}
