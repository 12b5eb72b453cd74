/** The hooks of a worker, run as claude runs them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Hook {
  readonly event: string;
  readonly command: string;
  readonly args: readonly string[];
}

interface Settings {
  readonly hooks: Readonly<Record<string, readonly { readonly hooks: readonly Omit<Hook, 'event'>[] }[]>>;
}

type Environment = Readonly<Record<string, string>>;

/** By event, as the settings of a worker with this environment name them. */
export function hooksOf(env: Environment): Readonly<Record<string, readonly Hook[]>> {
  const text = readFileSync(join(env.CLAUDE_CONFIG_DIR ?? '', 'settings.json'), 'utf8');
  const { hooks } = JSON.parse(text) as Settings;
  return Object.fromEntries(
    Object.entries(hooks).map(([event, groups]) => [
      event,
      groups.flatMap((group) => group.hooks.map(({ command, args }) => ({ event, command, args }))),
    ]),
  );
}

interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export function runHook({ event, command, args }: Hook, worker: { cwd: string; env: Environment }): Ran {
  const { cwd, env } = worker;
  const ran = Bun.spawnSync([command, ...args], {
    cwd,
    env: { ...env, PATH: process.env.PATH ?? '', CLAUDE_PROJECT_DIR: cwd },
    stdin: Buffer.from(JSON.stringify({ hook_event_name: event, source: 'compact', cwd })),
    stdout: 'pipe',
    stderr: 'pipe',
  });
  return { code: ran.exitCode, stdout: ran.stdout.toString(), stderr: ran.stderr.toString() };
}
