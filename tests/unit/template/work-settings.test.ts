/**
 * Promises: of session, group and project the nearest work setting applies, key by key. Settings without effect are
 * dropped, and refused where a session sets them itself.
 */
import { describe, expect, test } from 'bun:test';
import { type GivenWork, resolveWork, workFaults } from '../../../src/template/workflow/work-settings.ts';

const repository = '/p/.git';

describe('precedence', () => {
  test('the nearest work setting applies, key by key', () => {
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
});

describe('refused work settings', () => {
  const faults = (own: GivenWork, where: string | null, others: readonly GivenWork[] = []) =>
    workFaults(own, resolveWork([own, ...others], where), where).map(({ key, problem }) => `${key} ${problem}`);

  test('a work setting that a session cannot have is refused with its reason', () => {
    expect(faults({ isolate: 'none', setup: 'x', commit: false }, repository)).toEqual([
      'setup applies only to a new worktree, and the session gets none',
      'commit applies only to worktrees, and the session gets none',
    ]);
    expect(faults({ setup: 'x', expectChanges: true, commit: false }, null)).toEqual([
      'setup applies only to a new worktree, and the project is not in a git repository',
      'commit applies only to worktrees, and the project is not in a git repository',
      'expectChanges needs a git repository, and the project is not in one',
    ]);
    expect(faults({ acceptRetries: 1, acceptTimeoutMs: 1_000, setupTimeoutMs: 1_000 }, repository)).toEqual([
      'acceptRetries has no effect without an accept command',
      'acceptTimeoutMs has no effect without an accept command',
      'setupTimeoutMs has no effect without a setup command',
    ]);
  });
});
