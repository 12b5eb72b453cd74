/** Promises: of the output of a failed command, the line that names the failure is shown. */
import { expect, test } from 'bun:test';
import { failureLine } from '../../../src/worker/shell-command.ts';

/** The output line by line, and the line that is shown. */
const outputs: Readonly<Record<string, readonly [printed: readonly string[], told: string]>> = {
  'node --test, TAP': [
    [
      'TAP version 13',
      'ok 1 - adds',
      '# Subtest: error of a sum',
      'not ok 2 - error of a sum',
      '# fail 1',
      '# duration_ms 117.7',
    ],
    'not ok 2 - error of a sum',
  ],
  'node --test, spec': [
    [
      '✔ reports an error (0.5ms)',
      '✖ adds (1.2ms)',
      '  AssertionError [ERR_ASSERTION]: 3 !== 4',
      'ℹ fail 1',
      'ℹ duration_ms 117.7',
    ],
    '✖ adds (1.2ms)',
  ],
  jest: [
    ['FAIL src/sum.test.ts', '  ● sum › adds', '', 'Tests: 1 failed, 5 total', 'Time: 1.2 s'],
    'FAIL src/sum.test.ts',
  ],
  pytest: [
    [
      '======= FAILURES =======',
      '____ test_adds ____',
      '>       assert add(1, 2) == 4',
      'E       assert 3 == 4',
      '=== 1 failed in 0.05s ===',
    ],
    'E       assert 3 == 4',
  ],
  'a Python traceback': [
    [
      'Traceback (most recent call last):',
      '  File "error.py", line 1',
      '    raise ValueError("no port")',
      'ValueError: no port',
      '',
    ],
    'ValueError: no port',
  ],
  cargo: [
    ['Compiling a v0.1.0', 'error[E0308]: mismatched types', 'error: could not compile `a`'],
    'error[E0308]: mismatched types',
  ],
  tsc: [
    ['src/a.ts(1,7): error TS2322: not assignable.', 'Found 1 error.'],
    'src/a.ts(1,7): error TS2322: not assignable.',
  ],
  npm: [
    [
      'npm error code ENOENT',
      'npm error syscall open',
      'npm error enoent no such file: package.json',
      'npm error A complete log of this run',
    ],
    'npm error enoent no such file: package.json',
  ],
  go: [
    ['--- FAIL: TestAdd (0.00s)', '    a_test.go:7: got 3, want 4', 'FAIL', 'exit status 1'],
    '--- FAIL: TestAdd (0.00s)',
  ],
  'an error that TAP shows as a comment': [
    [
      'TAP version 13',
      '# Subtest: total',
      '# SyntaxError: no export named net',
      'not ok 1 - total.test.js',
      '# fail 1',
    ],
    '# SyntaxError: no export named net',
  ],
  'what names no failure': [['building', 'see the log', ''], 'see the log'],
  'a count of none': [
    ['12 passed, 0 failed', '0 errors', 'coverage 71 % is below 80 %'],
    'coverage 71 % is below 80 %',
  ],
  nothing: [[''], ''],
};

for (const [name, [printed, told]] of Object.entries(outputs)) {
  test(`the line that names the failure is found: ${name}`, () => expect(failureLine(printed.join('\n'))).toBe(told));
}
