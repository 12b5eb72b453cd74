/** Tries the claude that is installed, now; and what is remembered of its last trial. */

import { isAbsolute, join } from 'node:path';
import { workerEnvironment } from '../../claude/launch/environment.ts';
import { checkLogin, chooseLogin } from '../../claude/launch/login.ts';
import { findClaude } from '../../claude/launch/program.ts';
import { commandText, see } from '../../core/advice.ts';
import { ok, type Result } from '../../core/failure.ts';
import type { SessionDefinition } from '../../core/group.ts';
import { systemFailure } from '../../store/system-failure.ts';
import { type Claim, claims, type Seen, type Weight, weightFor } from '../claude-check/claims.ts';
import { TrialGate } from '../claude-check/gate.ts';
import { judgeTrial } from '../claude-check/judge.ts';
import { type Tried, trialOf } from '../claude-check/remembered.ts';
import { whileBusy } from '../live-runner.ts';
import type { Place } from '../place.ts';
import { onSignal } from '../signals.ts';
import { type Finding, finding, fine } from './finding.ts';

/** What came of one promise. */
export interface TrialRow extends Seen {
  readonly weight: Weight;
  readonly claim: Claim;
}

export interface Trial {
  readonly program: string;
  readonly tried: Tried;
  readonly rows: readonly TrialRow[];
  /** Whether a run would begin with it. */
  readonly judged: Result<unknown>;
}

/** Tries the claude that is found here now, whatever is remembered of it. */
export async function tryClaude(place: Place, root: string): Promise<Result<Trial | 'interrupted'>> {
  const { world, env, packageRoot } = place;
  const interruption = new AbortController();
  const unsubscribe = onSignal(world.clock, () => interruption.abort());
  const say = () => {};
  const gate = new TrialGate(world, { root, caller: env, packageRoot, say, stop: interruption.signal });
  const trial = await whileBusy(place, 'Trying claude at no cost', () => gate.again()).finally(unsubscribe);
  if (interruption.signal.aborted) return ok('interrupted');
  if (!trial.ok) return trial;
  const { program, tried } = trial.value;
  const login = chooseLogin(env).kind;
  return ok({ program, tried, rows: rowsOf(tried, login), judged: judgeTrial(tried, login, undefined) });
}

function rowsOf({ seen }: Tried, login: Parameters<typeof weightFor>[1]): TrialRow[] {
  return claims.flatMap((claim) => {
    const one = seen.find(({ id }) => id === claim.id);
    return one === undefined ? [] : [{ ...one, claim, weight: weightFor(claim, login) }];
  });
}

/** What the last trial of the claude that is installed has shown; nothing when there is no claude. */
export async function rememberedTrial({ world, env, packageRoot }: Place, root: string): Promise<Finding[]> {
  const found = findClaude(world, env, { packageRoot });
  if (!found.ok) return [];
  const check = 'trial';
  const tried = await trialOf(world, root, found.value.program, env);
  if (tried === undefined) {
    return [
      fine(
        check,
        `not tried here yet: the next run does it at no cost, and so does: ${commandText(['doctor', '--claude'])}`,
      ),
    ];
  }
  const { version, at } = tried;
  const login = chooseLogin(env).kind;
  const promises = rowsOf(tried, login);
  const held = promises.filter(({ verdict }) => verdict === 'holds').length;
  const message = `claude ${version}: ${held} of ${promises.length} promises held on ${at.slice(0, 10)}`;
  const judged = judgeTrial(tried, login, undefined);
  const wrong = promises.filter((row) => row.verdict !== 'holds' && row.weight !== 'none');
  if (wrong.length === 0) return [fine(check, message)];
  const names = wrong.map(({ id, verdict }) => `${id} ${verdict === 'broken' ? 'is broken' : 'was not seen'}`);
  const next = see('doctor', '--claude');
  return [finding(check, judged.ok ? 'warning' : 'broken', `${message}; ${names.join(', ')}`, next)];
}

// Whether claude is logged in, asked where no session is there yet.

/**
 * In an environment and a config dir like a worker's, since that is where it has to work, and in the folder of
 * `session` when there is one; but outside the data root, which may be one that can only be read. The value names the
 * login. Fails with `not-logged-in`, `claude-missing`, or with why a folder could not be made.
 */
export async function askLogin(
  { world, env }: Pick<Place, 'world' | 'env'>,
  program: string,
  session?: Pick<SessionDefinition, 'projectPath' | 'untrusted'>,
): Promise<Result<{ readonly source: string; readonly method: string }>> {
  const login = chooseLogin(env);
  const { TMPDIR = '' } = env;
  const folder = join(isAbsolute(TMPDIR) ? TMPDIR : '/tmp', `claude-code-agent-${world.random.uuid()}`);
  const [configDir, tmpDir] = [join(folder, 'claude-config'), join(folder, 'tmp')];
  try {
    world.files.makeFolder(configDir);
    world.files.makeFolder(tmpDir);
    const { projectPath = folder, untrusted } = session ?? {};
    const place = { attemptId: 'login-check', configDir, tmpDir, untrusted };
    const environment = workerEnvironment({ caller: env, ...place, login });
    const checked = await checkLogin(world, program, environment, projectPath);
    return checked.ok ? ok({ source: login.source, method: checked.value.method }) : checked;
  } catch (error) {
    return { ok: false, failure: systemFailure(folder, error) };
  } finally {
    world.files.remove(folder);
  }
}
