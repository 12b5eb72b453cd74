/**
 * The gate of a login: a small file beside the groups, shared by all runners of this machine. A usage limit hits every
 * session of the login alike, so whoever meets it closes the gate; after the reset one session is let through first,
 * and its first answer opens the gate for the others.
 */
import { join } from 'node:path';
import { chooseLogin } from '../claude/login.ts';
import type { ProcessIdentity } from '../core/event.ts';
import type { GroupId } from '../core/group.ts';
import type { World } from '../world/world.ts';

export interface GateReading {
  /** ms since 1970. */
  readonly untilMs: number;
  readonly limitType?: string;
  /** Who may send the first session after the reset. */
  readonly probe: 'nobody' | 'mine' | 'other';
}

export interface LimitGate {
  /** null while no limit holds. */
  read(): GateReading | null;
  /** Closes it until `resetsAtMs`, or for a growing while when claude did not say until when. */
  close(resetsAtMs: number | undefined, limitType: string | undefined): void;
  /** True when this run may let its first session through now. */
  claimProbe(): boolean;
  /** Opens it for everybody. */
  open(): void;
}

interface GateFile {
  readonly untilMs: number;
  readonly limitType?: string;
  /** Times it was closed without a known reset. */
  readonly guesses: number;
  readonly probe?: { readonly runId: string; readonly runner: ProcessIdentity; readonly atMs: number };
}

/** A run that has claimed the probe and then sends nothing must not hold up all others. */
const probeMsMax = 10 * 60_000;
/** Without a known reset: half a minute, doubled each time, at most a quarter of an hour. */
const guessMs = 30_000;
const guessMsMax = 15 * 60_000;

export interface GateOptions {
  /** Data root. */
  readonly root: string;
  /** Names the login, see `gateKey`. */
  readonly key: string;
  readonly runId: string;
}

/** A name for the login that tells nothing about its secret. */
export function gateKey(callerEnv: Readonly<Record<string, string | undefined>>): string {
  const login = chooseLogin(callerEnv);
  const text = JSON.stringify([
    login.kind,
    login.source,
    login.variables,
    login.storeDir,
    callerEnv.ANTHROPIC_BASE_URL,
  ]);
  return `${login.kind}-${new Bun.CryptoHasher('sha256').update(text).digest('hex').slice(0, 16)}`;
}

/** A rehearsal has limits of its own, which concern no login. */
export function rehearsalGateKey(groupId: GroupId): string {
  return `rehearsal-${groupId}`;
}

export function openLimitGate(world: World, options: GateOptions): LimitGate {
  const { root, key, runId } = options;
  const folder = join(root, 'limits');
  const path = join(folder, `${key}.json`);
  const load = (): GateFile | null => parse(world.files.readText(path));
  /** Changes the file under its lock; `change` returning null leaves it as it is. */
  const update = (change: (file: GateFile | null) => GateFile | null): boolean => {
    world.files.makeFolder(folder);
    const lock = world.locks.tryLock(join(folder, `${key}.lock`), { identity: world.machine.self, runId });
    if (lock === null) return false;
    try {
      const next = change(load());
      if (next !== null) world.files.writeAtomic(path, `${JSON.stringify(next)}\n`, { durable: true });
      return next !== null;
    } finally {
      lock.release();
    }
  };
  const holdsProbe = (file: GateFile): boolean =>
    file.probe !== undefined &&
    world.clock.now() - file.probe.atMs < probeMsMax &&
    world.processes.isAlive(file.probe.runner);

  return {
    read() {
      const file = load();
      if (file === null) return null;
      const probe = !holdsProbe(file) ? 'nobody' : file.probe?.runId === runId ? 'mine' : 'other';
      return { untilMs: file.untilMs, ...(file.limitType ? { limitType: file.limitType } : {}), probe };
    },
    close(resetsAtMs, limitType) {
      update((file) => {
        const guesses = resetsAtMs === undefined ? (file?.guesses ?? 0) + 1 : 0;
        // A guess is no reason to forget a reset that claude has told.
        const guess = Math.max(
          file?.untilMs ?? 0,
          world.clock.now() + Math.min(guessMsMax, guessMs * 2 ** (guesses - 1)),
        );
        const type = limitType ?? file?.limitType;
        return { untilMs: resetsAtMs ?? guess, guesses, ...(type === undefined ? {} : { limitType: type }) };
      });
    },
    claimProbe() {
      return update((file) => {
        const now = world.clock.now();
        if (file === null || now < file.untilMs) return null;
        if (holdsProbe(file) && file.probe?.runId !== runId) return null;
        return { ...file, probe: { runId, runner: world.machine.self, atMs: now } };
      });
    },
    open() {
      world.files.remove(path);
    },
  };
}

function parse(text: string | null): GateFile | null {
  if (text === null) return null;
  try {
    const file = JSON.parse(text) as GateFile;
    return typeof file.untilMs === 'number' && typeof file.guesses === 'number' ? file : null;
  } catch {
    // Written as a whole, so this is damage; a limit that still holds closes the gate again.
    return null;
  }
}
