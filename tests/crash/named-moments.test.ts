/**
 * Promises: the runner may be killed (kill -9) at any of these moments of a session's life; the next `group run`
 * completes the group, each session was worked on once by one attempt, its cost is right and nothing is left behind.
 * Workers are fakes that the test steps; real-claude.test.ts does some of this with the real one.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test';
import type { Alteration } from '../support/altered-world.ts';
import { expectSettled, expectWorkedOnce, markedProcesses, Runners, work } from '../support/crash-rig.ts';
import { type Rig, startRig } from '../support/fake-claude-rig.ts';
import { type GroupFixture, makeGroup } from '../support/group-fixture.ts';

let rig: Rig;
let group: GroupFixture;
beforeAll(async () => {
  rig = await startRig();
});
afterAll(() => rig.stop());
afterEach(() => group.remove());

interface Crash {
  readonly at: string;
  /** What the first runner's worker is made to do before the crash can come. */
  readonly worker: 'never starts' | 'silent' | 'prompted' | 'works';
  /** What the next run does with the attempt. */
  readonly then: 'starts' | 'starts again' | 'adopts' | 'buries' | 'nothing';
  readonly how?: Alteration['how'];
}

const crashes: readonly Crash[] = [
  { at: 'after lock', worker: 'never starts', then: 'starts' },
  { at: 'before log group_started', worker: 'never starts', then: 'starts' },
  { at: 'before log session_starting', worker: 'never starts', then: 'starts' },
  { at: 'before sync session_starting', worker: 'never starts', then: 'starts again' },
  { at: 'after log session_starting', worker: 'never starts', then: 'starts again' },
  { at: 'after fifo', worker: 'never starts', then: 'starts again' },
  { at: 'after spawn', worker: 'silent', then: 'starts again' },
  { at: 'after log session_started', worker: 'silent', then: 'starts again' },
  { at: 'after prompt', worker: 'prompted', then: 'starts again' },
  { at: 'after prompt', worker: 'silent', then: 'starts again', how: 'frozen' },
  { at: 'after read transcript.jsonl', worker: 'works', then: 'adopts' },
  { at: 'after log session_identified', worker: 'works', then: 'adopts' },
  { at: 'before signal SIGTERM', worker: 'works', then: 'adopts' },
  { at: 'before log session_completed', worker: 'works', then: 'buries' },
  { at: 'before sync session_completed', worker: 'works', then: 'nothing' },
  { at: 'after log session_completed', worker: 'works', then: 'nothing' },
];

test.each([...crashes])(
  'killed $at ($worker, $how): the next run $then',
  async ({ at, worker, then, how }) => {
    group = makeGroup([{ name: 'one' }, { name: 'two', after: ['one'] }]);
    const runners = new Runners(group, rig.env);
    const first = runners.crash({ at, ...(how === undefined ? {} : { how }) });
    const left = worker === 'never starts' ? null : await rig.nextFor(group.claudeId('one'));
    if (worker === 'prompted') await left?.prompt();
    if (worker === 'works' && left) await work(left);
    await first;
    expect(markedProcesses(group).length).toBe(left === null || then === 'buries' || then === 'nothing' ? 0 : 1);

    const second = runners.complete();
    if (then === 'starts' || then === 'starts again') await work(await rig.nextFor(group.claudeId('one')));
    await left?.ended;
    await work(await rig.nextFor(group.claudeId('two')));
    await second;
    expectWorkedOnce(group, ['one', 'two']);
    const types = group.events().map(({ type }) => type);
    expect(types.filter((type) => type === 'session_adopted').length).toBe(then === 'adopts' ? 1 : 0);
    expect(types.filter((type) => type === 'session_starting').length).toBe(then === 'starts again' ? 3 : 2);
  },
  60_000,
);

const settling = [
  'before log group_completed',
  'after log group_completed',
  'before write meta.json',
  'after write meta.json',
  'before write progress.json',
  'before unlock',
  'after unlock',
];

test.each(settling)(
  'killed in settle, %s: the group is completed, at the latest by the next run',
  async (at) => {
    group = makeGroup([{ name: 'one' }]);
    const runners = new Runners(group, rig.env);
    const first = runners.crash({ at, since: 'before log group_completed' });
    await work(await rig.nextFor(group.claudeId('one')));
    await first;
    const { code, stderr } = await runners.start().finished;
    expect(code).toBe(0);
    expect(stderr).toMatch(at === 'before log group_completed' ? /^$/ : /^Group \S+ is completed already; .*\n$/);
    expectSettled(group);
    expectWorkedOnce(group, ['one']);
  },
  60_000,
);
