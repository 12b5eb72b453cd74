/**
 * Promises: the nearest template wins and the hidden ones are reported. Names and symlinks cannot leave their folder.
 */

import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdirSync, symlinkSync } from 'node:fs';
import { adviceText } from '../../../src/core/advice.ts';
import {
  findTemplate,
  listTemplates,
  type TemplateKind,
  type TemplatePlace,
  templatePlaces,
} from '../../../src/template/places.ts';
import { TemplateFixture, templateWorld } from '../../support/template/rig.ts';

let temp: TemplateFixture;
beforeEach(() => {
  temp = new TemplateFixture();
});
afterEach(() => temp.remove());

const places = (env: Record<string, string> = {}): readonly TemplatePlace[] =>
  templatePlaces({
    env: { HOME: temp.at('home'), XDG_CONFIG_HOME: temp.at('config'), ...env },
    packageRoot: temp.at('program'),
    projects: [temp.at('near'), temp.at('far')],
  });
const user = 'config/claude-code-agent/templates';
const own = '.claude-code-agent';
const near = `near/${own}/templates`;

const pathOf = (kind: TemplateKind, name: string, env = {}) => {
  const found = findTemplate(templateWorld, places(env), kind, name);
  return found.ok ? found.value.path : `${found.failure.reason}: ${found.failure.message}`;
};

test('template places have a fixed order', () => {
  const env = { CLAUDE_CODE_AGENT_TEMPLATES: `${temp.at('team')}/:relative::~/x:${temp.at('team')}` };
  expect(places(env)).toEqual([
    { folder: temp.at(near), origin: 'project' },
    { folder: temp.at('far/.claude-code-agent/templates'), origin: 'project' },
    { folder: temp.at('team'), origin: 'environment' },
    { folder: temp.at(user), origin: 'user' },
    { folder: temp.at('program/templates'), origin: 'shipped' },
  ]);
  const homeless = templatePlaces({ env: {}, packageRoot: '/p', projects: [] });
  expect(homeless).toEqual([{ folder: '/p/templates', origin: 'shipped' }]);
});

test('the template of the nearest place wins', () => {
  const env = { CLAUDE_CODE_AGENT_TEMPLATES: temp.at('team') };
  const files = [
    `program/templates/prompts/x.md`,
    `${user}/packs/b/prompts/x.md`,
    `${user}/packs/a/prompts/x.md`,
    `${user}/prompts/x.md`,
    `team/prompts/x.md`,
    `far/.claude-code-agent/templates/prompts/x.md`,
    `${near}/prompts/x.md`,
  ];
  expect(pathOf('prompt', 'x', env)).toStartWith('not-found: There is no prompt template "x"');
  const seen: string[] = [];
  for (const file of files) {
    const path = temp.write(file, 'x');
    // The first pack by name hides the others.
    if (!file.includes('packs/b') && !file.includes(own)) expect(pathOf('prompt', 'x', env)).toBe(path);
    // A project's pack replaces no template of another place.
    if (file.includes(own)) expect(pathOf('prompt', 'x', env)).toStartWith('usage: The project has a prompt template');
    seen.unshift(path);
  }
  const [listed, ...others] = listTemplates(templateWorld, places(env));
  expect(others).toEqual([]);
  expect([listed?.template, ...(listed?.hides ?? [])].map((one) => one?.path)).toEqual(seen);
  expect(listed?.hides.map(({ place }) => place.pack ?? place.origin)).toEqual([
    'project',
    'environment',
    'user',
    'a',
    'b',
    'shipped',
  ]);
});

test('a config template is also found by its aliases, but a nearer name takes precedence', () => {
  temp.write('program/templates/configs/strict-typescript/config.yaml', 'aliases: [typescript-strict]');
  expect(pathOf('config', 'typescript-strict')).toBe(temp.at('program/templates/configs/strict-typescript'));
  temp.write(`${user}/configs/typescript-strict/CLAUDE.md`, 'x');
  expect(pathOf('config', 'typescript-strict')).toBe(temp.at(user, 'configs/typescript-strict'));
  temp.write(`${near}/configs/odd/config.yaml`, 'aliases: [[');
  temp.write(`${near}/configs/odder/config.yaml`, 'aliases: typescript-strict');
  expect(pathOf('config', 'typescript-strict')).toBe(temp.at(user, 'configs/typescript-strict'));
});

test('a user’s template that replaces a config also has its aliases, and a project’s template does not', () => {
  temp.write('program/templates/configs/strict-typescript/config.yaml', 'aliases: [typescript-strict]');
  temp.write(`${user}/configs/strict-typescript/CLAUDE.md`, 'x');
  expect(pathOf('config', 'typescript-strict')).toBe(temp.at(user, 'configs/strict-typescript'));
  temp.write(`${near}/configs/strict-typescript/CLAUDE.md`, 'x');
  expect(pathOf('config', 'typescript-strict')).toStartWith('usage: The project has a config template');
});

test.each(['', '.', '..', '../x', 'a/b', '/etc/passwd', '.x', 'a\\b', 'a\0', 'x'.repeat(65), 'x\n'])(
  '%j is not a template name',
  (name) => {
    temp.write('x.md', 'x');
    for (const kind of ['prompt', 'config', 'workflow'] as const) {
      expect(pathOf(kind, name)).toStartWith('usage: ');
    }
  },
);

test('an unknown template name is reported with the nearest name and the places', () => {
  temp.write('program/templates/prompts/code-review.md', 'x');
  const found = findTemplate(templateWorld, places(), 'prompt', 'code-reveiw');
  expect(found).toMatchObject({
    ok: false,
    failure: { reason: 'not-found', message: 'There is no prompt template "code-reveiw"; did you mean "code-review"?' },
  });
  expect(found.ok ? '' : adviceText(found.failure.next)).toContain(temp.at(near, 'prompts'));
});

test('symlinks in foreign templates cannot lead outside; the user may link own templates', () => {
  const secret = temp.write('secret.md', 'x');
  for (const place of [near, `${user}/packs/p`, user]) mkdirSync(temp.at(place, 'prompts'), { recursive: true });
  symlinkSync(secret, temp.at(near, 'prompts', 'a.md'));
  symlinkSync(secret, temp.at(user, 'packs', 'p', 'prompts', 'b.md'));
  symlinkSync(secret, temp.at(user, 'prompts', 'c.md'));
  temp.write(`${near}/prompts/real.md`, 'x');
  symlinkSync('real.md', temp.at(near, 'prompts', 'd.md'));
  expect(pathOf('prompt', 'a')).toStartWith('usage: The prompt template "a" is a symlink out of');
  expect(pathOf('prompt', 'b')).toStartWith('usage: The prompt template "b" is a symlink out of');
  expect(pathOf('prompt', 'c')).toBe(temp.at(user, 'prompts', 'c.md'));
  expect(pathOf('prompt', 'd')).toBe(temp.at(near, 'prompts', 'd.md'));
});
