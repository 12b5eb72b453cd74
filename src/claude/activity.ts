/** What claude is doing: the turn, open tool calls, background tasks and sub-agents. */
import type { BackgroundTask } from './messages.ts';

export interface OpenTool {
  readonly name: string;
  readonly target: string;
}

export interface Activity {
  /** A turn is running, or background tasks may start the next one. */
  isAtWork: boolean;
  inTurn: boolean;
  /** Sub-agents and background commands; true for a sub-agent. */
  readonly openTasks: Map<string, boolean>;
  /** Ids in the last list of background tasks. */
  backgroundTasks: ReadonlySet<string>;
  readonly openTools: Map<string, OpenTool>;
}

/** Bounds memory; further calls are ignored. */
export const maxOpen = 1000;

export function emptyActivity(): Activity {
  return { isAtWork: false, inTurn: false, openTasks: new Map(), backgroundTasks: new Set(), openTools: new Map() };
}

export function noteTurnBegin(s: Activity): void {
  s.isAtWork = true;
  s.inTurn = true;
}

/** Interrupted calls get no result. Sub-agents may continue. */
export function noteTurnEnd(s: Activity): void {
  s.openTools.clear();
  s.isAtWork = s.openTasks.size > 0;
  s.inTurn = false;
}

/** A foreground sub-agent may have no task of its own, but its call is open. */
export function runningAgents({ openTasks, openTools }: Activity): number {
  const tasks = openTasks.values().filter((isAgent) => isAgent);
  const calls = openTools.values().filter(({ name }) => name === 'Agent' || name === 'Task');
  return Math.max([...tasks].length, [...calls].length);
}

export function beginTask({ openTasks }: Activity, { id, isAgent }: BackgroundTask): void {
  if (openTasks.size < maxOpen) openTasks.set(id, isAgent);
}

export function endTask({ openTasks }: Activity, id: string): void {
  openTasks.delete(id);
}

/** A task missing from the list has ended. The list does not contain foreground tasks. */
export function foldBackground(s: Activity, tasks: readonly BackgroundTask[]): void {
  const now = tasks.slice(0, maxOpen);
  const ids = new Set(now.map(({ id }) => id));
  for (const id of s.backgroundTasks) if (!ids.has(id)) endTask(s, id);
  for (const task of now) beginTask(s, task);
  s.backgroundTasks = ids;
}
