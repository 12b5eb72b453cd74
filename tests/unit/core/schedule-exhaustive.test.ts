/**
 * Promises: for every shape of a small group, every outcome and every order, a run respects slots and dependencies,
 * starts the longest chain first, never starts an attempt twice, and settles as the rules below say.
 * `support/core-driver.ts` checks every step.
 */

import { describe, expect, test } from 'bun:test';
import type { GroupConfig, SessionDefinition } from '../../../src/core/group.ts';
import { foldEvents } from '../../../src/core/reduce.ts';
import { CoreDriver, type Settled } from '../../support/core-driver.ts';
import { type AttemptOutcome, sessionDefinition } from '../../support/core-events.ts';
import { type Choices, everyGraph, forEveryChoice } from '../../support/core-exhaustive.ts';
import { isLongRun } from '../../support/long.ts';

const outcomes: readonly AttemptOutcome[] = ['completed', 'failed', 'paused'];

/** With TEST_LONG also every order in which four sessions can be added. */
const long = isLongRun;

const configs: Partial<GroupConfig>[] = [1, 2, 3, 4].flatMap((maxConcurrentSessions) =>
  [true, false].flatMap((pauseOnError) =>
    [1, 2].map((errorThreshold) => ({ maxConcurrentSessions, pauseOnError, errorThreshold })),
  ),
);

/** The expected status of a group, computed independently from the outcomes of its sessions. */
function expectedStatus(driver: CoreDriver, sessions: readonly SessionDefinition[]): Settled['status'] {
  const of = (wanted: string) => sessions.filter(({ id }) => driver.statusOf(id) === wanted);
  if (of('completed').length === sessions.length) return 'completed';
  const failed = of('failed').length;
  const startable = of('pending').filter(
    ({ dependsOn }) =>
      !driver.config.respectDependencies || dependsOn.every((id) => driver.statusOf(id) === 'completed'),
  );
  if (failed >= driver.config.errorThreshold) {
    return driver.config.pauseOnError && startable.length > 0 ? 'paused' : 'failed';
  }
  if (startable.length > 0) throw new Error('something could still start');
  return failed > 0 ? 'failed' : 'paused';
}

function playRun(driver: CoreDriver, finish: (running: readonly string[]) => void): Settled {
  for (let steps = 0; steps < 100; steps += 1) {
    const settled = driver.step();
    if (settled) return settled;
    finish(driver.running);
  }
  throw new Error('the run does not end');
}

function playGroup(config: Partial<GroupConfig>, dependsOn: number[][], choices: Choices): void {
  const sessions = dependsOn.map((dependencies, index) => sessionDefinition(index, dependencies));
  const driver = new CoreDriver(config, sessions);
  const settled = playRun(driver, (running) => {
    const chosen = choices.choose(running.length * outcomes.length);
    const id = running[Math.floor(chosen / outcomes.length)] as string;
    driver.finish(id, outcomes[chosen % outcomes.length] as AttemptOutcome);
  });
  const expected = expectedStatus(driver, sessions);
  if (settled.status !== expected || driver.log.state.status !== expected) {
    throw new Error(`settled ${settled.status} instead of ${expected}: ${JSON.stringify({ config, dependsOn })}`);
  }
  if (settled.status !== 'completed' && !/^.+\.$/.test(settled.message)) {
    throw new Error(`no sentence: ${settled.message}`);
  }
  if (expected === 'completed') return;
  driver.resume();
  const second = playRun(driver, (running) => driver.finish(running[0] as string, 'completed'));
  if (second.status !== 'completed') throw new Error(`a retry of everything ended ${second.status}`);
}

function playAll(graphs: readonly number[][][], config: Partial<GroupConfig>): number {
  let runs = 0;
  for (const graph of graphs) runs += forEveryChoice((choices) => playGroup(config, graph, choices));
  return runs;
}

describe('every small group', () => {
  const small = [1, 2, 3].flatMap((count) => everyGraph(count, false));
  const large = long ? everyGraph(4, false) : everyGraph(4, true).filter((_, index) => index % 8 === 7);

  test('the enumeration of small groups is complete', () => {
    expect([1, 2, 3, 4].map((count) => everyGraph(count, false).length)).toEqual([1, 3, 25, 543]);
    expect(everyGraph(4, true)).toHaveLength(64);
    expect(forEveryChoice((choices) => choices.choose(2) === 1 && choices.choose(3))).toBe(4);
  });

  for (const config of configs) {
    const name = `${config.maxConcurrentSessions} at once, pauseOnError ${config.pauseOnError}`;
    test(`${name}, errorThreshold ${config.errorThreshold}: every run settles as the rules say`, () => {
      expect(playAll(small, config)).toBeGreaterThan(small.length);
      expect(playAll(large, config)).toBeGreaterThan(large.length);
    }, 120_000);
  }

  test('runs settle as the rules say when dependencies are not respected', () => {
    const config = { respectDependencies: false, maxConcurrentSessions: 2 };
    expect(playAll(small, config)).toBeGreaterThan(small.length);
  });
});

test('replaying every prefix of the log gives the same state as the incremental one', () => {
  for (const graph of everyGraph(3, true)) {
    forEveryChoice((choices) => {
      const sessions = graph.map((dependencies, index) => sessionDefinition(index, dependencies));
      const driver = new CoreDriver({ maxConcurrentSessions: 2 }, sessions);
      const compare = () => {
        const folded = foldEvents(JSON.parse(JSON.stringify(driver.log.events)));
        if (!Bun.deepEquals(folded, driver.log.state, true)) throw new Error('fold and state differ');
      };
      playRun(driver, (running) => {
        compare();
        const chosen = choices.choose(running.length * outcomes.length);
        const id = running[Math.floor(chosen / outcomes.length)] as string;
        driver.finish(id, outcomes[chosen % outcomes.length] as AttemptOutcome);
      });
      compare();
    });
  }
});
