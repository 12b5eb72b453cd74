/**
 * Promises: a host counts as lost only when nothing can run there any more: 20 seconds after its lease was over by
 * what was seen of it, or, where that cannot be believed, a whole lease later.
 */
import { expect, test } from 'bun:test';
import { LossClock } from '../../../src/fleet/fleet.ts';
import { fc } from '../../support/core-check.ts';

const leaseMs = 60_000;

/** When it counts as lost; looked at each second. `seen`: what a look shows. */
function lostAt(seen: (nowMs: number) => { left: number | null; server?: string } | 'unreachable'): number | null {
  const clock = new LossClock();
  for (let nowMs = 0; nowMs < 600_000; nowMs += 1_000) {
    const look = seen(nowMs);
    if (look === 'unreachable') clock.notSeen();
    else if (clock.seen(nowMs, { leftMs: look.left, leaseMs, server: look.server ?? 'a' })) return nowMs;
  }
  return null;
}

const left = (endMs: number) => (nowMs: number) => ({ left: nowMs < endMs ? endMs - nowMs : null });

test('20 seconds after the lease was over', () => expect(lostAt(left(50_000))).toBe(70_000));

test('never, as long as it is renewed', () => expect(lostAt(() => ({ left: leaseMs }))).toBeNull());

test('a lock that goes before its time was taken away: a whole lease later', () => {
  expect(lostAt((nowMs) => ({ left: nowMs < 30_000 ? 50_000 - (nowMs % 10_000) : null }))).toBe(110_000);
});

test('nothing was ever seen of it: a whole lease later', () => expect(lostAt(() => ({ left: null }))).toBe(80_000));

test('another server has forgotten it: a whole lease later', () => {
  const seen = (nowMs: number) => ({ ...left(50_000)(nowMs), server: nowMs < 50_000 ? 'a' : 'b' });
  expect(lostAt(seen)).toBe(130_000);
});

test('another server may have forgotten a renewal: a whole lease later, unless it was renewed since', () => {
  const renewed = (lastMs: number) => (nowMs: number) => {
    const server = nowMs < 30_000 ? 'a' : 'b';
    // What was renewed at 29 s is forgotten.
    const endMs = (nowMs < 29_000 || (nowMs >= 30_000 && nowMs < 40_000) ? 19_000 : Math.min(nowMs, lastMs)) + leaseMs;
    return { ...left(endMs)(nowMs), server };
  };
  expect(lostAt((nowMs) => ({ ...left(79_000)(nowMs), server: nowMs < 30_000 ? 'a' : 'b' }))).toBe(159_000);
  expect(lostAt(renewed(40_000))).toBe(120_000);
});

test('nobody could look when it went: a whole lease after somebody can again', () => {
  const seen = (nowMs: number) => (nowMs > 40_000 && nowMs < 90_000 ? 'unreachable' : left(50_000)(nowMs));
  expect(lostAt(seen)).toBe(170_000);
});

test('one that is renewed again is not lost, whatever was seen before', () => {
  expect(lostAt((nowMs) => ({ left: nowMs > 10_000 && nowMs < 20_000 ? null : leaseMs }))).toBeNull();
});

test('never before the fence of the host: a lease and 13 seconds after its last renewal that was answered', () => {
  const renewals = fc.array(fc.integer({ min: 1, max: 30_000 }), { minLength: 1, maxLength: 20 });
  const cut = fc.tuple(fc.nat(300_000), fc.nat(120_000));
  fc.assert(
    fc.property(renewals, cut, fc.nat(300_000), (gaps, [cutMs, cutForMs], restartMs) => {
      const times = [0];
      for (const gap of gaps) times.push((times.at(-1) as number) + gap);
      const lastMs = times.at(-1) as number;
      const at = lostAt((nowMs) => {
        if (nowMs >= cutMs && nowMs < cutMs + cutForMs) return 'unreachable';
        const renewedMs = times.findLast((time) => time <= nowMs) ?? 0;
        // A server that was started anew has lost its locks; a renewal does not bring them back.
        const isForgotten = nowMs >= restartMs;
        const leftMs = isForgotten ? 0 : renewedMs + leaseMs - nowMs;
        return { left: leftMs > 0 ? leftMs : null, server: isForgotten ? 'b' : 'a' };
      });
      // A host hears at its next renewal that its lease is gone; the last that was answered is this one at most.
      const answeredMs = Math.min(lastMs, times.findLast((time) => time <= restartMs) ?? 0);
      if (at !== null) expect(at).toBeGreaterThanOrEqual(answeredMs + leaseMs + 13_000);
    }),
  );
});
