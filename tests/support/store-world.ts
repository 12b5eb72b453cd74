/**
 * Worlds for tests of the store: the real files and locks of a temporary folder, a clock that only the test moves, and
 * files that fail or die at a chosen call.
 */
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRealWorld } from '../../src/system/real-world.ts';
import type { AppendFile, Clock, Files, World } from '../../src/system/world.ts';

export function temporaryFolder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'cca-store-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Time stands still until the test advances it; due actions then run in order. */
export class SteppedClock implements Clock {
  #nowMs = Date.UTC(2026, 0, 2, 3, 4, 5);
  #timers: { readonly dueMs: number; readonly action: () => void }[] = [];

  now(): number {
    return this.#nowMs;
  }

  after(delayMs: number, action: () => void): () => void {
    const timer = { dueMs: this.#nowMs + delayMs, action };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  get waiting(): number {
    return this.#timers.length;
  }

  step(ms: number): void {
    const untilMs = this.#nowMs + ms;
    for (;;) {
      const next = this.#timers.toSorted((a, b) => a.dueMs - b.dueMs)[0];
      if (next === undefined || next.dueMs > untilMs) break;
      this.#timers = this.#timers.filter((other) => other !== next);
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      next.action();
    }
    this.#nowMs = untilMs;
  }
}

export interface SteppedWorld extends World {
  readonly clock: SteppedClock;
}

/** The real world with a stepped clock; without watches, so that only the clock triggers anything. */
export function steppedWorld(files?: Partial<Files>): SteppedWorld {
  const real = createRealWorld();
  return { ...real, clock: new SteppedClock(), files: { ...real.files, watch: () => () => {}, ...files } };
}

export class InjectedFailure extends Error {
  readonly code: string;

  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

/** Which changing call fails, counted from 1, and how. */
export interface FileFault {
  readonly call: number;
  /** `dies`: nothing after it runs either, as when the process is killed. `fails`: only this call. */
  readonly how: 'dies' | 'fails';
  readonly code?: string;
}

export interface FaultyFiles {
  readonly files: Files;
  /** Changing calls so far, as `name path`. */
  readonly calls: string[];
  fault: FileFault | null;
}

/** Real files whose chosen changing call does half of its work and throws. */
export function faultyFiles(real: Files): FaultyFiles {
  const calls: string[] = [];
  const attempt = <T>(name: string, path: string, whole: () => T, half: () => void = () => {}): T => {
    calls.push(`${name} ${path}`);
    const { fault } = control;
    const isDead = fault?.how === 'dies' && calls.length > fault.call;
    if (isDead) throw new InjectedFailure('DEAD');
    if (calls.length !== fault?.call) return whole();
    half();
    throw new InjectedFailure(fault.code ?? 'EIO');
  };
  const files: Files = {
    ...real,
    writeAtomic: (path, text, options) =>
      attempt(
        'writeAtomic',
        path,
        () => real.writeAtomic(path, text, options),
        () => halfWritten(real, `${path}.1.tmp`, text),
      ),
    writeBytes: (path, bytes, options) => attempt('writeBytes', path, () => real.writeBytes(path, bytes, options)),
    openAppend: (path) => attempt('openAppend', path, () => faultyAppend(real.openAppend(path), path, attempt)),
    truncate: (path, size) => attempt('truncate', path, () => real.truncate(path, size)),
    makeFolder: (path, access) => attempt('makeFolder', path, () => real.makeFolder(path, access)),
    rename: (from, to) => attempt('rename', from, () => real.rename(from, to)),
    remove: (path) =>
      attempt(
        'remove',
        path,
        () => real.remove(path),
        () => removeFirst(real, path),
      ),
  };
  const control: FaultyFiles = { files, calls, fault: null };
  return control;
}

type Attempt = <T>(name: string, path: string, whole: () => T, half?: () => void) => T;

function faultyAppend(file: AppendFile, path: string, attempt: Attempt): AppendFile {
  return {
    get size() {
      return file.size;
    },
    append: (text) =>
      attempt(
        'append',
        path,
        () => file.append(text),
        () => file.append(text.slice(0, text.length / 2)),
      ),
    appendBytes: (bytes) =>
      attempt(
        'append',
        path,
        () => file.appendBytes(bytes),
        () => file.appendBytes(bytes.subarray(0, bytes.length / 2)),
      ),
    sync: () => attempt('sync', path, () => file.sync()),
    close: () => file.close(),
  };
}

function halfWritten(real: Files, path: string, text: string): void {
  const file = real.openAppend(path);
  file.append(text.slice(0, text.length / 2));
  file.close();
}

function removeFirst(real: Files, path: string): void {
  const [first] = real.list(path);
  if (first !== undefined) real.remove(join(path, first));
}

/** Every file and folder below a path with its mode, as `mode name`. */
export function modesBelow(path: string): string[] {
  return readdirSync(path, { recursive: true })
    .map(String)
    .sort()
    .map((name) => `${(statSync(join(path, name)).mode & 0o777).toString(8)} ${name}`);
}
