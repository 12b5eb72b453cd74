/** Promises: project text is made harmless in linear time, and nothing else of it is lost. */
import { expect, test } from 'bun:test';
import { withoutStructure } from '../../../src/context/cpm/state.ts';
import { harmless } from '../../../src/context/hook-call.ts';
import { fc } from '../../support/property.ts';

test('an unterminated escape sequence removes no other text', () => {
  for (const start of ['\u001b]0;t', '\u001bP', '\u001b_', '\u001bX', '\u009d', '\u0090', '\u001b[']) {
    expect(harmless(`log shows ${start} here\n## Next Action\nSHIP IT\n`)).toContain('\n## Next Action\nSHIP IT\n');
  }
  expect(harmless('\u001b[31mred\u001b[0m \u001b]0;title\u0007x')).toBe('red x');
});

test('letters and lines stay, whatever is between them', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('a', '\n', '\u001b', ']', '[', '\u0007', '0', ';', 'm', '\u009b')),
      (parts) => {
        const text = harmless(`${parts.join('')}\nEND`);
        expect(text).toEndWith('\nEND');
        // biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is what this is for.
        expect(text).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/);
      },
    ),
  );
});

test('a quarter of a million empty lines take no longer than as many letters', () => {
  const lines = '\n'.repeat(250_000);
  expect(withoutStructure(harmless(lines))).toBe(lines);
});
