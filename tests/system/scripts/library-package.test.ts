/**
 * Promises: the package contains what a user reads and runs, and nothing else. npm installs it without a warning; its
 * launcher and plugin work. Under Bun it can be imported by name and runs a group; its types compile in strict mode;
 * under Node one sentence names the fix. No network is used.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import manifest from '../../../package.json' with { type: 'json' };
import * as library from '../../../src/index.ts';
import type { RehearsalScript } from '../../../src/rehearsal/script.ts';
import { startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { checkoutRoot, pinnedClaude } from '../../support/cli.ts';
import { ClaudeSandbox, runClaude } from '../../support/rehearsal/claude-process.ts';

let folder = '';
/** The output of npm install. */
let printed = '';

beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'cca pack ')));
  const packed = spawn(['npm', 'pack', '--silent', '--offline', '--pack-destination', folder], checkoutRoot);
  expect(packed).toMatchObject({ code: 0 });
  const [name = ''] = readdirSync(folder).filter((file) => file.endsWith('.tgz'));
  const modules = join(folder, 'lib', 'node_modules');
  mkdirSync(modules, { recursive: true });
  // Where a neighbouring program finds it by name.
  symlinkSync(modules, join(folder, 'node_modules'));
  const words = ['npm', 'install', '-g', '--prefix', folder, '--offline', '--omit=optional', join(folder, name)];
  const installed = spawn(words);
  expect(installed).toMatchObject({ code: 0 });
  printed = `${installed.stdout}${installed.stderr}`;
  for (const types of ['bun-types', '@types']) {
    symlinkSync(join(checkoutRoot, 'node_modules', types), join(modules, types));
  }
  const tools = join(folder, 'tools');
  mkdirSync(tools);
  symlinkSync(process.execPath, join(tools, 'bun'));
  writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
}, 120_000);
afterAll(() => {
  if (folder !== '') rmSync(folder, { recursive: true, force: true });
});

const withoutClaude = (process.env.PATH ?? '').split(delimiter).filter((path) => !existsSync(join(path, 'claude')));

function environment() {
  const home = join(folder, 'home');
  return {
    PATH: [join(folder, 'tools'), ...withoutClaude].join(delimiter),
    HOME: home,
    npm_config_cache: join(home, 'npm'),
    npm_config_update_notifier: 'false',
    CLAUDE_CODE_AGENT_HOME: join(folder, 'data'),
  };
}

function spawn(words: readonly string[], cwd = folder, more: Readonly<Record<string, string>> = {}) {
  const env = { ...environment(), ...more };
  const { exitCode, stdout, stderr } = Bun.spawnSync([...words], { cwd, env, stdin: 'ignore' });
  return { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
}

function write(name: string, text: string): string {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
}

test('the package contains exactly the expected files', () => {
  const there = readdirSync(join(folder, 'node_modules', 'claude-code-agent')).sort();
  const [texts, folders] = [
    ['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json'],
    ['.claude-plugin', 'bin', 'dist', 'docs', 'examples', 'man', 'templates'],
  ];
  expect(there).toEqual([...texts, ...folders].sort());
  const inside = (...path: string[]) => readdirSync(join(folder, 'node_modules', 'claude-code-agent', ...path));
  expect(inside('dist').sort()).toEqual(['program', 'types']);
  expect(inside('man').sort()).toEqual(['cca.1', 'claude-code-agent.1']);
  expect(inside('docs')).toContain('install.md');
  const { dependencies = {}, scripts } = manifest as { dependencies?: object; scripts: Record<string, string> };
  expect({ dependencies, private: Object.hasOwn(manifest, 'private') }).toEqual({ dependencies: {}, private: false });
  expect(Object.keys(scripts).filter((name) => /^(?:pre|post)?install$/.test(name))).toEqual([]);
  const licences = readFileSync(join(folder, 'node_modules/claude-code-agent/dist/program/licenses.txt'), 'utf8');
  expect(licences).toMatch(/^commander [\s\S]*^react [\s\S]*^zod [\s\S]*/m);
});

test('npm installs it without a warning about install scripts', () => {
  expect(printed).toContain('added 1 package');
  expect(printed).not.toMatch(/warn|script/i);
});

test("the plugin's hook adds the session's state to the context", () => {
  const project = join(folder, 'planned');
  mkdirSync(join(project, 'docs', 'plans'), { recursive: true });
  writeFileSync(join(project, 'docs/plans/.cpm-progress-11.md'), '**Skill**: cpm:do\n\nBANANAS\n');
  const plugin = join(folder, 'node_modules', 'claude-code-agent');
  const hook = ['sh', join(plugin, 'templates/plugin/hooks/hook.sh'), 'cpm', 'session-start'];
  const input = JSON.stringify({ session_id: '11', source: 'startup', cwd: project });
  const env = { ...environment(), CLAUDE_PROJECT_DIR: project };
  const { exitCode, stdout, stderr } = Bun.spawnSync(hook, { cwd: project, env, stdin: Buffer.from(input) });
  expect([exitCode, stderr.toString()]).toEqual([0, '']);
  expect(stdout.toString()).toContain('BANANAS');
});

test("claude loads the package's plugin, and its hook reaches the model", async () => {
  const script: RehearsalScript = { version: 1, sessions: { '*': { steps: [{ text: 'Seen.' }] } } };
  const api = startScriptedApi({ script, nameOf: () => undefined });
  const sandbox = new ClaudeSandbox();
  try {
    mkdirSync(join(sandbox.project, 'docs', 'plans'), { recursive: true });
    const session = crypto.randomUUID();
    writeFileSync(join(sandbox.project, `docs/plans/.cpm-progress-${session}.md`), '**Skill**: cpm:do\n\nBANANAS\n');
    const args = ['--plugin-dir', join(folder, 'node_modules', 'claude-code-agent')];
    const env = { PATH: environment().PATH };
    await runClaude({ sandbox, url: api.url, session, prompt: 'Go.', args, env });
    expect(JSON.stringify(api.requests[0]?.body)).toContain('BANANAS');
  } finally {
    await api.stop();
    sandbox.remove();
  }
}, 60_000);

test('launcher and hooks run the packed program without sources or dependencies', () => {
  const launcher = join(folder, 'node_modules', 'claude-code-agent', 'bin', 'claude-code-agent');
  expect(spawn([launcher, '--version'])).toMatchObject({ code: 0, stdout: `${manifest.version}\n` });
  expect(spawn([launcher, 'doctor']).stdout).toMatch(/^ok +bun .*, published package$/m);
  expect(spawn([launcher, 'template', 'list']).stdout).toContain('review-then-fix');
  expect(spawn([launcher, 'hook', 'cpm', 'session-start'])).toMatchObject({ code: 0, stderr: '' });
});

test('without claude, a run and a rehearsal print the command that installs it', () => {
  const launcher = join(folder, 'node_modules', 'claude-code-agent', 'bin', 'claude-code-agent');
  const file = write('workflow.yaml', 'version: 1\nsessions:\n  api: { project: ".", prompt: "Do it." }\n');
  for (const words of [['run', file], ['run', file, '--rehearse'], ['try']]) {
    const { code, stdout, stderr } = spawn([launcher, ...words], folder);
    expect({ words, code, stdout }).toEqual({ words, code: 2, stdout: '' });
    expect(stderr).toContain('npm install -g @anthropic-ai/claude-code');
  }
}, 60_000);

test('the demonstration runs a group over three projects and leaves nothing', () => {
  const launcher = join(folder, 'node_modules', 'claude-code-agent', 'bin', 'claude-code-agent');
  const temporary = join(folder, 'tmp');
  mkdirSync(temporary);
  const env = { CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(), TMPDIR: temporary };
  const { code, stdout, stderr } = spawn([launcher, 'try'], folder, env);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/004 documentation .*completed[\s\S]*The demonstration has ended/);
  expect(readdirSync(temporary).filter((name) => name.startsWith('claude-code-agent'))).toEqual([]);
}, 60_000);

const program = `
import { type GroupProgress, type GroupResult, SessionGroup, SessionGroupRunner } from 'claude-code-agent';

const group: SessionGroup = await SessionGroup.create({ slug: 'packed', config: { maxBudgetUsd: 1 } });
await group.add({ name: 'one', projectPath: '.', prompt: 'Do it.' });
const result: GroupResult = await new SessionGroupRunner({ rehearse: true }).run(group, { maxConcurrent: 1 });
const progress: GroupProgress = await group.progress();
console.log(result.status, progress.completed, result.sessions.map(({ name, status }) => \`\${name} \${status}\`));
`;

test('under Bun it is imported by name and runs a group', () => {
  const claude = { CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude() };
  const ran = spawn([process.execPath, write('program.ts', program)], folder, claude);
  expect(ran).toEqual({ code: 0, stdout: 'completed 1 [ "one completed" ]\n', stderr: '' });
}, 60_000);

const bundler = { module: 'preserve', moduleResolution: 'bundler' };

/** The compiler's messages on these files and on our types. */
function mistakesIn(files: readonly string[], resolution: object): string[] {
  const options = { strict: true, noEmit: true, target: 'esnext', skipLibCheck: false, types: ['bun-types'] };
  write('tsconfig.json', JSON.stringify({ compilerOptions: { ...options, ...resolution }, files }));
  const { stdout } = spawn([join(checkoutRoot, 'node_modules', '.bin', 'tsc'), '--project', folder]);
  return stdout.split('\n').filter((line) => /claude-code-agent|(?:typed|documented)/.test(line));
}

test('its types compile in a strict program, and a mistake is an error', () => {
  write('typed.ts', program);
  expect(mistakesIn(['typed.ts'], bundler)).toEqual([]);
  expect(mistakesIn(['typed.ts'], { module: 'nodenext', moduleResolution: 'nodenext' })).toEqual([]);
  write('typed.ts', program.replace("projectPath: '.'", "project: '.'"));
  expect(mistakesIn(['typed.ts'], bundler)).toEqual([expect.stringContaining("'project' does not exist")]);
}, 120_000);

test('the program in its documentation compiles', () => {
  const doc = readFileSync(join(checkoutRoot, 'docs', 'library.md'), 'utf8');
  const blocks = [...doc.matchAll(/```ts\n(.*?)```/gs)].map(([, text = '']) => text);
  expect(blocks.length).toBe(1);
  const files = blocks.map((_, index) => `documented-${index}.ts`);
  for (const [index, name] of files.entries()) write(name, blocks[index] as string);
  expect(mistakesIn(files, bundler)).toEqual([]);
  const named = [...doc.matchAll(/`group\.(\w+)/g)].map(([, name = '']) => name);
  const known = Object.getOwnPropertyNames(library.SessionGroup.prototype);
  expect(named.filter((name) => !known.includes(name))).toEqual([]);
}, 120_000);

test('under Node one sentence names the fix for every import', () => {
  const names = Object.keys(library).sort();
  const stub = readFileSync(join(checkoutRoot, 'bin', 'needs-bun.mjs'), 'utf8');
  expect((/export let ([^;]+);/.exec(stub)?.[1] ?? '').split(', ').sort()).toEqual(names);
  const programs = [
    ['named.mjs', `import { ${names.join(', ')} } from 'claude-code-agent';`],
    ['whole.mjs', "import * as all from 'claude-code-agent'; console.log(all);"],
    ['required.cjs', "require('claude-code-agent');"],
  ] as const;
  for (const [name, text] of programs) {
    const { code, stdout, stderr } = spawn(['node', write(name, text)]);
    expect([name, code, stdout]).toEqual([name, 1, '']);
    expect(stderr).toContain('claude-code-agent is a library for Bun: run your program with "bun your-program.ts"');
    expect(stderr).toContain('"npm install bun" adds it');
  }
}, 60_000);
