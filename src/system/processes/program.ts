/** Finds programs, and runs short ones to their end. */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Failure, fail, ok, type Result } from '../../core/failure.ts';
import { errorCode } from '../system-error.ts';
import type { CommandOptions, RunOutput } from '../world.ts';

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

/** A program that cannot be executed (permissions, format, missing interpreter) counts as missing. */
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
    // An unreadable one (EACCES) is left to the spawn, which reports the real reason.
    return ['ENOENT', 'ENOTDIR'].includes(errorCode(error)) ? 'missing' : 'unknown';
  }
}

/** Output beyond this many bytes is read and dropped, so that a faulty program cannot fill our memory. */
const keptBytes = 64 << 20;

/** How long output is waited for after the end: a background process that inherited the pipe may hold it for ever. */
const drainMs = 500;

/**
 * Fails as `spawn` does, but a missing program is `not-found`: it need not be claude. `exitCode` is null when a signal
 * ended the program, including that of the timeout. The program has no terminal, and no input but what is given, so it
 * cannot prompt.
 */
export async function runProgram(options: CommandOptions): Promise<Result<RunOutput>> {
  const program = locateProgram(options.program, options.cwd, options.env);
  if (!program.ok) return renamed(program.failure);
  let child: Bun.ReadableSubprocess;
  try {
    child = Bun.spawn([program.value, ...options.args], {
      cwd: options.cwd,
      env: { ...options.env, [helperMark]: '1' },
      stdin: options.input ?? 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
      detached: true,
    });
  } catch (error) {
    return renamed(describeSpawnError(program.value, error).failure);
  }
  noteChild(child);
  const stdout = collect(child.stdout, options.encoding);
  const stderr = collect(child.stderr, 'utf8', options.onStderrLine);
  const timeout = setTimeout(() => killGroup(child.pid), options.timeoutMs);
  const interrupt = () => child.kill('SIGINT');
  options.interrupt?.addEventListener('abort', interrupt);
  await child.exited;
  options.interrupt?.removeEventListener('abort', interrupt);
  clearTimeout(timeout);
  await settle([stdout.done, stderr.done]);
  return ok({ exitCode: child.exitCode, stdout: stdout.take(), stderr: stderr.take() });
}

function renamed(failure: Failure): { readonly ok: false; readonly failure: Failure } {
  return { ok: false, failure: failure.reason === 'claude-missing' ? { ...failure, reason: 'not-found' } : failure };
}

/** The whole group: the helpers of a hanging program hang as well. */
function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {}
}

interface Collected {
  readonly done: Promise<void>;
  /** Returns the text so far and stops reading. */
  take(): string;
}

function collect(
  stream: ReadableStream<Uint8Array>,
  encoding: 'utf8' | 'latin1' = 'utf8',
  onLine?: (line: string) => void,
): Collected {
  const decoder = new TextDecoder();
  let line = '';
  const reader = stream.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  const pump = async (): Promise<void> => {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      const kept = next.value.subarray(0, keptBytes - size);
      if (kept.length > 0) chunks.push(kept);
      size += kept.length;
      if (onLine === undefined) continue;
      const lines = `${line}${decoder.decode(kept, { stream: true })}`.split('\n');
      line = lines.pop() ?? '';
      for (const whole of lines) onLine(whole);
    }
  };
  return {
    done: pump(),
    take() {
      reader.cancel().catch(() => {});
      return Buffer.concat(chunks).toString(encoding);
    },
  };
}

async function settle(readers: readonly Promise<void>[]): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const patience = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, drainMs);
  });
  await Promise.race([Promise.allSettled(readers), patience]);
  clearTimeout(timer);
}

// Children that this process has started and Bun reaps. No other code may reap these: Bun would fail with ECHILD.

/** Set for programs outside attempts, such as git or an editor; processes that they leave running are not ended. */
export const helperMark = 'CLAUDE_CODE_AGENT_HELPER';

/** Start times, by pid; empty when nothing needs it. */
const living = new Map<number, string>();

/** Call in the same turn as the spawn, before Bun can have reaped the child. */
export function noteChild(
  { pid, exited }: { readonly pid: number; readonly exited: Promise<unknown> },
  startTime = '',
): void {
  living.set(pid, startTime);
  const end = () => living.delete(pid);
  exited.then(end, end);
}

/** It exists, even if it has ended: then it is a zombie of ours. */
export function isOwnChild(pid: number, startTime: string): boolean {
  return living.get(pid) === startTime;
}

export function isStartedHere(pid: number): boolean {
  return living.has(pid);
}
