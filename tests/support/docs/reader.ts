/**
 * Runs all commands of a document in one shell: a fresh HOME with a few small projects, the real Claude Code, and a
 * scripted model.
 */
import {
  chmodSync,
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
import { dirname, join } from 'node:path';
import type { RehearsalScript } from '../../../src/rehearsal/script.ts';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { checkoutRoot, launcher, pinnedClaude } from '../cli.ts';
import { noteTried } from '../tried.ts';
import { documents, readDocument } from './document.ts';

export interface Typed {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The model writes a file. `release` makes a call that is denied, `migrate` and `publish` ask, `web` can be held. */
const model: RehearsalScript = {
  version: 1,
  sessions: {
    release: {
      steps: [
        { text: 'I run the tests.', tool: 'Bash', input: { command: 'npm test' } },
        { text: 'I may not run the tests.' },
      ],
    },
    migrate: {
      steps: [
        {
          tool: 'AskUserQuestion',
          input: {
            questions: [
              {
                question: 'Which database is to keep the sessions?',
                header: 'Database',
                multiSelect: false,
                options: [
                  { label: 'Postgres', description: 'as in production' },
                  { label: 'Redis', description: 'faster, not durable' },
                ],
              },
            ],
          },
        },
        { text: 'Done.' },
      ],
    },
    publish: { steps: [{ tool: 'Bash', input: { command: 'npm publish --dry-run' } }, { text: 'Done.' }] },
    plan: { steps: [{ text: 'First the endpoint, then its tests.' }] },
    review: { steps: [{ text: 'It is right.' }] },
    '*': {
      steps: [
        { tool: 'Write', input: { file_path: '{{project}}/{{session}}.md', content: 'Written by {{session}}.\n' } },
        { text: 'Done.' },
      ],
    },
  },
};

class Reader {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'cca-docs-')));
  readonly home = join(this.folder, 'home');
  readonly #groups = join(this.home, '.local', 'claude-code-agent', 'session-groups');
  readonly #api: ScriptedApi;
  readonly #shell: Bun.Subprocess<'pipe', 'pipe', 'pipe'>;
  readonly #answers: AsyncIterator<string>;
  #held = Promise.withResolvers<void>();
  #count = 0;

  constructor(files: ReadonlyMap<string, string>) {
    this.#held.resolve();
    const src = join(this.home, 'src');
    const bin = join(this.folder, 'bin');
    const claudeConfig = join(this.home, '.claude');
    const [tmp, gh] = [join(this.folder, 'tmp'), join(this.folder, 'gh')];
    for (const folder of [src, bin, claudeConfig, tmp, gh]) mkdirSync(folder, { recursive: true });
    const fakeGh = join(checkoutRoot, 'tests', 'support', 'cli', 'fake-gh.ts');
    writeFileSync(join(bin, 'gh'), `#!/bin/sh\nexec '${process.execPath}' '${fakeGh}' "$@"\n`);
    chmodSync(join(bin, 'gh'), 0o755);
    symlinkSync(join(import.meta.dir, 'example.sh'), join(bin, 'example'));
    makeTeamTemplates(join(this.home, 'team-templates'));
    writeFileSync(join(this.home, '.gitconfig'), gitConfig(this.home));
    for (const name of ['cca', 'claude-code-agent']) symlinkSync(launcher, join(bin, name));
    for (const name of ['api', 'web', 'docs'])
      makeProject(join(src, name), join(this.folder, 'remotes', `${name}.git`));
    for (const [name, text] of files) this.#write(join(src, name), text);
    const modules = join(this.home, '.npm', 'lib', 'node_modules');
    mkdirSync(modules, { recursive: true });
    symlinkSync(checkoutRoot, join(modules, 'claude-code-agent'));
    const nameOf = (uuid: string) => this.#nameOf(uuid);
    const gate = ({ name }: { readonly name: string | undefined }) => (name === 'web' ? this.#held.promise : undefined);
    this.#api = startScriptedApi({ script: model, nameOf, gate });
    noteTried(dirname(this.#groups), pinnedClaude());
    this.#shell = Bun.spawn(['sh'], {
      cwd: src,
      env: {
        PATH: `${bin}:${process.env.PATH ?? ''}`,
        HOME: this.home,
        LANG: 'C.UTF-8',
        TMPDIR: tmp,
        FAKE_GH: gh,
        NPM_CONFIG_PREFIX: join(this.home, '.npm'),
        NPM_CONFIG_UPDATE_NOTIFIER: 'false',
        ...gitNames,
        ANTHROPIC_BASE_URL: this.#api.url,
        ANTHROPIC_API_KEY: 'test-key',
        CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
      },
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'pipe',
    });
    this.#answers = linesOf(this.#shell.stdout);
  }

  /** The model stops answering the session `web`. */
  hold(): void {
    this.#held = Promise.withResolvers();
  }

  release(): void {
    this.#held.resolve();
  }

  async type(text: string): Promise<Typed> {
    this.#count += 1;
    const path = (kind: string) => join(this.folder, `${this.#count}.${kind}`);
    writeFileSync(path('sh'), `${text}\n`);
    this.#shell.stdin.write(`. ${path('sh')} </dev/null >${path('out')} 2>${path('err')}; echo $?\n`);
    this.#shell.stdin.flush();
    const { value, done } = await this.#answers.next();
    const [stdout, stderr] = ['out', 'err'].map((kind) => readFileSync(path(kind), 'utf8'));
    return { code: done ? -1 : Number(value), stdout: stdout ?? '', stderr: stderr ?? '' };
  }

  async leave(): Promise<void> {
    this.release();
    if (this.#shell.exitCode === null) await this.type('cca stop --all');
    this.#shell.stdin.end();
    await this.#shell.exited;
    await this.#api.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  #write(path: string, text: string): void {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }

  /** The name of the session whose conversation has this id. */
  #nameOf(uuid: string): string | undefined {
    if (!existsSync(this.#groups)) return undefined;
    const folders = readdirSync(this.#groups).map((group) => join(this.#groups, group, 'sessions'));
    for (const sessions of folders.filter((folder) => existsSync(folder))) {
      const found = readdirSync(sessions).find((name) => name.endsWith(uuid));
      if (found !== undefined) return JSON.parse(readFileSync(join(sessions, found, 'meta.json'), 'utf8')).name;
    }
    return undefined;
  }
}

const gitNames = {
  GIT_AUTHOR_NAME: 'Reader',
  GIT_AUTHOR_EMAIL: 'reader@example.invalid',
  GIT_COMMITTER_NAME: 'Reader',
  GIT_COMMITTER_EMAIL: 'reader@example.invalid',
};

/** A repository with a passing test, and its remote. */
function makeProject(path: string, remote: string): void {
  const name = path.split('/').at(-1) ?? '';
  mkdirSync(join(path, 'src', 'auth'), { recursive: true });
  const manifest = { name, version: '1.0.0', private: true };
  writeFileSync(join(path, 'package.json'), JSON.stringify({ ...manifest, scripts: { test: 'true', lint: 'true' } }));
  const lock = { ...manifest, lockfileVersion: 3, requires: true, packages: { '': manifest } };
  writeFileSync(join(path, 'package-lock.json'), JSON.stringify(lock));
  writeFileSync(join(path, '.gitignore'), 'node_modules\n');
  writeFileSync(join(path, 'src', 'auth', 'index.js'), 'export const token = 1;\n');
  git(path, '-c', 'init.defaultBranch=main', 'init', '--quiet');
  git(path, 'add', '--all');
  git(path, 'commit', '--quiet', '--message', name);
  git(path, 'clone', '--quiet', '--bare', path, remote);
  git(path, 'remote', 'add', 'origin', remote);
}

/** Needs a Redis, see typing-fleet.test.ts. */
export const fleetPage = 'docs/fleet.md';

/** A third of the other documents, because three test files run in parallel. */
export function typedIn(third: 1 | 2 | 3): string[] {
  const typed = documents().filter(({ name, commands }) => commands.length > 0 && name !== fleetPage);
  return typed.filter((_, index) => index % 3 === third - 1).map(({ name }) => name);
}

/** Runs every command of a document until one fails. */
export async function typeAll(name: string): Promise<void> {
  const { commands, files } = readDocument(name);
  const reader = new Reader(files);
  try {
    for (const { line, text } of commands) {
      if (text === ': the model takes its time for web') reader.hold();
      if (text === ': the model answers web') reader.release();
      const { code, stdout, stderr } = await reader.type(text);
      if (code !== 0) throw new Error(`${name}:${line} ended with ${code}: ${text}\n${stderr}${stdout}`);
    }
  } finally {
    await reader.leave();
  }
}

/** Maps the URLs of the team's server to a folder. */
function gitConfig(home: string): string {
  const names = ['https://git.example.org/team/templates.git', 'git@git.example.org:team/templates.git'];
  return `[url "file://${home}/team-templates"]\n${names.map((name) => `\tinsteadOf = ${name}\n`).join('')}`;
}

/** A template pack with the tag and branch that the documents name. */
function makeTeamTemplates(path: string): void {
  mkdirSync(join(path, 'prompts'), { recursive: true });
  writeFileSync(join(path, 'prompts', 'fix.md'), 'Mend it.\n');
  git(path, '-c', 'init.defaultBranch=main', 'init', '--quiet');
  git(path, 'add', '--all');
  git(path, 'commit', '--quiet', '--message', 'A prompt');
  git(path, 'tag', 'v2');
  git(path, 'branch', 'v3');
}

function git(cwd: string, ...args: string[]): void {
  const env = { ...process.env, ...gitNames, GIT_CONFIG_GLOBAL: '/dev/null' };
  const done = Bun.spawnSync(['git', ...args], { cwd, env });
  if (!done.success) throw new Error(`git ${args.join(' ')}: ${done.stderr}`);
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncIterator<string> {
  let rest = '';
  const decoder = new TextDecoder();
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
}
