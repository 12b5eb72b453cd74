/** `host serve`: the agent of this machine, or its guard, until it is told to end. */
import type { Result } from '../../core/failure.ts';
import { startAside } from '../../system/aside.ts';
import { ownCommand } from '../../system/own-program.ts';
import type { Place } from '../place.ts';
import { onSignal } from '../signals.ts';

export interface ServeOptions {
  readonly isGuard: boolean;
  /** Of this program. */
  readonly version: string;
  readonly acceptClaude?: string | undefined;
}

/** Fails with `usage` where the machine belongs to no fleet, with `busy` where one runs already. */
export async function serveFleet(
  place: Place,
  root: string,
  { isGuard, version, acceptClaude }: ServeOptions,
): Promise<Result<void>> {
  const { world, env, packageRoot } = place;
  const tell = (line: string) => place.notes.line(line);
  let unsubscribe = (): void => {};
  let closeClaude = async (): Promise<void> => {};
  const told = {
    onSignal: (action: () => void) => {
      unsubscribe = onSignal(world.clock, action);
    },
  };
  try {
    if (isGuard) {
      const { serveGuard } = await import('../../fleet/agent/guard.ts');
      return await serveGuard(world, { root, tell, ...told });
    }
    const { serveHost } = await import('../../fleet/agent/serve.ts');
    const { hostClaude } = await import('./host-claude.ts');
    if (acceptClaude !== undefined) {
      const { acceptClaude: accept } = await import('./join.ts');
      const accepted = await accept(place, root, acceptClaude);
      if (!accepted.ok) return accepted;
    }
    const startGuard = () =>
      startAside(ownCommand('main', packageRoot), { args: ['host', 'serve', '--guard'], cwd: '/', env });
    const claude = hostClaude(place, root);
    closeClaude = claude.close;
    const checks = async () => {
      const { checkOwnHost } = await import('./host-checks.ts');
      return checkOwnHost(place, root, await claude.choose());
    };
    const own = {
      checks,
      root,
      callerEnv: env,
      packageRoot,
      version,
      claude: claude.choose,
      claudeVersion: claude.version,
    };
    return await serveHost(world, { ...own, startGuard, tell, ...told });
  } finally {
    unsubscribe();
    await closeClaude();
  }
}
