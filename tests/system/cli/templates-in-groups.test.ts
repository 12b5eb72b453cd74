/**
 * Promises: which template applies, what it makes of a session, which layer wins, and that nothing is added when
 * anything is wrong. No session is run here.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { User } from '../../support/cli/user.ts';

let user: User;
let project: string;
let group: string;

beforeEach(async () => {
  user = new User();
  project = user.project('api');
  write(
    'prompts/review.md',
    '---\nvariables:\n  - {name: file, required: true}\n  - {name: tone, default: kind}\n---\n' +
      'Review {{file}} of {{project.name}} in a {{tone}} way.',
  );
  write('prompts/frame.md', '---\nvariables: [{name: prompt, required: true}]\n---\nBefore.\n{{prompt}}\nAfter.');
  write('configs/strict/CLAUDE.md', 'Be strict.');
  write('configs/strict/settings.json', '{"permissions":{"allow":["Read"],"deny":["WebFetch"]},"model":"opus"}');
  write('configs/loose/CLAUDE.md', 'Be loose about {{topic}}.');
  write('configs/loose/config.yaml', 'variables: [{name: topic, required: true}]');
  group = await user.ok('group', 'create', 'auth');
});
afterEach(() => user.remove());

function write(path: string, text: string, folder = join(project, '.claude-code-agent', 'templates')): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

const add = (...more: string[]) => user.run('session', 'add', group, '--project', project, ...more);

interface Shown {
  readonly prompt: string;
  readonly template?: string;
  readonly variables?: Readonly<Record<string, string>>;
  readonly configTemplate?: { readonly name: string };
}

async function added(...more: string[]): Promise<Shown> {
  const { code, stdout, stderr } = await add(...more);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return user.json<Shown>('session', 'show', stdout.trim());
}

describe('the prompt', () => {
  test('a template with its variables; defaults apply to variables without a value', async () => {
    expect(await added('--template', 'review', '--var', 'file=a=b.ts')).toMatchObject({
      prompt: 'Review a=b.ts of api in a kind way.',
      template: 'review',
      variables: { file: 'a=b.ts', tone: 'kind' },
    });
  });

  test('a prompt given with a template fills its {{prompt}}, or replaces it', async () => {
    expect(await added('--template', 'frame', '--prompt', 'Do {{it}}.')).toMatchObject({
      prompt: 'Before.\nDo {{it}}.\nAfter.',
      template: 'frame',
    });
    const replaced = await added('--template', 'review', '--prompt', 'Something else.');
    expect(replaced.prompt).toBe('Something else.');
    expect(replaced.template).toBeUndefined();
  });

  test('the group’s template applies to sessions without one', async () => {
    group = await user.ok(
      'group',
      'create',
      'with',
      '--template',
      join(project, '.claude-code-agent/templates/prompts/frame.md'),
    );
    expect((await added('--prompt', 'Mine.')).prompt).toBe('Before.\nMine.\nAfter.');
    expect((await added('--template', 'review', '--var', 'file=x')).prompt).toStartWith('Review x');
    expect((await added('--template', 'none', '--prompt', 'Mine.')).prompt).toBe('Mine.');
  });
});

describe('precedence', () => {
  test("the environment's templates win over the user's; a project's template replaces neither", async () => {
    const home = join(user.home, '.config', 'claude-code-agent', 'templates');
    const shared = join(user.folder, 'shared templates');
    write('prompts/review.md', 'of the user', home);
    write('prompts/review.md', 'of the team', shared);
    user.env.CLAUDE_CODE_AGENT_TEMPLATES = shared;
    const own = join(project, '.claude-code-agent');
    expect((await add('--template', 'review', '--var', 'file=x')).stderr).toContain(
      'so has CLAUDE_CODE_AGENT_TEMPLATES',
    );
    rmSync(own, { recursive: true });
    expect((await added('--template', 'review')).prompt).toBe('of the team');
    rmSync(shared, { recursive: true });
    expect((await added('--template', 'review')).prompt).toBe('of the user');
    rmSync(home, { recursive: true });
    const gone = await add('--template', 'review');
    expect({ code: gone.code, stdout: gone.stdout }).toEqual({ code: 2, stdout: '' });
  });
});

describe('refused, and nothing added', () => {
  test.each([
    [['--template', 'revew', '--var', 'file=x'], 'did you mean "review"?'],
    [['--template', 'review'], 'variable "file" has no value'],
    [['--template', 'review', '--var', 'fil=x'], 'did you mean "file"?'],
    [['--template', 'review', '--var', 'file'], 'has no "="'],
    [['--template', 'review', '--var', 'file=a', '--var', 'file=b'], 'is set twice'],
    [['--prompt', 'x', '--config-template', 'loose'], 'variable "topic" has no value'],
    [['--prompt', 'x', '--config-template', '../strict'], 'does not exist'],
    [['--prompt', 'About {{topik}}.', '--var', 'topic=x'], 'did you mean "topik"?'],
    [['--prompt', 'See {{sessions.nobody.result}}.'], 'no session "nobody"'],
    [['--prompt', 'See {{sessions.lib.result}}.'], 'Add --depends-on lib'],
    [['--prompt', 'See {{sessions.lib.resultt}}.', '--depends-on', 'lib'], 'did you mean "result"?'],
    [['--prompt', 'See {{sessions.lib.structured.x}}.', '--depends-on', 'lib'], 'no output schema'],
    [['--prompt', 'See {{sessions.lib.branch.x}}.', '--depends-on', 'lib'], '.branch is plain text'],
  ])('session add %j', async (args, words) => {
    await user.ok('session', 'add', group, '--project', project, '--prompt', 'x', '--name', 'lib');
    const refused = await add(...args);
    expect({ code: refused.code, stdout: refused.stdout }).toEqual({ code: 2, stdout: '' });
    expect(refused.stderr).toContain(words);
    expect(await user.json<unknown[]>('session', 'list', group)).toHaveLength(1);
  });

  test.each([
    ['a hook without hooks', '{"hooks":{"PreToolUse":[{"matcher":"*"}]}}', 'PreToolUse'],
    ['a variable that is not text', '{"env":{"A":1}}', 'env'],
    ['an unknown mode', '{"permissions":{"defaultMode":"bogus"}}', 'defaultMode'],
    ['a number written as text', '{"cleanupPeriodDays":"x"}', 'cleanupPeriodDays'],
    ['a socket that our settings cannot replace', '{"env":{"ANTHROPIC_UNIX_SOCKET":"/s"}}', 'ANTHROPIC_UNIX_SOCKET'],
  ])('%s in a config template', async (_name, settings, words) => {
    write('configs/bad/settings.json', settings);
    const refused = await add('--prompt', 'x', '--config-template', 'bad');
    expect({ code: refused.code, stdout: refused.stdout }).toEqual({ code: 2, stdout: '' });
    expect(refused.stderr).toContain(words);
    const file = 'version: 1\nsessions: {a: {project: projects/api, prompt: x, configTemplate: bad}}';
    writeFileSync(join(user.folder, 'w.yaml'), file);
    for (const command of [
      ['run', 'w.yaml', '--rehearse'],
      ['group', 'create', 'w', '--from', 'w.yaml'],
    ]) {
      expect(await user.run(...command)).toMatchObject({ code: 2, stdout: '' });
    }
    expect(readdirSync(join(user.data, 'session-groups'))).toEqual([group]);
  });
});

interface View {
  readonly claudeMd: readonly { readonly layer: string; readonly text: string }[];
  readonly systemPrompt: readonly { readonly layer: string }[];
  readonly settings: { readonly model?: string; readonly permissions?: Readonly<Record<string, readonly string[]>> };
  readonly settingsOrigins: Readonly<Record<string, string>>;
}

describe('layers', () => {
  const workflow = (config: string) => `
version: 1
group: { configTemplate: strict }
sessions:
  a: { project: projects/api, prompt: x, configTemplate: loose, vars: { topic: tests }, config: ${config} }
`;

  async function viewOf(config: string): Promise<View> {
    const name = 'projects/api/.claude-code-agent/templates';
    writeFileSync(join(user.folder, 'w.yaml'), workflow(config));
    user.env.CLAUDE_CODE_AGENT_TEMPLATES = join(user.folder, name);
    const made = await user.ok('group', 'create', 'w', '--from', 'w.yaml');
    return user.json<View>('session', 'show', `${made}/a`, '--config');
  }

  const layersOf = ({ claudeMd }: View) => claudeMd.map(({ layer }) => layer);

  test('session add accepts the same by options, as JSON or a file, and reports mistakes in them', async () => {
    const made = await user.ok(
      'group',
      'create',
      'w',
      '--config-template',
      join(project, '.claude-code-agent/templates/configs/strict'),
    );
    const session = (...options: string[]) =>
      user.run('session', 'add', made, '--project', project, '--prompt', 'x', ...options);
    const viewOfAdded = async (...options: string[]) => {
      const { code, stdout, stderr } = await session(...options);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      return user.json<View>('session', 'show', `${made}/${stdout.trim()}`, '--config');
    };
    expect(layersOf(await viewOfAdded())).toEqual(['claude-code-agent', 'config template strict']);
    const without = await viewOfAdded('--no-generate-claude-md', '--name', 'bare');
    expect([layersOf(without), without.systemPrompt.map(({ layer }) => layer)]).toEqual([
      [],
      ['config template strict'],
    ]);
    const shown = await user.ok('session', 'show', `${made}/bare`, '--config');
    expect(shown).toStartWith('CLAUDE.md\n  none is generated\n\nSystem prompt\n(config template strict)\n');
    expect(layersOf(await viewOfAdded('--no-inherit-from-group'))).toEqual(['claude-code-agent']);
    expect((await viewOfAdded('--no-generate-settings')).settings).toEqual({});
    expect((await viewOfAdded('--settings-override', '{"model":"haiku"}')).settings.model).toBe('haiku');
    write('own.json', '{"model":"sonnet"}', user.folder);
    expect((await viewOfAdded('--settings-override', 'own.json')).settings.model).toBe('sonnet');
    const piped = { cwd: user.folder, stdin: '{"model":"opus"}' };
    const edited = await user.runWith(piped, 'session', 'edit', `${made}/bare`, '--settings-override', '-');
    expect(edited).toMatchObject({ code: 0, stderr: '' });
    const bare = await user.json<View>('session', 'show', `${made}/bare`, '--config');
    expect(bare.settings.model).toBe('opus');
    const ofTemplate = await viewOfAdded('--claude-md-template', 'review', '--var', 'file=a.ts');
    expect(ofTemplate.claudeMd.at(-1)).toMatchObject({
      layer: 'session settings',
      text: expect.stringContaining('Review a.ts of api in a kind'),
    });
    for (const [options, words] of [
      [['--settings-override', '{"model": haiku}'], 'character 11'],
      [['--settings-override', 'none.json'], 'does not exist'],
      [['--settings-override', '{}', '--no-generate-settings'], 'has no effect'],
      [['--claude-md-template', 'review'], 'file'],
      [['--claude-md-template', 'nope'], 'nope'],
    ] as const) {
      const refused = await session(...options);
      expect({ code: refused.code, stdout: refused.stdout }).toEqual({ code: 2, stdout: '' });
      expect(refused.stderr).toContain(words);
    }
  });

  test('our own part, then the group’s template, then the session’s', async () => {
    const view = await viewOf('{}');
    expect(layersOf(view)).toEqual(['claude-code-agent', 'config template strict', 'config template loose']);
    expect(view.claudeMd.at(-1)?.text).toContain('Be loose about tests.');
    expect(view.settings).toMatchObject({ model: 'opus', permissions: { deny: ['WebFetch'] } });
  });

  test('a session that does not inherit gets nothing of the group', async () => {
    const view = await viewOf('{ inheritFromGroup: false }');
    expect(layersOf(view)).toEqual(['claude-code-agent', 'config template loose']);
    expect(view.settings).toEqual({});
  });

  test('each part can be left out', async () => {
    expect(layersOf(await viewOf('{ generateClaudeMd: false }'))).not.toContain('claude-code-agent');
    expect((await viewOf('{ generateSettings: false }')).settings).toEqual({});
  });
});
