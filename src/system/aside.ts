/** A process that nobody waits for: it goes on when this one ends, and has no terminal. */
import type { OwnCommand } from './own-program.ts';
import { helperMark, noteChild } from './processes/own-children.ts';

export interface Aside {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Throws what the system says when it cannot be started. */
export function startAside({ program, args: first }: OwnCommand, { args, cwd, env }: Aside): void {
  const stdio = ['ignore', 'ignore', 'ignore'] as const;
  const child = Bun.spawn([program, ...first, ...args], {
    cwd,
    env: { ...env, [helperMark]: '1' },
    stdio: [...stdio],
    detached: true,
  });
  noteChild(child);
  child.unref();
}
