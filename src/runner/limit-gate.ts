/**
 * The usage limit of a login, shared by all runners of this machine in a small file. The first runner that reaches the
 * limit closes the gate for all sessions of the login. After the reset one session starts as a probe, and its first
 * response opens the gate.
 */
import { join } from 'node:path';
import { loginIdentity } from '../claude/launch/login.ts';
import type { UserLogin } from '../claude/launch/user-claude.ts';
import { defined } from '../core/defined.ts';
import type { ProcessIdentity } from '../core/event.ts';
import type { GroupId } from '../core/group.ts';
import { limitMsMax } from '../core/state.ts';
import { parseOwn } from '../store/json.ts';
import type { World } from '../system/world.ts';

export interface GateReading {
  readonly untilMs: number;
  readonly limitType?: string;
  /** Which run may start the probe after the reset. */
  readonly probe: 'none' | 'mine' | 'other';
}

export type LimitGate = ReturnType<typeof openLimitGate>;

interface GateFile {
  readonly untilMs: number;
  readonly limitType?: string;
  /** Number of consecutive probes that reached the limit again. */
  readonly guesses: number;
  readonly probe?: { readonly runId: string; readonly runner: ProcessIdentity; readonly atMs: number };
}

/** A run that claimed the probe but starts nothing blocks the others no longer than this. */
const probeMsMax = 10 * 60_000;
/** Backoff without a known reset time: 30 s, doubled each time, at most 15 minutes. */
const guessMs = 30_000;
const guessMsMax = 15 * 60_000;

export interface LimitGateOptions {
  readonly root: string;
  /** Names the login, see `gateKey`. */
  readonly key: string;
  readonly runId: string;
}

/** A hash that identifies the login. */
export function gateKey({ caller, login }: UserLogin): string {
  const text = loginIdentity(caller, login);
  return `${login.kind}-${new Bun.CryptoHasher('sha256').update(text).digest('hex').slice(0, 16)}`;
}

/** A rehearsal has its own limits, independent of any login. */
export function rehearsalGateKey(groupId: GroupId): string {
  return `rehearsal-${groupId}`;
}

/**
 * Pure: the gate after a report. All running sessions report the same limit, so the backoff grows only after a probe. A
 * reset time in the past is ignored.
 */
function closed(file: GateFile | null, nowMs: number, named = 0, told?: string): GateFile {
  const resetsAtMs = named > nowMs + limitMsMax ? 0 : named;
  const isNew = file === null || file.probe !== undefined;
  const guesses = Math.max(1, (file?.guesses ?? 0) + (isNew ? 1 : 0));
  const guess = (times: number) => nowMs + Math.min(guessMsMax, guessMs * 2 ** (times - 1));
  const currentMs = file?.untilMs ?? 0;
  let untilMs = currentMs;
  if (resetsAtMs > nowMs) untilMs = Math.max(resetsAtMs, guesses > 1 ? guess(guesses - 1) : 0);
  else if (isNew) untilMs = Math.max(currentMs, guess(guesses));
  // Ignore a late report of a limit that has been reset.
  else if (currentMs <= nowMs && (resetsAtMs === 0 || resetsAtMs > currentMs)) untilMs = guess(guesses);
  const { limitType: known } = file ?? {};
  // The limit's type belongs to the time it ends.
  const limitType = untilMs === currentMs ? (known ?? told) : (told ?? known);
  return { untilMs, guesses, ...defined({ limitType }) };
}

export function openLimitGate(world: World, { root, key, runId }: LimitGateOptions) {
  const { clock, files, locks, machine, processes } = world;
  const folder = join(root, 'limits');
  const path = join(folder, `${key}.json`);
  const holdsProbe = ({ probe }: GateFile): boolean =>
    probe !== undefined && clock.now() - probe.atMs < probeMsMax && processes.isAlive(probe.runner);
  /** Called several times per step, usually without a file, so the existence check avoids a costly exception. */
  const readFile = () => (files.info(path) === null ? null : parseOwn<GateFile>(files.readText(path)));
  /** True when the file was changed; false when `change` returns null or another run is writing. */
  const update = (change: (file: GateFile | null) => GateFile | null): boolean => {
    files.makeFolder(folder);
    const lock = locks.tryLock(join(folder, `${key}.lock`), { identity: machine.self, runId });
    if (lock === null) return false;
    try {
      const next = change(readFile());
      if (next !== null) files.writeAtomic(path, `${JSON.stringify(next)}\n`, { durable: true });
      return next !== null;
    } finally {
      lock.release();
    }
  };

  return {
    /** Null without a limit. */
    read(): GateReading | null {
      const file = readFile();
      if (file === null) return null;
      const probe = !holdsProbe(file) ? 'none' : file.probe?.runId === runId ? 'mine' : 'other';
      return { untilMs: file.untilMs, ...(file.limitType ? { limitType: file.limitType } : {}), probe };
    },
    /** Closes the gate until `resetsAtMs`, or with backoff when claude reported no plausible reset time. */
    close(resetsAtMs: number | undefined, limitType: string | undefined): void {
      update((file) => closed(file, clock.now(), resetsAtMs, limitType));
    },
    /** True when this run may start the probe now. */
    claimProbe(): boolean {
      return update((file) => {
        const now = clock.now();
        if (file === null || now < file.untilMs) return null;
        if (holdsProbe(file) && file.probe?.runId !== runId) return null;
        return { ...file, probe: { runId, runner: machine.self, atMs: now } };
      });
    },
    open: (): void => files.remove(path),
  };
}
