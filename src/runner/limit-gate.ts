/**
 * The gate of a login: a small file beside the groups, shared by all runners of this machine. A usage limit hits every
 * session of the login alike, so whoever meets it closes the gate; after the reset one session is let through first,
 * and its first answer opens the gate for the others.
 */
import { join } from 'node:path';
import { chooseLogin, loginIdentity } from '../claude/launch/login.ts';
import { defined } from '../core/defined.ts';
import type { ProcessIdentity } from '../core/event.ts';
import type { GroupId } from '../core/group.ts';
import { isOutOfSight } from '../core/out-of-sight.ts';
import { parseOwn } from '../store/json.ts';
import { errorCode, isTableFull } from '../system/system-error.ts';
import type { World } from '../system/world.ts';

export interface GateReading {
  readonly untilMs: number;
  readonly limitType?: string;
  /** Who may send the first session after the reset. */
  readonly probe: 'nobody' | 'mine' | 'other';
}

export interface LimitGate {
  /** null while no limit holds. */
  read(): GateReading | null;
  /** Closes it until `resetsAtMs`, or for a growing while when claude named no time that is to come within a month. */
  close(resetsAtMs: number | undefined, limitType: string | undefined): void;
  /** True when this run may let its first session through now. */
  claimProbe(): boolean;
  open(): void;
  /** Remembers for everybody that a limit is near until its window ends at `untilMs`. */
  noteNear(untilMs: number): void;
  /** A limit is near: sessions run one at a time. */
  isNear(): boolean;
}

interface GateFile {
  readonly untilMs: number;
  readonly limitType?: string;
  /** Episodes in a row: it was closed, somebody was let through, and met the limit again. */
  readonly guesses: number;
  readonly probe?: { readonly runId: string; readonly runner: ProcessIdentity; readonly atMs: number };
  /** A limit is near until then, ms since 1970. */
  readonly nearUntilMs?: number;
}

/** A run that has claimed the probe and then sends nothing must not hold up all others. */
const probeMsMax = 10 * 60_000;
/** Without a known reset: half a minute, doubled for each episode in a row, at most a quarter of an hour. */
const guessMs = 30_000;
const guessMsMax = 15 * 60_000;

/** No limit lasts longer, milliseconds. A reset beyond that would keep every group of the login waiting for nothing. */
const lastsMsMax = 32 * 24 * 3_600_000;

export interface GateOptions {
  readonly root: string;
  /** Names the login, see `gateKey`. */
  readonly key: string;
  readonly runId: string;
  /** Is told once in a sentence when the file cannot be used. */
  readonly warn?: (message: string) => void;
}

/** A name for the login that tells nothing about its secret. */
export function gateKey(callerEnv: Readonly<Record<string, string | undefined>>): string {
  const text = loginIdentity(callerEnv);
  return `${chooseLogin(callerEnv).kind}-${new Bun.CryptoHasher('sha256').update(text).digest('hex').slice(0, 16)}`;
}

/** A rehearsal has limits of its own, which concern no login. */
export function rehearsalGateKey(groupId: GroupId): string {
  return `rehearsal-${groupId}`;
}

interface Report {
  readonly nowMs: number;
  readonly resetsAtMs: number | undefined;
  readonly limitType: string | undefined;
}

/**
 * Pure: the gate after a report. All sessions of an episode report the same limit; only when somebody was let through
 * since and met it again, the guess grows. A reset that is over says as little as none.
 */
function closed(file: GateFile | null, { nowMs, resetsAtMs: named = 0, limitType: told }: Report): GateFile {
  const resetsAtMs = named > nowMs + lastsMsMax ? 0 : named;
  const isNew = file === null || file.untilMs === 0 || file.probe !== undefined;
  const guesses = Math.max(1, (file?.guesses ?? 0) + (isNew ? 1 : 0));
  const guess = (times: number) => nowMs + Math.min(guessMsMax, guessMs * 2 ** (times - 1));
  const standing = file?.untilMs ?? 0;
  let untilMs = standing;
  if (resetsAtMs > nowMs) untilMs = Math.max(resetsAtMs, guesses > 1 ? guess(guesses - 1) : 0);
  else if (isNew) untilMs = Math.max(standing, guess(guesses));
  // Who reports late that the limit was met whose reset is over by now tells nothing new.
  else if (standing <= nowMs && (resetsAtMs === 0 || resetsAtMs > standing)) untilMs = guess(guesses);
  const { nearUntilMs, limitType: known } = file ?? {};
  // Its kind goes with the time it ends.
  const limitType = untilMs === standing ? (known ?? told) : (told ?? known);
  return {
    untilMs,
    guesses,
    ...defined({ limitType, nearUntilMs }),
  };
}

type Change = (file: GateFile | null) => GateFile | null;

/**
 * The file of the gate: what it says, and how it is changed while nobody else changes it. One that cannot be used -
 * somebody else's, or the disk is full - must end no run: this one then goes by what it meets itself, until it can be
 * written again.
 */
function gateFile(world: World, { root, key, runId, warn = () => {} }: GateOptions) {
  const folder = join(root, 'limits');
  const path = join(folder, `${key}.json`);
  let lastRead: GateFile | null = null;
  let isShared = true;
  let isWarned = false;
  /** `before` while the table of open files is full, and from then on when the system refuses more than that. */
  const attempt = <T>(what: () => T, before: T): T => {
    if (!isShared) return before;
    try {
      return what();
    } catch (error) {
      if (isTableFull(error)) return before;
      const code = errorCode(error);
      if (code === '') throw error;
      isShared = false;
      if (!isWarned)
        warn(`The usage limits in ${path} cannot be used (${code}): this run goes by those it meets itself.`);
      isWarned = true;
      return before;
    }
  };
  const read = (): GateFile | null => {
    lastRead = attempt(() => readGate(world, path), lastRead);
    return lastRead;
  };
  // As good as always nothing is there, and it is asked for at every step.
  const { get: load, forget } = inOneBreath(read);
  const updateShared = (change: Change): 'changed' | 'kept' | 'busy' => {
    world.files.makeFolder(folder);
    const holder = { identity: world.machine.self, runId };
    const lock = world.locks.tryLock(join(folder, `${key}.lock`), holder);
    if (lock === null) return 'busy';
    try {
      const next = change(readGate(world, path));
      if (next !== null) world.files.writeAtomic(path, `${JSON.stringify(next)}\n`, { durable: true });
      return next === null ? 'kept' : 'changed';
    } finally {
      lock.release();
    }
  };
  /** `change` returning null leaves it as it is. */
  const update = (change: Change): 'changed' | 'kept' | 'busy' => {
    forget();
    const done = attempt(() => updateShared(change), 'busy');
    if (isShared) return done;
    const next = change(lastRead);
    if (next === null) return 'kept';
    lastRead = next;
    return 'changed';
  };
  /** What could not be shared; false while it still cannot. */
  const share = (change: Change): boolean => {
    isShared = true;
    return attempt(() => updateShared(change), 'busy') !== 'busy';
  };
  const clear = (): void => {
    forget();
    attempt(() => world.files.remove(path), undefined);
    if (!isShared) lastRead = null;
  };
  return { read, load, forget, update, share, clear, isShared: () => isShared };
}

export function openLimitGate(world: World, options: GateOptions): LimitGate {
  const { runId } = options;
  /** A report that could not be written down yet, because another run was writing just then, or the disk was full. */
  let unsaid: Report | null = null;
  const { read, load, forget, update, share, clear, isShared } = gateFile(world, options);
  const report = (met: Report): void => {
    const isWritten = update((file) => closed(file, met)) !== 'busy' && isShared();
    unsaid = isWritten ? null : met;
  };
  const reportAgain = (met: Report): void => {
    if (isShared()) report(met);
    // Nobody else would know of it, nor the next run.
    else if (share((file) => closed(file, met))) unsaid = null;
  };
  const holdsProbe = (file: GateFile): boolean =>
    file.probe !== undefined &&
    world.clock.now() - file.probe.atMs < probeMsMax &&
    (world.processes.isAlive(file.probe.runner) || isOutOfSight(file.probe.runner, world.machine.self));

  return {
    read() {
      if (unsaid !== null) reportAgain(unsaid);
      const file = unsaid === null || !isShared() ? load() : closed(load(), unsaid);
      if (file === null || file.untilMs === 0) return null;
      const probe = !holdsProbe(file) ? 'nobody' : file.probe?.runId === runId ? 'mine' : 'other';
      return { untilMs: file.untilMs, ...(file.limitType ? { limitType: file.limitType } : {}), probe };
    },
    close(resetsAtMs, limitType) {
      report({ nowMs: world.clock.now(), resetsAtMs, limitType });
    },
    claimProbe() {
      const claimed = update((file) => {
        const now = world.clock.now();
        if (file === null || file.untilMs === 0 || now < file.untilMs) return null;
        if (holdsProbe(file) && file.probe?.runId !== runId) return null;
        return { ...file, probe: { runId, runner: world.machine.self, atMs: now } };
      });
      return claimed === 'changed';
    },
    open() {
      unsaid = null;
      forget();
      const nearUntilMs = read()?.nearUntilMs ?? 0;
      if (nearUntilMs <= world.clock.now()) clear();
      // Busy or not: whoever writes just now has met the limit again, or sees an open gate at its next look.
      else update((file) => (file === null ? null : { untilMs: 0, guesses: 0, nearUntilMs }));
    },
    noteNear(nearUntilMs) {
      update((file) => {
        if ((file?.nearUntilMs ?? 0) >= nearUntilMs) return null;
        return { untilMs: 0, guesses: 0, ...file, nearUntilMs };
      });
    },
    isNear() {
      return (load()?.nearUntilMs ?? 0) > world.clock.now();
    },
  };
}

/** A step of a run asks several times; what it asks without a pause in between is answered by one reading. */
function inOneBreath<T>(read: () => T): { get(): T; forget(): void } {
  let known: { readonly value: T } | null = null;
  const forget = () => {
    known = null;
  };
  const get = () => {
    if (known !== null) return known.value;
    const value = read();
    known = { value };
    queueMicrotask(forget);
    return value;
  };
  return { get, forget };
}

/** Written as a whole, so what is none is damage; a limit that still holds closes the gate again. */
function readGate({ files, clock }: World, path: string): GateFile | null {
  const file = parseOwn<GateFile>(files.readText(path));
  if (file === null) return null;
  const { untilMs, nearUntilMs = 0 } = file;
  const farthestMs = clock.now() + lastsMsMax;
  return untilMs <= farthestMs && nearUntilMs <= farthestMs ? file : null;
}
