/** Whether claude is logged in, asked where no session is there yet. */
import { isAbsolute, join } from 'node:path';
import { workerEnvironment } from '../claude/launch/environment.ts';
import { checkLogin, chooseLogin } from '../claude/launch/login.ts';
import { ok, type Result } from '../core/failure.ts';
import type { SessionDefinition } from '../core/group.ts';
import { systemFailure } from '../store/system-failure.ts';
import type { Place } from './place.ts';

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
