/** Checks of claude for tests: of the pinned one, and of one that breaks a promise. */
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CheckOptions, checkClaude } from '../../../src/app/claude-check/check-claude.ts';
import type { CheckResult } from '../../../src/app/claude-check/checks.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { claudeBinary } from '../claude/rig.ts';

const world = createRealWorld();
const caller = { PATH: process.env.PATH ?? '', LANG: 'C.UTF-8', IS_SANDBOX: '1' };
const folders: string[] = [];

/** A folder that is removed with `removeFolders`. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'cca-check-'));
  folders.push(folder);
  return folder;
}

export function removeFolders(): void {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}

/** Checks the program; throws when it leaves files in the folder. */
export async function check(program: string, options: Partial<CheckOptions> = {}) {
  const folder = join(newFolder(), 'check');
  const common = { mark: crypto.randomUUID(), caller, login: 'api-key', stop: new AbortController().signal } as const;
  const checked = await checkClaude(world, { ...common, folder, program, ...options });
  if (existsSync(folder)) throw new Error(`${folder} is left`);
  return checked;
}

export async function resultsOf(program: string, login: CheckOptions['login'] = 'api-key') {
  const checked = await check(program, { login });
  if (!checked.ok) throw new Error(checked.failure.message);
  return checked.value;
}

/** The failed checks. */
export function failedIn(results: readonly CheckResult[]): CheckResult[] {
  return results.filter(({ verdict }) => verdict !== 'holds');
}

/** Path of a program that is the pinned claude without one promise, see broken-claude.ts. */
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
