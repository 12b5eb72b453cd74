/** `tried-claudes.json`: the claudes that were checked on this machine, by file and kind of login. */
import { join } from 'node:path';
import { chooseLogin, type Login } from '../../claude/launch/login.ts';
import { isSameFile, isWholeProgram, type ProgramFile, programFile, versionOf } from '../../claude/launch/program.ts';
import { ok, type Result } from '../../core/failure.ts';
import { systemFailure } from '../../store/system-failure.ts';
import type { World } from '../../system/world.ts';
import type { CheckResult } from './checks.ts';

export interface CheckedClaude {
  readonly file: ProgramFile;
  /** How it is started; a version manager's shim answers only to the name of its link. */
  readonly program: string;
  readonly version: string;
  readonly login: Login['kind'];
  /** ISO 8601, UTC. */
  readonly at: string;
  readonly durationMs: number;
  readonly results: readonly CheckResult[];
}

/** Raised when the checks or the way a worker is started change, so that every claude is checked again. */
const formatVersion = '2';
/** Updates come daily and old versions are removed; several programs may be in use. */
const keptMax = 16;

const fileIn = (root: string): string => join(root, 'tried-claudes.json');

/** The newest first; empty when the file is missing or unreadable, because a check costs nothing. */
export function readChecked({ files }: World, root: string): readonly CheckedClaude[] {
  try {
    const { version, checked } = JSON.parse(files.readText(fileIn(root)) ?? '');
    return version === formatVersion ? checked : [];
  } catch {
    return [];
  }
}

/** Replaces what was known of the same program and login. Fails with `write-failed`. */
export function remember(world: World, root: string, checked: CheckedClaude): Result<void> {
  const isOther = ({ file, login }: CheckedClaude) => file.path !== checked.file.path || login !== checked.login;
  const all = [checked, ...readChecked(world, root).filter(isOther)].slice(0, keptMax);
  try {
    world.files.makeFolder(root);
    world.files.writeAtomic(fileIn(root), `${JSON.stringify({ version: formatVersion, checked: all }, null, 2)}\n`);
    return ok(undefined);
  } catch (error) {
    return { ok: false, failure: systemFailure(fileIn(root), error) };
  }
}

/** The check of exactly this file with this kind of login. */
export function recall(world: World, root: string, file: ProgramFile, login: Login['kind']): CheckedClaude | undefined {
  return readChecked(world, root).find((one) => isSameFile(one.file, file) && one.login === login);
}

/** The same file always is the same version: it is no script or shim that starts another program. */
export function isFixed({ file, program }: Pick<CheckedClaude, 'file' | 'program'>): boolean {
  return isWholeProgram(file) && program === file.path;
}

/** The last check of the program at this path, which may be a link; undefined when it has to be checked. */
export async function lastCheckOf(
  world: World,
  root: string,
  program: string,
  caller: Readonly<Record<string, string | undefined>>,
): Promise<CheckedClaude | undefined> {
  const file = programFile(world, program);
  const known = file === null ? undefined : recall(world, root, file, chooseLogin(caller).kind);
  if (known === undefined || isFixed(known)) return known;
  const version = await versionOf(world, known.program, caller);
  return version.ok && version.value === known.version ? known : undefined;
}
