/** Promises: claude's output arrives unchanged to the byte, and invalid messages are rejected. */
import { expect, test } from 'bun:test';
import { packed, type ToGroup, unpacked } from '../../../src/fleet/wire.ts';

const attempt = { kind: 'attempt', host: 'one', token: 't', attemptId: 'a' } as const;
const printed = (data: Uint8Array): ToGroup => ({ ...attempt, news: { say: 'printed', offset: 7, data } });

test.each([
  ['nothing', []],
  ['lines', [...Buffer.from('{"type":"a"}\n{"type":"b"}\n\n')]],
  ['bytes that are not text', [0, 255, 10, 128, 10, 0]],
])('claude output arrives unchanged: %s', (_, values) => {
  const message = printed(Uint8Array.from(values));
  const read = unpacked(packed(message));
  expect(read?.kind === 'attempt' && read.news.say === 'printed' && [...read.news.data]).toEqual(values);
  expect(read).toMatchObject({ ...attempt, news: { say: 'printed', offset: 7 } });
});

test('a line break in other fields splits no message', () => {
  const failure = { reason: 'usage', message: 'two\nlines', next: '' };
  const message: ToGroup = { ...attempt, news: { say: 'refused', failure } };
  expect(unpacked(packed(message))).toEqual(message);
});

test.each([
  '',
  '\n',
  'null',
  '{}',
  'null\nabc',
  '{"kind":"attempt"}\nabc',
  JSON.stringify({ ...attempt, news: { say: 'printed', offset: 7, data: 'no base64!' } }),
  JSON.stringify({ ...attempt, news: { say: 'printed', offset: -1 } }),
])('the value %p is not a message', (text) => {
  expect(unpacked(Buffer.from(text))).toBeNull();
});
