/**
 * Promises: an edit of a session applies from its next attempt. The outcome of an earlier attempt is not used for a
 * changed task, model or check. Edits that come too late are refused.
 */
import { describe, expect, test } from 'bun:test';
import { changed, changesOf, editProblem, type SessionChanges } from '../../../src/core/edit.ts';
import type { SessionDefinition } from '../../../src/core/group.ts';
import type { SessionRecord } from '../../../src/core/session-state.ts';
import { attemptId, CoreLog, sessionDefinition, sid, usage } from '../../support/core-events.ts';

const [a, b, c] = [sid(1), sid(2), sid(3)];

function recordOf(log: CoreLog, id = a): SessionRecord {
  return log.state.sessions.get(id) as SessionRecord;
}

function edit(log: CoreLog, changes: SessionChanges, id = a): CoreLog {
  const session = changed<SessionDefinition>(recordOf(log, id).definition, changes);
  return log.add({ type: 'session_changed', sessionId: id, session });
}

function refusal(log: CoreLog, changes: SessionChanges, id = a): string | undefined {
  const record = recordOf(log, id);
  const problem = editProblem(log.state, record, changed<SessionDefinition>(record.definition, changes));
  return problem?.ok === false ? problem.failure.message : undefined;
}

test('editing any key of a session yields a different definition', () => {
  const before = sessionDefinition(1, [], { model: 'opus', accept: 'true' });
  const after: SessionDefinition = { ...sessionDefinition(1, [], { accept: 'false' }), timeoutMs: 5_000 };
  const changes = changesOf(before, after);
  expect(changes).toEqual({ model: null, accept: 'false', timeoutMs: 5_000 });
  expect(changed<SessionDefinition>(before, changes)).toEqual(after);
  expect(changesOf(after, after)).toEqual({});
});

describe('next attempt after an edit', () => {
  const answered = usage(0.25, 10);

  test('after an edit of the task, prompts say so until the model has answered', () => {
    const log = new CoreLog().addSession(sessionDefinition(1)).run().start(a).pause(a, answered);
    edit(log, { prompt: 'Do something else.' });
    expect(recordOf(log).taskChanged).toBe(true);
    log.start(a, 'resume').pause(a, usage(0));
    expect(recordOf(log).taskChanged).toBe(true);
    log.start(a, 'resume').pause(a, answered);
    expect(recordOf(log).taskChanged).toBeUndefined();
    const fresh = new CoreLog().addSession(sessionDefinition(1));
    expect(recordOf(edit(fresh, { prompt: 'Do something else.' })).taskChanged).toBeUndefined();
  });

  test('the next attempt uses the edited model instead of the model of the conversation', () => {
    const log = new CoreLog().addSession(sessionDefinition(1)).run().start(a).fail(a, answered);
    expect(recordOf(edit(log, { timeoutMs: 5_000 })).model).toBe('some-model');
    expect(recordOf(edit(log, { model: 'opus' })).model).toBeUndefined();
  });

  const of = { sessionId: a, attemptId: attemptId(a, 1) };
  const notAccepted = () =>
    new CoreLog()
      .addSession(sessionDefinition(1, [], { accept: 'npm tset' }))
      .run()
      .start(a)
      .add({ type: 'session_accepting', ...of, result: 'Done.', usage: answered })
      .add({
        type: 'session_failed',
        ...of,
        reason: 'not-accepted',
        message: 'It failed.',
        next: '',
        output: 'no tset',
        usage: answered,
      });

  test('when only the acceptance command was edited, the next attempt only runs that command', () => {
    const log = edit(notAccepted(), { accept: 'npm test' });
    expect(recordOf(log)).toMatchObject({ finished: { result: 'Done.' } });
    expect(recordOf(log).rejection).toBeUndefined();
    expect(recordOf(edit(notAccepted(), { accept: null })).finished).toEqual({ result: 'Done.' });
  });

  test('a session that also got a message or a new task starts claude again', () => {
    const told = notAccepted().add({ type: 'session_message', sessionId: a, text: 'Mind the fonts.' });
    expect(recordOf(edit(told, { accept: 'npm test' })).finished).toBeUndefined();
    const both = edit(notAccepted(), { accept: 'npm test', prompt: 'Do something else.' });
    expect(recordOf(both).finished).toBeUndefined();
    const later = edit(edit(notAccepted(), { accept: 'npm test' }), { prompt: 'Do something else.' });
    expect(recordOf(later).finished).toBeUndefined();
  });
});

test('a raised own cap is offered to a group that stopped because of that cap', () => {
  const log = new CoreLog().addSession(sessionDefinition(1, [], { maxBudgetUsd: 1 })).run();
  log.start(a).pause(a, usage(1, 10), 'budget');
  log.add({ type: 'group_paused', reason: 'budget', message: 'All is used up.' });
  edit(log, { maxBudgetUsd: 5 });
  expect(log.state).toMatchObject({
    reason: 'budget-available',
    message: expect.stringContaining('Budget is available'),
  });
});

describe('refused edits', () => {
  const begun = () => new CoreLog().addSession(sessionDefinition(1)).addSession(sessionDefinition(2)).run().start(a);

  test('editing a running or completed session is refused', () => {
    expect(refusal(begun(), { timeoutMs: 5_000 })).toContain('is running');
    expect(refusal(begun().complete(a), { timeoutMs: 5_000 })).toContain('is completed');
  });

  test('moving a session to another folder after its first attempt is refused', () => {
    const log = begun().pause(a);
    expect(refusal(log, { projectPath: '/projects/two' })).toContain('its project cannot change');
    expect(refusal(log, { repository: '/projects/.git' })).toContain('its project cannot change');
    expect(refusal(log, { isolate: 'worktree' })).toContain('in the project folder');
    expect(refusal(log, { projectPath: '/projects/two' }, b)).toBeUndefined();
  });

  test('new dependencies are refused for a session whose worktree contains the work of earlier ones', () => {
    const log = begun();
    const workspace = { path: '/w', folder: '/w', repository: '/r', branch: 'cca/x', base: 'b' };
    log.add({ type: 'session_isolated', sessionId: a, attemptId: attemptId(a, 1), workspace }).pause(a);
    expect(refusal(log, { dependsOn: [b] })).toContain('its dependencies cannot change');
    expect(refusal(log, { prompt: 'Do something else.' })).toBeUndefined();
  });

  test('a cap below what the session has spent is refused', () => {
    const log = begun().pause(a, usage(2, 10));
    expect(refusal(log, { maxBudgetUsd: 1.5 })).toContain('$2.0000');
    expect(refusal(log, { maxBudgetUsd: 2 })).toContain('$2.0000');
    expect(refusal(log, { maxBudgetUsd: 2.5 })).toBeUndefined();
  });

  test('an edit that creates a cycle, reuses a name or names a removed session is refused', () => {
    const log = new CoreLog()
      .addSession(sessionDefinition(1, [], { name: 'a' }))
      .addSession(sessionDefinition(2, [1], { name: 'b' }));
    expect(refusal(log, { dependsOn: [b] })).toContain('cycle');
    expect(refusal(log, { dependsOn: [a] })).toContain('cycle');
    expect(refusal(log, { name: 'b' })).toContain('named b');
    expect(refusal(log, { dependsOn: [sid(9)] })).toContain('not in the group');
    expect(refusal(log, { prompt: ' ' })).toContain('prompt');
  });

  test('an edit that makes any prompt of the group use a result too early is refused', () => {
    const quote = { at: 0, length: 4, sessionIds: [a], field: 'result' } as const;
    const log = new CoreLog()
      .addSession(sessionDefinition(1, [], { name: 'a' }))
      .addSession(sessionDefinition(2, [1]))
      .addSession(sessionDefinition(3, [2], { promptReferences: [quote] }));
    expect(refusal(log, { dependsOn: [] }, b)).toContain('003 quotes 001 a');
    expect(refusal(log, { dependsOn: [] }, c)).toContain('003 quotes 001 a');
    expect(refusal(log, { dependsOn: [], promptReferences: null }, c)).toBeUndefined();
    expect(refusal(log, { dependsOn: [a] }, c)).toBeUndefined();
  });
});
