/**
 * Promises: whoever may run at once in one repository is apart; as soon as one session has a worktree, all have one
 * that have a choice and do not build on work in the checkout; what was begun stays as it was.
 */
import { describe, expect, test } from 'bun:test';
import type { IsolationMode } from '../../../src/core/definitions.ts';
import type { SessionDefinition } from '../../../src/core/group.ts';
import { checkoutsInUse, isolationOf } from '../../../src/core/plan/isolation.ts';
import { nextStarts } from '../../../src/core/plan/schedule.ts';
import { foldEvents } from '../../../src/core/reduce.ts';
import type { GroupState } from '../../../src/core/state.ts';
import { attemptId, CoreLog, sessionDefinition } from '../../support/core-events.ts';
import { fc } from '../../support/property.ts';

interface Sketch {
  readonly in?: string;
  readonly after?: readonly number[];
  readonly isolate?: IsolationMode;
}

/** Sessions 1, 2, … of a group; `after` names earlier ones by their numbers. */
function groupOf(sketches: readonly Sketch[]): CoreLog {
  const log = new CoreLog({ maxConcurrentSessions: 100 });
  for (const [index, { in: repository, after = [], isolate }] of sketches.entries()) {
    const session: SessionDefinition = {
      ...sessionDefinition(index + 1, after),
      ...(repository === undefined ? {} : { repository }),
      ...(isolate === undefined ? {} : { isolate }),
    };
    log.addSession(session);
  }
  return log;
}

const modes = (log: CoreLog) => [...log.state.sessions.keys()].map((id) => isolationOf(log.state, id));

describe('who gets a worktree', () => {
  test.each<[string, readonly Sketch[], readonly IsolationMode[]]>([
    ['nobody outside of a repository', [{}, {}], ['none', 'none']],
    ['nobody in a chain', [{ in: 'a' }, { in: 'a', after: [1] }], ['none', 'none']],
    [
      'a chain through another repository',
      [{ in: 'a' }, { in: 'b', after: [1] }, { in: 'a', after: [2] }],
      ['none', 'none', 'none'],
    ],
    ['two that may meet', [{ in: 'a' }, { in: 'a' }], ['worktree', 'worktree']],
    ['the others with them', [{ in: 'a' }, { in: 'a' }, { in: 'b' }, {}], ['worktree', 'worktree', 'worktree', 'none']],
    ['all when one asks', [{ in: 'a', isolate: 'worktree' }, { in: 'b' }], ['worktree', 'worktree']],
    [
      'not who chose otherwise',
      [{ in: 'a', isolate: 'none' }, { in: 'a' }, { in: 'a' }],
      ['none', 'worktree', 'worktree'],
    ],
    [
      'not who builds on work in the checkout',
      [{ in: 'a', isolate: 'none' }, { in: 'b', after: [1] }, { in: 'a', after: [2] }, { in: 'b' }],
      ['none', 'worktree', 'none', 'worktree'],
    ],
  ])('%s', (_, sketches, expected) => expect(modes(groupOf(sketches))).toEqual([...expected]));
});

const aGroup = fc.array(
  fc.record({
    in: fc.constantFrom('a', 'b'),
    after: fc.array(fc.nat(7), { maxLength: 3 }),
    isolate: fc.constantFrom(undefined, undefined, undefined, 'none' as const, 'worktree' as const),
  }),
  { minLength: 1, maxLength: 8 },
);

test('whatever starts at once in one repository, at most one of it is in the checkout', () => {
  fc.assert(
    fc.property(aGroup, fc.infiniteStream(fc.nat()), (raw, luck) => {
      const sketches = raw.map(
        ({ isolate, after, ...rest }, index): Sketch => ({
          ...rest,
          after: [...new Set(after.map((other) => other + 1).filter((other) => other <= index))],
          ...(isolate === undefined ? {} : { isolate }),
        }),
      );
      const log = groupOf(sketches);
      log.run();
      const begun = new Map<string, IsolationMode>();
      for (let round = 0; round < 40; round += 1) {
        for (const { sessionId, isolated } of nextStarts(log.state, { preparingMax: 100 }).starts) {
          const mode = isolated ? 'worktree' : 'none';
          expect(mode).toBe(isolationOf(log.state, sessionId));
          begun.set(sessionId, mode);
          const attempt = { id: attemptId(sessionId, 1), number: 1, kind: 'start', offset: 0 } as const;
          log.add({ type: 'session_starting', sessionId, attempt: { ...attempt, ...(isolated ? { isolated } : {}) } });
        }
        const inCheckouts = [...log.state.running].filter((id) => begun.get(id) === 'none');
        const repositories = inCheckouts.map((id) => log.state.sessions.get(id)?.definition.repository);
        expect(new Set(repositories).size).toBe(repositories.length);
        expect(checkoutsInUse(log.state).size).toBe(repositories.length);
        for (const [id, mode] of begun) expect(isolationOf(log.state, id)).toBe(mode);
        // What is remembered from step to step is what somebody finds who has read nothing but the log.
        const afresh = foldEvents(log.events) as GroupState;
        for (const id of log.state.sessions.keys()) expect(isolationOf(log.state, id)).toBe(isolationOf(afresh, id));
        const running = [...log.state.running];
        if (running.length === 0) break;
        log.complete(running[(luck.next().value as number) % running.length] as string);
      }
      expect(begun.size).toBe(sketches.length);
    }),
    { numRuns: 300 },
  );
});
