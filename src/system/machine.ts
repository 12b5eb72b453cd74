/** The name of this machine. */
import { hostname } from 'node:os';

export function hostName(): string {
  return hostname();
}

export function isPortFree(port: number): boolean {
  try {
    Bun.listen({ hostname: '0.0.0.0', port, socket: { data() {} } }).stop(true);
    return true;
  } catch {
    return false;
  }
}

export const platform: string = process.platform;

// macOS keeps logins in a keychain, which belongs to the user whatever HOME says.

export const hasKeychain = process.platform === 'darwin';

// * What attempts leave behind in memory when they end. The collector looks at everything only when memory has
// doubled since it did so last; in a run of many attempts that is a good deal more than the run needs.

/** Collecting takes some 20 ms, in which nothing else is done: a fiftieth of what so many attempts take. */
export const endsEach = 150;

export class MemoryTidier {
  readonly #collect: () => void;
  #ends = 0;

  /** `collect` is the collector's; tests give one of their own. */
  constructor(collect: () => void = () => Bun.gc(true)) {
    this.#collect = collect;
  }

  noteEnd(): void {
    this.#ends += 1;
  }

  /** For a moment at which nothing waits for the runner. */
  tidy(): void {
    if (this.#ends < endsEach) return;
    this.#ends = 0;
    this.#collect();
  }
}
