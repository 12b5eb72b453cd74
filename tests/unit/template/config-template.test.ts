/**
 * Promises: a config template is read completely or refused with every error. Only known regular files count, the
 * digest covers names and contents, and a frozen copy is complete and loads as the same template.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import {
  type ConfigTemplate,
  freezeConfigTemplate,
  loadConfigTemplate,
  loadSharedConfig,
  renderConfigTemplate,
} from '../../../src/template/config-template.ts';
import { faultyFiles } from '../../support/store-world.ts';
import { problemsIn, TemplateFixture, templateWorld, valid } from '../../support/template/rig.ts';

let temp: TemplateFixture;
beforeEach(() => {
  temp = new TemplateFixture();
});
afterEach(() => temp.remove());

const load = () => loadConfigTemplate(templateWorld, temp.at('strict'));
const write = (name: string, content: string | Uint8Array) => temp.write(join('strict', name), content);

/** Every problem as `file:line:column message`; the file relative to the template. */
function problems(): string[] {
  const loaded = load();
  if (loaded.ok) return [];
  const below = temp.at('strict').length + 1;
  return loaded.problems.map(({ file, line, column, message }) => `${file.slice(below)}:${line}:${column} ${message}`);
}

const about = `description: D
aliases: [typed]
variables:
  - {name: team, required: true}
  - {name: limit, type: number, default: 3}
`;

function writeWhole(): void {
  write('config.yaml', about);
  write('CLAUDE.md', '# {{team}}\n');
  write('settings.json', '{"permissions": {"deny": ["Read({{team}}/**)"]}, "cleanupPeriodDays": {{limit}}}');
  write('.mcp.json', '{"mcpServers": {"db": {"command": "db", "args": ["{{team}}"]}}}');
  write('commands/a/check.md', `Check for {{team}}: $ARGUMENTS \${{team}}`);
  write('skills/x/SKILL.md', '---\nname: x\n---\n');
  write('skills/x/logo.png', new Uint8Array([0, 1, 0xff]));
  write('README.md', '{{what}}');
  write('.DS_Store', 'x');
}

const textsOf = (files: ConfigTemplate['files']) =>
  Object.fromEntries(files.map(({ path, bytes }) => [path, Buffer.from(bytes).toString()]));

test('a config template with every kind of file is read', () => {
  writeWhole();
  const template = valid(load());
  expect(template).toMatchObject({ name: 'strict', description: 'D', path: temp.at('strict') });
  expect(template.variables.map(({ name }) => name)).toEqual(['team', 'limit']);
  expect(template.files.map(({ path, isText }) => `${path} ${isText}`)).toEqual([
    'CLAUDE.md true',
    'commands/a/check.md true',
    'config.yaml true',
    'mcp.json true',
    'settings.json true',
    'skills/x/SKILL.md true',
    'skills/x/logo.png false',
  ]);
  const rendered = renderConfigTemplate(template, { team: 'a"b\\', limit: '5' }, () => undefined);
  expect(rendered.problems).toEqual([]);
  const texts = textsOf(rendered.files);
  expect(Object.keys(texts)).not.toContain('config.yaml');
  expect(texts['CLAUDE.md']).toBe('# a"b\\\n');
  expect(texts['commands/a/check.md']).toBe(`Check for a"b\\: $ARGUMENTS \${{team}}`);
  expect(JSON.parse(texts['settings.json'] as string)).toEqual({
    permissions: { deny: ['Read(a"b\\/**)'] },
    cleanupPeriodDays: 5,
  });
  expect(JSON.parse(texts['mcp.json'] as string)).toEqual({ mcpServers: { db: { command: 'db', args: ['a"b\\'] } } });
  expect(rendered.files.find(({ path }) => path.endsWith('.png'))?.bytes).toEqual(new Uint8Array([0, 1, 0xff]));
});

test('without config.yaml every variable that is used must be given', () => {
  write('CLAUDE.md', '{{a}} {{project.name}} {{b}} {{a}}');
  expect(valid(load()).variables).toEqual([
    { name: 'a', required: true, mayBeBlank: true, type: 'string' },
    { name: 'b', required: true, mayBeBlank: true, type: 'string' },
  ]);
});

test('unknown and later variables in a config template are problems at their place', () => {
  write('CLAUDE.md', 'A\n{{sessions.api.result}} {{project.name}} {{group.odd}}');
  const extra = (name: string) =>
    name === 'project.name' ? 'web' : name.startsWith('sessions.') ? ({ later: true } as const) : undefined;
  const rendered = renderConfigTemplate(valid(load()), {}, extra);
  expect(rendered.problems.map(({ line, column, message }) => `${line}:${column} ${message}`)).toEqual([
    '2:42 there is no variable "group.odd"',
    '2:1 "sessions.api.result" is known only when the session starts; use it in a prompt',
  ]);
});

describe('refused config templates', () => {
  test('all files that do not belong in a config template are reported at once', () => {
    write('CLAUDE.md', 'x');
    write('run.sh', 'x');
    write('hooks/a.sh', 'x');
    write('commands', 'x');
    mkdirSync(temp.at('strict', 'settings.json'));
    expect(problems()).toEqual([
      'commands:1:1 is a file, but must be a folder',
      expect.stringMatching(/^hooks:1:1 does not belong here; a config template has CLAUDE.md/),
      expect.stringMatching(/^run.sh:1:1 does not belong here/),
      'settings.json:1:1 is a folder, but must be a file',
    ]);
  });

  test('symlinks and special files in a config template are refused', () => {
    write('CLAUDE.md', 'x');
    write('commands/real.md', 'x');
    symlinkSync('/etc/hostname', temp.at('strict', 'settings.json'));
    symlinkSync('real.md', temp.at('strict', 'commands', 'inside.md'));
    symlinkSync('..', temp.at('strict', 'commands', 'loop'));
    symlinkSync('/nowhere', temp.at('strict', 'agents'));
    mkdirSync(temp.at('strict', 'skills'));
    templateWorld.fifos.create(temp.at('strict', 'skills', 'pipe'));
    const link = 'is a symlink; replace it with a copy of its target';
    expect(problems()).toEqual([
      `agents:1:1 ${link}`,
      `commands/inside.md:1:1 ${link}`,
      `commands/loop:1:1 ${link}`,
      `settings.json:1:1 ${link}`,
      'skills/pipe:1:1 is neither a file nor a folder',
    ]);
  });

  test('a config template above a size limit is refused', () => {
    write('CLAUDE.md', 'x'.repeat(1024 * 1024 + 1));
    expect(problems()).toEqual(['CLAUDE.md:1:1 is larger than 1 MiB']);
    temp.remove();
    for (let index = 0; index < 9; index += 1) write(`skills/${index}`, 'x'.repeat(1024 * 1024));
    expect(problems()).toEqual([':1:1 all files together are larger than 8 MiB']);
    temp.remove();
    for (let index = 0; index <= 500; index += 1) write(`skills/${index}`, '');
    expect(problems()).toEqual([':1:1 has more than 500 files and folders']);
  });

  test('a template that would render invalid JSON is refused at its place', () => {
    write('config.yaml', about);
    write('settings.json', '{\n  "model": {{limit}},\n  "permissions": {"deny": ["{{team}}"] "allow": []}\n}');
    write('mcp.json', '{"servers": {}}');
    expect(problems()).toEqual([
      'mcp.json:1:1 unknown key "servers" next to "mcpServers"',
      'mcp.json:1:1 "mcpServers" is missing or is not an object of servers by name',
      'settings.json:3:36 is not JSON: a comma is expected between two values',
    ]);
    write('settings.json', '{"permissions": {"deny": "Bash"}, "hooks": {"Stop": {}}}');
    write('mcp.json', '{"mcpServers": {"a": []}}');
    expect(problems()).toEqual([
      'mcp.json:1:1 the MCP server "a" is not an object',
      'settings.json:1:1 "permissions.deny" is not a list of texts',
      'settings.json:1:1 "hooks.Stop" is not a list of objects',
    ]);
    write('settings.json', '{"permissions": {"deny": ["Bash"]}, "permissions": {}}');
    expect(problems()).toContain('settings.json:1:37 the key "permissions" appears twice');
  });

  test.each<[string, string]>([
    ['variables: [{name: a, requird: true}]', 'config.yaml:1:23 variables.0 has no "requird"'],
    ['alias: x', 'config.yaml:1:1 config.yaml has no "alias"'],
    ['aliases: ["../x"]', 'config.yaml:1:11 aliases.0: is not a valid template name'],
    ['variables: []', 'CLAUDE.md:1:3 there is no variable "team"; declare it under'],
    ['variables: [{name: teams}]', 'CLAUDE.md:1:3 there is no variable "team"; did you mean "teams"?'],
  ])('config.yaml with %s is refused', (text, problem) => {
    write('config.yaml', text);
    write('CLAUDE.md', '# {{team}}');
    expect(problems()).toEqual([expect.stringContaining(problem)]);
  });

  test('invalid text, a duplicate file and an empty config template are refused', () => {
    write('CLAUDE.md', new Uint8Array([0xfc]));
    expect(problems()).toEqual(['CLAUDE.md:1:1 is not UTF-8 text']);
    write('CLAUDE.md', 'x');
    write('mcp.json', '{"mcpServers": {}}');
    write('.mcp.json', '{"mcpServers": {}}');
    expect(problems()).toEqual(['.mcp.json:1:1 means the same as mcp.json; keep only one of them']);
    temp.remove();
    write('README.md', 'x');
    expect(problems()).toEqual([':1:1 the config template is empty']);
    temp.remove();
    expect(problems()).toEqual([':1:1 does not exist']);
  });
});

describe('shared config of a group', () => {
  const shared = () => loadSharedConfig(templateWorld, temp.at('strict'));
  const faults = () => problemsIn(shared());

  test('a shared config is used unchanged, whatever is between braces', () => {
    const claudeMd = 'image: {{ values.image }} {{team}} \\{{x}}\n';
    write('config.yaml', 'variables: [{name: other}]');
    write('CLAUDE.md', claudeMd);
    write('settings.json', '{"env": {"IMAGE": "{{ values.image }}"}}');
    write('.mcp.json', '{"mcpServers": {"db": {"command": "{{db}}"}}}');
    write('skills/x/SKILL.md', '{{sessions.api.result}}');
    expect(textsOf(valid(shared()))).toEqual({
      'CLAUDE.md': claudeMd,
      'config.yaml': 'variables: [{name: other}]',
      'settings.json': '{"env": {"IMAGE": "{{ values.image }}"}}',
      'mcp.json': '{"mcpServers": {"db": {"command": "{{db}}"}}}',
      'skills/x/SKILL.md': '{{sessions.api.result}}',
    });
  });

  test('a shared config is refused for every other error of a config template', () => {
    write('settings.json', '{\n  "cleanupPeriodDays": {{days}}}');
    write('mcp.json', '{"mcpServers": {"a": []}}');
    expect(faults()).toEqual(['1:1 the MCP server "a" is not an object', expect.stringMatching(/^2:25 /)]);
    write('settings.json', '{"permissions": {"deny": "\\{{x}}"}}');
    write('mcp.json', '{"mcpServers": {}}');
    expect(faults()).toEqual([expect.stringMatching(/^1:2[67] /)]);
    write('settings.json', '{"permissions": {"deny": "Bash"}}');
    expect(faults()).toEqual(['1:1 "permissions.deny" is not a list of texts']);
    write('settings.json', new Uint8Array([0xfc]));
    expect(faults()).toEqual(['1:1 is not UTF-8 text']);
    write('run.sh', 'x');
    expect(faults()).toEqual([expect.stringContaining('does not belong here')]);
  });
});

describe('digest and frozen copies', () => {
  test('the digest of a config template changes with every name and byte, and with nothing else', () => {
    writeWhole();
    const first = valid(load()).digest;
    expect(first).toMatch(/^[0-9a-f]{64}$/);
    write('README.md', 'changed');
    expect(valid(load()).digest).toBe(first);
    const digests = new Set([first]);
    for (const [name, text] of [
      ['CLAUDE.md', '# {{team}}'],
      ['config.yaml', `${about}# x\n`],
      ['commands/a/chec', 'k.md'],
    ] as const) {
      write(name, text);
      digests.add(valid(load()).digest);
    }
    expect(digests.size).toBe(4);
  });

  test('a frozen copy loads as the same template', () => {
    writeWhole();
    const template = valid(load());
    freezeConfigTemplate(templateWorld, template, temp.at('frozen'));
    freezeConfigTemplate(templateWorld, template, temp.at('frozen'));
    expect(readdirSync(temp.at('frozen'))).toEqual([template.digest]);
    const copy = valid(loadConfigTemplate(templateWorld, temp.at('frozen', template.digest)));
    expect(copy).toEqual({ ...template, name: template.digest, path: temp.at('frozen', template.digest) });
  });

  test('a copy that fails at any call leaves nothing, and can be repeated', () => {
    writeWhole();
    const template = valid(load());
    const real = templateWorld.files;
    for (let call = 1; call < 40; call += 1) {
      const faulty = faultyFiles(real);
      faulty.fault = { call, how: 'fails', code: 'ENOSPC' };
      const folder = temp.at(`frozen ${call}`);
      try {
        freezeConfigTemplate({ ...templateWorld, files: faulty.files }, template, folder);
        expect(call).toBeGreaterThan(faulty.calls.length);
        expect(call).toBeGreaterThan(5);
        return;
      } catch (error) {
        expect((error as { code?: string }).code).toBe('ENOSPC');
      }
      expect(real.list(folder)).toEqual([]);
      freezeConfigTemplate(templateWorld, template, folder);
      expect(valid(loadConfigTemplate(templateWorld, join(folder, template.digest))).digest).toBe(template.digest);
    }
    throw new Error('freezing never succeeded');
  });
});
