/**
 * Makes what is handed to users: release.ts [FOLDER [PLATFORM...]], default release/ and every platform. The npm
 * package, a program of one file for each platform whose Bun the npm registry has, and their checksums. Only a missing
 * program for this platform is a failure.
 */
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { BunPlugin } from 'bun';
import manifest from '../package.json' with { type: 'json' };
import { compile } from './build.ts';

/** As the files are called, and as Bun calls its packages. */
const platforms = {
  'linux-x64': 'linux-x64',
  'linux-arm64': 'linux-aarch64',
  'darwin-arm64': 'darwin-aarch64',
  'darwin-x64': 'darwin-x64',
} as const;
const here = `${process.platform}-${process.arch}`;

const root = join(import.meta.dir, '..');
const [wanted = join(root, 'release'), ...only] = process.argv.slice(2);
const folder = resolve(wanted);
const { name, version } = manifest;

/** What a package holds besides the program. */
function packageFiles(): Record<string, { text: string; mode: number }> {
  const files = manifest.files.filter((path) => !path.startsWith('dist/'));
  const paths = [...files, 'LICENSE', 'package.json'].flatMap((path) =>
    statSync(join(root, path)).isFile()
      ? [path]
      : readdirSync(join(root, path), { recursive: true, encoding: 'utf8' }).map((entry) => join(path, entry)),
  );
  const entries = paths.toSorted().flatMap((path) => {
    const info = statSync(join(root, path));
    // Read and write for the owner alone, as everything that the program writes.
    return info.isFile() ? [[path, { text: readText(path), mode: info.mode & 0o100 ? 0o700 : 0o600 }] as const] : [];
  });
  return Object.fromEntries(entries);
}

function readText(path: string): string {
  return new TextDecoder('utf8', { fatal: true }).decode(readFileSync(join(root, path)));
}

function withFiles(files: object): BunPlugin {
  return {
    name: 'package-files',
    setup(build) {
      build.onResolve({ filter: /^package-files$/ }, ({ path }) => ({ path, namespace: 'release' }));
      build.onLoad({ filter: /.*/, namespace: 'release' }, () => ({ contents: JSON.stringify(files), loader: 'json' }));
    },
  };
}

/** Bun for a platform, from the npm registry; kept for the next release. Throws what npm says. */
function bunFor(bunName: string): string {
  const kept = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), name, `bun-${bunName}-${Bun.version}`);
  const program = join(kept, 'package', 'bin', 'bun');
  if (statSync(program, { throwIfNoEntry: false }) !== undefined) return program;
  const work = mkdtempSync(join(tmpdir(), 'cca-release-'));
  try {
    const packed = run(['npm', 'pack', '--silent', `@oven/bun-${bunName}@${Bun.version}`], work).trim();
    mkdirSync(kept, { recursive: true });
    run(['tar', '-xzf', join(work, packed), '-C', kept], work);
    return program;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function run(words: readonly string[], cwd: string): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...words], { cwd, stdin: 'ignore' });
  if (exitCode !== 0) throw new Error(`${words.slice(0, 2).join(' ')}: ${stderr.toString().trim().split('\n').at(-1)}`);
  return stdout.toString();
}

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder);
run(['npm', 'pack', '--silent', '--pack-destination', folder], root);
const files = packageFiles();
const digest = new Bun.CryptoHasher('sha256').update(JSON.stringify(files)).digest('hex').slice(0, 12);
for (const [platform, bunName] of Object.entries(platforms)) {
  if (only.length > 0 && !only.includes(platform)) continue;
  // Bun leaves files of its own beside what it compiles.
  const work = mkdtempSync(join(folder, 'new-'));
  const made = join(work, 'program');
  try {
    await compile(made, join(root, 'scripts', 'release', 'program.ts'), {
      bun: platform === here ? process.execPath : bunFor(bunName),
      target: `bun-${platform as keyof typeof platforms}`,
      define: { releaseName: JSON.stringify(`${version}-${digest}`) },
      plugins: [withFiles(files)],
    });
    chmodSync(made, 0o755);
    renameSync(made, join(folder, `${name}-${version}-${platform}`));
  } catch (error) {
    console.error(`No program for ${platform}: ${error instanceof Error ? error.message : error}`);
    if (platform === here) process.exitCode = 1;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
const sums = readdirSync(folder)
  .toSorted()
  .map((file) => {
    const sum = new Bun.CryptoHasher('sha256').update(readFileSync(join(folder, file))).digest('hex');
    return `${sum}  ${file}\n`;
  });
writeFileSync(join(folder, 'SHA256SUMS'), sums.join(''));
console.log(sums.join('').trimEnd());
