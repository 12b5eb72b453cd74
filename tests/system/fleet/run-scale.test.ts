/**
 * Promises: many short sessions on several machines, with a runner that is killed again and again, are each worked on
 * once and paid once; their work is on their branches, and nothing is left running.
 */
import { expect, test } from 'bun:test';
import { until } from '../../support/cli.ts';
import { leftOf, runAtScale } from '../../support/fleet-scale.ts';
import { git } from '../../support/git/repository.ts';
import { hasRedis } from '../../support/redis-server.ts';

const shape = { sessions: 60, machines: 4, slots: 5, seconds: 1, kills: 2 } as const;

test.if(hasRedis)(
  '60 sessions on four machines, while the runner is killed twice',
  async () => {
    const { ground, starts, kills } = await runAtScale(shape);
    try {
      const { group } = ground;
      expect(kills).toBe(2);
      expect(starts.size).toBe(60);
      expect([...starts.values()].filter((count) => count !== 1)).toEqual([]);
      const { sessions, usage } = group.state();
      expect(usage.costUsd).toBeCloseTo(0.6, 9);
      for (const { workspace } of sessions.values()) {
        expect(git(group.project('app'), 'show', `${workspace?.branch}:made.txt`)).toBe('made');
      }
      const machines = Object.keys(ground.machines).toSorted();
      expect([...new Set([...sessions.values()].map(({ host }) => host))].toSorted() as string[]).toEqual(machines);
      await until(() => leftOf(ground).length === 0);
      expect(git(group.project('app'), 'for-each-ref', 'refs/claude-code-agent')).toBe('');
    } finally {
      await ground.close();
    }
  },
  180_000,
);
