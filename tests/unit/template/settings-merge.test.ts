/**
 * Promises: merging settings never loses a deny rule, the last value wins elsewhere, and every part knows its layer.
 */

import { expect, test } from 'bun:test';
import type { JsonObject } from '../../../src/store/json.ts';
import { mergeSettings } from '../../../src/template/config-layers.ts';
import { fc } from '../../support/property.ts';

const merge = (...all: JsonObject[]) => mergeSettings(all.map((settings, index) => ({ layer: `L${index}`, settings })));

test('merged settings combine objects, and take the last scalar and list', () => {
  const { settings, origins } = merge(
    { model: 'opus', env: { A: '1', B: '1' }, list: [1, 2], sandbox: { enabled: false, network: { a: 1 } } },
    { model: 'sonnet', env: { B: '2' }, list: [3], sandbox: { enabled: true } },
  );
  expect(settings).toEqual({
    model: 'sonnet',
    env: { A: '1', B: '2' },
    list: [3],
    sandbox: { enabled: true, network: { a: 1 } },
  });
  expect(origins).toEqual({
    model: 'L1',
    'env.A': 'L0',
    'env.B': 'L1',
    list: 'L1',
    'sandbox.enabled': 'L1',
    'sandbox.network.a': 'L0',
  });
});

test('permissions are merged without duplicates, and deny wins from any layer', () => {
  const { settings, origins } = merge(
    { permissions: { allow: ['Edit', 'Bash(git log:*)'], deny: ['WebFetch'], defaultMode: 'plan' } },
    { permissions: { allow: ['WebFetch', 'Edit', 'Read'], ask: ['WebFetch', 'Bash'], deny: ['Bash(git log:*)'] } },
    { permissions: { additionalDirectories: ['../lib'], defaultMode: 'acceptEdits' } },
  );
  expect(settings).toEqual({
    permissions: {
      allow: ['Edit', 'Read'],
      deny: ['WebFetch', 'Bash(git log:*)'],
      ask: ['Bash'],
      defaultMode: 'acceptEdits',
      additionalDirectories: ['../lib'],
    },
  });
  expect(origins).toEqual({
    'permissions.allow.0': 'L0',
    'permissions.allow.1': 'L1',
    'permissions.deny.0': 'L0',
    'permissions.deny.1': 'L1',
    'permissions.ask.0': 'L1',
    'permissions.defaultMode': 'L2',
    'permissions.additionalDirectories.0': 'L2',
  });
});

test('hooks of one event are all kept', () => {
  const hook = (command: string) => ({ hooks: [{ type: 'command', command }] });
  const { settings } = merge(
    { hooks: { PreToolUse: [hook('a')], Stop: [hook('s')] } },
    { hooks: { PreToolUse: [hook('a'), hook('b')] } },
  );
  expect(settings).toEqual({ hooks: { PreToolUse: [hook('a'), hook('a'), hook('b')], Stop: [hook('s')] } });
});

test.each<[JsonObject]>([
  [{ permissions: null }],
  [{ permissions: [] }],
  [{ permissions: { deny: null } }],
  [{ permissions: { deny: { 0: 'x' } } }],
  [{ permissions: { deny: [] } }],
  [JSON.parse('{"__proto__": {"permissions": null}, "constructor": 1}') as JsonObject],
  [{ sandbox: null }],
  [{ sandbox: { filesystem: 'none' } }],
  [{ sandbox: { filesystem: { denyRead: [] } } }],
])('the setting %j removes no prohibition', (later) => {
  const first = { permissions: { deny: ['Bash'] }, sandbox: { filesystem: { denyRead: ['~/.ssh'] } } };
  expect(merge(first, later).settings).toMatchObject(first);
});

const rule = fc.constantFrom('Edit', 'Bash', 'Bash(rm:*)', 'Read(./.env)', 'WebFetch', 'Write');
const rules = fc.array(rule, { maxLength: 5 });
const permissions = fc.record({ allow: rules, deny: rules, ask: rules }, { requiredKeys: [] });
const layer = fc
  .tuple(fc.record({ permissions, env: fc.dictionary(fc.string(), fc.string()) }, { requiredKeys: [] }), fc.jsonValue())
  .map(([proper, odd]) => (typeof odd === 'object' && odd !== null ? { ...odd, ...proper } : proper) as JsonObject);

test('no deny rule is lost by merging, and none is also in allow or ask', () => {
  fc.assert(
    fc.property(fc.array(layer, { maxLength: 5 }), (layers) => {
      const given = layers.flatMap((one) => (one.permissions as { deny?: string[] } | undefined)?.deny ?? []);
      const merged = merge(...layers).settings.permissions as Partial<Record<string, string[]>> | undefined;
      expect(new Set(merged?.deny ?? [])).toEqual(new Set(given));
      for (const list of [merged?.allow, merged?.ask]) {
        expect((list ?? []).filter((one) => given.includes(one))).toEqual([]);
        expect(new Set(list).size).toBe(list?.length ?? 0);
      }
    }),
    { numRuns: 1000 },
  );
});
