/**
 * Promises: of what session, group and project say, the nearest counts, key by key; what could have no effect is left
 * out, and refused where a session asks for it itself.
 */
import { describe, expect, test } from 'bun:test';
import { type GivenWork, resolveWork, workFaults } from '../../../src/template/workflow/work-settings.ts';
import { fc } from '../../support/property.ts';

const repository = '/p/.git';
const maybe = <T>(one: fc.Arbitrary<T>) => fc.option(one, { nil: undefined });
const command = fc.constantFrom<string | false>('npm test', 'make', false);
const wish: fc.Arbitrary<GivenWork> = fc.record({
  isolate: maybe(fc.constantFrom('none' as const, 'worktree' as const)),
  accept: maybe(command),
  acceptRetries: maybe(fc.nat(10)),
  acceptTimeoutMs: maybe(fc.integer({ min: 1_000, max: 9_000 })),
  setup: maybe(command),
  setupTimeoutMs: maybe(fc.integer({ min: 1_000, max: 9_000 })),
  expectChanges: maybe(fc.boolean()),
  commit: maybe(fc.boolean()),
});

describe('who counts', () => {
  test('whoever is nearer, key by key', () => {
    const project: GivenWork = { isolate: 'worktree', accept: 'npm test', acceptTimeoutMs: 5_000, setup: 'npm ci' };
    expect(resolveWork([{ accept: 'make' }, { commit: false, acceptRetries: 3 }, project], repository)).toEqual({
      repository,
      isolate: 'worktree',
      accept: 'make',
      acceptRetries: 3,
      acceptTimeoutMs: 5_000,
      setup: 'npm ci',
      commit: false,
    });
    expect(resolveWork([{ accept: false, setup: false }, project], repository)).toEqual({
      repository,
      isolate: 'worktree',
    });
    expect(resolveWork([{ commit: true, expectChanges: false }, { commit: false }], repository)).toEqual({
      repository,
    });
    expect(resolveWork([], null)).toEqual({});
  });

  test('always the first that says something', () => {
    fc.assert(
      fc.property(fc.array(wish, { maxLength: 4 }), fc.constantFrom(repository, null), (wishes, where) => {
        const settings = resolveWork(wishes, where);
        const first = <K extends keyof GivenWork>(key: K) =>
          wishes.map((one) => one[key]).find((one) => one !== undefined);
        expect(settings.isolate).toBe(first('isolate') as never);
        expect(settings.accept).toBe((first('accept') || undefined) as never);
        // Limits stand beside what they limit, or nowhere.
        if (settings.accept === undefined) expect(settings.acceptRetries ?? settings.acceptTimeoutMs).toBeUndefined();
        if (settings.setup === undefined) expect(settings.setupTimeoutMs).toBeUndefined();
        if (where === null || settings.isolate === 'none') expect(settings.setup ?? settings.commit).toBeUndefined();
        expect(Object.values(settings)).not.toContain(undefined);
      }),
    );
  });
});

describe('what a session cannot ask for', () => {
  const faults = (own: GivenWork, where: string | null, others: readonly GivenWork[] = []) =>
    workFaults(own, resolveWork([own, ...others], where), where).map(({ key, problem }) => `${key} ${problem}`);

  test('is told with its reason', () => {
    expect(faults({ isolate: 'none', setup: 'x', commit: false }, repository)).toEqual([
      'setup is run in a new worktree only, and the session gets none',
      'commit is about worktrees only, and the session gets none',
    ]);
    expect(faults({ setup: 'x', expectChanges: true, commit: false }, null)).toEqual([
      'setup is run in a new worktree only, and the project is in no git repository',
      'commit is about worktrees only, and the project is in no git repository',
      'expectChanges takes a git repository, and the project is in none',
    ]);
    expect(faults({ acceptRetries: 1, acceptTimeoutMs: 1_000, setupTimeoutMs: 1_000 }, repository)).toEqual([
      'acceptRetries means nothing without an accept command',
      'acceptTimeoutMs means nothing without an accept command',
      'setupTimeoutMs means nothing without a setup command that is run',
    ]);
  });

  test('what others bring is no fault of the session', () => {
    expect(faults({ isolate: 'none' }, repository, [{ setup: 'x', commit: false }])).toEqual([]);
    expect(faults({}, null, [{ setup: 'x', expectChanges: true, acceptRetries: 2 }])).toEqual([]);
    expect(faults({ acceptRetries: 2 }, repository, [{ accept: 'x' }])).toEqual([]);
    expect(faults({ acceptRetries: 2, accept: false }, repository, [{ accept: 'x' }])).toHaveLength(1);
  });
});
