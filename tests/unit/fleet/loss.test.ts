/**
 * Promises: a host counts as lost only when no worker can run there anymore: 20 seconds after its lease expired as
 * observed, or a whole lease later where a renewal may have been missed.
 */
import { expect, test } from 'bun:test';
import { LossClock } from '../../../src/fleet/fleet.ts';
import { cases, fc } from '../../support/core-check.ts';

const leaseMs = 60_000;

/** When the host counts as lost, checked each second. `seen`: the rest of the lease that a check finds. */
function lostAt(seen: (nowMs: number) => number | null | 'unreachable'): number | null {
  const clock = new LossClock();
  for (let nowMs = 0; nowMs < 600_000; nowMs += 1_000) {
    const look = seen(nowMs);
    if (look === 'unreachable') clock.notSeen();
    else if (clock.seen(nowMs, look, leaseMs)) return nowMs;
  }
  return null;
}

const left = (endMs: number) => (nowMs: number) => (nowMs < endMs ? endMs - nowMs : null);

test('a host is lost 20 seconds after its lease expired', () => expect(lostAt(left(50_000))).toBe(70_000));

test('a host that renews its lease is never lost', () => expect(lostAt(() => leaseMs)).toBeNull());

test('a host whose lock was removed early is lost 20 seconds after its lease would have expired', () => {
  expect(lostAt((nowMs) => (nowMs < 30_000 ? 50_000 - (nowMs % 10_000) : null))).toBe(90_000);
});

test('a host that was never observed is lost a whole lease later', () => expect(lostAt(() => null)).toBe(80_000));

test('if a restarted server has forgotten a renewal, the renewed lease counts', () => {
  // Renewed at 29 s, forgotten at 30 s.
  const endMs = (nowMs: number) => (nowMs === 29_000 ? 29_000 : 24_000) + leaseMs;
  expect(lostAt((nowMs) => left(endMs(nowMs))(nowMs))).toBe(109_000);
});

test('a host whose lease ended unobserved is lost a whole lease after observation resumes', () => {
  const seen = (nowMs: number) => (nowMs > 40_000 && nowMs < 90_000 ? 'unreachable' : left(50_000)(nowMs));
  expect(lostAt(seen)).toBe(170_000);
});

test('a host that renews again is not lost', () => {
  expect(lostAt((nowMs) => (nowMs > 10_000 && nowMs < 20_000 ? null : leaseMs))).toBeNull();
});

test('a host is lost at the earliest a lease and 13 seconds after its last answered renewal', () => {
  const renewals = fc.array(fc.integer({ min: 1, max: 5_000 }), { minLength: 1, maxLength: 20 });
  const cut = fc.tuple(fc.nat(300_000), fc.nat(120_000));
  fc.assert(
    fc.property(renewals, cut, fc.nat(300_000), (gaps, [cutMs, cutForMs], restartMs) => {
      const times = [0];
      for (const gap of gaps) times.push((times.at(-1) as number) + gap);
      const lastMs = times.at(-1) as number;
      const at = lostAt((nowMs) => {
        if (nowMs >= cutMs && nowMs < cutMs + cutForMs) return 'unreachable';
        const renewedMs = times.findLast((time) => time <= nowMs) ?? 0;
        // A restarted server has lost its locks; a renewal does not restore them.
        const isForgotten = nowMs >= restartMs;
        const leftMs = isForgotten ? 0 : renewedMs + leaseMs - nowMs;
        return leftMs > 0 ? leftMs : null;
      });
      // A host learns at its next renewal that its lease is gone; this was the last one answered.
      const answeredMs = Math.min(lastMs, times.findLast((time) => time <= restartMs) ?? 0);
      if (at !== null) expect(at).toBeGreaterThanOrEqual(answeredMs + leaseMs + 13_000);
    }),
    cases,
  );
});
