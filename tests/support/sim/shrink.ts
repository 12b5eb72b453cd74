/** Shrinks a scenario that breaks a promise to the smallest one that breaks the same promise, and reports it. */
import type { AcceptanceSketch, Behaviour, CommandBehaviour, Scenario, SimulatedSession } from './scenario.ts';
import { nameOf } from './scenario-of-seed.ts';
import { type SimulationOptions, simulate } from './simulation.ts';

/** Maximum number of simulations for shrinking. */
const triesMax = 400;

const plainBehaviour: Behaviour = {
  messages: 1,
  tools: false,
  ending: 'success',
  slowness: 1,
  interrupt: 'obeyed',
  term: 'obeyed',
  tool: 'tame',
  pieces: false,
  forgets: false,
  nearLimit: false,
};

/** The smallest scenario found that breaks the same promise as the given one. */
export function shrink(scenario: Scenario, options: SimulationOptions = {}): Scenario {
  const invariant = simulate(scenario, options).violation?.invariant;
  if (invariant === undefined) return scenario;
  let smallest = scenario;
  let tries = 0;
  for (let isSmaller = true; isSmaller && tries < triesMax; ) {
    isSmaller = false;
    for (const candidate of smallerOnes(smallest)) {
      tries += 1;
      if (tries > triesMax) break;
      if (simulate(candidate, options).violation?.invariant !== invariant) continue;
      smallest = candidate;
      isSmaller = true;
      break;
    }
  }
  return smallest;
}

/** Scenarios with one thing less, the largest things first. */
function* smallerOnes(scenario: Scenario): Generator<Scenario> {
  const { sessions, acts, crashes, logins } = scenario;
  if (crashes.length > 0) yield { ...scenario, crashes: [] };
  if (acts.length > 1) yield { ...scenario, acts: acts.slice(0, 1) };
  // The last session can be removed without changing the others' dependencies.
  if (sessions.length > 1) yield { ...scenario, sessions: sessions.slice(0, -1) };
  if (sessions.length > 1) yield { ...scenario, sessions: withoutFirst(sessions) };
  for (const [index] of acts.entries()) if (index > 0) yield { ...scenario, acts: acts.toSpliced(index, 1) };
  for (const [index] of crashes.entries()) yield { ...scenario, crashes: crashes.toSpliced(index, 1) };
  if (logins.length > 0) yield { ...scenario, logins: [] };
  for (const [index, session] of sessions.entries()) {
    const replaced = (behaviours: readonly Behaviour[]) => ({
      ...scenario,
      sessions: sessions.with(index, { ...session, behaviours }),
    });
    if (session.dependsOn.length > 0) {
      yield { ...scenario, sessions: sessions.with(index, { ...session, dependsOn: [] }) };
    }
    const { acceptance, ...rest } = session;
    if (acceptance !== undefined) {
      yield { ...scenario, sessions: sessions.with(index, rest) };
      for (const fewer of fewerCommands(acceptance)) {
        yield { ...scenario, sessions: sessions.with(index, { ...session, acceptance: fewer }) };
      }
    }
    if (session.behaviours.length > 0) yield replaced(session.behaviours.slice(0, -1));
    for (const [place, behaviour] of session.behaviours.entries()) {
      for (const key of Object.keys(plainBehaviour) as (keyof Behaviour)[]) {
        if (behaviour[key] === plainBehaviour[key]) continue;
        yield replaced(session.behaviours.with(place, { ...behaviour, [key]: plainBehaviour[key] }));
      }
    }
  }
}

function* fewerCommands(acceptance: AcceptanceSketch): Generator<AcceptanceSketch> {
  const { behaviours } = acceptance;
  if (behaviours.length > 0) yield { ...acceptance, behaviours: behaviours.slice(0, -1) };
  for (const [place, behaviour] of behaviours.entries()) {
    for (const [key, plain] of Object.entries({ ending: 'succeeds', term: 'obeyed', child: 'none' } as const)) {
      if (behaviour[key as keyof CommandBehaviour] === plain) continue;
      yield { ...acceptance, behaviours: behaviours.with(place, { ...behaviour, [key]: plain }) };
    }
  }
}

function withoutFirst(sessions: readonly SimulatedSession[]): SimulatedSession[] {
  return sessions.slice(1).map((session) => ({
    ...session,
    dependsOn: session.dependsOn.filter((index) => index > 0).map((index) => index - 1),
  }));
}

/** A report for readers: the seed, the rest of its scenario, what happened and what broke. */
export function tell(scenario: Scenario, options: SimulationOptions = {}): string {
  const { violation, trace } = simulate(scenario, { ...options, trace: true });
  const { config, sessions, acts, crashes } = scenario;
  return [
    violation === null
      ? `seed ${nameOf(scenario)} keeps all promises`
      : `seed ${nameOf(scenario)} breaks the promise "${violation.invariant}": ${violation.message}`,
    `  config   ${JSON.stringify(config)}`,
    ...sessions.map((session, index) => `  session  ${index + 1} ${JSON.stringify(session)}`),
    ...acts.map((act) => `  act      ${JSON.stringify(act)}`),
    ...crashes.map((crash) => `  crash    ${JSON.stringify(crash)}`),
    ...trace,
  ].join('\n');
}
