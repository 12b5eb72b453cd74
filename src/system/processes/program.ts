/** Finding out, before the spawn, whether folder and program are there: the system says ENOENT for both. */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { fail, ok, type Result } from '../../core/failure.ts';
import { errorCode } from '../system-error.ts';

/** The absolute path of the program; fails with `project-missing` or `claude-missing`. */
export function locateProgram(program: string, cwd: string, env: Readonly<Record<string, string>>): Result<string> {
  const folder = lookAt(cwd);
  if (folder === 'missing' || folder === 'file') {
    const what = folder === 'missing' ? 'does not exist' : 'is not a folder';
    return fail('project-missing', `The folder ${cwd} ${what}.`, 'Restore the folder or name another one.');
  }
  const found = program.includes('/') ? resolve(cwd, program) : Bun.which(program, { PATH: env.PATH ?? '', cwd });
  if (found === null) return programMissing(program, 'was not found on PATH');
  const file = lookAt(found);
  if (file === 'missing') return programMissing(found, 'does not exist');
  if (file === 'folder') return programMissing(found, 'is a folder');
  return ok(found);
}

/** A program that is there but cannot be executed (rights, format, missing interpreter) is as good as missing. */
export function describeSpawnError(program: string, error: unknown): ReturnType<typeof fail> {
  const code = errorCode(error);
  if (code === 'EACCES' || code === 'ENOEXEC') return programMissing(program, `cannot be executed (${code})`);
  if (code === 'ENOENT') return programMissing(program, 'names an interpreter that does not exist');
  if (code === 'ETXTBSY') {
    const next = 'Wait until it is installed or updated as a whole, then run the command again.';
    return fail('spawn-failed', `Another process is still writing the program ${program}.`, next);
  }
  const next = 'Check the limits of this machine (processes, memory, open files), then run the command again.';
  return fail('spawn-failed', `Cannot start ${program}: ${code === '' ? String(error) : code}.`, next);
}

function programMissing(program: string, what: string): ReturnType<typeof fail> {
  return fail('claude-missing', `The program ${program} ${what}.`, 'Install it or correct its path.');
}

function lookAt(path: string): 'missing' | 'folder' | 'file' | 'unknown' {
  try {
    return statSync(path).isDirectory() ? 'folder' : 'file';
  } catch (error) {
    // What cannot be looked at (EACCES) is left to the spawn, which gives the true reason.
    return ['ENOENT', 'ENOTDIR'].includes(errorCode(error)) ? 'missing' : 'unknown';
  }
}
