/**
 * worker/attempt/: one attempt of one session. This file: from the prepared folder to the last process gone. A worker
 * does not need its runner: its stream goes to a file, and its input comes from a FIFO that any later runner can open.
 * So the same class serves new workers and adopted ones. It is stopped by an interrupt, SIGTERM, SIGKILL.
 */
import { basename, dirname } from 'node:path';
import {
  answersParking,
  interruptGraceMs,
  interruptRequest,
  isSlashCommand,
  modelRequest,
  openingLines,
  parkingRequest,
  readWithdrawal,
  refusalLine,
  usageRequest,
  userMessage,
  withdrawal,
} from '../../claude/control.ts';
import { isOverCap } from '../../claude/failure-text.ts';
import { finalUsage } from '../../claude/final-usage.ts';
import { type ClaudeMessage, parseLine } from '../../claude/messages.ts';
import { judgeAttempt, type Outcome } from '../../claude/outcome.ts';
import { answerLine } from '../../claude/questions.ts';
import {
  type AttemptStream,
  denialCounts,
  emptyStream,
  foldMessage,
  foldTotalAtEnd,
  isSuccess,
  usageOf,
} from '../../claude/stream.ts';
import { defined } from '../../core/defined.ts';
import type { ProcessIdentity, StopReason } from '../../core/event.ts';
import { noUsage, type Usage } from '../../core/group.ts';
import type { Item } from '../../core/item.ts';
import type { SlotWait } from '../../core/plan/command-slot.ts';
import type { LiveSession } from '../../core/progress.ts';
import type { World } from '../../system/world.ts';
import type { WorkerNews } from '../facts.ts';
import type { AttemptExit, HostedAttempt, Preparation } from '../host.ts';
import {
  cutOffBy,
  failedToStart,
  holdingAllReserved,
  hostLossOutcome,
  pausedBeforeStart,
  pausedForOtherHost,
  unexpectedEnd,
  withHeld,
  withLeftovers,
  withLimitsHit,
} from './outcomes.ts';
import { TranscriptFollower } from './transcript-follower.ts';
import type { WorkerOptions } from './worker-options.ts';

/** A queued message starts its turn within this time after the last one ended; measured: some milliseconds. */
const nextTurnMs = 1_000;
const meterMs = 10_000;
/** Usage is also requested at tool results, but not more often than this. */
const meterGapMs = 1_000;
interface Stop {
  readonly reason: StopReason;
  signalled: boolean;
}

export class Worker {
  readonly stream: AttemptStream;
  readonly notes = new WorkerMetrics();
  readonly #world: World;
  readonly #options: WorkerOptions;
  readonly #hosted: HostedAttempt;
  #isThere = false;
  #follower: TranscriptFollower | null = null;
  #prompt: string | null = null;
  #stopPreparing: (() => void) | null = null;
  readonly #said: MessageQueue;
  #model: string | undefined;
  #stop: Stop | null = null;
  #endedByUs = false;
  #timers: (() => void)[] = [];
  #lastMeterMs = 0;
  /** A tool has ended, or a sub-agent made progress. */
  #hasNews = false;
  #requests = 0;
  #announced = '';
  /** The lines being read were written under another runner, or none, at an unknown time. */
  #isHistory = false;
  #over = false;
  /** It exited by itself after its answer. */
  #endedWell = false;
  /** Some of its output may be lost. */
  #sawFullDisk = false;
  /** Its host is lost, and its last actions there are unknown. */
  #isLost = false;
  readonly #answered = new Set<string>();

  constructor(world: World, hosted: HostedAttempt, options: WorkerOptions) {
    this.#world = world;
    this.#hosted = hosted;
    this.#options = options;
    this.stream = emptyStream(options.prices, options.earlier);
    this.#model = options.model;
    this.#said = new MessageQueue(options.attemptId, options.told);
  }

  /** Prepares and spawns. The prompt is not sent before `sendPrompt`, so that the process can be logged first. */
  async begin(prepare: Preparation): Promise<void> {
    try {
      await this.#launch(prepare);
    } catch (error) {
      this.#end(unexpectedEnd(error));
    }
  }

  async #launch(prepare: Preparation): Promise<void> {
    this.notes.isPreparing = true;
    const launch = await prepare((stop) => {
      this.#stopPreparing = stop;
      if (this.#stop) stop();
    });
    this.notes.isPreparing = false;
    this.#stopPreparing = null;
    if (this.#over) return;
    if (this.#stop) return this.#end(pausedBeforeStart(this.#stop.reason));
    if (!launch.ok) return this.#end(failedToStart(launch.failure));
    const started = await this.#hosted.start(launch.value.spawn, this.#options.offset);
    // A runner that exited meanwhile detaches from the started process, too.
    if (this.#over) return this.#hosted.leave();
    if (!started.ok) return this.#end(pausedForOtherHost(started.failure) ?? failedToStart(started.failure));
    this.#prompt = launch.value.prompt;
    this.#said.omit(launch.value.prompt);
    this.#said.addWaiting(launch.value.commands);
    this.#follow();
    this.#emit({ kind: 'spawned', process: started.value });
    if (this.#stop) this.#beginStop();
  }

  /**
   * Adopts a live worker of an earlier runner, with full control. `stopping`: a stop that the earlier runner had begun;
   * it is carried on, because its progress is unknown. `signalled`: it may have received SIGTERM.
   */
  adopt(process: ProcessIdentity, stopping: StopReason | undefined, signalled: boolean): void {
    // Set before the first line is read: an interrupted result in the transcript is then our own stop.
    if (stopping !== undefined) this.#stop = { reason: stopping, signalled };
    this.#follow();
    this.#isHistory = true;
    this.#follower?.drain();
    this.#isHistory = false;
    this.#emit({ kind: 'spawned', process });
    if (stopping !== undefined) this.#beginStop();
    else this.#tellModel();
  }

  /**
   * Reads the output of a worker that died without a runner, and ends its remaining processes. `signalled`: it may have
   * been asked to end before its last output, so that a success is not finished work.
   */
  async finalizeDead(stopping: StopReason | undefined, signalled: boolean): Promise<void> {
    if (stopping !== undefined) this.#stop = { reason: stopping, signalled };
    this.#isHistory = true;
    this.#follower = this.#newFollower();
    await this.#finish({ kind: 'unknown' }, 'after-crash');
  }

  /** The process is logged: start its work. No effect for adopted workers, which have their prompt. */
  sendPrompt(): void {
    if (this.#prompt === null || this.#stop) return;
    // In one write: a runner that adopts a worker with its prompt assumes that the worker received all earlier
    // messages.
    const [base = '', ...prompt] = openingLines(this.#prompt);
    this.#hosted.write([base, ...this.#modelLines(), ...prompt, ...this.#said.take()].join('\n'));
    this.#prompt = null;
  }

  /** Takes effect with its next request. A change while it stops applies to the next attempt. */
  changeModel(model: string): void {
    this.#model = model;
    if (this.#prompt === null && this.#isThere && !this.#stop && !this.#endedByUs) this.#tellModel();
  }

  #tellModel(): void {
    for (const line of this.#modelLines()) this.#hosted.write(line);
  }

  #modelLines(): string[] {
    return this.#model === undefined ? [] : [modelRequest(this.#model)];
  }

  stop(reason: StopReason): void {
    // A worker that is being ended after its last result has done its work.
    if (this.#stop || this.#over || this.#endedByUs) return;
    this.#stop = { reason, signalled: false };
    this.#stopPreparing?.();
    this.#beginStop();
  }

  #beginStop(): void {
    if (!this.#isThere || this.#over || this.#endedByUs) return;
    this.#hosted.look();
    if (this.#isParking) {
      // An interrupt would tell the model that the user refused. claude answers this request while it waits.
      this.#hosted.write(parkingRequest());
      this.#after(interruptGraceMs, () => this.#terminate());
      return;
    }
    // Before the first line no request was sent: there is nothing to interrupt or pay. Tasks that outlive their turn
    // ignore an interrupt.
    if (this.stream.lines === 0 || this.#isTaskLeft) {
      this.#terminate();
      return;
    }
    // Messages that claude has not read yet would start a new turn after the interrupt.
    for (const line of this.#said.withdrawals()) this.#hosted.write(line);
    this.#hosted.write(interruptRequest(this.#options.attemptId));
    this.#after(interruptGraceMs, () => this.#terminate());
  }

  get #isParking(): boolean {
    return this.#stop?.reason === 'waits-for-answer';
  }

  /** Sends claude the answer to its request; no effect when it does not wait for one. */
  answer(item: Item): void {
    const line = answerLine(item);
    const isAwaited = this.stream.openTools.has(item.toolUseId) && !this.#stop && !this.#endedByUs;
    if (line === null || !isAwaited || this.#answered.has(item.id)) return;
    this.#answered.add(item.id);
    this.#hosted.write(line);
  }

  /** Sends a message to the model; it is merged into the running turn, or left to the next attempt. */
  say(text: string): void {
    // Messages during a stop are in the log for the next attempt already.
    if (this.#stop) return;
    this.#said.add(text);
    this.#tell();
  }

  #tell(): void {
    // Before the prompt it would be taken for the task.
    if (this.#prompt !== null || !this.#hosted.listens || this.#stop || this.#endedByUs) return;
    for (const line of this.#said.take()) this.#hosted.write(line);
  }

  /** It has given its last answer, so no further attempt could receive a message. */
  get isDone(): boolean {
    const { lastResult } = this.stream;
    return (this.#endedByUs || this.#over) && !this.#stop && lastResult !== undefined && isSuccess(lastResult);
  }

  /** Halts or continues all processes of the attempt, including preparation. */
  halt(isHalted: boolean): void {
    this.#hosted.halt(isHalted);
  }

  /** Until there is space again: meanwhile claude's output would be lost after it was paid. */
  haltOnFullDisk(): void {
    this.#sawFullDisk = true;
    // A worker that is being ended must not be halted.
    if (this.#stop === null) this.halt(true);
  }

  /** Ends all processes of the attempt at once; false when some would not end. It reports nothing afterwards. */
  endNow(): Promise<boolean> {
    // Stops its preparation as well.
    this.stop('deleted');
    const ending = this.#hosted.endNow();
    this.leave();
    return ending;
  }

  leave(): void {
    this.#over = true;
    this.#release();
  }

  #emit(fact: WorkerNews): void {
    const { sessionId, attemptId } = this.#options;
    this.#options.emit({ sessionId, attemptId, ...fact });
  }

  #after(delayMs: number, action: () => void): void {
    this.#timers.push(this.#world.clock.after(delayMs, action));
  }

  #newFollower(): TranscriptFollower {
    return new TranscriptFollower(this.#world, {
      path: this.#options.paths.transcript,
      offset: this.#options.offset,
      onLine: (line) => this.#onLine(line),
      onCaughtUp: () => this.#onCaughtUp(),
    });
  }

  #follow(): void {
    this.#isThere = true;
    this.#follower = this.#newFollower();
    this.#hosted.onExit((status) => {
      if (!this.#over) void this.#finish(status, 'watched');
    });
    this.#after(meterMs, () => this.#meterRegularly());
  }

  #onLine(line: string): void {
    if (this.#over) return;
    const message = parseLine(line);
    const isSilent = this.stream.messages === 0;
    foldMessage(this.stream, message);
    if (isSilent && this.stream.messages > 0) this.#emit({ kind: 'answered' });
    const writtenAfterMs = this.#isHistory ? undefined : this.#follower?.writtenAfterMs;
    this.notes.line(message, this.stream, writtenAfterMs);
    if (!this.#isHistory) this.#said.heard(message, line);
    this.#announce();
    this.#emit({ kind: 'activity' });
    // It would work without its rules, and charge for a result that cannot be trusted.
    const { expectHook, managedHooks } = this.#options;
    const isHookDue = expectHook && managedHooks === undefined;
    if (message.kind === 'init' && isHookDue && this.stream.beganWithoutHook && !this.#stop && !this.#endedByUs) {
      this.#endedByUs = true;
      this.#hosted.terminate();
    }
    // Nested sub-agents print only their progress.
    const isUnwatched = this.stream.openTasks.size > 0 || this.#isGuessing;
    if (message.kind === 'user' || isUnwatched) this.#hasNews = true;
    if (message.kind === 'assistant' && this.#isGuessing) this.#endOverCap();
    // The summary is not a message of the conversation: only claude's totals show its cost.
    if (message.kind === 'compact-boundary') this.#meter(0);
    if (message.kind === 'control-request') {
      if (message.call === undefined) this.#hosted.write(refusalLine(message.requestId));
      else this.#emit({ kind: 'asked', request: message.call });
    }
    // A worker we are stopping withdraws its request, but the item stays open.
    if (message.kind === 'control-cancel' && !this.#stop) this.#emit({ kind: 'unasked', requestId: message.requestId });
    if (message.kind === 'control-response' && this.#isParking && answersParking(message.requestId)) this.#terminate();
    if (message.kind === 'control-response') this.#endOverCap();
    if (message.kind === 'control-response' && this.#stop && this.stream.interruptAnswered) this.#endWhenIdle();
    // At its cap claude ends the turn but not its sub-agents, which would continue.
    if (message.kind === 'result' && isOverCap(message) && this.#isTaskLeft) this.#endTasks();
    if (message.kind === 'state') this.#endWhenIdle();
  }

  /** A tool's result is often followed by the last answer at once, and then there is nothing left to measure. */
  #onCaughtUp(): void {
    if (this.#hasNews) this.#meter();
    this.#hasNews = false;
  }

  /** Reports claude's identity to the runner, and again whenever it changes. */
  #announce(): void {
    const { sawInit, claudeSessionId, model, claudeVersion } = this.stream;
    if (!sawInit || claudeSessionId === undefined) return;
    const announced = `${claudeSessionId} ${model ?? ''}`;
    if (announced === this.#announced) return;
    this.#announced = announced;
    this.#emit({
      kind: 'identified',
      claudeSessionId,
      ...defined({ model, claudeVersion }),
    });
  }

  /** claude does not check its cap after nested sub-agents, and guesses the cost of unpriced models. */
  #endOverCap(): void {
    const { reservedUsd } = this.#options;
    const { costUsd, spending, inTurn, openTasks } = this.stream;
    const spentUsd = this.#isGuessing ? costUsd : spending.claimed.costUsd;
    const isOver = reservedUsd !== undefined && spentUsd > reservedUsd;
    if (isOver && inTurn && (openTasks.size > 0 || this.#isGuessing)) this.stop('budget');
  }

  get #isGuessing(): boolean {
    return this.stream.unpriced.length > 0;
  }

  /** The turn is over, and tasks continue: sub-agents, or background commands. */
  get #isTaskLeft(): boolean {
    return this.stream.results > 0 && !this.stream.inTurn && this.stream.openTasks.size > 0;
  }

  #endTasks(): void {
    if (this.#stop) {
      this.#terminate();
      return;
    }
    this.#endedByUs = true;
    this.#hosted.terminate();
  }

  /**
   * claude has answered and would wait for more input: end it. That is not a stop. A task that ends while claude is
   * idle starts another turn some milliseconds later, so its end alone ends nothing. claude exits by itself with code 0
   * when it has been idle without a task for `CLAUDE_CODE_EXIT_AFTER_STOP_DELAY`.
   */
  #endWhenIdle(): void {
    const { isIdle, results, openTasks } = this.stream;
    if (this.#endedByUs || !isIdle || results === 0 || openTasks.size > 0) return;
    if (this.#stop && !this.stream.interruptAnswered) return;
    if (!this.#stop && this.#said.isQueued && this.stream.lastResult && isSuccess(this.stream.lastResult)) {
      this.#endUnlessItGoesOn(this.stream.results);
      return;
    }
    this.#endedByUs = true;
    this.#hosted.terminate();
  }

  /** A queued message starts a turn at once; if none starts, it was read before. */
  #endUnlessItGoesOn(results: number): void {
    this.#after(nextTurnMs, () => {
      if (this.stream.inTurn || this.stream.results !== results) return;
      this.#said.settle();
      this.#endWhenIdle();
    });
  }

  #terminate(): void {
    if (this.#over || !this.#isThere) return;
    // A success printed before the signal is finished work; one printed while claude dies is not.
    if (this.#stop) this.#stop.signalled ||= !this.stream.successBeforeAnswer;
    this.#hosted.terminate();
  }

  #meterRegularly(): void {
    this.#meter();
    this.#hosted.look();
    this.#after(meterMs, () => this.#meterRegularly());
  }

  #meter(gapMs = meterGapMs): void {
    const now = this.#world.clock.now();
    if (this.#stop || this.#endedByUs || this.stream.lines === 0) return;
    if (Math.abs(now - this.#lastMeterMs) < gapMs) return;
    this.#lastMeterMs = now;
    // Often a tool has just ended: its remaining processes must be known if claude is killed from outside.
    this.#hosted.look();
    this.#requests += 1;
    this.#hosted.write(usageRequest(String(this.#requests)));
  }

  async #finish(exit: AttemptExit, found: 'watched' | 'after-crash'): Promise<void> {
    try {
      this.#follower?.finish();
      this.#over = true;
      this.#release();
      const outcome = await this.#conclude(exit, found);
      this.#isLost = exit.kind === 'lost';
      // If a worker died unobserved, use the transcript's mtime.
      const { transcript } = this.#options.paths;
      this.#report(outcome, found === 'after-crash' ? this.#world.files.info(transcript)?.mtimeMs : undefined);
    } catch (error) {
      this.#end(unexpectedEnd(error));
    }
  }

  async #conclude(end: AttemptExit, found: 'watched' | 'after-crash'): Promise<Outcome> {
    const { leftover, limitsHit, stderrTail, failure } = await this.#hosted.reap();
    if (failure !== undefined) return cutOffBy(failure) ?? failedToStart(failure);
    const { lastResult } = this.stream;
    const cut = hostLossOutcome(end, lastResult !== undefined && isSuccess(lastResult));
    if (cut !== null) return cut;
    const exit = end.kind === 'lost' || end.kind === 'fenced' ? ({ kind: 'unknown' } as const) : end;
    this.#endedWell = exit.kind === 'exited' && exit.code === 0 && this.#stop === null && !this.#endedByUs;
    const { expectHook, managedHooks, expectStructured, totalsAtEnd } = this.#options;
    const isTold = this.stream.sawInit && !this.stream.isAtWork;
    const atEnd = isTold ? null : totalsAtEnd(this.stream);
    if (atEnd !== null) foldTotalAtEnd(this.stream, atEnd);
    const seen = {
      isDiskFull: this.#sawFullDisk || this.#options.isDiskFull(),
      isCutOff: this.#options.isCutOff(this.stream),
      stderrTail,
    };
    const judged = judgeAttempt({
      ...{ stream: this.stream, exit, found, expectHook, expectStructured, ...seen },
      ...defined({ managedHooks }),
      ...(this.#stop ? { stop: { ...this.#stop, successBeforeAnswer: this.stream.successBeforeAnswer } } : {}),
      endedByUs: this.#endedByUs,
    });
    const appeared = (await this.#options.branchWarnings?.()) ?? [];
    const outcome = { ...judged, warnings: [...judged.warnings, ...appeared] };
    return withLimitsHit(leftover ? withLeftovers(outcome) : outcome, limitsHit);
  }

  #end(outcome: Outcome): void {
    this.#over = true;
    this.#release();
    this.#report(outcome);
  }

  #report(outcome: Outcome, endedAtMs = this.#world.clock.now()): void {
    const usage = this.#usageUntil(endedAtMs);
    const rest = { progressed: this.stream.toolsDone > 0, unread: this.#said.unread };
    this.#emit({
      kind: 'ended',
      outcome: withHeld(outcome, usage, basename(dirname(dirname(this.#options.paths.folder)))),
      usage,
      ...rest,
    });
  }

  #usageUntil(endedAtMs: number): Usage {
    const { reservedUsd, startedAtMs } = this.#options;
    const durationMs = Math.max(0, Math.round(endedAtMs - startedAtMs));
    const hasBegun = this.#options.hasBegun || this.#endedWell;
    try {
      const seen = finalUsage({ ...this.#options, hasBegun, stream: this.stream }, durationMs);
      return this.#isLost ? holdingAllReserved(seen, reservedUsd) : seen;
    } catch {
      // Its conversation cannot be read.
      return holdingAllReserved({ ...usageOf(this.stream, durationMs), estimated: true }, reservedUsd);
    }
  }

  #release(): void {
    for (const cancel of this.#timers.splice(0)) cancel();
    this.#follower?.close();
    this.#hosted.leave();
  }
}

// * What a user said to a worker while it worked. claude merges it into the turn that runs, but only after a tool
// has ended or as a turn of its own; until then it lies in claude's queue. An interrupt does not empty that queue,
// so what lies there is taken back first; what claude has not read goes to the next attempt.

interface Said {
  readonly text: string;
  /** Its position among the messages of the attempt; negative for messages before the attempt. */
  readonly index: number;
  where: 'here' | 'queued' | 'read';
}

export class MessageQueue {
  readonly #attemptId: string;
  readonly #said: Said[];
  /** A tool has ended since the model's last message, and claude delivers its queue with the tool's result. */
  #handsOver: Said[] = [];

  /** `told`: messages that earlier runners sent to this attempt. How many of them claude has read is unknown. */
  constructor(attemptId: string, told: readonly string[]) {
    this.#attemptId = attemptId;
    this.#said = told.map((text, index) => ({ text, index, where: 'queued' }));
  }

  add(text: string): void {
    const index = this.#said.filter((said) => said.index >= 0).length;
    this.#said.push({ text, index, where: 'here' });
  }

  /** Slash commands from before the attempt: claude expands each only as a message of its own. */
  addWaiting(texts: readonly string[]): void {
    const missing = texts.filter((text) => !this.#said.some((said) => said.text === text));
    this.#said.unshift(...missing.map((text, at): Said => ({ text, index: -1 - at, where: 'here' })));
  }

  /** The prompt was built from the log, which may have contained some of them already. */
  omit(prompt: string): void {
    for (const said of this.#said) {
      if (said.where === 'here' && !isSlashCommand(said.text) && prompt.includes(said.text)) said.where = 'read';
    }
  }

  /** Input lines for messages that were not sent yet; from now on they count as queued. */
  take(): string[] {
    return this.#each('here', (said) => {
      said.where = 'queued';
      return userMessage(said.text, this.#attemptId, said.index);
    });
  }

  /** Input lines that withdraw what may be in claude's queue. */
  withdrawals(): string[] {
    return this.#each('queued', ({ index }) => withdrawal(this.#attemptId, index));
  }

  heard(message: ClaudeMessage, line: string): void {
    if (message.kind === 'user' && message.parentToolUseId === undefined && message.toolResults.length > 0) {
      this.#handsOver = this.#said.filter(({ where }) => where === 'queued');
    }
    if (message.kind === 'assistant' && message.parentToolUseId === undefined) {
      for (const said of this.#handsOver.splice(0)) if (said.where === 'queued') said.where = 'read';
    }
    const answer = message.kind === 'control-response' ? readWithdrawal(message.requestId, line) : null;
    const said = answer === null ? undefined : this.#said.find(({ index }) => index === answer.index);
    if (said !== undefined) said.where = answer?.withdrawn ? 'here' : 'read';
  }

  /** claude's queue may contain a message that would start its own turn. */
  get isQueued(): boolean {
    return this.#said.some(({ where }) => where === 'queued');
  }

  /** claude is idle and its queue is empty. */
  settle(): void {
    for (const said of this.#said) if (said.where === 'queued') said.where = 'read';
  }

  get unread(): string[] {
    return this.#said.flatMap(({ text, where }) => (where === 'read' ? [] : [text]));
  }

  #each(where: Said['where'], line: (said: Said) => string): string[] {
    return this.#said.flatMap((said) => (said.where === where ? [line(said)] : []));
  }
}

/** More than a user reads at once. */
const recentToolsMax = 20;

export class WorkerMetrics {
  /** Milliseconds since its start, or since this runner adopted it. */
  ageMs = 0;
  /** Milliseconds without output and without a running tool. */
  silentMs = 0;
  /** Before the process exists. */
  isPreparing = false;
  /** Milliseconds since the model answered; Infinity = not since this runner has this worker. */
  unservedMs = Number.POSITIVE_INFINITY;
  /** The model last answered after this time, ms since 1970. A line read late may be much older. */
  answeredAtMs = Number.NEGATIVE_INFINITY;
  #lastToolId: string | undefined;
  readonly #recentTools: string[] = [];

  /** A line was added to the stream; it was written after `writtenAfterMs`, or before this runner had the worker. */
  line(message: ClaudeMessage, stream: AttemptStream, writtenAfterMs: number | undefined): void {
    // Answers to our own requests are no progress of the session.
    if (message.kind !== 'control-response') this.silentMs = 0;
    if (message.kind === 'assistant' && message.error === undefined && message.model !== '<synthetic>') {
      this.answeredAtMs = writtenAfterMs ?? Number.NEGATIVE_INFINITY;
      // Lines from before this runner say nothing about the present.
      if (writtenAfterMs !== undefined) this.unservedMs = 0;
    }
    const { currentTool, currentToolId } = stream;
    if (currentTool === undefined || currentToolId === this.#lastToolId) return;
    this.#lastToolId = currentToolId;
    this.#recentTools.push(currentTool);
    if (this.#recentTools.length > recentToolsMax) this.#recentTools.shift();
  }

  /** `ms` passed. Counted by timer ticks, because the clock may jump and the machine may sleep. */
  tick(ms: number, { openTools, openTasks }: AttemptStream): void {
    this.ageMs += ms;
    this.unservedMs += ms;
    // Preparation has its own timeouts: a set-up command may be silent for longer than claude may.
    const works = this.isPreparing || openTools.size > 0 || openTasks.size > 0;
    this.silentMs = works ? 0 : this.silentMs + ms;
  }

  /** Tool calls since the last call of this function. */
  takeRecentTools(): string[] {
    return this.#recentTools.splice(0);
  }
}

export interface ActiveWorker {
  readonly worker: Worker;
  readonly startedAtMs: number;
}

/** The same with what a command of the session waits for; null = it has no visible activity. */
export function liveNow(active: ActiveWorker | undefined, slot: SlotWait | null, nowMs: number): LiveSession | null {
  if (active === undefined && slot === null) return null;
  // During acceptance its usage is counted already.
  const now =
    active === undefined ? { usage: noUsage } : liveSession(active.worker, Math.max(0, nowMs - active.startedAtMs));
  return { ...now, ...(slot === null ? {} : { slot }) };
}

/** `durationMs` is the wall time of the attempt so far. Each tool call is returned once. */
export function liveSession(worker: Worker, durationMs: number): LiveSession {
  const { stream } = worker;
  const recentTools = worker.notes.takeRecentTools();
  const denied = denialCounts(stream);
  return {
    usage: usageOf(stream, durationMs),
    ...defined({ currentTool: stream.currentTool }),
    ...(recentTools.length === 0 ? {} : { recentTools }),
    ...defined({ lastText: stream.lastText, retry: stream.lastRetry, denied }),
  };
}
