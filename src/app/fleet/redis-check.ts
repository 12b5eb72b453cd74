/** Whether a Redis is what a fleet needs: it forgets nothing, not when it is full and not when it is started anew. */
import { fail, ok, type Result } from '../../core/failure.ts';
import type { RedisHealth } from '../../fleet/redis.ts';

/** BullMQ asks for it. */
const oldest = [6, 2] as const;

/** Fails with `usage` and the cure. */
export function checkRedis({ version, isAppendOnly, evictionPolicy }: RedisHealth): Result<void> {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < oldest[0] || (major === oldest[0] && minor < oldest[1])) {
    const next = `Install Redis ${oldest.join('.')} or later, or Valkey.`;
    return fail('usage', `Redis ${version} is too old for a fleet.`, next);
  }
  if (evictionPolicy !== 'noeviction') {
    const message = `This Redis would forget slots in use when it is full (maxmemory-policy ${evictionPolicy}).`;
    const next =
      'Set "maxmemory-policy noeviction" in redis.conf, or now: redis-cli CONFIG SET maxmemory-policy noeviction';
    return fail('usage', message, next);
  }
  if (isAppendOnly) return ok(undefined);
  const message = 'Started anew, this Redis would not know which slots are in use (appendonly no).';
  const next = 'Set "appendonly yes" in redis.conf, or now: redis-cli CONFIG SET appendonly yes';
  return fail('usage', message, next);
}

/**
 * What whoever runs Redis types once, for a user that can reach nothing but what belongs to the fleet: no other keys,
 * no other connections, and nothing of the server but what INFO says.
 */
export function aclLine(user: string, password: string): string {
  const commands = '+@all -@admin -@dangerous +info +client|setname';
  return `ACL SETUSER ${user} on >${password} resetkeys ~cca:* resetchannels &cca:* ${commands}`;
}
