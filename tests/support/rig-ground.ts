/** A rig of fake claudes for one file of tests, and the groups that its tests make. */
import { afterAll, afterEach, beforeAll } from 'bun:test';
import { removeGroup } from './crash-rig.ts';
import { type Invocation, type Rig, resultLine, startRig } from './fake-claude-rig.ts';
import { type GroupFixture, makeGroup } from './group-fixture.ts';

export let rig: Rig;
const groups: GroupFixture[] = [];

/** Once in each file of tests; `remove` for groups that lie in the folder of another one, and go with it. */
export function withRig(remove: (group: GroupFixture) => void = removeGroup): void {
  beforeAll(async () => {
    rig = await startRig();
  });
  afterAll(() => rig.stop());
  afterEach(() => {
    for (const group of groups.splice(0)) remove(group);
  });
}

/** A group that is removed after the test, with whatever is left of its processes. */
export function make(...args: Parameters<typeof makeGroup>): GroupFixture {
  const group = makeGroup(...args);
  groups.push(group);
  return group;
}

/** The next claude of the session, which has read its prompt and said who it is. */
export async function begin(group: GroupFixture, name: string): Promise<Invocation> {
  const fake = await rig.nextFor(group.claudeId(name));
  await fake.prompt();
  await fake.init();
  return fake;
}

/** Waits for the interrupt and obeys it as claude does. */
export async function obeyInterrupt(fake: Invocation, costUsd: number): Promise<void> {
  const requestId = await fake.control('interrupt');
  await fake.print({ type: 'control_response', response: { subtype: 'success', request_id: requestId } });
  await fake.print(resultLine(costUsd, { subtype: 'error_during_execution', is_error: true }));
}
