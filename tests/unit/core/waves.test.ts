/**
 * Promises: a matrix starts in waves, each after a decision on the one before, by a rule or by a user. A crash
 * between any two events changes no decision.
 */
import { describe, expect, test } from 'bun:test';
import { advise } from '../../../src/core/advice.ts';
import type { GroupConfig, SessionDefinition, SessionId } from '../../../src/core/group.ts';
import type { Item } from '../../../src/core/item.ts';
import { groupAdvice } from '../../../src/core/plan/advice.ts';
import type { Decision } from '../../../src/core/plan/decision.ts';
import { decide } from '../../../src/core/plan/schedule.ts';
import { verdictsAtRest } from '../../../src/core/plan/verdicts.ts';
import { openWaveItem } from '../../../src/core/plan/waves.ts';
import { settingProblem } from '../../../src/core/setting-values.ts';
import { assignWaves, parseContinueIf } from '../../../src/core/waves.ts';
import { decisionEvents } from '../../../src/runner/fact-events.ts';
import { groupPaths } from '../../../src/store/paths.ts';
import type { World } from '../../../src/system/world.ts';
import { CoreLog, groupId, runnerIdentity, sessionDefinition, sid, usage } from '../../support/core-events.ts';

const threeWaves = ['3', '20%', 'rest'];

function matrix(key: string, numbers: readonly number[], after: (number: number) => readonly number[] = () => []) {
  return numbers.map((number) => sessionDefinition(number, after(number), { matrix: key }));
}

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

function wavesOf(definitions: readonly SessionDefinition[], waves: readonly string[] = threeWaves): number[] {
  const found = assignWaves(definitions, definitions, waves);
  return definitions.map(({ id }) => found.get(id) ?? 0);
}

const sizes = (waves: readonly number[]) =>
  [1, 2, 3, 4, 5, 6].map((wave) => waves.filter((one) => one === wave).length);

describe('assignment to waves', () => {
  test('a matrix of 80 sessions has waves of 3, 16 and 61 in file order', () => {
    const waves = wavesOf(matrix('change', range(1, 80)));
    expect(sizes(waves)).toEqual([3, 16, 61, 0, 0, 0]);
    expect(waves).toEqual(waves.toSorted());
  });

  test('each matrix entry is divided into waves separately, and sessions without a matrix have no wave', () => {
    const definitions = [...matrix('a', range(1, 10)), sessionDefinition(11), ...matrix('b', range(12, 15))];
    const waves = wavesOf(definitions);
    expect(waves.slice(0, 10)).toEqual([1, 1, 1, 2, 2, 3, 3, 3, 3, 3]);
    expect(waves.slice(10)).toEqual([0, 1, 1, 1, 2]);
  });

  test('an entry with one session for each session of another entry shares its waves', () => {
    const changes = matrix('change', range(11, 20), (number) => [number - 10]);
    const waves = wavesOf([...matrix('analyze', range(1, 10)), ...changes]);
    expect(waves.slice(10)).toEqual(waves.slice(0, 10));
  });

  test('an entry that needs all sessions of another one has its own small first wave after them', () => {
    const all = range(1, 10);
    const waves = wavesOf([
      ...matrix('analyze', all),
      sessionDefinition(11, all),
      ...matrix('change', range(12, 21), () => [11]),
    ]);
    expect(sizes(waves)).toEqual([3, 2, 5 + 3, 2, 5, 0]);
  });

  test('no session is in an earlier wave than its dependencies', () => {
    // The first session of one entry needs the last session of the other entry.
    const waves = wavesOf([...matrix('a', range(1, 6)), ...matrix('b', range(7, 12), (number) => [13 - number])]);
    for (const number of range(7, 12)) expect(waves[number - 1]).toBeGreaterThanOrEqual(waves[12 - number] as number);
  });
});

describe('the waves key', () => {
  test.each([
    [['3'], 'must be at least two sizes of waves, such as 3,20%,rest'],
    [['3', '120%', 'rest'], 'and "rest", such as 3,20%,rest; "120%" is not valid'],
    [['0', 'rest'], '"0" is not valid'],
    [['3', '20%'], 'must end with "rest"'],
    [['rest', 'rest'], 'must end with "rest", which occurs once'],
  ])('waves %j are refused: %s', (waves, problem) => {
    expect(settingProblem({ kind: 'waves' }, waves)).toContain(problem);
  });

  test.each(['accepted > 2', 'cost <= 5', 'accepted >= 3/2', 'accepted >= 1/0', 'accepted >= 2 or cost <= quote', ''])(
    'the rule %j is refused with its wrong part and the valid forms',
    (rule) => {
      const problem = parseContinueIf(rule);
      expect(problem).toContain('is none of: accepted >= N, N/M or N%, and cost <= $X or quote');
    },
  );

  test.each<[string, number | null, string[]]>([
    ['accepted >= 2', null, []],
    ['accepted >= 2/3 and cost <= $0.30', null, []],
    ['accepted >= 67%', null, ['2 of 3 accepted, fewer than 67%']],
    ['accepted >= 3/3 and cost <= $0.29', null, ['2 of 3 accepted, fewer than 3/3', 'it cost $0.30, more than $0.29']],
    ['cost <= quote', 0.3, []],
    ['cost <= quote', 0.2, ['it cost $0.30, more than $0.20']],
    ['cost <= quote', null, ['there was no estimate of its cost when the run began']],
  ])('the wave rule %s with a quote of %p gives %j', (rule, quote, failures) => {
    const terms = parseContinueIf(rule);
    if (typeof terms === 'string') throw new Error(terms);
    const results = { size: 3, accepted: 2, cost: 0.3 };
    expect(terms.flatMap((term) => term.failure(results, quote) ?? [])).toEqual(failures);
  });
});

const note = 'Keep the old name as an alias.';

/** Runs a group event by event as the runner does; sessions of `failing` fail. */
class Rig {
  readonly log: CoreLog;
  readonly failing: ReadonlySet<SessionId>;
  readonly answers: ('continue' | 'stop')[];

  constructor(log: CoreLog, failing: readonly number[], answers: readonly ('continue' | 'stop')[] = []) {
    this.log = log;
    this.failing = new Set(failing.map(sid));
    this.answers = [...answers];
  }

  /** False when the group is idle and no answer is left. */
  step(): boolean {
    const { log } = this;
    const { state } = log;
    if (state.status !== 'running') {
      const decision = openWaveItem(state) === undefined ? undefined : this.answers.shift();
      if (decision === undefined) return false;
      log.add({ type: 'wave_decided', wave: state.waves.allowed, decision, by: 'user', note });
      if (decision === 'continue') log.run();
      return true;
    }
    const decisions = decide(state, { preparingMax: 100 });
    const isStart = (one: Decision) => one.do === 'start';
    const others = decisions.filter((one) => !isStart(one));
    const world = { random: { uuid: () => `item-${log.events.length}` } } as unknown as World;
    for (const event of decisionEvents(world, groupPaths('/', groupId), state, others)) log.add(event);
    for (const one of decisions) if (one.do === 'start') log.start(one.sessionId, one.kind);
    if (decisions.length > 0) return true;
    const [id] = state.running;
    if (id === undefined) throw new Error('nothing to do');
    if (this.failing.has(id)) log.fail(id, usage(0.1));
    else log.complete(id, usage(0.1));
    return true;
  }

  run(): this {
    while (this.step());
    return this;
  }

  get prompts(): string[] {
    return [...this.log.state.sessions.values()].map(({ definition }) => definition.prompt);
  }

  /** The decisions and starts in order. */
  get story(): string[] {
    return this.log.events.flatMap((event) => {
      if (event.type === 'wave_finished') return `finished ${event.wave}: ${event.accepted}, ${event.cost}`;
      if (event.type === 'wave_decided') return `${event.by}: ${event.decision} ${event.wave}`;
      if (event.type === 'item_opened') return `asked: ${event.text}`;
      return event.type === 'session_completed' || event.type === 'session_failed' ? event.sessionId.slice(0, 3) : [];
    });
  }
}

function begun(config: Partial<GroupConfig>, definitions = matrix('change', range(1, 10))): CoreLog {
  const log = new CoreLog({ errorThreshold: 100, maxConcurrentSessions: 4, waves: threeWaves, ...config });
  for (const definition of definitions) log.addSession(definition);
  return log.run();
}

test('without a rule the group pauses after each wave and reports the cost of the rest', () => {
  const rig = new Rig(begun({}), [2]).run();
  expect(rig.log.state).toMatchObject({ status: 'paused', reason: 'waits-for-wave' });
  expect(rig.story.at(-1)).toBe(
    'asked: Wave 1 of 3: 2 of 3 sessions accepted, $0.30 spent. At this price the other 7 cost $0.70.',
  );
  const waiting = rig.log.state.sessions.get(sid(4));
  if (waiting === undefined) throw new Error('no session');
  expect(verdictsAtRest(rig.log.state)(waiting)).toMatchObject({
    reason: 'waits-for-wave',
    message: 'It belongs to wave 2 of 3; wave 1 comes before, and then a decision.',
  });
});

test('with an open question too, the advice is to look at both, not to continue without a decision', () => {
  const { state } = new Rig(begun({}), [2]).run().log;
  const record = state.sessions.get(sid(1));
  if (record === undefined) throw new Error('no session');
  record.items = [{ state: 'open' } as Item];
  expect(groupAdvice(state)).toEqual(advise('List the questions with', ['inbox', groupId]));
});

test('the note of a wave decision is in the prompts of all later sessions and of no other', () => {
  const rig = new Rig(begun({}), [], ['continue', 'continue']).run();
  expect(rig.log.state.status).toBe('completed');
  const counts = rig.prompts.map((prompt) => prompt.split(note).length - 1);
  expect(counts).toEqual([0, 0, 0, 1, 1, 2, 2, 2, 2, 2]);
});

test('a rule that is met starts the next wave without a user', () => {
  const rig = new Rig(begun({ continueIf: 'accepted >= 2/3 and cost <= $0.30' }), [2]).run();
  expect(rig.story.filter((line) => line.startsWith('rule'))).toEqual(['rule: continue 1', 'rule: continue 2']);
  expect(rig.log.state.counts).toMatchObject({ completed: 9, failed: 1 });
});

test('a rule that is not met asks the user with the reason, and is checked again after a retry', () => {
  const rig = new Rig(begun({ continueIf: 'accepted >= 3/3' }), [2]).run();
  expect(rig.story.at(-1)).toContain('The rule does not let the next wave start: 2 of 3 accepted, fewer than 3/3.');
  const item = openWaveItem(rig.log.state)?.id;
  rig.log.run([sid(2)]);
  const again = new Rig(rig.log, []).run();
  expect(again.log.state.status).toBe('completed');
  expect(again.log.state.waves.items.find(({ id }) => id === item)?.state).toBe('withdrawn');
});

test('the quote is that of the first run, and without a quote the user decides', () => {
  const config = { continueIf: 'cost <= quote' };
  const open = new Rig(begun(config), []).run();
  expect(open.story.at(-1)).toContain('there was no estimate of its cost when the run began');
  const log = new CoreLog({ waves: threeWaves, ...config });
  for (const definition of matrix('change', range(1, 10))) log.addSession(definition);
  log.add({ type: 'group_started', run: { id: 'run', runner: runnerIdentity, quotes: [0.3, 0.1, null] } });
  const quoted = new Rig(log, []).run();
  expect(quoted.story.filter((line) => line.startsWith('rule'))).toEqual(['rule: continue 1']);
  expect(quoted.story.at(-1)).toContain('it cost $0.20, more than $0.10');
});

test('stopping after a wave leaves the rest pending, and the next run asks again', () => {
  const rig = new Rig(begun({}), [], ['stop']).run();
  expect(rig.log.state.counts).toMatchObject({ completed: 3, pending: 7 });
  expect(rig.log.state.message).toBe('Stopped after wave 1 of 3: 7 sessions were not started.');
  rig.log.run();
  const again = new Rig(rig.log, [], ['continue', 'continue']).run();
  expect(again.log.state.status).toBe('completed');
});

test('a session without a matrix that depends on a wave starts without a decision', () => {
  const log = begun({}, [
    ...matrix('change', range(1, 10)),
    sessionDefinition(11, [1, 2]),
    sessionDefinition(12, [10]),
  ]);
  const rig = new Rig(log, []).run();
  const completed = [...rig.log.state.sessions.values()].filter(({ state }) => state.status === 'completed');
  expect(completed.map(({ definition }) => definition.id)).toEqual([1, 2, 3, 11].map(sid));
});

test('a crash after any event changes no decision, asks nothing twice and starts nothing early', () => {
  for (const config of [{}, { continueIf: 'accepted >= 3/3' }]) {
    const definitions = [...matrix('a', range(1, 8)), ...matrix('b', range(9, 16), (number) => [number - 8])];
    const straight = new Rig(begun(config, definitions), [2], ['continue', 'continue', 'continue']).run();
    const { events } = straight.log;
    for (let length = definitions.length + 2; length <= events.length; length += 1) {
      const log = new CoreLog({ ...straight.log.state.group.config });
      for (const { seq: _, at: __, groupId: ___, ...body } of events.slice(1, length)) log.add(body);
      const given = log.events.filter((event) => event.type === 'wave_decided' && event.by === 'user').length;
      const answers = (['continue', 'continue', 'continue'] as const).slice(given);
      // The next runner. The same command resumes a session that was just answered.
      if (log.state.status === 'running' || openWaveItem(log.state) === undefined) {
        if (!['completed', 'failed'].includes(log.state.status)) log.run();
      }
      const crashed = new Rig(log, [2], answers).run();
      expect([length, crashed.story]).toEqual([length, straight.story]);
      expect(crashed.prompts).toEqual(straight.prompts);
    }
  }
});
