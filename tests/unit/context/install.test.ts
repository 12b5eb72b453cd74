/**
 * Promises: the hooks can be installed in settings and uninstalled. Other settings keep their value, place and bytes,
 * and repeating a command changes nothing.
 */
import { describe, expect, test } from 'bun:test';
import { withMember } from '../../../src/app/hooks/settings-file.ts';
import { readBackCheck } from '../../../src/claude/launch/settings.ts';
import { installedHooks, installHooks, uninstallHooks } from '../../../src/context/install.ts';
import { contextNames } from '../../../src/core/definitions.ts';
import { fc } from '../../support/property.ts';

const launcher = '/opt/a b/bin/claude-code-agent';
type Settings = { hooks?: Record<string, { matcher?: string; hooks: Record<string, unknown>[] }[]> };
const install = (settings: object, systems = [...contextNames], from = launcher) =>
  installHooks(settings as Record<string, unknown>, from, systems) as Settings;
const uninstall = (settings: object, systems = [...contextNames]) =>
  uninstallHooks(settings as Record<string, unknown>, systems) as Settings;

const theirs = {
  model: 'opus',
  hooks: {
    SessionStart: [{ matcher: 'startup', hooks: [{ type: 'command', command: 'echo hi', timeout: 3 }] }],
    Stop: [{ hooks: [{ type: 'command', command: 'say done' }] }],
  },
};

describe('installHooks', () => {
  test('installHooks adds one entry for each system and event: exec form, absolute paths, a timeout', () => {
    const { hooks } = install({});
    expect(Object.keys(hooks ?? {})).toEqual(['SessionStart', 'PreCompact', 'SessionEnd']);
    const args = (system: string, event: string) => ['hook', system, event, '--installed'];
    expect(hooks?.SessionStart).toEqual(
      ['cpm', 'faber', 'handover'].map((system) => ({
        matcher: 'startup|resume|clear|compact|fork',
        hooks: [{ type: 'command', command: launcher, args: args(system, 'session-start'), timeout: 10 }],
      })),
    );
    expect(hooks?.PreCompact?.map(({ matcher }) => matcher)).toEqual([undefined, undefined, undefined]);
    expect(hooks?.PreCompact?.map(({ hooks: [hook] }) => hook?.timeout)).toEqual([10, 10, 10]);
    expect(hooks?.SessionEnd?.map(({ hooks: [hook] }) => hook?.args)).toEqual(
      ['cpm', 'faber', 'handover'].map((system) => args(system, 'session-end')),
    );
    expect(readBackCheck('f', JSON.stringify({ hooks })).ok).toBe(true);
  });

  test('installHooks keeps other entries in their place', () => {
    const after = install(theirs);
    expect(after).toMatchObject({ model: 'opus', hooks: { Stop: theirs.hooks.Stop } });
    expect(after.hooks?.SessionStart?.[0]).toEqual(theirs.hooks.SessionStart[0] as never);
    expect(after.hooks?.SessionStart).toHaveLength(4);
  });

  test('installHooks replaces entries of a moved package, duplicates, and changed or shared entries', () => {
    const old = install({}, ['cpm'], '/elsewhere/bin/claude-code-agent');
    const [ours] = old.hooks?.SessionStart ?? [];
    const foreign = { type: 'command', command: 'echo', timeout: 1 };
    const messy = {
      hooks: {
        ...old.hooks,
        SessionStart: [
          { ...ours, matcher: 'startup', extra: 1, hooks: [foreign, ...(ours?.hooks ?? [])] },
          ...(install({}, ['cpm']).hooks?.SessionStart ?? []),
          ...(install({}, ['cpm']).hooks?.SessionStart ?? []),
        ],
      },
    };
    const after = install(messy, ['cpm']);
    expect(after.hooks?.SessionStart).toEqual([
      { matcher: 'startup', extra: 1, hooks: [foreign] } as never,
      ...(install({}, ['cpm']).hooks?.SessionStart ?? []),
    ]);
    expect(installedHooks(after as Record<string, unknown>).map((hook) => hook.launcher)).toEqual(
      Array(3).fill(launcher),
    );
  });
});

describe('uninstallHooks', () => {
  test.each([
    [
      'a shell command that looks like ours',
      { type: 'command', command: 'bun src/hook-main.ts cpm session-start --installed' },
    ],
    ['without the mark', { args: ['hook', 'cpm', 'session-start'] }],
    ['of another event', { args: ['hook', 'cpm', 'session-end', '--installed'] }],
    ['of another system', { args: ['hook', 'task', 'session-start', '--installed'] }],
    ['of another program', { command: '/x/bin/agent', args: ['hook', 'cpm', 'session-start', '--installed'] }],
    ['by a relative path', { command: 'bin/claude-code-agent', args: ['hook', 'cpm', 'session-start', '--installed'] }],
    ['of another type', { type: 'prompt', args: ['hook', 'cpm', 'session-start', '--installed'] }],
  ])('uninstallHooks keeps other entries: %s', (_, hook) => {
    const settings = { hooks: { SessionStart: [{ hooks: [{ type: 'command', command: launcher, ...hook }] }] } };
    expect(uninstall(settings)).toBe(settings);
    expect(installedHooks(settings)).toEqual([]);
  });
});

const word = fc.stringMatching(/^[a-zA-Z_]{1,10}$/);
const hook = fc.record(
  {
    type: fc.constant('command'),
    command: fc.string({ minLength: 1 }),
    args: fc.array(fc.string()),
    timeout: fc.integer({ min: 1, max: 60 }),
  },
  { requiredKeys: ['type', 'command'] },
);
const group = fc.record({ matcher: fc.string(), hooks: fc.array(hook, { maxLength: 3 }) }, { requiredKeys: ['hooks'] });
const events = fc.dictionary(
  fc.constantFrom('SessionStart', 'PreCompact', 'Stop', '__proto__'),
  fc.array(group, { minLength: 1, maxLength: 3 }),
  {
    minKeys: 1,
  },
);
const settingsOf = fc
  .tuple(fc.dictionary(word, fc.jsonValue()), fc.option(events, { nil: undefined }))
  .map(([rest, hooks]) => ({ ...rest, ...(hooks === undefined ? {} : { hooks }) }))
  .filter(({ hooks }) => hooks === undefined || (typeof hooks === 'object' && hooks !== null && !Array.isArray(hooks)));
const systems = fc.subarray([...contextNames], { minLength: 1 });

describe('any settings', () => {
  test('installing hooks twice equals installing once, and uninstalling restores the settings', () => {
    fc.assert(
      fc.property(settingsOf, systems, (settings, some) => {
        const once = install(settings, some);
        expect(install(once, some)).toEqual(once);
        expect(JSON.stringify(install(once, some))).toBe(JSON.stringify(once));
        expect(JSON.stringify(uninstall(once, some))).toBe(JSON.stringify(settings));
        expect(installedHooks(once as Record<string, unknown>)).toHaveLength(3 * some.length);
      }),
    );
  });

  test('installing hooks keeps every byte of other members of the file', () => {
    fc.assert(
      fc.property(settingsOf, systems, fc.constantFrom(0, 2, 4, '\t'), fc.boolean(), (settings, some, indent, crlf) => {
        const plain = JSON.stringify(settings, null, indent);
        const text = crlf ? `${plain}\n`.replaceAll('\n', '\r\n') : `${plain}\n`;
        const after = withMember(text, 'hooks', install(settings, some).hooks);
        expect(JSON.stringify(JSON.parse(after))).toBe(JSON.stringify(install(settings, some)));
        const back = withMember(after, 'hooks', uninstall(JSON.parse(after), some).hooks);
        expect(JSON.parse(back)).toEqual(JSON.parse(text));
        const { hooks, ...rest } = settings;
        if (hooks === undefined && Object.keys(rest).length > 0) expect(back).toBe(text);
        if (text.includes('\r\n')) expect(after.replaceAll('\r\n', '')).not.toContain('\n');
      }),
    );
  });
});

describe('withMember', () => {
  test.each([
    ['{}', 'x', [1], '{\n  "x": [\n    1\n  ]\n}'],
    ['{"a":1}', 'x', { b: 2 }, '{"a":1,"x": {"b":2}}'],
    ['{\n\t"a": 1\n}\n', 'x', 2, '{\n\t"a": 1,\n\t"x": 2\n}\n'],
    [
      '{"a": 1e400, "b": 12345678901234567890 , "x": "}", "c": 1.0}',
      'x',
      2,
      '{"a": 1e400, "b": 12345678901234567890 , "x": 2, "c": 1.0}',
    ],
    ['{"a": "\\"x\\": {", "x": {"y": "}"}}', 'x', undefined, '{"a": "\\"x\\": {"}'],
    ['{\n  "x": [],\n  "a": 1\n}', 'x', undefined, '{\n  "a": 1\n}'],
    ['{\n  "x": []\n}', 'x', undefined, '{}'],
    ['{"\\u0078": 1, "a": 2}', 'x', 3, '{"\\u0078": 3, "a": 2}'],
    ['{"a": -0, "b": [1, 2], "c": null}', 'x', true, '{"a": -0, "b": [1, 2], "c": null,"x": true}'],
  ])('withMember changes only its member: %j, %s', (text, key, value, expected) => {
    expect(withMember(text, key, value)).toBe(expected);
  });
});
