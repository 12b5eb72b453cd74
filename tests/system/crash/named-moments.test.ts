/**
 * Promises: the runner can be killed (kill -9) at any of these moments of a session's life. The next `group run`
 * completes the group, each session ran in one attempt, its cost is right and no process is left. Workers are fakes
 * stepped by the test; runner-killed.test.ts covers some moments with the real claude.
 */
import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Alteration } from '../../support/altered-world.ts';
import {
  answerAll,
  expectSettled,
  expectWorkedOnce,
  finish,
  finishAtOnce,
  identify,
  markedProcesses,
  Runners,
  spoken,
} from '../../support/crash-rig.ts';
import type { GroupFixture } from '../../support/group-fixture.ts';
import { sampled } from '../../support/long.ts';
import { make, rig, withRig } from '../../support/rig-ground.ts';

withRig();
let group: GroupFixture;

interface Crash {
  readonly at: string;
  /** What the first runner's worker does before the crash. */
  readonly worker: 'never starts' | 'is silent' | 'has its prompt' | 'is stopped' | 'begins' | 'works';
  /** How the next run treats the attempt. */
  readonly next: 'starts' | 'starts again' | 'adopts' | 'buries' | 'nothing';
  readonly how?: Alteration['how'];
}

const crashes: readonly Crash[] = [
  { at: 'after lock', worker: 'never starts', next: 'starts' },
  { at: 'before log group_started', worker: 'never starts', next: 'starts' },
  { at: 'before log session_starting', worker: 'never starts', next: 'starts' },
  { at: 'before sync session_starting', worker: 'never starts', next: 'starts again' },
  { at: 'after log session_starting', worker: 'never starts', next: 'starts again' },
  { at: 'after fifo', worker: 'never starts', next: 'starts again' },
  { at: 'after spawn', worker: 'is silent', next: 'starts again' },
  { at: 'after log session_started', worker: 'is silent', next: 'starts again' },
  { at: 'after prompt', worker: 'has its prompt', next: 'starts again' },
  { at: 'after prompt', worker: 'is stopped', next: 'starts again', how: 'frozen' },
  { at: 'after read transcript.jsonl', worker: 'begins', next: 'adopts' },
  { at: 'before log session_identified', worker: 'begins', next: 'adopts' },
  { at: 'after log session_identified', worker: 'begins', next: 'adopts' },
  { at: 'before signal SIGTERM', worker: 'works', next: 'adopts' },
  { at: 'before log session_completed', worker: 'works', next: 'buries' },
  { at: 'before sync session_completed', worker: 'works', next: 'nothing' },
  { at: 'after log session_completed', worker: 'works', next: 'nothing' },
];

test.each(sampled(crashes, 2))(
  'killed $at, the worker $worker: the next run $next',
  async (crash) => {
    const { at, worker, next, how } = crash;
    group = make([{ name: 'one' }, { name: 'two', after: ['one'] }]);
    const runners = new Runners(group, rig.env);
    const first = runners.crash({ at, ...(how === undefined ? {} : { how }) });
    const connects = worker !== 'never starts' && worker !== 'is stopped';
    const left = connects ? await rig.nextFor(group.claudeId('one')) : null;
    if (left && worker === 'has its prompt') await left.prompt();
    if (left && worker === 'begins') await identify(left);
    if (left && worker === 'works') await finishAtOnce(left);
    await first;
    expect(markedProcesses(group).length).toBe(worker === 'never starts' || endedBefore(next) ? 0 : 1);

    const second = runners.complete();
    if (left && worker === 'begins') await finish(left);
    if (next === 'starts' || next === 'starts again') answerAll(rig, [group.claudeId('one')]);
    await left?.ended;
    await finishAtOnce(await rig.nextFor(group.claudeId('two')));
    await second;
    expectWorkedOnce(group, ['one', 'two']);
    const types = group.events().map(({ type }) => type);
    expect(types.filter((type) => type === 'session_adopted').length).toBe(next === 'adopts' ? 1 : 0);
    expect(types.filter((type) => type === 'session_starting').length).toBe(next === 'starts again' ? 3 : 2);
  },
  60_000,
);

/** Before it was killed, the first runner had ended its worker or asked it to exit. */
function endedBefore(next: Crash['next']): boolean {
  return next === 'buries' || next === 'nothing';
}

const settling = [
  'before log group_completed',
  'after log group_completed',
  'before write meta.json',
  'after write meta.json',
  'before write progress.json',
  'before unlock',
  'after unlock',
];

test.each(sampled(settling, 2))(
  'killed in settle, %s: the group is completed, at the latest by the next run',
  async (at) => {
    group = make([{ name: 'one' }]);
    const runners = new Runners(group, rig.env);
    const first = runners.crash({ at, since: 'before log group_completed' });
    await finishAtOnce(await rig.nextFor(group.claudeId('one')));
    await first;
    const { code, stderr } = await runners.start().finished;
    expect(code).toBe(0);
    expect(stderr).toMatch(at === 'before log group_completed' ? /^$/ : /^Group \S+ is already completed\.\n$/);
    expectSettled(group);
    expectWorkedOnce(group, ['one']);
  },
  60_000,
);

/** The acceptance command appends one line each time it runs. */
const accept = 'echo ran >> runs';
const accepting = [
  'before log session_accepting',
  'before sync session_accepting',
  'after log session_accepting',
  'after spawn',
  'before log session_completed',
  'after log session_completed',
];

test.each(sampled(accepting, 2))(
  'killed in acceptance, %s: the next run accepts the same work, and claude is called and paid once',
  async (at) => {
    group = make([{ name: 'one', fields: { accept } }]);
    const runners = new Runners(group, rig.env);
    const since = at === 'after spawn' ? { since: 'after log session_accepting' } : {};
    const first = runners.crash({ at, ...since });
    await finishAtOnce(await rig.nextFor(group.claudeId('one')));
    await first;
    await runners.start().finished;
    expectSettled(group);
    const { workers, results, costUsd } = spoken(group, 'one');
    expect({ workers: workers.length, results }).toEqual({ workers: 1, results: 1 });
    expect(group.state().usage.costUsd).toBeCloseTo(costUsd, 9);
    expect(readFileSync(join(group.project('one'), 'runs'), 'utf8')).toMatch(/^(?:ran\n){1,2}$/);
  },
  60_000,
);
