/** Canary waves: the next one starts after a decision on the one before, by the group's rule or by the user. */
import { advise } from '../advice.ts';
import { roundUsd, type SessionId } from '../group.ts';
import type { SessionRecord } from '../session-state.ts';
import type { GroupState, WaveItem } from '../state.ts';
import { formatMoney } from '../text.ts';
import { parseContinueIf, type WaveResults } from '../waves.ts';
import type { Decision, WaitReason } from './decision.ts';
import { allBlockers, planOf, willNotRun } from './plan.ts';

export function waveCount(state: GroupState): number {
  return Math.max(0, ...planOf(state).waves.values());
}

/** The number of sessions in waves without a decision. */
function restCount(state: GroupState): number {
  return [...planOf(state).waves].filter(
    ([id, wave]) => wave > state.waves.allowed && state.sessions.get(id)?.state.status !== 'completed',
  ).length;
}

/** The results of the wave to be decided next; null while one of its sessions may still run. */
function resultsOf(state: GroupState): WaveResults | null {
  const plan = planOf(state);
  const members = [...plan.waves].flatMap(([id, wave]) => (wave === state.waves.allowed ? [id] : []));
  const blocked = allBlockers(state, plan);
  const isCompleted = (id: SessionId) => state.sessions.get(id)?.state.status === 'completed';
  const isOver = (id: SessionId) => isCompleted(id) || willNotRun(state, id) || blocked.has(id);
  if (!members.every(isOver)) return null;
  const cost = members.reduce((sum, id) => sum + (state.sessions.get(id)?.usage.costUsd ?? 0), 0);
  return { size: members.length, accepted: members.filter(isCompleted).length, cost: roundUsd(cost) };
}

export function openWaveItem({ waves }: GroupState): WaveItem | undefined {
  const item = waves.items.at(-1);
  return item?.state === 'open' ? item : undefined;
}

/** The wave event to log before anything is started; null = none. */
export function waveStep(state: GroupState): Decision | null {
  const { allowed: wave, finished, stopped, quotes } = state.waves;
  const count = waveCount(state);
  if (wave > count || stopped) return null;
  const results = resultsOf(state);
  if (results === null) return null;
  const { accepted, cost } = results;
  const isKnown = finished?.wave === wave && finished.accepted === accepted && finished.cost === cost;
  if (!isKnown) return { do: 'record', event: { type: 'wave_finished', wave, accepted, cost } };
  if (wave === count) return null;
  const failures = ruleFailures(state, results, quotes?.[wave - 1] ?? null);
  if (failures?.length === 0)
    return { do: 'record', event: { type: 'wave_decided', wave, decision: 'continue', by: 'rule' } };
  if (openWaveItem(state) !== undefined) return null;
  return { do: 'ask-wave', wave, text: resultsText(state, results, failures ?? []) };
}

/** Why the rule does not let the group continue; undefined without a rule. */
function ruleFailures({ group }: GroupState, results: WaveResults, quoteUsd: number | null): string[] | undefined {
  const { continueIf } = group.config;
  if (continueIf === undefined) return undefined;
  const terms = parseContinueIf(continueIf);
  if (typeof terms === 'string') return [`continueIf ${terms}`];
  return terms.flatMap((term) => term.failure(results, quoteUsd) ?? []);
}

function resultsText(state: GroupState, { size, accepted, cost }: WaveResults, failures: readonly string[]): string {
  const rest = restCount(state);
  const sessions = size === 1 ? 'session' : 'sessions';
  const done = `Wave ${state.waves.allowed} of ${waveCount(state)}: ${accepted} of ${size} ${sessions} accepted`;
  const why = failures.length === 0 ? '' : ` The rule does not let the next wave start: ${failures.join('; ')}.`;
  const price = formatMoney((cost / Math.max(1, size)) * rest);
  const verb = rest === 1 ? 'costs' : 'cost';
  return `${done}, ${formatMoney(cost)} spent.${why} At this price the other ${rest} ${verb} ${price}.`;
}

/** The end of the run when only a decision is missing; null otherwise. */
export function waveSettlement(state: GroupState): string | null {
  const { allowed, stopped } = state.waves;
  const count = waveCount(state);
  if (allowed >= count || resultsOf(state) === null) return null;
  const rest = restCount(state);
  const others = `${rest} ${rest === 1 ? 'session was' : 'sessions were'} not started`;
  return stopped
    ? `Stopped after wave ${allowed} of ${count}: ${others}.`
    : `Wave ${allowed} of ${count} waits for a decision: ${others}.`;
}

export function waitsForWave(state: GroupState, { definition }: SessionRecord): WaitReason {
  const { allowed, stopped } = state.waves;
  const wave = `It belongs to wave ${planOf(state).waves.get(definition.id)} of ${waveCount(state)}`;
  const message = stopped
    ? `${wave}; the run was stopped after wave ${allowed}.`
    : `${wave}; wave ${allowed} comes before, and then a decision.`;
  const item = openWaveItem(state);
  if (item === undefined) return { reason: 'waits-for-wave', message };
  const advice = advise('Decide with', ['answer', item.id, 'continue'], ['answer', item.id, 'stop']);
  return { reason: 'waits-for-wave', message, advice };
}
