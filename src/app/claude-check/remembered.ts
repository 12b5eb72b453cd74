/**
 * What is remembered of trials: `tried-claudes.json` in the data root, one entry for each program. It is a cache:
 * without it, or when it cannot be read, everything is tried again.
 */
import { join } from 'node:path';
import { isSameFile, isWholeProgram, type ProgramFile, programFile, versionOf } from '../../claude/launch/program.ts';
import { ok, type Result } from '../../core/failure.ts';
import { fields, isFlag, isInstant, isNumber, isText, listOf, oneOf, optional, parseJson } from '../../store/shape.ts';
import { systemFailure } from '../../store/system-failure.ts';
import type { World } from '../../system/world.ts';
import type { Seen } from './claims.ts';
import { launchDigest } from './launch.ts';

/** One trial and what it has shown. */
export interface Tried {
  readonly file: ProgramFile;
  readonly version: string;
  /** It answers only to the name by which it was found, as shims of version managers do. */
  readonly byName?: true;
  /** What a worker was started with, see `launchDigest`. */
  readonly launch: string;
  /** ISO 8601, UTC. */
  readonly at: string;
  readonly durationMs: number;
  /** One for each claim. */
  readonly seen: readonly Seen[];
}

/** Updates come daily and old versions are removed; several may be in use at once. */
const keptMax = 16;

const isTriedFile = fields({
  version: oneOf(['1']),
  tried: listOf(
    fields({
      file: fields({ path: isText, size: isNumber, mtimeMs: isNumber, device: isNumber, inode: isNumber }),
      version: isText,
      byName: optional(isFlag),
      launch: isText,
      at: isInstant,
      durationMs: isNumber,
      seen: listOf(fields({ id: isText, verdict: oneOf(['holds', 'broken', 'untried']), what: isText })),
    }),
  ),
});

const fileIn = (root: string): string => join(root, 'tried-claudes.json');

/** The newest first. */
export function readTried(world: World, root: string): readonly Tried[] {
  try {
    const value = parseJson(world.files.readText(fileIn(root)) ?? '');
    return isTriedFile(value) ? (value as { readonly tried: readonly Tried[] }).tried : [];
  } catch {
    return [];
  }
}

/** In place of what was known of the same path. Whoever writes holds the trials' lock. Fails with `write-failed`. */
export function rememberTried(world: World, root: string, tried: Tried): Result<void> {
  const others = readTried(world, root).filter(({ file }) => file.path !== tried.file.path);
  const kept = [tried, ...others].slice(0, keptMax);
  try {
    world.files.makeFolder(root);
    world.files.writeAtomic(fileIn(root), `${JSON.stringify({ version: '1', tried: kept }, null, 2)}\n`);
    return ok(undefined);
  } catch (error) {
    return { ok: false, failure: systemFailure(fileIn(root), error) };
  }
}

/** What was seen of this very file, started as we start it now; undefined when it has to be tried. */
export function recall(known: readonly Tried[], file: ProgramFile): Tried | undefined {
  const launch = launchDigest();
  return known.find((tried) => isSameFile(tried.file, file) && tried.launch === launch);
}

/**
 * The last trial of the program at this path, which may be a link; undefined when it is new here. What only starts
 * another program is asked for its version.
 */
export async function trialOf(
  world: World,
  root: string,
  program: string,
  caller: Readonly<Record<string, string | undefined>>,
): Promise<Tried | undefined> {
  const file = programFile(world, program);
  const known = file === null ? undefined : recall(readTried(world, root), file);
  if (known === undefined || (isWholeProgram(known.file) && !known.byName)) return known;
  const version = await versionOf(world, program, caller);
  return version.ok && version.value === known.version ? known : undefined;
}
