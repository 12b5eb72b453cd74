/** Runs a short program to its end and keeps what it printed. */
import { type Failure, ok, type Result } from '../../core/failure.ts';
import type { RunOptions, RunOutput } from '../world.ts';
import { noteChild } from './own-children.ts';
import { describeSpawnError, locateProgram } from './program.ts';

/** Output beyond this many bytes is read and dropped, so that a program gone wild cannot fill our memory. */
const keptBytes = 64 << 20;

/** How long output is waited for after the end: a background process that inherited the pipe may hold it for ever. */
const drainMs = 500;

/**
 * Fails as `spawn` does, but a missing program is `not-found`: it need not be claude. `exitCode` is null when a signal
 * ended the program, the one of the timeout included. The program has no terminal, and no input but what is given, so
 * it cannot ask anybody anything.
 */
export async function runProgram(options: RunOptions): Promise<Result<RunOutput>> {
  const program = locateProgram(options.program, options.cwd, options.env);
  if (!program.ok) return renamed(program.failure);
  let child: Bun.ReadableSubprocess;
  try {
    child = Bun.spawn([program.value, ...options.args], {
      cwd: options.cwd,
      env: { ...options.env },
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
  await child.exited;
  clearTimeout(timeout);
  await settle([stdout.done, stderr.done]);
  return ok({ exitCode: child.exitCode, stdout: stdout.take(), stderr: stderr.take() });
}

function renamed(failure: Failure): { readonly ok: false; readonly failure: Failure } {
  return { ok: false, failure: failure.reason === 'claude-missing' ? { ...failure, reason: 'not-found' } : failure };
}

/** The whole group: the helpers of a program that hangs hang as well. */
function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It ended in the same instant.
  }
}

interface Collected {
  readonly done: Promise<void>;
  /** The text so far; stops reading. */
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
