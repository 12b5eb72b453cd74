/**
 * Promises: the group example of the specification can be read, what is written has its shape and reads back as the
 * same value, and any other input is refused with a message.
 */
import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defaultGroupConfig, noTokens } from '../../../src/core/group.ts';
import { groupMeta, parseGroupMeta, renderMeta, sessionMeta } from '../../../src/store/snapshots.ts';
import { CoreLog, sessionDefinition, sid, usage } from '../../support/core-events.ts';
import { storyBodies } from '../../support/stored-group.ts';
import { expectOk } from '../../support/system/rig.ts';

const fixture = (name: string): string => readFileSync(join(import.meta.dir, '../../fixtures/store', name), 'utf8');

test('the specification’s group example can be read, and in_progress means running', () => {
  const text = fixture('group-meta.json');
  const seed = JSON.parse(text);
  expect(expectOk(parseGroupMeta(text))).toEqual({
    ...seed,
    status: 'running',
    sessions: [seed.sessions[0], { ...seed.sessions[1], status: 'running' }, seed.sessions[2]],
    config: { ...defaultGroupConfig, ...seed.config },
    cost: 0,
    tokens: noTokens,
    durationMs: 0,
  });
});

test('written metadata reads back as the same value', () => {
  const { state } = new CoreLog().add(...storyBodies);
  const group = groupMeta(state);
  expect(expectOk(parseGroupMeta(renderMeta(group)))).toEqual(group);
});

test('the template of a session, of any kind, is stored where the specification has it', () => {
  const configTemplate = { name: 'typescript-strict', origin: '/x', digest: 'a'.repeat(64) };
  const fields = [{ template: 'code-review', configTemplate }, { configTemplate }, {}];
  const log = new CoreLog();
  for (const [index, one] of fields.entries()) log.addSession(sessionDefinition(index + 1, [], one));
  const metas = [...log.state.sessions.values()].map((record) => sessionMeta(record));
  expect(metas.map(({ template }) => template)).toEqual(['code-review', 'typescript-strict', undefined]);
  expect(metas[1]?.configTemplate).toEqual(configTemplate);
});

test('meta.json of a group contains its pause reason, cost and running time', () => {
  const meta = groupMeta(new CoreLog().add(...storyBodies).state);
  expect(meta).toMatchObject({ status: 'paused', reason: 'user', message: 'Paused on request.', cost: 0.25 });
  // The run began with the fourth event and ended with the last; one second passes with every event.
  expect(meta.durationMs).toBe((storyBodies.length - 3) * 1_000);
  expect(meta.sessions.map(({ id, status, reason, dependsOn }) => ({ id, status, reason, dependsOn }))).toEqual([
    { id: sid(1), status: 'completed', reason: undefined, dependsOn: undefined },
    { id: sid(2), status: 'paused', reason: 'user', dependsOn: [sid(1)] },
  ]);
});

test('meta.json of a session names its conversation: none, the chosen id, then the last one seen', () => {
  const log = new CoreLog().addSession(sessionDefinition(1)).run();
  const shown = () => sessionMeta([...log.state.sessions.values()][0]!);
  expect(shown().claudeSessionId).toBeUndefined();
  log.intend(sid(1));
  expect(shown()).toMatchObject({ claudeSessionId: sid(1).slice(4), claudeSessionIds: [], status: 'running' });
  log.pause(sid(1)).run().start(sid(1), 'resume');
  const identity = { sessionId: sid(1), attemptId: `${sid(1).slice(0, 3)}#2` };
  log.add({ type: 'session_identified', ...identity, claudeSessionId: 'forked' });
  expect(shown()).toMatchObject({ claudeSessionId: 'forked', attempts: 2, model: 'some-model' });
});

test('meta.json of a session has every field of the specification’s example with its types', () => {
  const log = new CoreLog().addSession(sessionDefinition(1, [], { template: 'typescript-strict' })).run();
  log.start(sid(1)).complete(sid(1), usage(0.25, 2500));
  const [record] = [...log.state.sessions.values()];
  if (record === undefined) throw new Error('no session');
  const { id, projectPath, prompt } = record.definition;
  const meta = JSON.parse(renderMeta(sessionMeta(record)));
  expect(meta).toMatchObject({
    id,
    projectPath,
    prompt,
    template: 'typescript-strict',
    status: 'completed',
    cost: 0.25,
  });
  expect(meta.claudeSessionId).toMatch(/^[0-9a-f-]{36}$/);
  for (const time of [meta.createdAt, meta.completedAt]) expect(Number.isNaN(Date.parse(time))).toBe(false);
  expect(meta.tokens).toMatchObject({ input: 0, output: 2500 });
});

test('only a completed session has completedAt, and a failed one has its reason and next step', () => {
  const log = new CoreLog({ errorThreshold: 9 })
    .addSession(sessionDefinition(1))
    .addSession(sessionDefinition(2))
    .run();
  log.start(sid(1)).complete(sid(1), usage(0.25, 7));
  log.start(sid(2)).fail(sid(2), usage(0.5));
  const [done, failed] = [...log.state.sessions.values()].map((record) => sessionMeta(record));
  expect(done).toMatchObject({ status: 'completed', result: 'Done.', cost: 0.25, tokens: { input: 0, output: 7 } });
  expect(done?.completedAt).toBe(done?.endedAt as string);
  expect(failed).toMatchObject({ reason: 'claude-error', message: 'It went wrong.', next: 'Try again.', cost: 0.5 });
  expect(failed).not.toHaveProperty('completedAt');
  expect(failed?.endedAt).toBeString();
});

test.each(['', '{', 'null', '[]', '{"id":"x"}'])('the metadata %p is refused', (text) => {
  expect(parseGroupMeta(text)).toMatchObject({ ok: false, failure: { reason: 'corrupt-file' } });
});
