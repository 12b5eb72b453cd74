/**
 * Promises, in the long run, with an empty home and only node, npm, git, claude and standard tools on PATH: the
 * installed tarball (scripts off) is small, shows a group's dashboard, and rehearses a workflow over two repositories,
 * with each maintained version of node. So does the single-file release. It uses the npm registry.
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
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import manifest from '../../../package.json' with { type: 'json' };
import { checkoutRoot, pinnedClaude } from '../../support/cli.ts';
import { TestTerminal } from '../../support/terminal.ts';

const timeoutMs = 300_000;
const platform = `${process.platform}-${process.arch}`;
/** Size limit of all files that an installation writes. */
const bytesMax = 140_000_000;
const tools = ['sh', 'env', 'cat', 'dirname', 'head', 'ls', 'mkdir', 'readlink', 'rm', 'uname', 'git'];
/** Registry settings, which an empty environment would not contain. */
const ways = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'HTTPS_PROXY', 'https_proxy', 'NO_PROXY'];

let folder = '';
let tarball = '';

beforeAll(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'cca installed ')));
  await run(['npm', 'pack', '--silent', '--offline', '--pack-destination', folder], checkoutRoot, process.env);
  tarball = join(folder, readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? '');
}, timeoutMs);
afterAll(() => {
  if (folder !== '') rmSync(folder, { recursive: true, force: true });
});

async function run(words: readonly string[], cwd: string, env: Readonly<Record<string, string | undefined>>) {
  const child = Bun.spawn([...words], { cwd, env: { ...env }, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' });
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  const code = await child.exited;
  if (code !== 0) throw new Error(`${words.join(' ')} ended with ${code}: ${stderr}${stdout}`);
  return stdout;
}

/** A user with an empty home and these programs on PATH. */
class Newcomer {
  readonly folder = mkdtempSync(join(folder, 'user '));
  readonly #bin = join(this.folder, 'bin');
  readonly env: Record<string, string>;

  constructor() {
    for (const name of ['bin', 'home', 'tmp', 'work']) mkdirSync(join(this.folder, name));
    for (const tool of tools) this.has(tool, Bun.which(tool) ?? '');
    this.has('claude', pinnedClaude());
    const kept = ways.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]] as const]));
    const [HOME, TMPDIR] = [join(this.folder, 'home'), join(this.folder, 'tmp')];
    this.env = { ...Object.fromEntries(kept), PATH: this.#bin, HOME, TMPDIR } as Record<string, string>;
  }

  has(name: string, path: string): void {
    symlinkSync(path, join(this.#bin, name));
  }

  run(...words: string[]): Promise<string> {
    return run([join(this.#bin, words[0] ?? ''), ...words.slice(1)], join(this.folder, 'work'), this.env);
  }

  /** A user's first minutes with the program. */
  async looksAround(): Promise<void> {
    expect(await this.run('cca', '--version')).toBe(`${manifest.version}\n`);

    const terminal = new TestTerminal([join(this.#bin, 'cca'), 'try'], { cwd: this.folder, env: this.env });
    await terminal.shows('Cross-Project', 'auth-module', 'integration', 'completed');
    terminal.type('q');
    expect(await terminal.exited).toBe(0);
    expect(terminal.text()).toContain('The demonstration has ended');
    terminal.close();
    // npm keeps files of its own there.
    expect(readdirSync(join(this.folder, 'tmp')).filter((name) => name.startsWith('claude'))).toEqual([]);

    for (const name of ['api', 'web']) await this.run('git', 'init', '--quiet', name);
    expect(await this.run('cca', 'init', '--yes')).toContain('Wrote workflow.yaml: 2 projects');
    const ran = await this.run('cca', 'run', 'workflow.yaml', '--rehearse');
    expect(ran).toMatch(/^001 api .*completed[\s\S]*^002 web .*completed/m);
  }
}

test.each([20, 22, 24])(
  'npm i -g of the tarball, with node %d',
  async (version) => {
    const user = new Newcomer();
    const { env } = user;
    const kept = join(folder, `node-${version}`);
    const from = ['npm', 'i', '--silent', '--ignore-scripts', '--prefix', kept, `node-${platform}@${version}`];
    await run(from, folder, { ...env, PATH: process.env.PATH });
    user.has('node', join(kept, 'node_modules', `node-${platform}`, 'bin', 'node'));
    user.has('npm', realpathSync(Bun.which('npm') ?? ''));
    expect(await user.run('node', '--version')).toStartWith(`v${version}.`);

    const prefix = join(user.folder, 'prefix');
    await user.run('npm', 'i', '-g', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', prefix, tarball);
    const bytes = Number.parseInt(await run(['du', '-sb', prefix], folder, process.env), 10);
    expect(bytes).toBeLessThan(bytesMax);
    for (const text of [join('docs', 'install.md')]) {
      const said = /(\d+) MB/.exec(readFileSync(join(checkoutRoot, text), 'utf8'))?.[1];
      expect({ text, isRight: Math.abs(Number(said) - bytes / 1e6) < 3 }).toEqual({ text, isRight: true });
    }
    for (const name of ['cca', 'claude-code-agent']) user.has(name, join(prefix, 'bin', name));
    await user.looksAround();
  },
  timeoutMs,
);

test.if(process.platform === 'linux')(
  'the single-file release',
  async () => {
    const released = join(folder, 'release');
    await run(['sh', 'scripts/bun.sh', 'scripts/release.ts', released, platform], checkoutRoot, process.env);
    const name = `claude-code-agent-${manifest.version}-${platform}`;
    const sums = `claude-code-agent-${manifest.version}.tgz`;
    expect(readdirSync(released).sort()).toEqual(['SHA256SUMS', name, sums].sort());
    await run(['sha256sum', '--check', '--strict', 'SHA256SUMS'], released, process.env);

    const user = new Newcomer();
    // The demonstration runs tests with it.
    user.has('node', Bun.which('node') ?? '');
    await run(['mv', name, 'cca'], released, process.env);
    user.has('cca', join(released, 'cca'));
    await user.looksAround();

    // The launcher that hooks name finds the program at its new path.
    const own = join(user.env.HOME ?? '', '.local', 'share', 'claude-code-agent');
    const launcher = join(own, readdirSync(own)[0] ?? '', 'bin', 'claude-code-agent');
    await run(['mv', 'cca', 'moved'], released, process.env);
    expect(await run([join(released, 'moved'), '--version'], folder, user.env)).toBe(`${manifest.version}\n`);
    expect(await run([launcher, '--version'], folder, user.env)).toBe(`${manifest.version}\n`);
    expect(existsSync(launcher)).toBe(true);
  },
  timeoutMs,
);
