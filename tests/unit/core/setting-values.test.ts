/**
 * Promises: options and the library refuse the same values of every setting. Each setting has one key and one option.
 * Values in workflows are in `tests/unit/template/workflow-problems.test.ts`.
 */
import { expect, test } from 'bun:test';
import {
  configSettings,
  groupSettings,
  type Setting,
  type Settings,
  sessionSettings,
} from '../../../src/core/definitions.ts';
import { keyOf, optionOf, parseSetting, settingProblem, settingText } from '../../../src/core/setting-values.ts';

const tables: readonly Settings[] = [{ ...sessionSettings, ...configSettings }, groupSettings];

test('keys and options are unique in the settings table, and each flag documents its default', () => {
  for (const table of tables) {
    const rows = Object.entries(table);
    for (const nameOf of [keyOf, optionOf]) {
      const names = rows.map(([name, setting]) => nameOf(name, setting));
      expect(names).toEqual([...new Set(names)]);
    }
    const flags = rows.filter(([, { kind }]) => kind === 'flag');
    expect(flags.filter(([, setting]) => typeof setting.default !== 'boolean')).toEqual([]);
  }
});

const texts: readonly (readonly [Setting, text: string, value: unknown, wrong: string])[] = [
  [sessionSettings.name, 'api', 'api', '12'],
  [sessionSettings.description, ' What it is for ', 'What it is for', ' '],
  [sessionSettings.model, 'opus[1m]', 'opus[1m]', '-x'],
  [sessionSettings.maxBudgetUsd, '$1.5', 1.5, '0'],
  [groupSettings.warningThreshold, '.5', 0.5, '1.1'],
  [sessionSettings.retries, '0', 0, '21'],
  [sessionSettings.memoryBytes, '64', 64_000_000, '63'],
  [sessionSettings.timeoutMs, '1h30m', 5_400_000, '31d'],
  [sessionSettings.allowedTools, 'Edit,Bash(a b)', ['Edit', 'Bash(a b)'], 'Bash('],
  [sessionSettings.context, 'none', [], 'memory'],
  [sessionSettings.requires, 'gpu', ['gpu'], 'any'],
  [sessionSettings.host, 'gpu1', 'gpu1', '-gpu'],
  [sessionSettings.accept, 'npm test', 'npm test', ' '],
  [sessionSettings.isolate, 'none', 'none', 'sometimes'],
];

test.each(texts)('setting %#: a text is parsed and checked like any other value', (setting, text, value, wrong) => {
  expect(parseSetting(setting, text)).toEqual({ value });
  expect(parseSetting(setting, wrong)).toEqual({ problem: expect.stringMatching(/^(must|is) /) });
  expect(settingProblem(setting, value)).toBeNull();
  for (const other of [null, undefined, Number.NaN, {}]) expect(settingProblem(setting, other)).not.toBeNull();
  expect(parseSetting(setting, settingText(setting, value))).toEqual({ value });
});

test('fallback models are words separated by commas', () => {
  const problem = (value: string) => settingProblem(sessionSettings.fallbackModel, value);
  for (const value of ['sonnet', 'sonnet,haiku', 'claude-opus-4-8[1m],a:b/c@d']) expect(problem(value)).toBeNull();
  for (const value of ['', ',', 'a,', 'a b', 'a,,b', '--x,a']) expect(problem(value)).toContain('commas between');
});
