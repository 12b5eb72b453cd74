/** A rig of fake claudes for one test file, and the groups of its tests. */
import { afterAll, afterEach, beforeAll } from 'bun:test';
import { removeGroup } from './crash-rig.ts';
import { type FakeClaudeHarness, type Invocation, resultLine, startRig } from './fake-claude-rig.ts';
import { type GroupFixture, makeGroup } from './group-fixture.ts';

export let rig: FakeClaudeHarness;
const groups: GroupFixture[] = [];

/** Called once per test file; `remove` is for groups inside another one's folder. */
export function withRig(remove: (group: GroupFixture) => void = removeGroup): void {
  beforeAll(async () => {
    rig = await startRig();
  });
  afterAll(() => rig.stop());
  afterEach(() => {
    for (const group of groups.splice(0)) remove(group);
  });
}

/** A group that is removed after the test, with its remaining processes. */
export function make(...args: Parameters<typeof makeGroup>): GroupFixture {
  const group = makeGroup(...args);
  groups.push(group);
  return group;
}

/** The session's next claude, after it has read its prompt and identified itself. */
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
