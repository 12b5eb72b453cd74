/** Programs outside of attempts: one that has the terminal for a while (editor, claude), or one that goes on alone. */

import type { OwnCommand } from './own-program.ts';
import { helperMark, noteChild } from './processes/own-children.ts';

export interface ForegroundOptions {
  readonly words: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface ForegroundProcess {
  /** Its exit code; null when a signal ended it. */
  readonly exited: Promise<number | null>;
  /** As the terminal does when it goes away: an editor keeps what was not saved. */
  hangUp(): void;
  /** Asks it to end, or (`isPatient` false) ends it. */
  end(isPatient: boolean): void;
}

export function runInForeground({ words, cwd, env }: ForegroundOptions): ForegroundProcess {
  const child = Bun.spawn([...words], {
    cwd,
    env: { ...env, [helperMark]: '1' },
    stdio: ['inherit', 'inherit', 'inherit'],
  });
  noteChild(child);
  return {
    exited: child.exited.then(() => child.exitCode),
    hangUp: () => child.kill('SIGHUP'),
    end: (isPatient) => child.kill(isPatient ? 'SIGTERM' : 'SIGKILL'),
  };
}

/** Alternate screen (without moving the cursor), mouse, pasted text in brackets, enhanced keys and colours off. */
const modesOff = ['[?1047l', '[?1000l', '[?1002l', '[?1003l', '[?1006l', '[?2004l', '[<u', '[0m', '[?25h']
  .map((sequence) => `\u001b${sequence}`)
  .join('');

/** Notes how the terminal is set; the returned function sets it so again after a program that was ended in it. */
export function keepTerminal(): () => void {
  const stty = (...args: string[]) => Bun.spawnSync(['stty', ...args], { stdio: ['inherit', 'pipe', 'ignore'] });
  let settings = '';
  try {
    settings = stty('-g').stdout.toString().trim();
  } catch {}
  return () => {
    process.stdout.write(modesOff);
    if (settings !== '') stty(settings);
  };
}

// A process without a waiting parent: it goes on when this one ends, and has no terminal.

export interface DetachedCommand {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Throws what the system says when it cannot be started. */
export function spawnDetached({ program, args: first }: OwnCommand, { args, cwd, env }: DetachedCommand): void {
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
