/**
 * Promises: the group's shared-config is used unchanged, an empty folder counts as none, and an error in a file names
 * its place. Merging of layers is in `tests/unit/template/config-layers.test.ts`.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdirSync } from 'node:fs';
import { generatedConfig, type TemplateStore } from '../../../src/worker/prepare/generated-config.ts';
import { groupDefinition, sessionDefinition } from '../../support/core-events.ts';
import { TemplateFixture, templateWorld } from '../../support/template/rig.ts';

let temp: TemplateFixture;
beforeEach(() => {
  temp = new TemplateFixture();
});
afterEach(() => temp.remove());

function generated() {
  const store: TemplateStore = {
    sharedConfig: temp.at('shared-config'),
    load: () => ({ ok: false, problems: [] }),
  };
  return generatedConfig(templateWorld, store, groupDefinition(), sessionDefinition(1));
}

test('braces in shared-config are kept as plain text', () => {
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

test('an empty shared-config folder counts as none', () => {
  const none = generated();
  expect(none).toMatchObject({ ok: true, value: { claudeMd: [], files: [], mcp: null } });
  mkdirSync(temp.at('shared-config'));
  expect(generated()).toEqual(none);
});

test('a JSON error in shared-config is reported with file and line', () => {
  const path = temp.write('shared-config/settings.json', '{\n  "permissions": {"deny": [Bash]}}');
  const result = generated();
  expect(result).toMatchObject({ ok: false, failure: { reason: 'config-invalid' } });
  expect(result.ok ? '' : result.failure.message).toContain(`${path}:2:`);
});
