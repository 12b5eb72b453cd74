/** This very program as one archive, to be unpacked on another machine. */
import { join } from 'node:path';
import { advise } from '../../core/advice.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { ownCommand } from '../../system/own-program.ts';
import type { Place } from '../place.ts';
import { lastLine } from './ssh.ts';

/** Besides what is built. */
const parts = ['bin', 'package.json', 'templates'];
const bundleMs = 120_000;
const archiveBytesMax = 300_000_000;

export interface OwnPackage {
  /** A tar, compressed by gzip. */
  readonly program: Uint8Array;
  /** Bun itself, in the same form, for a machine of this platform; undefined when none is found here. */
  bun(): Promise<Result<Uint8Array | undefined>>;
}

/** Calls `use` with the archive. In a checkout the program is bundled for that first. */
export async function withOwnPackage<T>(
  place: Place,
  use: (own: OwnPackage) => Promise<Result<T>>,
): Promise<Result<T>> {
  const { world, packageRoot } = place;
  const folder = join(place.env.TMPDIR ?? '/tmp', `claude-code-agent-${world.random.uuid()}`);
  try {
    world.files.makeFolder(folder);
    const built = await bundled(place, folder);
    if (!built.ok) return built;
    const archive = join(folder, 'program.tgz');
    const where = ['-C', packageRoot, ...parts, '-C', built.value, 'dist/program'];
    const packed = await pack(place, archive, where);
    if (!packed.ok) return packed;
    return await use({ program: packed.value, bun: () => bunArchive(place, folder) });
  } finally {
    world.files.remove(folder);
  }
}

/** The folder that holds dist/program. */
async function bundled(place: Place, folder: string): Promise<Result<string>> {
  const { world, packageRoot } = place;
  if (world.files.info(join(packageRoot, 'scripts', 'bundle.ts')) === null) {
    if (world.files.info(join(packageRoot, 'dist', 'program')) !== null) return ok(packageRoot);
    const next = advise('Install the npm package there, and on that machine', ['host', 'join', 'LINE']);
    return fail('usage', 'A program of one file cannot be put on another machine.', next);
  }
  const target = join(folder, 'dist', 'program');
  const built = await run(place, 'sh', ['scripts/bun.sh', 'scripts/bundle.ts', target], bundleMs);
  return built.ok ? ok(folder) : built;
}

async function bunArchive(place: Place, folder: string): Promise<Result<Uint8Array | undefined>> {
  const script = '. "$1/bin/find-bun.sh"; find_bun "$1"; [ -n "$bun" ] && readlink -f "$bun"';
  const found = await run(place, 'sh', ['-c', script, 'sh', place.packageRoot], bundleMs);
  const { program } = ownCommand('main');
  const path = found.ok ? found.value.trim() : program;
  if (!/\/bun(?:\.exe)?$/.test(path)) return ok(undefined);
  const name = path.slice(path.lastIndexOf('/') + 1);
  const at = path.slice(0, path.lastIndexOf('/'));
  const archive = join(folder, 'bun.tgz');
  // Where the launcher looks for it.
  const rename = `--transform=s,^.*$,node_modules/@oven/bun-here/bin/bun,`;
  return pack(place, archive, ['-C', at, rename, name]);
}

async function pack(place: Place, archive: string, what: readonly string[]): Promise<Result<Uint8Array>> {
  // Most of it is Bun, which takes long to be made much smaller.
  const packed = await run(place, 'tar', ['--use-compress-program=gzip -1', '-cf', archive, ...what], bundleMs);
  return packed.ok ? ok(place.world.files.readBytes(archive, 0, archiveBytesMax)) : packed;
}

async function run(place: Place, program: string, args: readonly string[], timeoutMs: number): Promise<Result<string>> {
  const { world, env, packageRoot } = place;
  const given = { PATH: env.PATH ?? '', HOME: env.HOME ?? '', TMPDIR: env.TMPDIR ?? '/tmp' };
  const ran = await world.processes.run({ program, args, cwd: packageRoot, env: given, timeoutMs });
  if (!ran.ok) return ran;
  if (ran.value.exitCode === 0) return ok(ran.value.stdout);
  const message = `This program could not be packed for another machine: ${lastLine(ran.value.stderr)}.`;
  return fail('spawn-failed', message, 'Cure that, or install the npm package there by hand.');
}
