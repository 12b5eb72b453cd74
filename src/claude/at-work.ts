/** The current activity of a session: a turn, tool calls, background tasks, and the number of sub-agents. */
import type { BackgroundTask } from './messages.ts';

export interface OpenTool {
  readonly name: string;
  readonly target: string;
}

export interface AtWork {
  /** From the start of a turn to its result, and on to the next one if tasks were running then. */
  isAtWork: boolean;
  inTurn: boolean;
  /** Sub-agents and background commands; true for a sub-agent. */
  readonly openTasks: Map<string, boolean>;
  /** Those in the last list of background tasks. */
  backgroundTasks: ReadonlySet<string>;
  readonly openTools: Map<string, OpenTool>;
}

/** More open calls than any model makes; further ones of a broken stream are ignored. */
export const maxOpen = 1000;

export function emptyActivity(): AtWork {
  return { isAtWork: false, inTurn: false, openTasks: new Map(), backgroundTasks: new Set(), openTools: new Map() };
}

export function noteTurnBegin(s: AtWork): void {
  s.isAtWork = true;
  s.inTurn = true;
}

/** Interrupted calls never get an answer. Sub-agents may continue. */
export function noteTurnEnd(s: AtWork): void {
  s.openTools.clear();
  s.isAtWork = s.openTasks.size > 0;
  s.inTurn = false;
}

/** A foreground sub-agent may have no task of its own, but its call is open. */
export function runningAgents({ openTasks, openTools }: AtWork): number {
  const tasks = openTasks.values().filter((isAgent) => isAgent);
  const calls = openTools.values().filter(({ name }) => name === 'Agent' || name === 'Task');
  return Math.max([...tasks].length, [...calls].length);
}

export function beginTask({ openTasks }: AtWork, { id, isAgent }: BackgroundTask): void {
  if (openTasks.size < maxOpen) openTasks.set(id, isAgent);
}

export function endTask({ openTasks }: AtWork, id: string): void {
  openTasks.delete(id);
}

/** A task missing from the list has ended. The list does not contain foreground tasks. */
export function foldBackground(s: AtWork, tasks: readonly BackgroundTask[]): void {
  const now = tasks.slice(0, maxOpen);
  const ids = new Set(now.map(({ id }) => id));
  for (const id of s.backgroundTasks) if (!ids.has(id)) endTask(s, id);
  for (const task of now) beginTask(s, task);
  s.backgroundTasks = ids;
}
