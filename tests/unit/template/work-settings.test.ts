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
      'setup is run in a new worktree only, and the session gets none',
      'commit is about worktrees only, and the session gets none',
    ]);
    expect(faults({ setup: 'x', expectChanges: true, commit: false }, null)).toEqual([
      'setup is run in a new worktree only, and the project is not in a git repository',
      'commit is about worktrees only, and the project is not in a git repository',
      'expectChanges takes a git repository, and the project is in none',
    ]);
    expect(faults({ acceptRetries: 1, acceptTimeoutMs: 1_000, setupTimeoutMs: 1_000 }, repository)).toEqual([
      'acceptRetries means nothing without an accept command',
      'acceptTimeoutMs means nothing without an accept command',
      'setupTimeoutMs means nothing without a setup command that is run',
    ]);
  });
});
