/**
 * One ordered attempt: prepared and started once, followed to its end, and reported until its runner has everything.
 */
import { join } from 'node:path';
import { commandEnvironment } from '../../claude/launch/environment.ts';
import { advise } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import type { ProcessIdentity } from '../../core/event.ts';
import { errorText, type Failure, fail, publicFailure, type Result } from '../../core/failure.ts';
import type { SessionId } from '../../core/group.ts';
import { parseJson } from '../../store/json.ts';
import { delay } from '../../system/clock.ts';
import type { ExitStatus } from '../../system/world.ts';
import type { AdoptionPlan, CleanupResult } from '../../worker/host.ts';
import { LocalAttempt } from '../../worker/local-attempt.ts';
import { reap } from '../../worker/reap.ts';
import { type RunningCommand, runShellCommand } from '../../worker/shell-command.ts';
import { type AttemptEnd, type Blob, ran, type SlotCommand } from '../wire.ts';
import { fencedNote, isOver, uptimeMs } from './guard.ts';
import { snapshotWork } from './lay-out.ts';
import type { AgentContext } from './prepare.ts';
import { type AttemptWork, prepareAttempt, recallWork, variablesHere, worktreeOf } from './prepare.ts';
import type { Slot } from './slot.ts';
import { Outbox } from './slot.ts';

/** Between two checkpoints; a checkpoint of a large repository takes a while. */
const checkpointGapMs = 10_000;
/** Time from the start to the first checkpoint; a shorter attempt needs only the one at its end. */
const firstCheckpointMs = 3_000;
/** Once output has been printed, claude has written it to its conversation within this time. */
const writtenMs = 1_000;
const lookMs = 250;
const toolResult = '"tool_result"';
const scanBytes = 256 * 1024;
/** How long a live runner may take to send the next command that needs the attempt's folder. */
export const unaskedMs = 5 * 60_000;

type AttemptCommand = Exclude<SlotCommand, { do: 'order' | 'release' }>;

export class OrderedAttempt {
  readonly #context: AgentContext;
  readonly #slot: Slot;
  readonly #outbox: Outbox;
  readonly #hosted: LocalAttempt;
  readonly #commands = new Map<string, RunningCommand>();
  #work: AttemptWork | null = null;
  /** Commands kept until it is known whether the attempt is alive; null once it is known. */
  #early: AttemptCommand[] | null = null;
  #stopPreparing: () => void = () => {};
  #isStopped = false;
  #isClosed = false;
  /** When its runner last sent something, or when something last ended that it must be told of. */
  #askedAtMs: number;
  #exit: { readonly status: ExitStatus; readonly remains: CleanupResult } | null = null;
  #isPumping = false;
  #isAsked = false;
  #unwatch: () => void = () => {};
  #cancelLook: () => void = () => {};
  #lastCheckpointMs = Number.NEGATIVE_INFINITY;
  #wantsCheckpoint = false;
  #resultAtMs = 0;
  /** Why some files cannot be sent. */
  #unsentFiles: string | undefined;
  #unsentWork: string | undefined;
  /** Number of transcript bytes already searched for a tool's result, and the last few of them. */
  #scanned = 0;
  #tail = '';

  constructor(context: AgentContext, slot: Slot) {
    this.#context = context;
    this.#slot = slot;
    this.#askedAtMs = context.world.clock.now();
    const { order } = slot;
    this.#hosted = new LocalAttempt(context.world, {
      sessionId: order.sessionId as SessionId,
      attemptId: order.attemptId,
      paths: slot.paths,
    });
    this.#outbox = new Outbox(context.world, context.engine, slot, context.config.name, context.tell);
  }

  get isOver(): boolean {
    return this.#slot.record.end !== undefined;
  }

  /** Only its result is kept: its lease has expired, or its runner is gone or could not confirm its reports. */
  get isKept(): boolean {
    const isUnasked = Math.abs(this.#context.world.clock.now() - this.#askedAtMs) >= unaskedMs;
    return this.isOver && (this.#slot.isLost || (this.#commands.size === 0 && isUnasked));
  }

  #noteAsked(): void {
    this.#askedAtMs = this.#context.world.clock.now();
  }

  async begin(): Promise<void> {
    try {
      await this.#begin();
    } catch (error) {
      this.#refuse(fail('internal', `The host could not start it: ${errorText(error)}.`, '').failure);
    }
  }

  async #begin(): Promise<void> {
    const { world } = this.#context;
    this.#slot.noteAttempt(this.#slot.order.attemptId);
    const prepared = await prepareAttempt(this.#context, this.#slot, {
      onStop: (stop) => {
        this.#stopPreparing = stop;
        if (this.#isStopped) stop();
      },
      onWork: (work) => {
        this.#work = work;
      },
    });
    if (!prepared.ok) return this.#refuse(prepared.failure);
    const spawn = prepared.value;
    const slot = this.#slot;
    if (this.#isStopped || this.#isClosed) return this.#refuse(stopped);
    const offset = world.files.info(slot.paths.transcript)?.size ?? 0;
    slot.note({ offset, startedAt: new Date(world.clock.now()).toISOString() });
    // From here to the spawn nothing is awaited.
    const lease = { renewedAt: slot.renewedAt, leaseMs: this.#context.config.leaseMs };
    const isHeld = slot.renewedAt > 0 && !isOver(lease, uptimeMs(world.files));
    if (!isHeld || !this.#context.isGuarded()) return this.#refuse(unguarded);
    const started = await this.#hosted.start(spawn, offset);
    if (!started.ok) return this.#refuse(started.failure);
    slot.note({ process: started.value });
    void this.#outbox.send();
    this.#lastCheckpointMs = world.clock.now() - checkpointGapMs + firstCheckpointMs;
    this.#follow();
  }

  async resume(): Promise<void> {
    this.#answerLostCommands();
    void this.#outbox.send();
    const { record } = this.#slot;
    if (this.isOver) return;
    // It was being prepared: claude was not started, because a start is recorded first.
    if (record.startedAt === undefined) {
      await reap(this.#context.world, this.#slot.order.attemptId);
      await this.begin();
      return;
    }
    const work = recallWork(this.#context, this.#slot);
    if (work.ok) this.#work = work.value;
    else this.#context.tell(work.failure.message);
    const found = await this.#takeOver(record.startedAt);
    if (found.do === 'adopt') {
      this.#slot.note({ process: found.process });
      void this.#outbox.send();
      this.#follow();
    }
    this.#hearEarly();
    // Its end was not observed, and only the runner knows what was sent to an attempt that must start again.
    if (found.do !== 'adopt') await this.#onExit({ kind: 'unknown' });
  }

  #hearEarly(): void {
    const early = this.#early ?? [];
    this.#early = null;
    for (const command of early) this.command(command);
  }

  #takeOver(startedAt: string): Promise<AdoptionPlan> {
    const { order, record } = this.#slot;
    this.#early = [];
    return this.#hosted.takeOver({
      id: order.attemptId,
      number: order.attempt,
      kind: 'start',
      offset: record.offset ?? 0,
      startedAt,
      identified: false,
      ...(record.process === undefined ? {} : { process: record.process as ProcessIdentity }),
    });
  }

  #answerLostCommands(): void {
    const running = join(this.#slot.folder, 'running');
    const { files } = this.#context.world;
    for (const id of files.list(running)) {
      const ended = ran.safeParse(parseJson(files.readText(join(running, id)) ?? ''));
      const output = 'The agent of the host was restarted while the command ran.';
      this.#outbox.ran(ended.success ? ended.data : { say: 'ran', id, exitCode: null, timedOut: false, output });
    }
  }

  #refuse(failure: Failure): void {
    if (this.#isClosed || this.isOver) return;
    const news = { say: 'refused', failure: publicFailure(this.#isFenced ? unguarded : failure) } as const;
    // Send the setup's output first; it says more than the failure message.
    void this.#checkpoint()
      .catch((error) => this.#context.tell(`A checkpoint cannot be made: ${errorText(error)}`))
      .then(() => this.#conclude(news));
  }

  get #isFenced(): boolean {
    return this.#context.world.files.entryKind(fencedNote(this.#context.paths, this.#slot.name)) !== null;
  }

  #conclude(end: AttemptEnd): void {
    if (this.#isClosed || this.isOver) return;
    this.#noteAsked();
    this.#slot.note({ end, printedAtEnd: this.#slot.printed });
    this.#context.noteLeases();
    void this.#outbox.send();
  }

  #follow(): void {
    const { world } = this.#context;
    this.#hosted.onExit((status) => void this.#onExit(status));
    this.#unwatch = world.files.watch(this.#slot.paths.transcript, () => this.#pump());
    const look = (): void => {
      this.#pump();
      this.#cancelLook = world.clock.after(lookMs, look);
    };
    look();
  }

  async #onExit(status: ExitStatus): Promise<void> {
    if (this.#isClosed) return;
    let remains: CleanupResult = { leftover: true, limitsHit: [], stderrTail: '' };
    try {
      remains = await this.#hosted.reap();
    } catch (error) {
      this.#context.tell(`Could not end the processes of attempt ${this.#slot.order.attemptId}: ${errorText(error)}`);
    }
    this.#exit = { status, remains };
    this.#pump();
  }

  /** Sends new output; at the end makes the last checkpoint. */
  #pump(): void {
    this.#isAsked = true;
    if (this.#isPumping) return;
    this.#isPumping = true;
    void this.#pumpAll().finally(() => {
      this.#isPumping = false;
    });
  }

  async #pumpAll(): Promise<void> {
    while (this.#isAsked && !this.#isClosed && !this.isOver) {
      this.#isAsked = false;
      try {
        // Its end may come while a checkpoint is being made.
        const exit = this.#exit;
        this.#scan();
        void this.#outbox.send();
        if (this.#wantsCheckpoint && exit === null) await this.#checkpointWhenDue();
        if (exit !== null) await this.#tellEnd(exit);
      } catch (error) {
        this.#context.tell(`Cannot report on attempt ${this.#slot.order.attemptId}: ${errorText(error)}`);
        await delay(this.#context.world.clock, lookMs);
      }
    }
  }

  #scan(): void {
    const { files, clock } = this.#context.world;
    const { offset = 0 } = this.#slot.record;
    for (;;) {
      const bytes = files.readBytes(this.#slot.paths.transcript, offset + this.#scanned, scanBytes);
      if (bytes.length === 0) return;
      this.#scanned += bytes.length;
      const text = this.#tail + Buffer.from(bytes).toString('latin1');
      this.#tail = text.slice(-toolResult.length + 1);
      if (!text.includes(toolResult)) continue;
      this.#wantsCheckpoint = true;
      this.#resultAtMs = clock.now();
    }
  }

  async #checkpointWhenDue(): Promise<void> {
    const { clock } = this.#context.world;
    const sinceMs = Math.abs(clock.now() - this.#lastCheckpointMs);
    // A fresh result may not be in the conversation yet, so a session resumed from the checkpoint would run that tool
    // again. But do not wait forever: sub-agents may print results without a pause.
    const isFresh = Math.abs(clock.now() - this.#resultAtMs) < writtenMs;
    if (sinceMs < checkpointGapMs || (isFresh && sinceMs < 2 * checkpointGapMs)) return;
    this.#wantsCheckpoint = isFresh;
    await this.#checkpoint();
    this.#lastCheckpointMs = clock.now();
  }

  async #tellEnd({ status, remains }: { readonly status: ExitStatus; readonly remains: CleanupResult }): Promise<void> {
    await this.#checkpoint();
    const fenced = this.#isFenced;
    const limitsHit = [...remains.limitsHit];
    const { leftover, stderrTail } = remains;
    const why = this.#unsentFiles ?? this.#unsentWork;
    const { isDiskFull } = this.#context;
    const unsent = why && { why, folder: this.#slot.paths.folder, isDiskFull: isDiskFull() };
    this.#conclude({ say: 'ended', status, leftover, limitsHit, stderrTail, fenced, ...(unsent && { unsent }) });
    this.#release();
  }

  async #checkpoint(): Promise<void> {
    const work = this.#work;
    if (work === null || this.#isClosed) return;
    const prints = this.#slot.printed;
    let files = this.#newFiles(work);
    const commits = await this.#newCommits(work);
    // Never send a conversation without the work that it mentions.
    if (files !== undefined && this.#unsentWork !== undefined && this.#context.isDiskFull()) {
      work.files.takeBack();
      files = undefined;
    }
    if ((files === undefined && commits === undefined) || this.#isClosed) return;
    if (commits !== undefined) work.told = commits;
    const { checkpoints = [], lastCheckpoint = 0 } = this.#slot.record;
    const n = lastCheckpoint + 1;
    const made = { say: 'checkpoint' as const, n, prints, ...defined({ files }), ...commits };
    this.#slot.note({ checkpoints: [...checkpoints, made], lastCheckpoint: n });
    void this.#outbox.send();
  }

  #newFiles(work: AttemptWork): Blob | undefined {
    const changed = work.files.changed();
    const isNew = changed.ok && changed.value !== null;
    const packed = isNew ? this.#outbox.keepBlob(Buffer.from(JSON.stringify({ files: changed.value }))) : changed;
    if (isNew && !packed.ok) work.files.takeBack();
    this.#unsentFiles = this.#noteUnsent(packed, this.#unsentFiles);
    return isNew && packed.ok ? (packed.value as Blob) : undefined;
  }

  async #newCommits(work: AttemptWork) {
    const { sessionId, work: sent } = this.#slot.order;
    const way = { told: work.told, remote: sent.remote };
    const made = await snapshotWork(this.#context.git, work.worktree, sessionId, way);
    this.#unsentWork = this.#noteUnsent(made, this.#unsentWork);
    return made.ok ? (made.value ?? undefined) : undefined;
  }

  /** Why it cannot be sent, which is reported once on this host as well. */
  #noteUnsent(result: Result<unknown>, before: string | undefined): string | undefined {
    if (result.ok) return undefined;
    const { message } = result.failure;
    if (message !== before) {
      this.#context.tell(`A checkpoint of attempt ${this.#slot.order.attemptId} is not sent: ${message}`);
    }
    return message;
  }

  command(command: AttemptCommand): void {
    this.#noteAsked();
    if (this.#early !== null) this.#early.push(command);
    else if (command.do === 'write') this.#write(command);
    else if (command.do === 'have') this.#outbox.have(command.printed, command.checkpoint);
    else if (command.do === 'run') this.#run(command);
    else if (command.do === 'stopRun') this.#commands.get(command.id)?.stop();
    else this.#plain(command.do);
  }

  /** Recorded before it is sent: a repeated message costs money. */
  #write({ id, lines }: Extract<SlotCommand, { do: 'write' }>): void {
    const { written = [] } = this.#slot.record;
    if (written.includes(id)) return;
    this.#slot.note({ written: [...written, id] });
    this.#hosted.write(lines);
  }

  #plain(what: 'terminate' | 'halt' | 'goOn' | 'endNow'): void {
    if (what === 'endNow') void this.end();
    else if (what !== 'terminate') this.#hosted.halt(what === 'halt');
    else {
      this.#stop();
      this.#hosted.terminate();
    }
  }

  #stop(): void {
    this.#isStopped = true;
    this.#stopPreparing();
  }

  async end(): Promise<void> {
    this.#stop();
    for (const command of this.#commands.values()) command.stop();
    const ended = await this.#hosted.endNow().catch(() => false);
    if (!ended) this.#context.tell(`Some processes of attempt ${this.#slot.order.attemptId} could not be ended.`);
  }

  #run({ id, command, timeoutMs }: Extract<SlotCommand, { do: 'run' }>): void {
    const { world, env } = this.#context;
    const { folder, paths, order } = { ...this.#slot, paths: this.#slot.paths, order: this.#slot.order };
    const note = join(folder, 'running', id);
    if (!/^[\w-]{1,64}$/.test(id) || world.files.entryKind(note) !== null) return;
    world.files.makeFolder(join(folder, 'running'));
    world.files.writeAtomic(note, '');
    const running = runShellCommand(world, {
      command,
      cwd: this.#work?.folder ?? worktreeOf(paths),
      env: { ...commandEnvironment(env), ...variablesHere({ paths, order }) },
      logFile: join(folder, `run-${id}.log`),
      timeoutMs,
      mark: order.attemptId,
    });
    this.#commands.set(id, running);
    const answer = (rest: { exitCode: number | null; timedOut: boolean; output: string }): void => {
      this.#commands.delete(id);
      if (this.#isClosed) return;
      this.#noteAsked();
      const ended = { say: 'ran' as const, id, ...rest };
      world.files.writeAtomic(note, JSON.stringify(ended), { durable: true });
      this.#outbox.ran(ended);
    };
    running.ended.then(
      ({ exitCode, timedOut, tail }) => answer({ exitCode, timedOut, output: tail }),
      (error) => answer({ exitCode: null, timedOut: false, output: errorText(error) }),
    );
  }

  sendAgain(): void {
    this.#noteAsked();
    this.#outbox.sendAgain();
  }

  #release(): void {
    this.#unwatch();
    this.#cancelLook();
    this.#hosted.leave();
  }

  close(): void {
    this.#isClosed = true;
    this.#release();
    this.#outbox.close();
  }
}

const stopped = fail('busy', 'The session was stopped while it was being prepared on its host.', '').failure;
const unguarded = fail(
  'other-host',
  'The host lost its lease, or its guard does not run, so nothing was started there.',
  advise('It may be tried again elsewhere', ['host', 'list']),
).failure;
