/** `host serve`: runs the agent of this host, or its guard, until a signal. */

import { shellWord } from '../../core/advice.ts';
import type { Result } from '../../core/failure.ts';
import type { ChosenProgram } from '../../fleet/agent/context.ts';
import { fleetPaths, readHost } from '../../fleet/fleet-files.ts';
import { environmentWith } from '../../fleet/login-files.ts';
import { launcherIn, ownCommand } from '../../system/own-program.ts';
import { spawnDetached } from '../../system/terminal.ts';
import type { AppContext } from '../app-context.ts';
import { CheckGate, type ClaudeCheckOptions } from '../claude-check/gate.ts';
import { onSignal } from '../signals.ts';
import { restartedVariable, spawnAgent } from './agent-service.ts';

export interface HostServeOptions {
  readonly isGuard: boolean;
  readonly version: string;
}

/** Fails with `usage` if the host is not in a fleet, and with `busy` if an agent is already running. */
export async function serveFleet(
  context: AppContext,
  root: string,
  { isGuard, version }: HostServeOptions,
): Promise<Result<void>> {
  const { world, env, packageRoot } = context;
  const tell = (line: string) => context.notes.line(line);
  let unsubscribe = (): void => {};
  let closeClaude = async (): Promise<void> => {};
  const callbacks = {
    onSignal: (action: () => void) => {
      unsubscribe = onSignal(world.clock, action);
    },
  };
  try {
    if (isGuard) {
      const { serveGuard } = await import('../../fleet/agent/guard.ts');
      const next = [launcherIn(packageRoot), 'host', 'serve', '--guard'].map(shellWord).join(' ');
      const startShell = (script: string, variables: Readonly<Record<string, string>>) => {
        const given = { ...env, ...variables, CCA_NEXT_GUARD: next };
        spawnDetached({ program: 'sh', args: ['-c', script] }, { args: [], cwd: '/', env: given });
      };
      const startAgent = () => void spawnAgent(context, root);
      const again = env[restartedVariable] === undefined ? {} : { startAgent };
      return await serveGuard(world, { root, tell, startShell, ...again, ...callbacks });
    }
    const { serveHost } = await import('../../fleet/agent/serve.ts');
    const startGuard = () =>
      spawnDetached(ownCommand('main', packageRoot), { args: ['host', 'serve', '--guard'], cwd: '/', env });
    const claude = hostClaude(context, root);
    closeClaude = claude.close;
    const checkLogin = async () => {
      const { checkOwnLogin } = await import('./host-checks.ts');
      return checkOwnLogin(context, root, await claude.choose());
    };
    const own = {
      checkLogin,
      root,
      callerEnv: env,
      packageRoot,
      version,
      claude: claude.choose,
      claudeVersion: claude.version,
    };
    return await serveHost(world, { ...own, startGuard, tell, ...callbacks });
  } finally {
    unsubscribe();
    await closeClaude();
  }
}

// The claude of a host, checked like that of a local run, repeatedly.

/** A refused claude is looked at again after this time; a check that could not be made takes seconds. */
const againMs = 60_000;

export function hostClaude(context: AppContext, root: string, check?: ClaudeCheckOptions['check']) {
  const { world, env, packageRoot, notes } = context;
  const host = readHost(world.files, root);
  const paying = environmentWith(world.files, root, env, host.ok ? host.value?.login : undefined);
  // Each session reports an unreadable login itself.
  const caller = paying.ok ? paying.value : env;
  const gate = new CheckGate({ world, env: caller, packageRoot, notes }, { root: fleetPaths(root).folder, check });
  let refused: { readonly atMs: number; readonly answer: Result<never> } | null = null;
  const choose = async (): Promise<Result<ChosenProgram>> => {
    const nowMs = world.clock.now();
    if (refused !== null && Math.abs(nowMs - refused.atMs) < againMs) return refused.answer;
    const admitted = await gate.choose(host.ok ? host.value?.acceptClaude : undefined);
    const isRefused = !admitted.ok && admitted.failure.reason === 'claude-unproven';
    refused = isRefused ? { atMs: nowMs, answer: admitted } : null;
    return admitted;
  };
  const version = async (): Promise<string> => {
    const there = await gate.version();
    return there.ok ? there.value : '';
  };
  return { choose, version, close: () => gate.close() };
}
