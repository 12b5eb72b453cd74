/** What the selected session changed so far, asked of git while its tab is open: never twice at once, nor too often. */

import { diffOf } from '../../app/delivery/work-diff.ts';
import type { GroupReference } from '../../app/resolve.ts';
import { commandText } from '../../core/advice.ts';
import { describeFailure, errorText } from '../../core/failure.ts';
import type { SessionId } from '../../core/group.ts';
import type { Diff } from '../../tui/dashboard/view.ts';
import { diffLines } from '../../view/diff-text.ts';
import { colourStyle } from '../../view/format.ts';
import type { Context } from '../context.ts';
import { statWords } from '../work-diff-text.ts';
import type { Source } from './source.ts';

/** What is being worked on is looked at again after this time, milliseconds. */
const staleMs = 3_000;
/** A large difference is for `group diff`. */
const charactersMax = 256 * 1024;

interface Around {
  readonly context: Context;
  readonly group: GroupReference;
  readonly source: Source;
}

interface Looked {
  readonly sessionId: SessionId;
  readonly atMs: number;
  /** Of the session's last event then. */
  readonly seq: number;
  readonly diff: Diff;
}

export class DiffView {
  readonly #around: Around;
  readonly #onChange: () => void;
  #last: Looked | undefined;
  #isLooking = false;

  constructor(around: Around, onChange: () => void) {
    this.#around = around;
    this.#onChange = onChange;
  }

  /** As it was seen last; undefined before that. Looks again where it may be out of date. */
  of(sessionId: SessionId): Diff | undefined {
    const known = this.#last?.sessionId === sessionId ? this.#last : undefined;
    if (!this.#isLooking && this.#isStale(known, sessionId)) this.#look(sessionId);
    return known?.diff;
  }

  #isStale(known: Looked | undefined, sessionId: SessionId): boolean {
    if (known === undefined) return true;
    const { context, source } = this.#around;
    const isRunning = source.state.sessions.get(sessionId)?.state.status === 'running';
    if (!isRunning && known.seq === source.state.lastSeq) return false;
    return Math.abs(context.world.clock.now() - known.atMs) >= staleMs;
  }

  #look(sessionId: SessionId): void {
    this.#isLooking = true;
    const seq = this.#around.source.state.lastSeq;
    const keep = (diff: Diff): void => {
      this.#isLooking = false;
      this.#last = { sessionId, atMs: this.#around.context.world.clock.now(), seq, diff };
      this.#onChange();
    };
    this.#read(sessionId).then(keep, (error) => keep({ lines: [], summary: errorText(error) }));
  }

  async #read(sessionId: SessionId): Promise<Diff> {
    const { context, group, source } = this.#around;
    const { state, runner, notes } = source;
    const record = state.sessions.get(sessionId);
    if (record === undefined) return { lines: [], summary: 'The session was removed.' };
    const session = { ...group, state, hadRunner: runner !== 'none', sessionId, record };
    const diff = await diffOf(context, session, notes.workspaces.get(sessionId), {});
    if (!diff.ok) return { lines: [], summary: describeFailure(diff.failure) };
    const { text = '', gone } = diff.value;
    const isCut = text.length > charactersMax;
    const shown = text === '' ? [] : diffLines(text.slice(0, charactersMax), colourStyle);
    const rest = isCut ? ` The rest is shown by: ${commandText(['group', 'diff', group.groupId])}` : '';
    return { lines: shown, summary: [`${statWords(diff.value)}.`, gone ?? '', rest].join(' ').trim() };
  }
}
