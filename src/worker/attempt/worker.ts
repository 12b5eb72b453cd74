/**
 * worker/attempt/: one attempt of one session, from preparation until its last process is gone. claude writes to a file
 * and reads from a FIFO, so it survives its runner, and a later runner adopts it with this same class.
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
import { attemptOutcome, type Outcome } from '../../claude/outcome.ts';
import { answerLine } from '../../claude/questions.ts';
import {
  type AttemptStream,
  denialCounts,
  emptyStream,
  foldMessage,
  foldTotalAtEnd,
  isSuccess,
  taskCounts,
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

/** A queued message starts a turn within this time; measured: a few milliseconds. */
const nextTurnMs = 1_000;
const meterMs = 10_000;
/** Minimum time between usage requests; tool results trigger them as well. */
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
  #isSpawned = false;
  #follower: TranscriptFollower | null = null;
  #prompt: string | null = null;
  #stopPreparing: (() => void) | null = null;
  readonly #queue: MessageQueue;
  #model: string | undefined;
  #stop: Stop | null = null;
  #endedByUs = false;
  #timers: (() => void)[] = [];
  #lastMeterMs = 0;
  /** A tool has ended or a sub-agent made progress, so usage is requested. */
  #meterDue = false;
  #requests = 0;
  #announced = '';
  /** The lines being read were written at an unknown time, before this runner adopted the worker. */
  #isHistory = false;
  #over = false;
  /** It exited by itself, with code 0. */
  #endedWell = false;
  #sawFullDisk = false;
  #isLost = false;
  readonly #answered = new Set<string>();

  constructor(world: World, hosted: HostedAttempt, options: WorkerOptions) {
    this.#world = world;
    this.#hosted = hosted;
    this.#options = options;
    this.stream = emptyStream(options.prices, options.earlier);
    this.#model = options.model;
    this.#queue = new MessageQueue(options.attemptId, options.told);
  }

  /** Prepares and spawns. The prompt is sent by `sendPrompt`, after the process has been logged. */
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
    // The runner is exiting: detach from the process, which continues.
    if (this.#over) return this.#hosted.leave();
    if (!started.ok) return this.#end(pausedForOtherHost(started.failure) ?? failedToStart(started.failure));
    this.#prompt = launch.value.prompt;
    this.#queue.omit(launch.value.prompt);
    this.#queue.addWaiting(launch.value.commands);
    this.#follow();
    this.#emit({ kind: 'spawned', process: started.value });
    if (this.#stop) this.#beginStop();
  }

  /**
   * Adopts a live worker of an earlier runner. `stopping`: a stop that the earlier runner had begun, which is repeated.
   * `signalled`: the worker may have received SIGTERM.
   */
  adopt(process: ProcessIdentity, stopping: StopReason | undefined, signalled: boolean): void {
    // Set before the first line is read, so that an interrupted result counts as our own stop.
    if (stopping !== undefined) this.#stop = { reason: stopping, signalled };
    this.#follow();
    this.#isHistory = true;
    this.#follower?.drain();
    this.#isHistory = false;
    this.#emit({ kind: 'spawned', process });
    if (stopping !== undefined) this.#beginStop();
    else this.#sendModel();
  }

  /** Reads the output of a worker that died without a runner, and ends its remaining processes. */
  async finalizeDead(stopping: StopReason | undefined, signalled: boolean): Promise<void> {
    if (stopping !== undefined) this.#stop = { reason: stopping, signalled };
    this.#isHistory = true;
    this.#follower = this.#newFollower();
    await this.#finish({ kind: 'unknown' }, 'after-crash');
  }

  /** Call once the process is logged. No effect for adopted workers, which have their prompt. */
  sendPrompt(): void {
    if (this.#prompt === null || this.#stop) return;
    // In one write: a runner that adopts this worker assumes that a worker with a prompt received these messages too.
    const [base = '', ...prompt] = openingLines(this.#prompt);
    this.#hosted.write([base, ...this.#modelLines(), ...prompt, ...this.#queue.take()].join('\n'));
    this.#prompt = null;
  }

  /** Takes effect with the next request, or with the next attempt if the worker is stopping. */
  changeModel(model: string): void {
    this.#model = model;
    if (this.#prompt === null && this.#isSpawned && !this.#stop && !this.#endedByUs) this.#sendModel();
  }

  #sendModel(): void {
    for (const line of this.#modelLines()) this.#hosted.write(line);
  }

  #modelLines(): string[] {
    return this.#model === undefined ? [] : [modelRequest(this.#model)];
  }

  stop(reason: StopReason): void {
    // Once we are ending a worker because its result has arrived, its work is done and there is nothing to stop.
    if (this.#stop || this.#over || this.#endedByUs) return;
    this.#stop = { reason, signalled: false };
    this.#stopPreparing?.();
    this.#beginStop();
  }

  #beginStop(): void {
    if (!this.#isSpawned || this.#over || this.#endedByUs) return;
    this.#hosted.look();
    if (this.#isParking) {
      // An interrupt would tell the model that the user refused. claude handles a parking request even while it waits
      // for an answer.
      this.#hosted.write(parkingRequest());
      this.#after(interruptGraceMs, () => this.#terminate());
      return;
    }
    // Before the first line no request was sent, so there is nothing to interrupt. Background tasks ignore an
    // interrupt.
    if (this.stream.lines === 0 || this.#isTaskLeft) {
      this.#terminate();
      return;
    }
    // Unread messages would start a new turn after the interrupt.
    for (const line of this.#queue.withdrawals()) this.#hosted.write(line);
    this.#hosted.write(interruptRequest(this.#options.attemptId));
    this.#after(interruptGraceMs, () => this.#terminate());
  }

  get #isParking(): boolean {
    return this.#stop?.reason === 'waits-for-answer';
  }

  answer(item: Item): void {
    const line = answerLine(item);
    const isAwaited = this.stream.openTools.has(item.toolUseId) && !this.#stop && !this.#endedByUs;
    if (line === null || !isAwaited || this.#answered.has(item.id)) return;
    this.#answered.add(item.id);
    this.#hosted.write(line);
  }

  /** Sends a message to the model, in the running turn or in the next attempt. */
  say(text: string): void {
    // The log keeps it for the next attempt.
    if (this.#stop) return;
    this.#queue.add(text);
    this.#sendQueued();
  }

  #sendQueued(): void {
    // Before the prompt, claude would read the message as its task.
    if (this.#prompt !== null || !this.#hosted.listens || this.#stop || this.#endedByUs) return;
    for (const line of this.#queue.take()) this.#hosted.write(line);
  }

  /** It has finished, so it can receive no more messages. */
  get isDone(): boolean {
    const { lastResult } = this.stream;
    return (this.#endedByUs || this.#over) && !this.#stop && lastResult !== undefined && isSuccess(lastResult);
  }

  /** Suspends or continues all processes of the attempt, including preparation. */
  halt(isHalted: boolean): void {
    this.#hosted.halt(isHalted);
  }

  /** Suspends the worker: output that cannot be written is lost, but has been paid for. */
  haltOnFullDisk(): void {
    this.#sawFullDisk = true;
    // A suspended worker could not be stopped.
    if (this.#stop === null) this.halt(true);
  }

  /** Ends all processes of the attempt at once; false when some survive. No further facts are emitted. */
  endNow(): Promise<boolean> {
    // Aborts preparation as well.
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
    this.#isSpawned = true;
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
    if (!this.#isHistory) this.#queue.heard(message, line);
    this.#announce();
    this.#emit({ kind: 'activity' });
    // Without our hook the session would run without its context and cost money for nothing.
    const { expectHook, managedHooks } = this.#options;
    const isHookDue = expectHook && managedHooks === undefined;
    if (message.kind === 'init' && isHookDue && this.stream.startedWithoutHook && !this.#stop && !this.#endedByUs) {
      this.#endedByUs = true;
      this.#hosted.terminate();
    }
    // Nested sub-agents print only their progress.
    const isUnwatched = this.stream.openTasks.size > 0 || this.#isGuessing;
    if (message.kind === 'user' || isUnwatched) this.#meterDue = true;
    if (message.kind === 'assistant' && this.#isGuessing) this.#endOverCap();
    // The cost of a compaction is only in claude's totals.
    if (message.kind === 'compact-boundary') this.#meter(0);
    if (message.kind === 'control-request') {
      if (message.call === undefined) this.#hosted.write(refusalLine(message.requestId));
      else this.#emit({ kind: 'asked', request: message.call });
    }
    // A worker that is being stopped also withdraws its request, but then the item stays open.
    if (message.kind === 'control-cancel' && !this.#stop) this.#emit({ kind: 'unasked', requestId: message.requestId });
    if (message.kind === 'control-response' && this.#isParking && answersParking(message.requestId)) this.#terminate();
    if (message.kind === 'control-response') this.#endOverCap();
    if (message.kind === 'control-response' && this.#stop && this.stream.interruptAnswered) this.#endWhenIdle();
    // At its cap claude ends the turn, but its sub-agents would continue.
    if (message.kind === 'result' && isOverCap(message) && this.#isTaskLeft) this.#endTasks();
    if (message.kind === 'state') this.#endWhenIdle();
  }

  /** Deferred to here because a tool's result is often directly followed by the final result, which has the totals. */
  #onCaughtUp(): void {
    if (this.#meterDue) this.#meter();
    this.#meterDue = false;
  }

  /** Reports claude's conversation id, model and version whenever they change. */
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

  /**
   * Enforces the cap where claude does not: after nested sub-agents, and for models whose price claude only guesses.
   */
  #endOverCap(): void {
    const { reservedUsd } = this.#options;
    const { costUsd, claimed, inTurn, openTasks } = this.stream;
    const spentUsd = this.#isGuessing ? costUsd : claimed.costUsd;
    const isOver = reservedUsd !== undefined && spentUsd > reservedUsd;
    if (isOver && inTurn && (openTasks.size > 0 || this.#isGuessing)) this.stop('budget');
  }

  get #isGuessing(): boolean {
    return this.stream.unpriced.length > 0;
  }

  /** The turn is over but sub-agents or background commands continue. */
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
   * Ends claude when it has finished and would wait for more input. When a background task ends, another turn starts a
   * few milliseconds later, so only the idle state counts. claude also exits by itself after
   * `CLAUDE_CODE_EXIT_AFTER_STOP_DELAY`.
   */
  #endWhenIdle(): void {
    const { isIdle, results, openTasks } = this.stream;
    if (this.#endedByUs || !isIdle || results === 0 || openTasks.size > 0) return;
    if (this.#stop && !this.stream.interruptAnswered) return;
    if (!this.#stop && this.#queue.isQueued && this.stream.lastResult && isSuccess(this.stream.lastResult)) {
      this.#endUnlessTurnStarts(this.stream.results);
      return;
    }
    this.#endedByUs = true;
    this.#hosted.terminate();
  }

  /** A queued message starts a turn at once. If none starts, claude has read it already. */
  #endUnlessTurnStarts(results: number): void {
    this.#after(nextTurnMs, () => {
      if (this.stream.inTurn || this.stream.results !== results) return;
      this.#queue.settle();
      this.#endWhenIdle();
    });
  }

  #terminate(): void {
    if (this.#over || !this.#isSpawned) return;
    // A success printed before the signal counts as finished work; a later one does not.
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
    // Record the live processes: if claude is killed, its tools' processes could not be found afterwards.
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
    const hasFinalTotals = this.stream.sawInit && !this.stream.isAtWork;
    const atEnd = hasFinalTotals ? null : totalsAtEnd(this.stream);
    if (atEnd !== null) foldTotalAtEnd(this.stream, atEnd);
    const evidence = {
      isDiskFull: this.#sawFullDisk || this.#options.isDiskFull(),
      isCutOff: this.#options.isCutOff(this.stream),
      stderrTail,
    };
    const judged = attemptOutcome({
      ...{ stream: this.stream, exit, found, expectHook, expectStructured, ...evidence },
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
    const rest = { progressed: this.stream.toolsDone > 0, unread: this.#queue.unread };
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
      const found = finalUsage({ ...this.#options, hasBegun, stream: this.stream }, durationMs);
      return this.#isLost ? holdingAllReserved(found, reservedUsd) : found;
    } catch {
      // The conversation cannot be read.
      return holdingAllReserved({ ...usageOf(this.stream, durationMs), estimated: true }, reservedUsd);
    }
  }

  #release(): void {
    for (const cancel of this.#timers.splice(0)) cancel();
    this.#follower?.close();
    this.#hosted.leave();
  }
}

// Messages that a user sends to a running session. claude queues them and delivers them after a tool call or as a new
// turn. An interrupt does not empty that queue, so queued messages are withdrawn first. Messages that claude did not
// read go to the next attempt.

interface Said {
  readonly text: string;
  /** Position among the messages of the attempt; negative for messages from before the attempt. */
  readonly index: number;
  where: 'here' | 'queued' | 'read';
}

export class MessageQueue {
  readonly #attemptId: string;
  readonly #queue: Said[];
  /** Messages that claude delivers with a tool's result. */
  #handsOver: Said[] = [];

  /** `told`: messages of earlier runners, which claude may or may not have read. */
  constructor(attemptId: string, told: readonly string[]) {
    this.#attemptId = attemptId;
    this.#queue = told.map((text, index) => ({ text, index, where: 'queued' }));
  }

  add(text: string): void {
    const index = this.#queue.filter((said) => said.index >= 0).length;
    this.#queue.push({ text, index, where: 'here' });
  }

  /** Adds earlier slash commands, each as a message of its own; otherwise claude does not expand them. */
  addWaiting(texts: readonly string[]): void {
    const missing = texts.filter((text) => !this.#queue.some((said) => said.text === text));
    this.#queue.unshift(...missing.map((text, at): Said => ({ text, index: -1 - at, where: 'here' })));
  }

  /** Omits messages that the prompt contains already. */
  omit(prompt: string): void {
    for (const said of this.#queue) {
      if (said.where === 'here' && !isSlashCommand(said.text) && prompt.includes(said.text)) said.where = 'read';
    }
  }

  /** Input lines for unsent messages, which then count as queued. */
  take(): string[] {
    return this.#each('here', (said) => {
      said.where = 'queued';
      return userMessage(said.text, this.#attemptId, said.index);
    });
  }

  withdrawals(): string[] {
    return this.#each('queued', ({ index }) => withdrawal(this.#attemptId, index));
  }

  heard(message: ClaudeMessage, line: string): void {
    if (message.kind === 'user' && message.parentToolUseId === undefined && message.toolResults.length > 0) {
      this.#handsOver = this.#queue.filter(({ where }) => where === 'queued');
    }
    if (message.kind === 'assistant' && message.parentToolUseId === undefined) {
      for (const said of this.#handsOver.splice(0)) if (said.where === 'queued') said.where = 'read';
    }
    const answer = message.kind === 'control-response' ? readWithdrawal(message.requestId, line) : null;
    const said = answer === null ? undefined : this.#queue.find(({ index }) => index === answer.index);
    if (said !== undefined) said.where = answer?.withdrawn ? 'here' : 'read';
  }

  get isQueued(): boolean {
    return this.#queue.some(({ where }) => where === 'queued');
  }

  /** Call when claude's queue is empty. */
  settle(): void {
    for (const said of this.#queue) if (said.where === 'queued') said.where = 'read';
  }

  get unread(): string[] {
    return this.#queue.flatMap(({ text, where }) => (where === 'read' ? [] : [text]));
  }

  #each(where: Said['where'], line: (said: Said) => string): string[] {
    return this.#queue.flatMap((said) => (said.where === where ? [line(said)] : []));
  }
}

/** More tool calls than anyone reads at once. */
const recentToolsMax = 20;

export class WorkerMetrics {
  /** Milliseconds since its start, or since this runner adopted it. */
  ageMs = 0;
  /** Milliseconds without output and without a running tool. */
  silentMs = 0;
  isPreparing = false;
  /** Milliseconds since the model last answered; Infinity = never under this runner. */
  unservedMs = Number.POSITIVE_INFINITY;
  /** Lower bound for the time of the model's last answer, ms since 1970. */
  answeredAtMs = Number.NEGATIVE_INFINITY;
  #lastToolId: string | undefined;
  readonly #recentTools: string[] = [];

  /** Counts a new line. `writtenAfterMs` is undefined for lines from before this runner. */
  line(message: ClaudeMessage, stream: AttemptStream, writtenAfterMs: number | undefined): void {
    // Answers to our own requests are not progress.
    if (message.kind !== 'control-response') this.silentMs = 0;
    if (message.kind === 'assistant' && message.error === undefined && message.model !== '<synthetic>') {
      this.answeredAtMs = writtenAfterMs ?? Number.NEGATIVE_INFINITY;
      if (writtenAfterMs !== undefined) this.unservedMs = 0;
    }
    const { currentTool, currentToolId } = stream;
    if (currentTool === undefined || currentToolId === this.#lastToolId) return;
    this.#lastToolId = currentToolId;
    this.#recentTools.push(currentTool);
    if (this.#recentTools.length > recentToolsMax) this.#recentTools.shift();
  }

  /** Counts timer ticks, because the clock may jump and the machine may sleep. */
  tick(ms: number, { openTools, openTasks }: AttemptStream): void {
    this.ageMs += ms;
    this.unservedMs += ms;
    // Preparation has its own timeouts.
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

/** Null when the session has no visible activity. */
export function liveNow(active: ActiveWorker | undefined, slot: SlotWait | null, nowMs: number): LiveSession | null {
  if (active === undefined && slot === null) return null;
  // During acceptance the usage is already counted.
  const now =
    active === undefined ? { usage: noUsage } : liveSession(active.worker, Math.max(0, nowMs - active.startedAtMs));
  return { ...now, ...(slot === null ? {} : { slot }) };
}

/** Returns each recent tool call only once. */
export function liveSession(worker: Worker, durationMs: number): LiveSession {
  const { stream } = worker;
  const recentTools = worker.notes.takeRecentTools();
  const denied = denialCounts(stream);
  return {
    usage: usageOf(stream, durationMs),
    ...defined({ currentTool: stream.currentTool }),
    ...(recentTools.length === 0 ? {} : { recentTools }),
    ...defined({ lastText: stream.lastText, retry: stream.lastRetry, denied, tasks: taskCounts(stream) }),
  };
}
