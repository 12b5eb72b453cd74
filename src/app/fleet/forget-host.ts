/** `host forget`: a machine is no part of the fleet any more, and what it may have spent is booked. */

import { join } from 'node:path';
import { shellWord } from '../../core/advice.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { GroupId, SessionId } from '../../core/group.ts';
import { type AttemptLease, readLeases } from '../../fleet/agent/lease-file.ts';
import { type FleetPaths, fleetPaths, readAdded, readHost, writeAdded } from '../../fleet/fleet-files.ts';
import { forgetHost } from '../../fleet/registry.ts';
import { groupPaths, sessionPaths } from '../../store/paths.ts';
import type { AttemptSubject } from '../../worker/host.ts';
import { LocalAttempt } from '../../worker/local-attempt.ts';
import type { AppContext } from '../app-context.ts';
import { listGroups } from '../groups.ts';
import { loadReferredGroup } from '../resolve.ts';
import { submit } from '../submit.ts';
import { stopAgent } from './agent-service.ts';
import { dropHost, fleetHosts, isLost, unknownHost } from './hosts.ts';
import { withRedis } from './init.ts';
import { lastLine, SshTarget } from './ssh.ts';

export interface ToForget {
  readonly name: string;
  readonly isHere: boolean;
  readonly ssh: string | undefined;
  readonly used: number | undefined;
}

/** Fails with `not-found` when neither this machine nor the fleet knows the name. */
export async function lookAtHost(place: AppContext, root: string, name: string): Promise<Result<ToForget>> {
  const { world } = place;
  const own = readHost(world.files, root);
  if (!own.ok) return own;
  if (own.value?.name === name) {
    const used = world.files.list(fleetPaths(root).slots).length;
    return ok({ name, isHere: true, ssh: undefined, used });
  }
  const added = readAdded(world.files, root);
  if (!added.ok) return added;
  const ssh = added.value[name]?.ssh;
  const hosts = await fleetHosts(place, root);
  if (!hosts.ok) return hosts;
  const host = hosts.value.find((one) => one.name === name);
  if (host === undefined && ssh === undefined) return unknownHost(name, hosts.value);
  return ok({ name, isHere: false, ssh, used: host === undefined || isLost(host) ? undefined : host.used });
}

const staying: readonly string[] = ['fleet.json', 'added.json', 'logins'];

export async function leaveFleet(place: AppContext, root: string): Promise<Result<undefined>> {
  const { world } = place;
  const paths = fleetPaths(root);
  const host = readHost(world.files, root);
  const working = readLeases(world, paths);
  const stopped = await stopAgent(place, root);
  if (!stopped.ok) return stopped;
  for (const lease of working) await new LocalAttempt(world, subjectOf(paths, lease)).endNow();
  const { value: config } = host.ok ? host : { value: undefined };
  // Where Redis does not answer, the fleet hears nothing of this machine any more and takes it for lost.
  if (config !== undefined) await withRedis(world, config, (redis) => forgetHost(redis, config.name));
  for (const name of world.files.list(paths.folder)) {
    if (!staying.includes(name)) world.files.remove(join(paths.folder, name));
  }
  return ok(undefined);
}

function subjectOf({ work }: FleetPaths, { attemptId, groupId, sessionId }: AttemptLease): AttemptSubject {
  const id = sessionId as SessionId;
  return { attemptId, sessionId: id, paths: sessionPaths(groupPaths(work, groupId as GroupId), id) };
}

const undoMs = 120_000;

/** The value: what could not be undone there. */
export async function removeHost(
  place: AppContext,
  root: string,
  { name }: ToForget,
): Promise<Result<string | undefined>> {
  const { world } = place;
  const added = readAdded(world.files, root);
  if (!added.ok) return added;
  const { [name]: known, ...others } = added.value;
  const undone = known === undefined ? ok(undefined) : await undoThere(place, name, known);
  const dropped = await dropHost(place, root, name);
  if (!dropped.ok) return dropped;
  if (known !== undefined) {
    const written = writeAdded(world.files, root, others);
    if (!written.ok) return written;
  }
  return ok(undone.ok ? undefined : undone.failure.message);
}

async function undoThere(
  place: AppContext,
  name: string,
  { ssh, program, login }: { readonly ssh: string; readonly program: string; readonly login?: string | undefined },
): Promise<Result<void>> {
  const at = shellWord(program);
  const env = login === undefined ? '' : shellWord(login);
  const leave = [`${at}/bin/claude-code-agent`, 'host', 'forget', shellWord(name), '--yes'].join(' ');
  const script = `set -e
if [ -x ${at}/bin/claude-code-agent ]; then ${leave} || [ ! -e "$root/fleet/host.json" ]; fi
${login === undefined ? '' : `rm -f "$root/fleet/logins/"${env}.env`}
rm -rf ${at} ${at}-*`;
  const root = `root="\${CLAUDE_CODE_AGENT_HOME:-$HOME/.local/claude-code-agent}"\n`;
  const ran = await new SshTarget(place, ssh).run(`${root}${script}`, undefined, undoMs);
  if (!ran.ok) return ran;
  if (ran.value.code === 0) return ok(undefined);
  return fail('usage', `On ${ssh}: ${lastLine(ran.value.stderr)}.`, 'Undo it there by hand.');
}

// Money that is held for sessions of a machine that was lost: what they may have cost besides what is known.

export interface HeldGroup {
  readonly groupId: GroupId;
  readonly sessionId: SessionId;
  readonly usd: number;
}

export function heldBy(place: AppContext, root: string, host: string): HeldGroup[] {
  return listGroups(place.world, root).flatMap(({ id, meta }) => {
    // Most groups hold nothing, which their snapshots say.
    if (meta === undefined) return [];
    const group = loadReferredGroup(place, id);
    if (!group.ok) return [];
    const { sessions } = group.value.state;
    return [...sessions.values()].flatMap((record) => {
      const isThere = record.lost?.some(({ attempt }) => attempt.place?.host === host) === true;
      const usd = record.usage.heldUsd ?? 0;
      return isThere && usd > 0 ? [{ groupId: id, sessionId: record.definition.id, usd }] : [];
    });
  });
}

export async function bookHeld(place: AppContext, { groupId, sessionId }: HeldGroup): Promise<Result<unknown>> {
  const group = loadReferredGroup(place, groupId);
  if (!group.ok) return group;
  return submit(place, group.value, { kind: 'settle-cost', sessionId, isSpent: true });
}
