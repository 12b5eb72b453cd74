/** A group is deleted: the machines of the fleet end what still works of it, and keep nothing of it. */
import { ok, type Result } from '../../core/failure.ts';
import type { GroupId } from '../../core/group.ts';
import { toHostStream } from '../../fleet/engine.ts';
import { readFleet } from '../../fleet/fleet-files.ts';
import { listHosts } from '../../fleet/registry.ts';
import { Signer } from '../../fleet/seal.ts';
import type { ToHost } from '../../fleet/wire.ts';
import type { Place } from '../place.ts';
import { withRedis } from './init.ts';

/** Those that are lost hear of it when they are back. Fails when there is no fleet any more, or its Redis is silent. */
export async function forgetGroupElsewhere(
  { world, env }: Pick<Place, 'world' | 'env'>,
  root: string,
  groupId: GroupId,
): Promise<Result<void>> {
  const fleet = readFleet(world.files, root, env.CLAUDE_CODE_AGENT_FLEET);
  if (!fleet.ok) return fleet;
  const config = fleet.value;
  if (config === undefined) return ok(undefined);
  const signer = new Signer(config.signingKey);
  const message = JSON.stringify({ kind: 'forget', groupId } satisfies ToHost);
  return withRedis(world, config, async (redis) => {
    const hosts = await listHosts(redis);
    if (!hosts.ok) return hosts;
    for (const stream of hosts.value.map(({ name }) => toHostStream(name))) {
      const sent = await redis.send(stream, [signer.sign(stream, message)]);
      if (!sent.ok) return sent;
    }
    return ok(undefined);
  });
}
