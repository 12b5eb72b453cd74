/** Promises: names, headers and truncation of progress files are right for any text. */
import { describe, expect, test } from 'bun:test';
import { layOutContext, type ShownProgress } from '../../../../src/context/cpm/hooks.ts';
import * as state from '../../../../src/context/cpm/state.ts';
import { cpmInstructions, cpmRules } from '../../../../src/context/cpm/state.ts';
import { own } from '../../../support/context/cpm/rig.ts';
import { fc } from '../../../support/property.ts';

describe('file names', () => {
  test.each([
    [`.cpm-progress-${own}.md`, own],
    ['.cpm-progress-a.md', 'a'],
    ['.cpm-progress-.md', null],
    ['.cpm-progress.md', null],
    ['.cpm-progress-a b.md', null],
    ['.cpm-progress--rf.md', null],
    [`.cpm-progress-${'a'.repeat(129)}.md`, null],
  ])('the progress file %j belongs to %j', (name, id) => expect(state.sessionOfName(name)).toBe(id));
});

describe('file headers', () => {
  test('a header is read up to the first section, and the first value of a key counts', () => {
    const text =
      '# CPM Session State\n\n- **Skill**: cpm:do\n**Epic doc**: docs/epics/1.md\n**Input source**: docs/x.md\n' +
      '**Phase**:   2   of 4\t— Work \n**Phase**: 9\n\n## Later\n**Output target**: docs/y.md\n';
    expect(state.parseHeader(text)).toEqual({ skill: 'cpm:do', phase: '2 of 4 — Work', artifact: 'docs/epics/1.md' });
  });
});

describe('truncation', () => {
  const text = (length: number) => `HEAD\n${'x'.repeat(length)}\n## Next Action\nGo on there.\n\n## Notes\nmore`;

  test('a truncated progress file keeps the beginning and the next action, and names the file', () => {
    const shown = state.fittedState(text(5_000), '/p/file.md', 1_000);
    expect(shown).toStartWith('HEAD\nxxx');
    expect(shown).toEndWith('\n## Next Action\nGo on there.');
    expect(shown).toContain('the rest is in /p/file.md');
    expect(shown.length).toBe(1_000);
  });
  test('a progress file that fits is not truncated', () => {
    expect(state.fittedState(text(100), '/p/file.md', 1_000)).toBe(text(100));
    expect(state.fittedState(text(100), '/p/file.md', 1_000, true)).toContain('more than');
  });
  test('truncation does not repeat the next action', () => {
    const early = `## Next Action\nGo on there.\n${'x'.repeat(5_000)}\n## Notes\n${'y'.repeat(5_000)}`;
    expect(state.fittedState(early, '/p', 1_000).match(/Go on there/g)).toHaveLength(1);
    const first = `## Next Action\nGo on there.\n## Notes\n${'y'.repeat(5_000)}`;
    expect(state.fittedState(first, '/p', 1_000).match(/Go on there/g)).toHaveLength(1);
  });
  test('truncation never exceeds its limit or splits a character', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('😀', 'é', 'x', '\n', '## Next Action\n', '## Notes\n'), { maxLength: 300 }),
        fc.integer({ min: 120, max: 400 }),
        fc.boolean(),
        (parts, max, truncated) => {
          const shown = state.fittedState(parts.join(''), '/p', max, truncated);
          expect(shown.length).toBeLessThanOrEqual(max);
          expect(shown.isWellFormed()).toBe(true);
        },
      ),
    );
  });
});

describe('layout', () => {
  const shown = fc.record({
    ...{ sessionId: fc.constant(null), mtimeMs: fc.constant(0), stale: fc.boolean() },
    name: fc.stringMatching(/^\.cpm-progress-[a-z0-9]{1,40}\.md$/),
    path: fc.string({ maxLength: 500 }),
    ageMs: fc.integer({ min: 0, max: 1e12 }),
    header: fc.record({ skill: fc.string({ maxLength: 90 }) }),
    text: fc.oneof(
      fc.string({ maxLength: 50 }),
      fc.integer({ max: 20_000, min: 0 }).map((length) => 'x'.repeat(length)),
    ),
    truncated: fc.boolean(),
    trouble: fc.option(fc.string({ maxLength: 300 })),
    isNamedOnly: fc.boolean(),
  });
  /** File names are unique within a folder. `isStale` selects the group of the file. */
  const known = fc.uniqueArray(fc.record({ shown, isStale: fc.boolean() }), {
    maxLength: 140,
    selector: (one) => one.shown.name,
  });

  test('the layout stays within its limit and names or counts every file', () => {
    fc.assert(
      fc.property(fc.option(shown), known, (primary, files) => {
        const [others, stale] = [false, true].map((isStale) =>
          files.filter((one) => one.isStale === isStale).map((one) => one.shown),
        ) as [ShownProgress[], ShownProgress[]];
        const readable: ShownProgress | null = primary === null ? null : { ...primary, trouble: null };
        const laid = layOutContext(
          {
            first: `CPM_SESSION_ID: ${own}`,
            primary: readable,
            others,
            othersTitle: 'Others:',
            stale,
            unread: 1,
            closing: 'NOTE: '.padEnd(400, '.'),
          },
          9_500,
        );
        expect(laid.text.length).toBeLessThanOrEqual(9_500);
        expect(laid.text).toStartWith(`CPM_SESSION_ID: ${own}\n`);
        const given = others.length + stale.length + 1 + (primary === null ? 0 : 1);
        expect(laid.whole.length + laid.named.length + laid.leftOut).toBe(given);
        if (laid.leftOut > 0) expect(laid.text).toContain(`${laid.leftOut} more CPM progress`);
      }),
    );
  });
});

describe('instructions', () => {
  const text = `${cpmInstructions(own)}\n${cpmRules}`;
  test('instructions are short and name the exact file', () => {
    expect(text.length).toBeLessThan(2_000);
    expect(text).toContain(`docs/plans/.cpm-progress-${own}.md`);
    expect(text).toContain('CPM_SESSION_ID');
  });
  test.each(['**When**', '**What**', '**Adoption**', '**At the end**', '## Next Action', '$CLAUDE_CODE_SESSION_ID'])(
    'instructions contain %s',
    (words) => expect(text).toContain(words),
  );
  test('instructions describe a header that the hooks can read', () => {
    const lines = [...text.matchAll(/`(\*\*[^`]+)`/g)].map((match) => match[1]).join('\n');
    expect(state.parseHeader(lines)).toEqual({ skill: 'name', phase: 'N of M — name', artifact: 'path' });
  });
  test('instructions require an id', () => expect(() => cpmInstructions('../x')).toThrow());
});
