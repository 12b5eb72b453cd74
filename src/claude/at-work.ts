/**
 * Who is at work for a session, and who of them waits for an answer of the model: what must end at a cap, and for what
 * something is held when claude is killed.
 */

/** A tool call that has not been answered yet. */
export interface OpenTool {
  readonly name: string;
  readonly target: string;
  /** Who made it, as in `asking`. */
  readonly loop: string;
}

export interface AtWork {
  /**
   * From the beginning of a turn to its result, and on to the next one where sub-agents were at work at that moment:
   * what is spent meanwhile is in no total yet.
   */
  isAtWork: boolean;
  /** From the beginning of a turn to its result. */
  inTurn: boolean;
  /**
   * Who waits for an answer of the model, or may do so: the main loop is '', a sub-agent the id of the call that runs
   * it. What sub-agents do after the turn is not printed; then they are there by the ids of their tasks.
   */
  readonly asking: Set<string>;
  readonly openTasks: Set<string>;
  /** Those of them that claude named when it last said what is at work in the background. */
  backgroundTasks: ReadonlySet<string>;
  readonly openTools: Map<string, OpenTool>;
}

/** More open calls than any model makes; what a broken stream opens beyond that is not remembered. */
export const maxOpen = 1000;

export function nobodyAtWork(): AtWork {
  return {
    isAtWork: false,
    inTurn: false,
    asking: new Set(),
    openTasks: new Set(),
    backgroundTasks: new Set(),
    openTools: new Map(),
  };
}

export function noteTurnBegin(s: AtWork): void {
  s.isAtWork = true;
  s.inTurn = true;
  s.asking.add('');
}

/** Calls that were interrupted never get an answer. Sub-agents may work on. */
export function noteTurnEnd(s: AtWork): void {
  s.openTools.clear();
  s.isAtWork = s.openTasks.size > 0;
  s.inTurn = false;
  s.asking.clear();
  for (const id of s.openTasks) s.asking.add(id);
}

/**
 * Something was said to this loop. With all of its calls answered it asks again; so it does at the prompt of a
 * sub-agent, and at what claude says in the name of the user within a turn, as for a hook that lets it not end.
 */
export function noteAsking({ isAtWork, asking, openTools }: AtWork, loop: string): void {
  const waits = [...openTools.values()].some((tool) => tool.loop === loop);
  if ((isAtWork || loop !== '') && !waits && asking.size < maxOpen) asking.add(loop);
}

/** Whom the model may be answering at this moment, by the keys of `asking`. */
export function whoAsks({ asking, openTools }: AtWork): readonly string[] {
  // Of sub-agents of sub-agents no words are printed: each may be asking.
  const nested = [...openTools].filter(([, { name, loop }]) => loop !== '' && agentTools.has(name));
  return [...asking, ...nested.map(([id]) => id)];
}

const agentTools: ReadonlySet<string> = new Set(['Agent', 'Task']);

export function beginTask({ openTasks }: AtWork, id: string): void {
  if (openTasks.size < maxOpen) openTasks.add(id);
}

export function endTask({ openTasks, asking }: AtWork, id: string): void {
  openTasks.delete(id);
  asking.delete(id);
}

/** What is not named any more has ended, whether its end was told or not. Tasks in the foreground are not named. */
export function foldBackground(s: AtWork, taskIds: readonly string[]): void {
  const now = new Set(taskIds.slice(0, maxOpen));
  for (const id of s.backgroundTasks) if (!now.has(id)) endTask(s, id);
  for (const id of now) beginTask(s, id);
  s.backgroundTasks = now;
}
