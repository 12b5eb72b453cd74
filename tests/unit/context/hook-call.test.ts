/** Promises: text of a project is made harmless and nothing else of it is lost, whatever it looks like, and at once. */
import { expect, test } from 'bun:test';
import { withoutStructure } from '../../../src/context/cpm/state.ts';
import { harmless } from '../../../src/context/hook-call.ts';
import { fc } from '../../support/property.ts';

test('an escape sequence without its end takes nothing with it', () => {
  for (const start of ['\u001b]0;t', '\u001bP', '\u001b_', '\u001bX', '\u009d', '\u0090', '\u001b[']) {
    expect(harmless(`log shows ${start} here\n## Next Action\nSHIP IT\n`)).toContain('\n## Next Action\nSHIP IT\n');
  }
  expect(harmless('\u001b[31mred\u001b[0m \u001b]0;title\u0007x')).toBe('red x');
});

test('letters and lines stay, whatever stands between them', () => {
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

test('a quarter of a million empty lines cost no more than as many letters', () => {
  const lines = '\n'.repeat(250_000);
  expect(withoutStructure(harmless(lines))).toBe(lines);
});
