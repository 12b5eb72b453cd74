/**
 * The lines about tasks: sub-agents, and what works in the background. A session is not over while one is at work.
 */
import { type JsonObject, object, objects, text } from './lenient.ts';

export type TaskMessage =
  | { readonly kind: 'task'; readonly phase: 'started' | 'ended'; readonly taskId: string }
  /** All that are at work in the background; newer programs say it after each change. */
  | { readonly kind: 'background'; readonly taskIds: readonly string[] };

/** Undefined when the line changes nothing. */
export function readTask(subtype: string, value: JsonObject): TaskMessage | undefined {
  if (subtype === 'background_tasks_changed') {
    return { kind: 'background', taskIds: objects(value.tasks).flatMap((task) => workingTask(task) ?? []) };
  }
  const taskId = text(value.task_id);
  if (taskId === undefined) return undefined;
  if (subtype === 'task_notification') return { kind: 'task', phase: 'ended', taskId };
  if (subtype === 'task_started') {
    return workingTask(value) === undefined ? undefined : { kind: 'task', phase: 'started', taskId };
  }
  if (subtype !== 'task_updated') return undefined;
  const status = text(object(value.patch).status);
  const ended = status === 'completed' || status === 'failed' || status === 'killed';
  return ended ? { kind: 'task', phase: 'ended', taskId } : undefined;
}

/** Its id; undefined for what claude does for itself, such as watching files, or elsewhere: nobody waits for that. */
function workingTask(task: JsonObject): string | undefined {
  const isOther = task.ambient === true || task.skip_transcript === true || task.off_host === true;
  return isOther ? undefined : text(task.task_id);
}
