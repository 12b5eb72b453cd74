/** `doctor`: checks the installed claude now, and reports what its last check found. */

import { isAbsolute, join } from 'node:path';
import { workerEnvironment } from '../../claude/launch/environment.ts';
import { checkLogin } from '../../claude/launch/login.ts';
import { findClaude } from '../../claude/launch/program.ts';
import { loginOf } from '../../claude/launch/user-claude.ts';
import { commandText, see } from '../../core/advice.ts';
import { ok, type Result } from '../../core/failure.ts';
import type { SessionDefinition } from '../../core/group.ts';
import { systemFailure } from '../../store/system-failure.ts';
import type { AppContext } from '../app-context.ts';
import { judgeCheck, withResults } from '../claude-check/checks.ts';
import { type CheckedClaude, CheckGate, lastCheckOf } from '../claude-check/gate.ts';
import { whileBusy } from '../live-runner.ts';
import { onSignal } from '../signals.ts';
import { type Finding, finding, fine } from './finding.ts';

export async function checkClaudeNow(
  context: AppContext,
  root: string,
): Promise<Result<CheckedClaude | 'interrupted'>> {
  const gate = new CheckGate(context, { root, isQuiet: true });
  const unsubscribe = onSignal(context.world.clock, () => gate.interrupt());
  const checked = await whileBusy(context, 'Checking claude at no cost', () => gate.again()).finally(unsubscribe);
  return gate.isInterrupted ? ok('interrupted') : checked;
}

export async function rememberedCheck(context: AppContext, root: string): Promise<Finding[]> {
  const { world, env, packageRoot } = context;
  const found = findClaude(world, env, { packageRoot });
  if (!found.ok) return [];
  const name = 'compat';
  const checked = await lastCheckOf(context, root, found.value.program);
  if (checked === undefined) {
    const now = commandText(['doctor', '--claude']);
    return [fine(name, `not checked yet. The next run checks it at no cost. Check it now with: ${now}`)];
  }
  const { version, at } = checked;
  const results = withResults(checked.results);
  const failed = results.filter(({ verdict }) => verdict !== 'holds');
  const passed = `${results.length - failed.length} of ${results.length} checks passed`;
  const message = `claude ${version}: ${passed} on ${at.slice(0, 10)}`;
  if (failed.length === 0) return [fine(name, message)];
  const names = failed.map(({ id, verdict }) => `${id} is ${verdict}`).join(', ');
  const level = judgeCheck(checked, undefined).ok ? 'warning' : 'broken';
  return [finding(name, level, `${message}; ${names}`, see('doctor', '--claude'))];
}

/** Checks the login as a worker would, outside the data folder, which may be read-only. */
export async function probeLogin(
  { world, env }: Pick<AppContext, 'world' | 'env'>,
  program: string,
  session?: Pick<SessionDefinition, 'projectPath' | 'untrusted'>,
): Promise<Result<{ readonly source: string; readonly method: string }>> {
  const { login, caller } = loginOf(world, env);
  // claude assumes that a helper works; only a request shows whether it does.
  if (login.kind === 'helper') return ok({ source: login.source, method: 'api_key_helper' });
  const { TMPDIR = '' } = env;
  const folder = join(isAbsolute(TMPDIR) ? TMPDIR : '/tmp', `claude-code-agent-${world.random.uuid()}`);
  const [configDir, tmpDir] = [join(folder, 'claude-config'), join(folder, 'tmp')];
  try {
    world.files.makeFolder(configDir);
    world.files.makeFolder(tmpDir);
    const { projectPath = folder, untrusted } = session ?? {};
    const launch = { attemptId: 'login-check', configDir, tmpDir, untrusted };
    const environment = workerEnvironment({ caller, ...launch, login });
    const checked = await checkLogin(world, program, environment, projectPath);
    return checked.ok ? ok({ source: login.source, method: checked.value.method }) : checked;
  } catch (error) {
    return { ok: false, failure: systemFailure(folder, error) };
  } finally {
    world.files.remove(folder);
  }
}
