/** cli/review/: the review on a terminal. Keys do what the commands of each row do; work sent back runs at its end. */
import { mergeGroup } from '../../app/delivery/merge.ts';
import { proposeGroup } from '../../app/delivery/pull-request.ts';
import { changeGroup, submit } from '../../app/group-commands.ts';
import { removeSession } from '../../app/removal/archive-group.ts';
import { type LoadedGroup, loadReferredGroup, sessionOf } from '../../app/resolve.ts';
import { describeFailure, ok, type Result } from '../../core/failure.ts';
import type { SessionId } from '../../core/group.ts';
import { isRehearsal } from '../../core/state.ts';
import type { ActionEnd } from '../../tui/review/screen.ts';
import type { Review, ReviewAction, ReviewRow } from '../../view/review/review.ts';
import { concludeRun, runInTerminal } from '../commands/group/run.ts';
import { attempt, type CommandResult, type Context, need } from '../context.ts';
import { asProduction } from '../dashboard/screen.ts';

export async function showReview(context: Context, group: LoadedGroup, review: Review): Promise<CommandResult> {
  const ink = await asProduction(() => import('ink'));
  const { createReviewApp } = await asProduction(() => import('../../tui/review/screen.ts'));
  const sentBack: SessionId[] = [];
  const act = async (action: ReviewAction, row: ReviewRow, words: string): Promise<ActionEnd> => {
    // What would be printed would break the screen.
    const notes = { value: { line: () => {}, passing: () => {} } };
    const quiet = Object.create(context, { notes }) as Context;
    const tried = await attempt(() => carryOut(quiet, group, { action, row, words }));
    const done = tried.ok ? tried.value : tried;
    if (!done.ok) return { notice: describeFailure(done.failure), row };
    if (done.value.runs) sentBack.push(row.sessionId);
    return done.value;
  };
  const instance = ink.render(createReviewApp({ review, act }), {
    alternateScreen: true,
    exitOnCtrlC: false,
    patchConsole: false,
    interactive: true,
  });
  await instance.waitUntilExit();
  if (sentBack.length === 0) return;
  const { state } = need(loadReferredGroup(context, group.groupId));
  const rehearse = isRehearsal(state) || undefined;
  const options = { config: {}, output: undefined, retryFailed: false, only: sentBack, rehearse } as const;
  return concludeRun(context, group, need(await runInTerminal(context, group, options)));
}

interface Action {
  readonly action: ReviewAction;
  readonly row: ReviewRow;
  readonly words: string;
}

async function carryOut(
  context: Context,
  group: LoadedGroup,
  { action, row, words }: Action,
): Promise<Result<ActionEnd & { readonly runs?: boolean }>> {
  const { sessionId, title } = row;
  const options = { partial: true, dryRun: false, only: [sessionId] };
  switch (action) {
    case 'merge': {
      const merged = await changeGroup(context, group, { direct: (writer) => mergeGroup(context, writer, options) });
      if (!merged.ok) return merged;
      const [move] = merged.value.moves;
      if (move === undefined) return ok({ notice: `Nothing of ${title} was left to merge.`, row });
      const said = `Merged into ${move.into}.`;
      return ok({ notice: `${title}: ${said}`, row: { ...row, kind: 'merged', notMergeable: said } });
    }
    case 'pr': {
      const proposal = { ...options, draft: false };
      const proposed = await changeGroup(context, group, {
        direct: (writer) => proposeGroup(context, writer, proposal),
      });
      if (!proposed.ok) return proposed;
      const urls = proposed.value.proposed.map(({ url }) => url).join(' ');
      return ok({ notice: urls === '' ? `Nothing of ${title} was left to propose.` : `${title}: ${urls}`, row });
    }
    case 'send-back': {
      const sent = await submit(context, group, { kind: 'retry-session', sessionId, prompt: words });
      if (!sent.ok) return sent;
      const runs = sent.value.by === 'log';
      const when = runs ? 'runs when you leave the review' : 'runs when a slot is free';
      const now: ReviewRow = {
        ...row,
        kind: 'waiting',
        status: 'pending',
        notMergeable: `It was sent back and ${when}.`,
      };
      return ok({ notice: `${title} ${when}.`, row: now, runs });
    }
    case 'discard': {
      const session = sessionOf(need(loadReferredGroup(context, group.groupId)), sessionId);
      if (!session.ok) return session;
      const command = ['session', 'remove', `${group.groupId}/${sessionId}`];
      const told: string[] = [];
      const tell = (note: string) => void told.push(note);
      const removed = await removeSession(context, session.value, { force: false, command, tell });
      return removed.ok ? ok({ notice: [`Discarded ${title}.`, ...told].join(' '), row: null }) : removed;
    }
  }
}
