/**
 * Promises: the group's shared-config counts as it stands, an empty folder counts as none, and a fault in one of its
 * files is told with its place. How layers are put together is in tests/unit/template/config-layers.test.ts.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdirSync } from 'node:fs';
import { generatedConfig, type TemplateStore } from '../../../src/worker/prepare/generated-config.ts';
import { groupDefinition, sessionDefinition } from '../../support/core-events.ts';
import { TemplateFolder, world } from '../../support/template/rig.ts';

let temp: TemplateFolder;
beforeEach(() => {
  temp = new TemplateFolder();
});
afterEach(() => temp.remove());

function generated() {
  const store: TemplateStore = {
    sharedConfig: temp.at('shared-config'),
    load: () => ({ ok: false, problems: [] }),
  };
  return generatedConfig(world, store, groupDefinition(), sessionDefinition(1));
}

test('names between braces in shared-config are its own text', () => {
  temp.write('shared-config/CLAUDE.md', 'Use {{ values.image }}.');
  temp.write('shared-config/settings.json', '{"permissions": {"deny": ["Read({{x}})"]}}');
  expect(generated()).toMatchObject({
    ok: true,
    value: {
      claudeMd: [{ layer: 'shared-config', text: 'Use {{ values.image }}.' }],
      settings: { permissions: { deny: ['Read({{x}})'] } },
    },
  });
});

test('an empty shared-config is as good as none', () => {
  const none = generated();
  expect(none).toMatchObject({ ok: true, value: { claudeMd: [], files: [], mcp: null } });
  mkdirSync(temp.at('shared-config'));
  expect(generated()).toEqual(none);
});

test('a fault in the JSON of shared-config is told at its place', () => {
  const path = temp.write('shared-config/settings.json', '{\n  "permissions": {"deny": [Bash]}}');
  const result = generated();
  expect(result).toMatchObject({ ok: false, failure: { reason: 'config-invalid' } });
  expect(result.ok ? '' : result.failure.message).toContain(`${path}:2:`);
});
