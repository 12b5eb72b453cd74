/** A program that has the terminal for a while, such as an editor or a pager. */

export interface ForegroundOptions {
  /** Program and arguments. */
  readonly words: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface ForegroundProcess {
  /** Its exit code; null when a signal ended it. */
  readonly exited: Promise<number | null>;
  /** As the terminal does when it goes away: an editor keeps what was not saved. */
  hangUp(): void;
}

/** Throws when it cannot be started. */
export function runInForeground({ words, cwd, env }: ForegroundOptions): ForegroundProcess {
  const child = Bun.spawn([...words], { cwd, env: { ...env }, stdio: ['inherit', 'inherit', 'inherit'] });
  return {
    exited: child.exited.then(() => child.exitCode),
    hangUp: () => child.kill('SIGHUP'),
  };
}
