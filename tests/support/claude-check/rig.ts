/** Trials for tests: of the pinned claude, of one that breaks a promise, and of releases that the registry serves. */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { claims, type Seen } from '../../../src/app/claude-check/claims.ts';
import type { Launch } from '../../../src/app/claude-check/launch.ts';
import { tryClaude } from '../../../src/app/claude-check/trial.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { claudeBinary } from '../claude/rig.ts';

const world = createRealWorld();

/** What a trial takes over from its caller. */
export const caller = { PATH: process.env.PATH ?? '', LANG: 'C.UTF-8', IS_SANDBOX: '1' };

/** A folder that is removed with `removeFolders`. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'cca-trial-'));
  folders.push(folder);
  return folder;
}

const folders: string[] = [];

export function removeFolders(): void {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}

/** What a trial sees of the program. */
export async function seenOf(program: string, launch?: Launch): Promise<readonly Seen[]> {
  const folder = join(newFolder(), 'trial');
  const stop = new AbortController().signal;
  const seen = await tryClaude(world, { folder, program, caller, stop, ...(launch === undefined ? {} : { launch }) });
  if (!seen.ok) throw new Error(seen.failure.message);
  expectNothingLeft(folder);
  return seen.value;
}

function expectNothingLeft(folder: string): void {
  if (existsSync(folder)) throw new Error(`${folder} is left`);
}

/** Ids of what does not hold, without what this version need not be able to do. */
export function wrongIn(seen: readonly Seen[]): string[] {
  const abilities = claims.filter(({ weight }) => weight === 'ability').map(({ id }) => id);
  return seen.filter(({ id, verdict }) => verdict !== 'holds' && !abilities.includes(id)).map(({ id }) => id);
}

/** Path of a program that is the pinned claude but for one promise, see broken-claude.ts. */
export function breakClaude(what: string, folder = newFolder()): string {
  if (claudeBinary === undefined) throw new Error('claude is not installed');
  const program = join(folder, 'claude');
  const flags = '--no-env-file --config=/dev/null --no-install';
  const wrapper = join(import.meta.dir, 'broken-claude.ts');
  writeFileSync(
    program,
    `#!/bin/sh\nexec '${process.execPath}' ${flags} '${wrapper}' '${what}' '${claudeBinary}' "$@"\n`,
  );
  chmodSync(program, 0o755);
  return program;
}

/** Path of the native program of a release for this machine; null when the registry does not serve it. */
export function releasedClaude(version: string): string | null {
  const arch = process.arch === 'arm64' ? 'arm64' : 'x64';
  const folder = join(newFolder(), version);
  mkdirSync(folder);
  const name = `@anthropic-ai/claude-code-${process.platform}-${arch}@${version}`;
  const packed = Bun.spawnSync(['npm', 'pack', '--silent', name], { cwd: folder });
  const archive = packed.stdout.toString().trim();
  if (packed.exitCode !== 0 || archive === '') return null;
  Bun.spawnSync(['tar', 'xzf', archive, '--strip-components=1'], { cwd: folder });
  rmSync(join(folder, archive));
  return join(folder, 'claude');
}
