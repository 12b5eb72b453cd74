/** cli/review/: the review on a terminal. Keys do what the commands of each row do; work sent back runs at its end. */
import { readReview } from '../../app/delivery/review.ts';
import { submit } from '../../app/group-commands.ts';
import { answerItem, inboxOf } from '../../app/inbox.ts';
import { liveRunner } from '../../app/live-runner.ts';
import { type LoadedGroup, loadReferredGroup } from '../../app/resolve.ts';
import { defined } from '../../core/defined.ts';
import { describeFailure, ok, type Result } from '../../core/failure.ts';
import { ancestorsOf } from '../../core/graph.ts';
import type { SessionId } from '../../core/group.ts';
import type { GivenAnswer } from '../../core/item.ts';
import { programName } from '../../core/program-name.ts';
import { isRehearsal } from '../../core/state.ts';
import { ownCommand } from '../../system/own-program.ts';
import type { ActionEnd, ReviewScreenOptions, WaveEnd } from '../../tui/review/screen.ts';
import { plainStyle } from '../../view/format.ts';
import {
  actionsOf,
  headlineOf,
  type OpenDecision,
  type Review,
  type ReviewAction,
  type ReviewRow,
} from '../../view/review/review.ts';
import { safeLine } from '../../view/terminal-text.ts';
import { concludeRun, runInTerminal } from '../commands/group/run.ts';
import { type CommandResult, type Context, need } from '../context.ts';
import { asProduction } from '../dashboard/screen.ts';

/** Acceptance commands of a merge may take long, milliseconds. */
const commandTimeoutMs = 24 * 3_600_000;
const noticeColumns = 400;

export async function showReview(context: Context, group: LoadedGroup, review: Review): Promise<CommandResult> {
  // ink reads it when it is loaded, and does not know NO_COLOR.
  if (context.stdout.style === plainStyle) process.env.FORCE_COLOR = '0';
  const ink = await asProduction(() => import('ink'));
  const { createReviewApp } = await asProduction(() => import('../../tui/review/screen.ts'));
  const sentBack: SessionId[] = [];
  let hasNextWave = false;
  const act: ReviewScreenOptions['act'] = async (action, row, words, interrupt) => {
    const done =
      action === 'answer'
        ? await answer(context, row, words)
        : await carryOut(context, group, { action, row, words, interrupt });
    if (!done.ok) return { notice: describeFailure(done.failure), row };
    if (done.value.runs) sentBack.push(row.sessionId);
    return done.value;
  };
  const decide = async (wave: OpenDecision, words: string): Promise<WaveEnd> => {
    const done = await answerItem(context, wave.id, givenIn(wave, words.trim()));
    if (!done.ok) return { notice: describeFailure(done.failure), isDecided: false };
    const goesOn = !done.value.group.state.waves.stopped;
    hasNextWave = goesOn && done.value.by === 'log';
    const next = hasNextWave ? ' It starts when you leave the review.' : '';
    return { notice: goesOn ? `The next wave may start.${next}` : 'The other waves do not start.', isDecided: true };
  };
  const headlineFor = (rows: readonly ReviewRow[]): string => {
    const now = loadReferredGroup(context, group.groupId);
    if (!now.ok) return review.headline;
    const hasRunner = liveRunner(context.world, group) !== null;
    return headlineOf(now.value.state, rows, inboxOf(now.value.state).length, hasRunner);
  };
  const instance = ink.render(createReviewApp({ review, act, decide, headlineFor }), {
    alternateScreen: true,
    exitOnCtrlC: false,
    patchConsole: false,
    interactive: true,
  });
  await instance.waitUntilExit();
  if (sentBack.length === 0 && !hasNextWave) return;
  const { state } = need(loadReferredGroup(context, group.groupId));
  const rehearse = isRehearsal(state) || undefined;
  const only = hasNextWave ? {} : { only: sentBack };
  const options = { config: {}, output: undefined, retryFailed: false, ...only, rehearse } as const;
  return concludeRun(context, group, need(await runInTerminal(context, group, options)));
}

/** Answers the first open question of the row. */
async function answer(
  context: Context,
  row: ReviewRow,
  words: string,
): Promise<Result<ActionEnd & { readonly runs?: boolean }>> {
  const [asked, ...others] = row.decisions;
  if (asked === undefined) return ok({ notice: 'It has no open question.', row });
  const done = await answerItem(context, asked.id, givenIn(asked, words.trim()));
  if (!done.ok) return done;
  const runs = done.value.by === 'log' && others.length === 0;
  const when = runs ? 'continues when you leave the review' : 'continues';
  const { reason: _reason, ...about } = row;
  const isLast = others.length === 0;
  const text = isLast ? `It was answered and ${when}.` : 'It has another question.';
  const now = { ...(isLast ? about : row), decisions: others, kind: isLast ? 'waiting' : 'decision' } as const;
  return ok({ notice: `${row.title}: ${text}`, row: { ...now, notMergeable: text }, runs });
}

/** `2` or `1, 3` are options of a question; `deny Use the mirror.` is an answer with a note. */
function givenIn({ kind }: OpenDecision, words: string): GivenAnswer {
  if (kind === 'question') {
    return /^\d+(?:[ ,]+\d+)*$/.test(words) ? { options: words.split(/[ ,]+/).map(Number) } : { text: words };
  }
  const [, text = words, note = ''] = /^(\w+)[\s,:]+(.+)$/s.exec(words) ?? [];
  return { text, ...(note === '' ? {} : { note }) };
}

interface Action {
  readonly action: ReviewAction;
  readonly row: ReviewRow;
  readonly words: string;
  readonly interrupt: AbortSignal;
}

/** Runs the command of the row, whose output is what is reported. */
async function carryOut(
  context: Context,
  group: LoadedGroup,
  { action, row, words, interrupt }: Action,
): Promise<Result<ActionEnd & { readonly runs?: boolean }>> {
  const { sessionId, title } = row;
  if (action === 'send-back') {
    const sent = await submit(context, group, { kind: 'retry-session', sessionId, prompt: words });
    if (!sent.ok) return sent;
    const runs = sent.value.by === 'log';
    const when = runs ? 'runs when you leave the review' : 'runs when a slot is free';
    const { reason: _reason, ...about } = row;
    const now: ReviewRow = {
      ...about,
      kind: 'waiting',
      status: 'pending',
      notMergeable: `It was sent back and ${when}.`,
    };
    return ok({ notice: `${title} ${when}.`, row: now, runs });
  }
  const command = actionsOf(group.groupId, row).find((one) => one.action === action)?.words ?? [];
  const { program, args } = ownCommand('main', context.packageRoot);
  const env = Object.fromEntries(Object.entries(context.env).flatMap(([key, value]) => (value ? [[key, value]] : [])));
  const answer = action === 'discard' ? ['--yes'] : [];
  const call = { program, args: [...args, ...command, ...answer], cwd: context.cwd, env, timeoutMs: commandTimeoutMs };
  const ran = await context.world.processes.run({ ...call, interrupt });
  if (!ran.ok) return ran;
  const { exitCode, stdout, stderr } = ran.value;
  if (exitCode !== 0 && interrupt.aborted) return ok({ notice: `${title}: It was interrupted.`, row });
  const said = `${stdout}\n${stderr}`.split('\n').filter((text) => text.trim() !== '');
  const told = exitCode === 0 && action !== 'discard' ? said[0] : said.at(-1);
  const text = told?.startsWith(`${programName}: `) ? told.slice(programName.length + 2) : told;
  const notice = `${title}: ${safeLine(text ?? '', noticeColumns)}`;
  if (exitCode !== 0) return ok({ notice, row });
  if (action === 'discard') return ok({ notice, row: null });
  const now = await rowsWith(context, group, row);
  const { kind, notMergeable, pullRequest } = now.find((one) => one.sessionId === sessionId) ?? row;
  const others = now.filter((one) => one.sessionId !== sessionId);
  // The changes stay on the screen, although a merge removes the branch.
  return ok({ notice, row: { ...row, kind, ...defined({ notMergeable, pullRequest }) }, others });
}

/** The row and those of the work that it was built on, as far as that is merged or proposed now. */
async function rowsWith(context: Context, { groupId }: LoadedGroup, { sessionId }: ReviewRow): Promise<ReviewRow[]> {
  const now = loadReferredGroup(context, groupId);
  if (!now.ok) return [];
  const definitions = new Map([...now.value.state.sessions].map(([id, { definition }]) => [id, definition]));
  // The screen is drawn by ink alone.
  const quiet: Context = Object.create(context, { notes: { value: { line: () => {}, passing: () => {} } } });
  const read = await readReview(quiet, now.value, false, ancestorsOf(definitions, [sessionId]));
  return read.ok ? read.value.rows.filter(({ kind }) => kind === 'merged' || kind === 'proposed') : [];
}
