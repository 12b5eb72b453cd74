/** Promises: a value means the same as an option and in a workflow, and invalid values are refused. */
import { expect, test } from 'bun:test';
import { ageMs, contextSystems, permissionRules } from '../../../src/core/setting-values.ts';

test.each([
  ['none', []],
  ['cpm', ['cpm']],
  ['handover, cpm,cpm', ['cpm', 'handover']],
  ['cpm,faber,handover', ['cpm', 'faber', 'handover']],
  ['', null],
  ['cpm,', null],
  ['none,cpm', null],
  ['CPM', null],
])('the value %j of --context is parsed', (text, names) => expect<unknown>(contextSystems(text)).toEqual(names));

test.each([
  ['90s', 90_000],
  ['1h30m', 5_400_000],
  ['2D', 172_800_000],
  ['30d', 2_592_000_000],
  ['31d', 2_678_400_000],
  ['', null],
  ['90', null],
  ['m', null],
  ['1.5h', null],
  ['30m1h', null],
])('the time %j is parsed', (text, ms) => expect(ageMs(text)).toBe(ms));

test.each([
  ['Edit', ['Edit']],
  ['Edit,Bash(git log:*) Read', ['Edit', 'Bash(git log:*)', 'Read']],
  ['Bash(a, b)', ['Bash(a, b)']],
  ['Bash(a', null],
  ['a)', null],
  ['-x', null],
  ['', null],
  ['a\nb', ['a', 'b']],
])('the permission rules %j are parsed', (text, rules) => expect(permissionRules(text)).toEqual(rules));
