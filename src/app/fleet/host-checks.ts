/** Checks the login of a host, and whether a Redis server suits a fleet. */
import { fail, ok, type Result } from '../../core/failure.ts';
import type { ChosenProgram } from '../../fleet/agent/context.ts';
import { readHost } from '../../fleet/fleet-files.ts';
import { environmentWith } from '../../fleet/login-files.ts';
import type { RedisHealth } from '../../fleet/redis.ts';
import type { AppContext } from '../app-context.ts';
import { probeLogin } from '../check/claude.ts';

/** Why sessions on this host cannot log in, as far as known without a request. */
export async function checkOwnLogin(
  { world, env }: Pick<AppContext, 'world' | 'env'>,
  root: string,
  claude: Result<ChosenProgram>,
): Promise<string | undefined> {
  const host = readHost(world.files, root);
  if (!claude.ok || !host.ok) return undefined;
  const paying = environmentWith(world.files, root, env, host.value?.login);
  const probed = paying.ok ? await probeLogin({ world, env: paying.value }, claude.value.program) : paying;
  return probed.ok ? undefined : probed.failure.message;
}

// A fleet needs a Redis that keeps all data when its memory is full and across a restart.

/** Older versions are no longer maintained. */
const oldest = '6.2';

export function checkRedis({ version, isAppendOnly, evictionPolicy }: RedisHealth): Result<void> {
  if (!Bun.semver.satisfies(version, `>=${oldest}`)) {
    const next = `Install Redis ${oldest} or later, or Valkey.`;
    return fail('usage', `Redis ${version} is too old for a fleet.`, next);
  }
  if (evictionPolicy !== 'noeviction') {
    const message = `This Redis would forget slots in use when it is full (maxmemory-policy ${evictionPolicy}).`;
    const next =
      'Set "maxmemory-policy noeviction" in redis.conf, or now: redis-cli CONFIG SET maxmemory-policy noeviction';
    return fail('usage', message, next);
  }
  if (isAppendOnly) return ok(undefined);
  const message = 'After a restart, this Redis would not know which slots are in use (appendonly no).';
  const next = 'Set "appendonly yes" in redis.conf, or now: redis-cli CONFIG SET appendonly yes';
  return fail('usage', message, next);
}
