/** Promises: a command reaches the shell as written, and no value is ever inserted into one. */
import { describe, expect, test } from 'bun:test';
import { checkedCommand, shellCommand, wholeVariable } from '../../../src/template/workflow/work-settings.ts';
import { fc } from '../../support/property.ts';

describe('a command', () => {
  test('is taken verbatim, without surrounding spaces', () => {
    const text = fc.string({ unit: 'binary' }).filter((one) => !one.includes('{{') && !one.includes('\0'));
    fc.assert(
      fc.property(text, (one) => {
        if (one.trim() === '') expect(shellCommand(one).ok).toBe(false);
        else expect(shellCommand(one)).toEqual({ ok: true, command: one.trim() });
      }),
    );
  });

  test('may contain braces without meaning to us, and escaped ones', () => {
    for (const one of [
      "go list -f '{{.Dir}}' ./...",
      'echo $'.concat('{{ x }}'),
      "gh --template '{{range .}}'",
      'f() {{ x; }}',
    ]) {
      expect(shellCommand(one)).toEqual({ ok: true, command: one });
    }
    expect(shellCommand("gh --template '{{range .}}\\{{end}}'")).toEqual({
      ok: true,
      command: "gh --template '{{range .}}{{end}}'",
    });
  });

  test('is refused with a variable anywhere in it', () => {
    const around = fc.constantFrom('', ' ', "'", '"', '$(', 'a', '\n', '`');
    fc.assert(
      fc.property(around, around, (before, after) => {
        const found = shellCommand(`make ${before}{{ target }}${after}`);
        expect(found).toEqual({ ok: false, problem: expect.stringContaining('{{target}} cannot be used in a shell') });
      }),
    );
  });

  test('is refused when it is blank, contains a NUL or is only comments', () => {
    const cases: readonly (readonly [string, string])[] = [
      ['', 'the command is blank'],
      [' \n\t', 'the command is blank'],
      ['make\0test', 'the command holds a NUL character'],
      ['ä'.repeat(20_000), 'the command is longer than 32 KiB; put it into a script'],
    ];
    for (const [text, problem] of cases) {
      expect(shellCommand(text)).toEqual({ ok: false, problem });
      expect(checkedCommand(text)).toEqual({ ok: false, problem });
    }
  });
});

test('a variable is the whole text or none of it', () => {
  expect(wholeVariable(' {{ check }}\n')).toBe('check');
  for (const text of ['', 'x', '{{a}}{{b}}', '{{a}} x', '\\{{a}}', '$'.concat('{{a}}'), '{{.a}}']) {
    expect(wholeVariable(text)).toBeUndefined();
  }
});

test('the content of a variable has no meaning to us', () => {
  expect(checkedCommand('echo {{end}} \\{{x}}')).toEqual({ ok: true, command: 'echo {{end}} \\{{x}}' });
});
