/** claude's own task list, from results of TaskCreate, TaskUpdate and TaskList in one attempt. */
import type { TaskCounts } from '../core/progress.ts';
import { isObject, type JsonObject } from '../store/json.ts';
import { objects, text } from './lenient.ts';
import { cleanLine } from './text.ts';

export type TaskListChange =
  | { readonly kind: 'set'; readonly id: string; readonly subject?: string; readonly status: string }
  | { readonly kind: 'all'; readonly tasks: readonly Omit<TaskListChange & { kind: 'set' }, 'kind'>[] };

export interface ListedTask {
  readonly subject: string;
  readonly status: string;
}

const subjectChars = 80;

/** Reads `tool_use_result` of a user message; null when it does not concern the list. */
export function taskListChange(value: unknown): TaskListChange | null {
  if (!isObject(value)) return null;
  if (isObject(value.task) && text(value.task.id) !== undefined && text(value.task.subject) !== undefined) {
    return { kind: 'set', ...listed(value.task, 'pending') };
  }
  const taskId = text(value.taskId);
  const to = isObject(value.statusChange) ? text(value.statusChange.to) : undefined;
  if (taskId !== undefined && to !== undefined) return { kind: 'set', id: taskId, status: to };
  if (!Array.isArray(value.tasks)) return null;
  const tasks = objects(value.tasks).filter((task) => text(task.id) !== undefined && text(task.subject) !== undefined);
  return { kind: 'all', tasks: tasks.map((task) => listed(task, '')) };
}

function listed(task: JsonObject, status: string): { id: string; subject: string; status: string } {
  return { id: text(task.id) ?? '', subject: text(task.subject) ?? '', status: text(task.status) ?? status };
}

export function foldTaskList(list: Map<string, ListedTask>, change: TaskListChange): void {
  if (change.kind === 'all') {
    list.clear();
    for (const task of change.tasks) set(list, task);
  } else set(list, change);
}

function set(list: Map<string, ListedTask>, change: { id: string; subject?: string; status: string }): void {
  const { id, status } = change;
  const subject = change.subject === undefined ? (list.get(id)?.subject ?? `task ${id}`) : change.subject;
  list.set(cleanLine(id, subjectChars), { subject: cleanLine(subject, subjectChars), status });
}

export function taskCounts(list: ReadonlyMap<string, ListedTask>): TaskCounts | undefined {
  const counted = [...list.values()].filter(({ status }) => status !== 'deleted');
  const done = counted.filter(({ status }) => status === 'completed').length;
  return counted.length === 0 ? undefined : { done, total: counted.length };
}

export function openSubjects(list: ReadonlyMap<string, ListedTask>): string[] {
  return [...list.values()]
    .filter(({ status }) => status === 'pending' || status === 'in_progress')
    .map(({ subject }) => subject);
}
