/**
 * Promises: a preview shows the waves, the critical path and caps that cannot hold. Its estimates come only from
 * history.
 */
import { describe, expect, test } from 'bun:test';
import { defaultGroupConfig, type GroupConfig, type SessionDefinition } from '../../../src/core/group.ts';
import { costHistory, previewOf, type Sample } from '../../../src/core/plan/preview.ts';
import { foldEvents } from '../../../src/core/reduce.ts';
import type { GroupState } from '../../../src/core/state.ts';
import { fc } from '../../support/property.ts';

const at = '2026-01-02T03:04:05.000Z';
const groupId = '20260102-030405-x';

type Fields = Partial<Omit<SessionDefinition, 'dependsOn'>> & { readonly after?: readonly number[] };

const idOf = (index: number) => `${String(index + 1).padStart(3, '0')}-a`;

function stateOf(sessions: readonly Fields[], config: Partial<GroupConfig> = {}): GroupState {
  const group = { id: groupId, name: 'x', description: '', slug: 'x', createdAt: at };
  const state = foldEvents([
    { seq: 1, at, groupId, type: 'group_created', group: { ...group, config: { ...defaultGroupConfig, ...config } } },
    ...sessions.map(({ after = [], ...fields }, index) => ({
      seq: index + 2,
      at,
      groupId,
      type: 'session_added' as const,
      sessionId: idOf(index),
      session: {
        id: idOf(index),
        description: '',
        projectPath: '/p',
        prompt: 'do',
        createdAt: at,
        ...fields,
        dependsOn: after.map(idOf),
      },
    })),
  ]);
  if (state === null) throw new Error('no state');
  return state;
}

test('a matrix wave begins after the one before, and its quote is the sum of the upper estimates', () => {
  const entry = (matrix: string, after: readonly number[] = []) => ({ matrix, after, template: 'known' });
  const sessions = [
    ...[0, 1, 2].map(() => entry('a')),
    ...[0, 1, 2].map((number) => entry('b', [number])),
    { after: [0] },
  ];
  const state = stateOf(sessions, { waves: ['1', 'rest'] });
  const history = costHistory([sample(1, { template: 'known' }), sample(3, { template: 'known' })]);
  const { waves, canaryWaves } = previewOf(state, history);
  expect(waves).toEqual([[0], [3, 6], [1, 2], [4, 5]].map((wave) => wave.map(idOf)));
  expect(canaryWaves).toEqual([
    { sessions: [0, 3].map(idOf), quoteUsd: 6 },
    { sessions: [1, 2, 4, 5].map(idOf), quoteUsd: 12 },
  ]);
  expect(previewOf(state, none).canaryWaves.map(({ quoteUsd }) => quoteUsd)).toEqual([null, null]);
});

const sample = (costUsd: number, more: Partial<Sample> = {}): Sample => ({ costUsd, durationMs: 1_000, ...more });
const none = costHistory([]);

describe('historyOf', () => {
  test('historyOf returns nothing for unknown kinds of sessions', () => {
    const history = costHistory([sample(1, { template: 'review', model: 'opus' })]);
    for (const kind of [{}, { template: 'review' }, { model: 'opus' }, { template: 'other', model: 'opus' }]) {
      expect(history.forecast(kind)).toBeNull();
    }
    expect(history.forecast({ template: 'review', model: 'opus' })).toMatchObject({ samples: 1 });
  });

  test('historyOf returns the nearest-rank median and 90th percentile, which are values that occurred', () => {
    const history = costHistory([10, 9, 8, 7, 6, 5, 4, 3, 2, 1].map((usd) => sample(usd)));
    expect(history.forecast({})?.costUsd).toEqual({ p50: 5, p90: 9 });
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 100, noNaN: true }), { minLength: 1 }), (costs) => {
        const spread = costHistory(costs.map((usd) => sample(usd))).forecast({})?.costUsd;
        expect(costs).toContain(spread?.p50 ?? -1);
        expect(costs).toContain(spread?.p90 ?? -1);
        expect(costs.filter((usd) => usd <= (spread?.p50 ?? -1)).length * 2).toBeGreaterThanOrEqual(costs.length);
        expect(costs.filter((usd) => usd <= (spread?.p90 ?? -1)).length).toBeGreaterThanOrEqual(costs.length * 0.9);
      }),
    );
  });
});

describe('previewOf', () => {
  test('previewOf names the session that starts first when three similar ones would start together', () => {
    const haiku = { model: 'haiku', after: [1] };
    const sessions = [{}, {}, {}, { model: 'opus' }, haiku, haiku, haiku];
    expect(previewOf(stateOf(sessions), none).warmUps).toEqual([
      { wave: 1, first: idOf(1), others: 2 },
      { wave: 2, first: idOf(4), others: 2 },
    ]);
    for (const config of [{ warmCache: false }, { maxConcurrentSessions: 1 }]) {
      expect(previewOf(stateOf(sessions, config), none).warmUps).toEqual([]);
    }
  });

  test('previewOf announces no waiting for a cache that an earlier wave has filled, or without a slot', () => {
    const fan = [{}, { after: [0] }, { after: [0] }, { after: [0] }, { after: [0] }];
    expect(previewOf(stateOf(fan), none).warmUps).toEqual([]);
    const two = previewOf(stateOf([{}, {}, {}, {}], { maxConcurrentSessions: 2 }), none);
    expect(two.warmUps).toEqual([{ wave: 1, first: idOf(0), others: 1 }]);
  });

  test('previewOf puts a session into the first wave after all of its dependencies', () => {
    const { waves } = previewOf(stateOf([{}, { after: [0] }, {}, { after: [1, 2] }]), none);
    expect(waves).toEqual([[idOf(0), idOf(2)], [idOf(1)], [idOf(3)]]);
  });

  test('previewOf shows one wave and no critical path when dependencies are not respected', () => {
    const preview = previewOf(stateOf([{}, { after: [0] }], { respectDependencies: false }), none);
    expect(preview).toMatchObject({ waves: [[idOf(0), idOf(1)]], criticalPath: [] });
  });

  test('the critical path is the longest by time when all times are known, and by number otherwise', () => {
    const sessions: Fields[] = [{ template: 'slow' }, { template: 'quick' }, { template: 'quick', after: [1] }];
    expect(previewOf(stateOf(sessions), none).criticalPath).toEqual([idOf(1), idOf(2)]);
    const history = costHistory([
      sample(1, { template: 'slow', durationMs: 9_000 }),
      sample(1, { template: 'quick', durationMs: 1_000 }),
    ]);
    expect(previewOf(stateOf(sessions), history)).toMatchObject({
      criticalPath: [idOf(0)],
      criticalMs: { p50: 9_000, p90: 9_000 },
      costUsd: { p50: 3, p90: 3 },
      withoutHistory: [],
    });
  });

  test('the preview of a group without sessions is empty', () => {
    expect(previewOf(stateOf([]), none)).toMatchObject({ waves: [], criticalPath: [], costUsd: null });
  });

  test('the group’s model is used for sessions without a model', () => {
    const history = costHistory([sample(2, { model: 'opus' })]);
    expect(previewOf(stateOf([{}], { model: 'opus' }), history).costUsd).toEqual({ p50: 2, p90: 2 });
    expect(previewOf(stateOf([{ model: 'haiku' }], { model: 'opus' }), history).costUsd).toBeNull();
  });

  test.each([
    [
      'own caps whose sum exceeds the free budget',
      [{ maxBudgetUsd: 3 }, { maxBudgetUsd: 3 }],
      { maxBudgetUsd: 5 },
      'add up',
    ],
    ['a free budget that is too small for all first starts', [{}, {}, {}], { maxBudgetUsd: 0.1 }, '3 sessions at once'],
    ['the usual cost of such sessions', [{ template: 'dear' }], { maxBudgetUsd: 0.5 }, 'usually cost'],
    ['the highest cost of such sessions', [{ template: 'mixed' }], { maxBudgetUsd: 5 }, 'may cost up to'],
  ])('the preview warns about %s', (_name, sessions, config, words) => {
    const mixed = [1, 1, 1, 1, 1, 1, 1, 9, 9, 9].map((usd) => sample(usd, { template: 'mixed' }));
    const history = costHistory([sample(1, { template: 'dear' }), ...mixed]);
    const { budgetWarnings } = previewOf(stateOf(sessions, config), history);
    expect(budgetWarnings.join(' ')).toContain(words);
    expect(previewOf(stateOf(sessions, {}), history).budgetWarnings).toEqual([]);
  });

  test('a running session counts its spending against its own cap and the group’s', () => {
    const state = stateOf([{ maxBudgetUsd: 2 }, { maxBudgetUsd: 0.6 }], { maxBudgetUsd: 2.6 });
    expect(previewOf(state, none, new Map([[idOf(0), 1.9]])).budgetWarnings).toEqual([]);
    const tight = stateOf([{ maxBudgetUsd: 2 }, { maxBudgetUsd: 0.6 }], { maxBudgetUsd: 2.5 });
    expect(previewOf(tight, none, new Map([[idOf(0), 1.9]])).budgetWarnings).toEqual([
      'The sessions’ caps add up to $0.70, more than the $0.60 left.',
    ]);
    expect(previewOf(tight, none, new Map([[idOf(0), 2.51]])).budgetWarnings).toEqual(['The budget is exhausted.']);
  });

  test('the preview does not warn about a cap that holds', () => {
    const state = stateOf([{ maxBudgetUsd: 1 }, { maxBudgetUsd: 1 }], { maxBudgetUsd: 2 });
    expect(previewOf(state, none).budgetWarnings).toEqual([]);
  });
});
