/**
 * Versions of claude from the registry that npm is set up for. Each lies in a folder of its own among the user's
 * caches, outside of node_modules.
 */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { oldestClaude } from '../../src/claude/launch/program.ts';

export const root = resolve(import.meta.dir, '../..');
const claudePackage = '@anthropic-ai/claude-code';

/** So many versions stay among the caches, some 400 MB each; those that were used last. */
const keptVersions = 4;

/** A version that cannot be had, or npm that does not run; the message is a sentence. */
export class NotAvailable extends Error {}

/** The version that package.json pins. */
export function pinnedVersion(): string {
  const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  return devDependencies[claudePackage];
}

/** The exact version that a word means: `oldest`, `pinned`, a version, or what the registry calls so, like `latest`. */
export async function resolveVersion(word: string): Promise<string> {
  if (word === 'oldest') return oldestClaude;
  if (word === 'pinned') return pinnedVersion();
  if (/^\d+\.\d+\.\d+$/.test(word)) return word;
  if (!/^[a-z][a-z0-9-]*$/.test(word))
    throw new NotAvailable(`${word} is no version of claude, like 2.1.331 or latest.`);
  const said = await npm(`claude ${word}`, ['view', `${claudePackage}@${word}`, 'version', '--json']);
  const version: unknown = said === '' ? undefined : JSON.parse(said);
  if (typeof version === 'string') return version;
  throw new NotAvailable(`The registry has no version of claude that it calls ${word}.`);
}

/** Absolute path of the program of this version; installed when it is not there. */
export async function programOf(version: string): Promise<string> {
  const pinned = join(root, 'node_modules', nativePackage(), 'claude');
  if (version === pinnedVersion() && existsSync(pinned)) return pinned;
  const versions = join(cacheFolder(), 'claude');
  const folder = join(versions, version);
  const program = join(folder, 'node_modules', nativePackage(), 'claude');
  if (!existsSync(program)) await install(version, folder);
  const now = new Date();
  utimesSync(folder, now, now);
  forgetOld(versions);
  return program;
}

/** What `--version` of this program begins with. */
export function releaseOf(program: string): string {
  const env = { PATH: process.env.PATH ?? '', HOME: cacheFolder(), DISABLE_AUTOUPDATER: '1' };
  const said = Bun.spawnSync([program, '--version'], { env, stdin: 'ignore', stderr: 'ignore' }).stdout.toString();
  return said.split(' ')[0]?.trim() ?? '';
}

async function install(version: string, folder: string): Promise<void> {
  // In a separate folder first, so that a partial installation is never used. npm checks what it downloads.
  const fresh = `${folder}.new-${process.pid}`;
  mkdirSync(fresh, { recursive: true });
  try {
    const flags = ['--ignore-scripts', '--no-save', '--no-package-lock', '--no-audit', '--no-fund'];
    await npm(`claude ${version}`, ['install', '--prefix', fresh, ...flags, `${nativePackage()}@${version}`], fresh);
    const said = releaseOf(join(fresh, 'node_modules', nativePackage(), 'claude'));
    if (said !== version)
      throw new NotAvailable(`What the registry gives as claude ${version} says that it is ${said}.`);
    rmSync(folder, { recursive: true, force: true });
    renameSync(fresh, folder);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

function forgetOld(versions: string): void {
  const folders = readdirSync(versions).filter((name) => /^\d+\.\d+\.\d+$/.test(name));
  const usedMs = (name: string) => statSync(join(versions, name)).mtimeMs;
  for (const name of folders.toSorted((a, b) => usedMs(b) - usedMs(a)).slice(keptVersions)) {
    rmSync(join(versions, name), { recursive: true, force: true });
  }
}

/** The package with the program for this machine: the one npm chose here, which knows the C library. */
function nativePackage(): string {
  const scope = join(root, 'node_modules', '@anthropic-ai');
  const names = existsSync(scope) ? readdirSync(scope) : [];
  const chosen = names.find((name) => name.startsWith('claude-code-') && existsSync(join(scope, name, 'claude')));
  return `@anthropic-ai/${chosen ?? `claude-code-${process.platform}-${process.arch}`}`;
}

/** Where the user's programs keep what can be had again. */
export function cacheFolder(): string {
  const { XDG_CACHE_HOME: named = '' } = process.env;
  const usual = process.platform === 'darwin' ? join(homedir(), 'Library', 'Caches') : join(homedir(), '.cache');
  return join(named === '' ? usual : named, 'claude-code-agent');
}

/**
 * Pins this version in package.json and both lock files, and installs it. No lock file names a registry afterwards,
 * whichever npm and Bun are set up for.
 */
export async function movePin(version: string): Promise<void> {
  const files = ['package.json', 'package-lock.json', 'bun.lock'].map((name) => join(root, name));
  const before = files.map((path) => readFileSync(path));
  try {
    await writePin(version);
  } catch (error) {
    // Half of a pin would be taken for a whole one the next time.
    for (const [index, path] of files.entries()) writeFileSync(path, before[index] as Buffer);
    throw error;
  }
}

async function writePin(version: string): Promise<void> {
  const flags = ['--save-exact', '--ignore-scripts', '--no-audit', '--no-fund', '--omit-lockfile-registry-resolved'];
  await npm(`claude ${version}`, ['install', '--save-dev', ...flags, `${claudePackage}@${version}`]);
  const locked = Bun.spawnSync(['sh', 'scripts/bun.sh', 'install', '--lockfile-only'], { cwd: root, stderr: 'pipe' });
  if (!locked.success) throw new NotAvailable(`Bun could not write bun.lock: ${locked.stderr.toString().trim()}`);
  const path = join(root, 'bun.lock');
  writeFileSync(path, readFileSync(path, 'utf8').replace(/^( +"[^"]+": \["[^"]+", )"https?:\/\/[^"]*"/gm, '$1""'));
}

/**
 * Runs npm as the user has set it up; its stdout. Throws `NotAvailable`, with the first thing that npm complains about,
 * when it fails to get `what`.
 */
async function npm(what: string, args: readonly string[], cwd: string = root): Promise<string> {
  const command = ['npm', ...args, '--loglevel=error'];
  const child = Bun.spawn(command, { cwd, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' });
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  if ((await child.exited) === 0) return stdout.trim();
  const complaint = /^npm (?:error|ERR!) (?!code |errno |syscall )(.+?)\.?$/m.exec(stderr)?.[1];
  throw new NotAvailable(`${what} cannot be had: npm says "${complaint ?? `exit code ${child.exitCode}`}".`);
}
