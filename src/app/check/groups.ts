/** `doctor`: finds damaged and interrupted groups, stale locks and orphans. */

import { attemptMark } from '../../claude/launch/environment.ts';
import { advise, shellWord } from '../../core/advice.ts';
import type { GroupEvent } from '../../core/event.ts';
import type { Failure } from '../../core/failure.ts';
import type { GroupId } from '../../core/group.ts';
import { needsQuotes } from '../../core/id.ts';
import { runCommand } from '../../core/plan/advice.ts';
import { readLog } from '../../store/event-log.ts';
import { foldLog, groupIds, isGroupGone, leftovers } from '../../store/group-store.ts';
import { type GroupPaths, groupPaths } from '../../store/paths.ts';
import type { World } from '../../system/world.ts';
import { plural } from '../../view/format.ts';
import { damagedLeftovers } from '../leftovers.ts';
import { liveRunner, suspendedRunner, suspendedSentence } from '../live-runner.ts';
import { tryPath } from '../path-argument.ts';
import { type Finding, finding, fine } from './machine.ts';

/** Each attempt costs a scan of all processes, so only the latest are checked. */
const attemptsMax = 200;
const permissions = 'Check the permissions of its folder and of the files in it.';

export function checkGroups(world: World, root: string): Finding[] {
  const ids = groupIds(world, root);
  const ended: EndedAttempt[] = [];
  const findings = ids.flatMap((id) => {
    const checked = tryPath(() => checkGroup(world, root, id));
    if (!checked.ok) return [finding('group', 'broken', `${id} ${checked.trouble}.`, permissions)];
    ended.push(...checked.value.ended);
    return checked.value.findings;
  });
  findings.push(...leftovers(world, root).map(cutShort), ...checkOrphans(world, ended));
  return findings.length > 0 ? findings : [fine('groups', `${plural(ids.length, 'group')}, nothing left behind`)];
}

interface EndedAttempt {
  readonly id: string;
  readonly at: string;
  readonly groupId: GroupId;
}

/** Reads the log, because snapshots may be older after a runner was killed. */
function checkGroup(world: World, root: string, id: GroupId): { findings: Finding[]; ended: EndedAttempt[] } {
  const paths = groupPaths(root, id);
  const findings = checkHalted(world, id, paths);
  const log = readLog(world, paths.events);
  const state = log.ok ? foldLog(paths.events, id, log.value) : log;
  if (!state.ok && isGroupGone(world, paths)) return { findings: [], ended: [] };
  if (!state.ok) {
    findings.push(unreadable(id, state.failure), ...checkDamaged(world, id, paths));
  } else if (state.value.status === 'running' && liveRunner(world, { paths }) === null) {
    const message = `${id} was interrupted: no runner is alive.`;
    findings.push(finding('group', 'warning', message, advise('Continue with', runCommand(state.value))));
  }
  return { findings, ended: log.ok ? endedAttempts(log.value) : [] };
}

function cutShort(path: string): Finding {
  const message = `${path} is the rest of a group whose creation or deletion was interrupted.`;
  const next = 'Creating or deleting any group removes it';
  // A path with invisible characters is shown differently, so it cannot be pasted.
  const command = needsQuotes(path) ? '.' : `, and so does: rm -rf ${shellWord(path)}`;
  return finding('group', 'warning', message, `${next}${command}`);
}

/** Orphaned workers of a damaged group still spend money. */
function checkDamaged(world: World, id: GroupId, paths: GroupPaths): Finding[] {
  if (liveRunner(world, { paths }) !== null) return [];
  const pids = [...damagedLeftovers(world, paths).values()].flat().map(({ pid }) => pid);
  if (pids.length === 0) return [];
  const message = `Processes of sessions of ${id} are running without a runner: ${[...new Set(pids)].join(', ')}.`;
  return [finding('orphan', 'broken', message, advise('End them with', ['stop', '--all']))];
}

function unreadable(id: GroupId, { reason, message, next }: Failure): Finding {
  if (reason === 'older-version' || reason === 'newer-version') return finding('group', 'warning', message, next);
  return finding('group', 'broken', `${id} is damaged: ${message}`, next);
}

function checkHalted(world: World, groupId: GroupId, paths: GroupPaths): Finding[] {
  const halted = suspendedRunner(world, paths);
  if (halted === null) return [];
  const { message, advice } = suspendedSentence(groupId, halted);
  return [finding('lock', 'warning', message, advice)];
}

function endedAttempts(events: readonly GroupEvent[]): EndedAttempt[] {
  return events.flatMap((event) => {
    const isEnd =
      event.type === 'session_completed' || event.type === 'session_failed' || event.type === 'session_paused';
    return isEnd ? [{ id: event.attemptId, at: event.at, groupId: event.groupId }] : [];
  });
}

/** Processes with the mark or in the control group of an ended attempt. */
function checkOrphans({ processes }: World, ended: readonly EndedAttempt[]): Finding[] {
  const latest = [...ended].sort((a, b) => b.at.localeCompare(a.at)).slice(0, attemptsMax);
  return latest.flatMap(({ id, groupId }) => {
    const found = [...processes.findMarked(attemptMark, id), ...processes.findContained(id)];
    const pids = [...new Set(found.map(({ pid }) => pid))];
    // Remove empty control groups.
    if (pids.length === 0) processes.endContained(id);
    if (pids.length === 0) return [];
    const message = `An ended session of ${groupId} left processes behind: ${pids.join(', ')}.`;
    return [finding('orphan', 'broken', message, `Check them, then end them with: kill ${pids.join(' ')}`)];
  });
}
