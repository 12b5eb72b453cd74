/**
 * Promises: merging a session's copy of a resume file into the project's file loses no added line and no listed
 * session. The project's text wins, and merging again changes nothing.
 */
import { expect, test } from 'bun:test';
import { mergeResume, nearestBase } from '../../../../src/context/handover/merge.ts';
import { readResumeFile } from '../../../../src/context/handover/resume-file.ts';
import { fc } from '../../../support/property.ts';

const who = 'session a (id-a)';
const file = (ids: string, next: string, body = 'Notes.\n', updated = '2026-01-06T12:00:00Z') =>
  `---\nlast_updated: "${updated}"\nsession_id: ""\nsession_ids: [${ids}]\n\n` +
  `# LOADING\nnext_action: "${next}"\n---\n\n${body}`;
const merged = (base: string, ours: string, theirs: string) => {
  const result = mergeResume({ base, ours, theirs, who });
  expect(mergeResume({ base, ours: result, theirs, who })).toBe(result);
  return result;
};

test('changes on one side only are taken', () => {
  const base = file('"x"', 'plan');
  const other = file('"x"', 'build', 'Notes.\nMore.\n');
  expect(merged(base, base, other)).toBe(other);
  expect(merged(base, other, base)).toBe(other);
  expect(merged(base, other, other)).toBe(other);
});

test('ids written by hooks of other sessions stay without a conflict', () => {
  const base = file('"a"', 'plan');
  const ours = file('"a", "b"', 'plan', 'Notes.\n', '2026-01-06T13:00:00Z');
  const theirs = file('"a", "a2"', 'build', 'Notes.\nDone: one.\n', '2026-01-06T14:00:00Z');
  const facts = readResumeFile(merged(base, ours, theirs));
  expect(facts).toMatchObject({ nextAction: 'build', lastUpdated: '2026-01-06T14:00:00Z' });
  expect(new Set(facts.sessionIds)).toEqual(new Set(['a', 'a2', 'b']));
  expect(merged(base, ours, theirs)).toEndWith('Notes.\nDone: one.\n');
});

test('a session that rewrites the file drops no session of others', () => {
  const theirs = '---\nnext_action: "ship"\n---\nAll new.\n';
  const result = merged(file('"a", "b"', 'plan'), file('"a", "b", "c"', 'plan'), theirs);
  expect(new Set(readResumeFile(result).sessionIds)).toEqual(new Set(['a', 'b', 'c']));
  expect(result).toContain('All new.');
});

test('on a conflict the project’s text stays and the other text is added below, once', () => {
  const result = merged(file('"a"', 'plan'), file('"a"', 'of a person'), file('"a"', 'of the session'));
  expect(readResumeFile(result).nextAction).toBe('of a person');
  expect(result).toStartWith(file('"a"', 'of a person'));
  expect(result).toEndWith(
    '\n## Also written by session a (id-a)\n\n' +
      'Something else was written in its place meanwhile; what of it holds belongs above.\n\n' +
      '    next_action: "of the session"\n',
  );
});

test('changes in different places merge with any line ends', () => {
  for (const eol of ['\n', '\r\n']) {
    const text = (next: string, body: string) => file('"a"', next, body).replaceAll('\n', eol);
    expect(merged(text('plan', 'One.\nTwo.'), text('plan', 'Zero.\nOne.\nTwo.'), text('go', 'One.\nTwo.'))).toBe(
      text('go', 'Zero.\nOne.\nTwo.'),
    );
  }
});

test('adjacent fields changed on both sides do not conflict', () => {
  const numbers = (one: number, two: number) => file('"a"', 'plan').replace('\n# ', `\none: ${one}\ntwo: ${two}\n# `);
  expect(merged(numbers(1, 1), numbers(2, 1), numbers(1, 2))).toBe(numbers(2, 2));
});

test('a very large file is merged quickly', () => {
  const body = (word: string) => Array.from({ length: 30_000 }, (_, line) => `${word} ${line}\n`).join('');
  const base = file('"a"', 'plan', body('of both'));
  expect(merged(base, base.replace('plan', 'build'), `${base}More.\n`)).toBe(`${base.replace('plan', 'build')}More.\n`);
  expect(merged(base, base.replace('plan', 'build'), file('"a"', 'plan', body('other')))).toContain(
    '    other 29999\n',
  );
});

test('of several possible bases the copy is compared with the closest', () => {
  const [committed, seeded] = [file('', 'plan'), file('"a", "b"', 'of a person', 'Long.\nNotes.\n')];
  expect(nearestBase(committed, [seeded, committed])).toBe(committed);
  expect(nearestBase(file('', 'build'), [seeded, committed])).toBe(committed);
  expect(nearestBase(file('"a", "b"', 'build', 'Long.\nNotes.\n'), [seeded, committed])).toBe(seeded);
  expect(nearestBase(seeded, [])).toBe('');
});

/** Few words, so that both sides often contain the same. */
const words = fc.array(fc.constantFrom('a', 'b', 'c', '', '---', 'next_action: x', '- y'), { maxLength: 7 });
const free = words.map((lines) => lines.join('\n'));
const structured = fc
  .tuple(fc.subarray(['"x"', '"y"', '"z"']), fc.constantFrom('plan', 'build', 'ship'), free)
  .map(([ids, next, body]) => file(ids.join(', '), next, body));

test('no added text is lost, whatever the three versions are', () => {
  fc.assert(
    fc.property(fc.oneof(structured, free), fc.oneof(structured, free), fc.oneof(structured, free), (base, o, t) => {
      const result = mergeResume({ base, ours: o, theirs: t, who });
      const lines = new Set(result.split(/\r?\n/).map((line) => line.trim()));
      const old = new Set(base.split('\n'));
      // Text written by all hooks is merged by its meaning.
      const isOwn = (line: string) => /^(session_ids?|last_updated):/.test(line);
      for (const line of [...o.split('\n'), ...t.split('\n')]) {
        if (!old.has(line) && !isOwn(line) && line !== '') expect(lines).toContain(line.trim());
      }
      const ids = readResumeFile(result).sessionIds;
      for (const id of readResumeFile(o).sessionIds) expect(ids).toContain(id);
    }),
  );
});
