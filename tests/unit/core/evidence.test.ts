/**
 * Promises: a change of a guarded file is described by its changed lines, and the evidence is stored with the
 * session.
 */
import { expect, test } from 'bun:test';
import { changeKind, type Evidence, guardedText } from '../../../src/core/evidence.ts';
import { noUsage } from '../../../src/core/group.ts';
import { sessionMeta } from '../../../src/store/snapshots.ts';
import { attemptId, CoreLog, sessionDefinition, sid } from '../../support/core-events.ts';

const kinds: readonly (readonly [before: string, after: string, kind: string])[] = [
  ["test('adds', () => {", "test.skip('adds', () => {", 'skipped'],
  ["it('adds', () => {", "it.only('adds', () => {", 'skipped'],
  ["it('adds', () => {", "xit('adds', () => {", 'skipped'],
  ['', '@pytest.mark.skip(reason="slow")', 'skipped'],
  ['func TestAdd(t *testing.T) {', 'func TestAdd(t *testing.T) {\n\tt.Skip("later")', 'skipped'],
  ['  assert.equal(add(1, 2), 3);', '', 'weakened'],
  ['npm test', 'npm test || true', 'weakened'],
  ['set -e', 'set -e\nexit 0', 'weakened'],
  ['  run: npm test', '  continue-on-error: true\n  run: npm test', 'weakened'],
  ['def test_add():\n    x = 1', '', 'weakened'],
  ['  assert.equal(add(1, 2), 3);', '  assert.equal(add(1, 2), 4);', 'changed'],
  ["import { add } from '../src/add.js';", "import { add } from '../src/sum.js';", 'changed'],
];

for (const [before, after, kind] of kinds) {
  test(`a change from ${JSON.stringify(before)} to ${JSON.stringify(after)} is classified as ${kind}`, () => {
    expect(changeKind(before.split('\n'), after.split('\n'))).toBe(kind as 'changed');
  });
}

test('words of commands have no meaning in code', () => {
  const after = ['    #[test]', '    fn keeps() {', '        assert!(list(&["--exclude", "a"]).is_empty());'];
  expect(changeKind([], after)).toBe('weakened');
  expect(changeKind([], after, true)).toBe('changed');
});

test('guarded changes are summarised in one line, the most serious first', () => {
  expect(guardedText([])).toBe('');
  const text = guardedText([
    { path: 'test/new.test.js', change: 'added' },
    { path: 'test/a.test.js', change: 'removed' },
    { path: 'package.json: scripts.test', change: 'changed' },
  ]);
  expect(text).toBe('removed test/a.test.js; changed package.json: scripts.test; added test/new.test.js');
});

test('the evidence of an acceptance command is stored with the session, whatever the outcome', () => {
  const log = new CoreLog().addSession(sessionDefinition(1)).run().start(sid(1));
  const evidence: Evidence = {
    runs: [{ command: 'npm test', where: 'fresh', code: 'own', exitCode: 1, ms: 12, log: '/data/accept.log' }],
    guarded: [{ path: 'test/a.test.js', change: 'changed' }],
  };
  const of = { sessionId: sid(1), attemptId: attemptId(sid(1), 1) };
  log.add({ type: 'session_paused', ...of, reason: 'not-accepted', message: 'It failed.', usage: noUsage, evidence });
  const record = log.state.sessions.get(sid(1));
  expect(record?.evidence).toEqual(evidence);
  expect(record && sessionMeta(record).evidence).toEqual(evidence);
});
