/** Promises: every session is listed once, after its dependencies, and directly followed by its dependents. */
import { expect, test } from 'bun:test';
import type { SessionId } from '../../../../src/core/group.ts';
import { type Placed, placeSessions } from '../../../../src/tui/dashboard/list.ts';
import { fc } from '../../../support/property.ts';
import { fold, sessionId } from '../../../support/tui/dashboard/scene.ts';
import { creation, session } from '../../../support/view/sample-run.ts';

/** Session n depends on these earlier sessions. */
function placed(dependencies: readonly (readonly number[])[]): readonly Placed[] {
  const sessions = dependencies.map((on, index) => session(sessionId(index + 1), { dependsOn: on.map(sessionId) }));
  return placeSessions(fold(creation({}, sessions)).state);
}

const acyclic = fc
  .integer({ min: 1, max: 25 })
  .chain((count) =>
    fc.tuple(
      ...Array.from({ length: count }, (_, index) =>
        fc.uniqueArray(fc.integer({ min: 1, max: Math.max(1, index) }), { maxLength: index === 0 ? 0 : 4 }),
      ),
    ),
  );

test('sessions are listed after their dependencies', () => {
  fc.assert(
    fc.property(acyclic, (dependencies) => {
      const order = placed(dependencies).map(({ id }) => id);
      expect(order.toSorted()).toEqual(dependencies.map((_, index) => sessionId(index + 1)).toSorted());
      const at = (id: SessionId) => order.indexOf(id);
      for (const [index, on] of dependencies.entries()) {
        for (const one of on) expect(at(sessionId(one))).toBeLessThan(at(sessionId(index + 1)));
      }
    }),
  );
});

test('the end of a diamond is listed below its later side', () => {
  expect(placed([[], [1], [1], [2, 3]]).map(({ id, lanes }) => [id.slice(0, 3), lanes.join(' ')])).toEqual([
    ['001', ''],
    ['002', 'branch'],
    ['003', 'last-branch'],
    ['004', 'none last-branch'],
  ]);
});
