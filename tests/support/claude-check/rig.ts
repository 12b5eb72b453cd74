/** Trials for tests: of the pinned claude, and of one that breaks a promise. */
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Seen } from '../../../src/app/claude-check/claims.ts';
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
export async function seenOf(program: string): Promise<readonly Seen[]> {
  const folder = join(newFolder(), 'trial');
  const stop = new AbortController().signal;
  const seen = await tryClaude(world, { folder, program, caller, stop });
  if (!seen.ok) throw new Error(seen.failure.message);
  expectNothingLeft(folder);
  return seen.value;
}

function expectNothingLeft(folder: string): void {
  if (existsSync(folder)) throw new Error(`${folder} is left`);
}

/** Ids of the claims that do not hold. */
export function wrongIn(seen: readonly Seen[]): string[] {
  return seen.filter(({ verdict }) => verdict !== 'holds').map(({ id }) => id);
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
