/** What a machine that works for others says of its git and logins to `doctor --hosts`: each is tried, at no cost. */
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { ChosenProgram } from '../../fleet/agent/context.ts';
import { readHost } from '../../fleet/fleet-files.ts';
import { environmentWith, loginNames } from '../../fleet/login-files.ts';
import type { RedisHealth } from '../../fleet/redis.ts';
import type { HostChecks } from '../../fleet/wire.ts';
import { runOwn } from '../../git/run-git.ts';
import type { AppContext } from '../app-context.ts';
import { askLogin } from '../check/claude.ts';

export async function checkOwnHost(
  place: Pick<AppContext, 'world' | 'env'>,
  root: string,
  claude: Result<ChosenProgram>,
): Promise<HostChecks> {
  // What claude says about a login can only be asked where there is one that may be used.
  const logins = claude.ok ? await tryLogins(place, root, claude.value.program) : [];
  return { git: await gitVersion(place), logins };
}

async function gitVersion({ world, env }: Pick<AppContext, 'world' | 'env'>): Promise<HostChecks['git']> {
  const version = await runOwn({ world, env }, '/', ['--version']);
  if (!version.ok) return { trouble: version.failure.message };
  return { version: version.value.trim().replace(/^git version /, '') };
}

async function tryLogins(
  { world, env }: Pick<AppContext, 'world' | 'env'>,
  root: string,
  program: string,
): Promise<HostChecks['logins']> {
  const host = readHost(world.files, root);
  const usesOwn = host.ok && host.value?.login === undefined;
  const names = [...(usesOwn ? [undefined] : []), ...loginNames(world.files, root)];
  const logins: HostChecks['logins'][number][] = [];
  for (const name of names) {
    const paying = environmentWith(world.files, root, env, name);
    const asked = paying.ok ? await askLogin({ world, env: paying.value }, program) : paying;
    const trouble = asked.ok ? {} : { trouble: asked.failure.message };
    logins.push({ ...defined({ name }), ...trouble });
  }
  return logins;
}

// Whether a Redis is what a fleet needs: it forgets nothing, not when it is full and not when it is started anew.

/** Older ones get no corrections any more. */
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
  const message = 'Started anew, this Redis would not know which slots are in use (appendonly no).';
  const next = 'Set "appendonly yes" in redis.conf, or now: redis-cli CONFIG SET appendonly yes';
  return fail('usage', message, next);
}

/** For a user of Redis that reaches only what belongs to the fleet, and of the server only what INFO reports. */
export function aclLine(password: string): string {
  const commands = '+@all -@admin -@dangerous +info +client|setname';
  return `ACL SETUSER cca on >${password} resetkeys ~cca:* resetchannels &cca:* ${commands}`;
}
