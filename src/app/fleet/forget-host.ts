/** `host forget`: removes a host from the fleet and records the amounts held for it as spent. */

import { join } from 'node:path';
import { commandText, shellWord } from '../../core/advice.ts';
import { ok, type Result } from '../../core/failure.ts';
import type { GroupId, SessionId } from '../../core/group.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import { Fence, readLeases } from '../../fleet/agent/guard.ts';
import { fleetPaths, readAdded, readHost, writeAdded } from '../../fleet/fleet-files.ts';
import type { FleetRedis } from '../../fleet/redis.ts';
import { slotsKey } from '../../fleet/redis.ts';
import * as registry from '../../fleet/registry.ts';
import { listGroups } from '../../store/group-store.ts';
import { groupPaths } from '../../store/paths.ts';
import { delay } from '../../system/clock.ts';
import type { AppContext } from '../app-context.ts';
import { submit } from '../group-commands.ts';
import { isRun } from '../live-runner.ts';
import { loadReferredGroup } from '../resolve.ts';
import { stopAgent } from './agent-service.ts';
import { fleetHosts, isLost, knownFleet, unknownHost, withRedis } from './init.ts';
import { runBySsh } from './ssh.ts';

export interface ToForget {
  readonly name: string;
  readonly isHere: boolean;
  readonly ssh: string | undefined;
  readonly used: number | undefined;
}

/** Fails with `not-found` for an unknown name. */
export async function lookAtHost(context: AppContext, root: string, name: string): Promise<Result<ToForget>> {
  const { world } = context;
  const own = readHost(world.files, root);
  if (!own.ok) return own;
  if (own.value?.name === name) {
    const used = world.files.list(fleetPaths(root).slots).length;
    return ok({ name, isHere: true, ssh: undefined, used });
  }
  const added = readAdded(world.files, root);
  if (!added.ok) return added;
  const ssh = added.value[name]?.ssh;
  const hosts = await fleetHosts(context, root);
  if (!hosts.ok) return hosts;
  const host = hosts.value.find((one) => one.name === name);
  if (host === undefined && ssh === undefined) return unknownHost(name, hosts.value);
  return ok({ name, isHere: false, ssh, used: host === undefined || isLost(host) ? undefined : host.used });
}

/** Work of a drained host that is unfinished or not fetched yet. */
export interface OpenWork {
  readonly sessions: number;
  /** Groups of this data folder that have no runner to fetch the work. */
  readonly withoutRunner: readonly GroupId[];
}

/** Drains the host and waits until all its work was fetched, or the host is lost. An interruption leaves it drained. */
export async function finishWork(
  context: AppContext,
  root: string,
  { name, isHere }: ToForget,
  say: (open: OpenWork) => void,
): Promise<Result<void>> {
  const { world } = context;
  const own = readHost(world.files, root);
  const config = isHere && own.ok && own.value !== undefined ? ok(own.value) : knownFleet(context, root);
  if (!config.ok) return config;
  return withRedis(world, config.value, async (redis) => {
    const drained = await registry.drainHost(redis, name);
    if (!drained.ok) return drained;
    let open: readonly GroupId[] = openGroups(context, root, name);
    for (;;) {
      const used = await usedSlots(redis, name);
      if (!used.ok) return used;
      if (used.value === null) return ok(undefined);
      const kept = isHere ? world.files.list(fleetPaths(root).slots).length : 0;
      open = openGroups(context, root, name, open);
      if (used.value + kept + open.length === 0) open = openGroups(context, root, name);
      const sessions = Math.max(used.value, kept, open.length);
      if (sessions === 0) return ok(undefined);
      say({ sessions, withoutRunner: open.filter((id) => !isRun(world, groupPaths(root, id))) });
      await delay(world.clock, lookMs);
    }
  });
}

/** Null if the host is lost or unknown, so that waiting is pointless. */
async function usedSlots(redis: FleetRedis, name: string): Promise<Result<number | null>> {
  const hosts = await registry.listHosts(redis);
  if (!hosts.ok) return hosts;
  const host = hosts.value.find((one) => one.name === name);
  if (host === undefined || isLost(host)) return ok(null);
  // A runner may have leased a slot before its order reaches the host.
  const leases = await redis.ask((client) => client.zcount(slotsKey(name), host.seenAt + host.silentMs, '+inf'));
  return leases.ok ? ok(Math.max(host.used, leases.value)) : leases;
}

/** Groups with an attempt on the host, or with the cost of a lost one. */
function openGroups(context: AppContext, root: string, host: string, among?: readonly GroupId[]): GroupId[] {
  const ids = among ?? listGroups(context.world, root).map(({ id }) => id);
  return ids.filter((id) =>
    sessionsOf(context, id).some((record) => {
      const { state } = record;
      return (state.status === 'running' && state.attempt.place?.host === host) || holdsFor(record, host);
    }),
  );
}

function sessionsOf(context: AppContext, id: GroupId): SessionRecord[] {
  const group = loadReferredGroup(context, id);
  return group.ok ? [...group.value.state.sessions.values()] : [];
}

function holdsFor({ lost = [] }: SessionRecord, host: string): boolean {
  return lost.some(({ attempt, usage }) => attempt.place?.host === host && usage.heldUsd !== undefined);
}

const staying: readonly string[] = ['fleet.json', 'added.json', 'logins'];

export async function leaveFleet(context: AppContext, root: string): Promise<Result<undefined>> {
  const { world } = context;
  const paths = fleetPaths(root);
  const host = readHost(world.files, root);
  const working = readLeases(world, paths);
  const { value: config } = host.ok ? host : { value: undefined };
  if (config !== undefined) await withRedis(world, config, (redis) => registry.drainHost(redis, config.name));
  const fence = new Fence(world, paths, (line) => context.notes.line(line));
  await Promise.all(working.map((lease) => fence.end(lease)));
  // While the agent runs, runners can still fetch work and cost.
  for (let waitedMs = 0; waitedMs < handOverMs && working.length > 0; waitedMs += lookMs) {
    if (world.files.list(paths.slots).length === 0) break;
    await delay(world.clock, lookMs);
  }
  const stopped = await stopAgent(context, root);
  if (!stopped.ok) return stopped;
  // If Redis does not answer, the fleet will treat this host as lost.
  if (config !== undefined) await withRedis(world, config, (redis) => registry.forgetHost(redis, config.name));
  for (const name of world.files.list(paths.folder)) {
    if (!staying.includes(name)) world.files.remove(join(paths.folder, name));
  }
  return ok(undefined);
}

const lookMs = 1_000;
const handOverMs = 30_000;
const undoMs = 120_000;

/** Returns a sentence if something could not be removed from the host, or if the host returns. */
export async function removeHost(
  context: AppContext,
  root: string,
  { name, used }: ToForget,
): Promise<Result<string | undefined>> {
  const { world } = context;
  const added = readAdded(world.files, root);
  if (!added.ok) return added;
  const { [name]: known, ...others } = added.value;
  const undone = known === undefined ? ok(undefined) : await undoThere(context, name, known);
  const fleet = knownFleet(context, root);
  if (!fleet.ok) return fleet;
  const dropped = await withRedis(world, fleet.value, (redis) => registry.forgetHost(redis, name));
  if (!dropped.ok) return dropped;
  if (known !== undefined) {
    const written = writeAdded(world.files, root, others);
    if (!written.ok) return written;
  }
  if (known === undefined && used !== undefined) {
    const leave = commandText(['host', 'forget', name]);
    return ok(`${name} joined by itself and returns while its agent runs. Remove it on that host with: ${leave}`);
  }
  return ok(undone.ok ? undefined : undone.failure.message);
}

async function undoThere(
  context: AppContext,
  name: string,
  { ssh, program, login }: { readonly ssh: string; readonly program: string; readonly login?: string | undefined },
): Promise<Result<unknown>> {
  const at = shellWord(program);
  const env = login === undefined ? '' : shellWord(login);
  const leave = [`${at}/bin/claude-code-agent`, 'host', 'forget', shellWord(name), '--yes', '--now'].join(' ');
  const script = `set -e
if [ -x ${at}/bin/claude-code-agent ]; then ${leave} || [ ! -e "$root/fleet/host.json" ]; fi
${login === undefined ? '' : `rm -f "$root/fleet/logins/"${env}.env`}
rm -rf ${at} ${at}-*`;
  const root = `root="\${CLAUDE_CODE_AGENT_HOME:-$HOME/.local/claude-code-agent}"\n`;
  const next = 'Undo it on that host.';
  return runBySsh(context, ssh, { script: `${root}${script}`, next, timeoutMs: undoMs });
}

// Amounts held for sessions of a lost host.

export interface HeldGroup {
  readonly groupId: GroupId;
  readonly sessionId: SessionId;
  readonly usd: number;
}

export function heldBy(context: AppContext, root: string, host: string): HeldGroup[] {
  return listGroups(context.world, root).flatMap(({ id }) => {
    const held = sessionsOf(context, id).filter((record) => holdsFor(record, host));
    return held.map(({ definition, usage: { heldUsd = 0 } }) => ({
      ...{ groupId: id, sessionId: definition.id, usd: heldUsd },
    }));
  });
}

export async function bookHeld(context: AppContext, { groupId, sessionId }: HeldGroup): Promise<Result<unknown>> {
  const group = loadReferredGroup(context, groupId);
  if (!group.ok) return group;
  return submit(context, group.value, { kind: 'settle-cost', sessionId, isSpent: true });
}
