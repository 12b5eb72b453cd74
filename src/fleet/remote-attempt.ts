/** An attempt on another host: commands are sent there, and reports are processed here. */
import type { ProcessIdentity } from '../core/event.ts';
import { type Failure, type FailureReason, fail, ok, type Result } from '../core/failure.ts';
import type { Attempt } from '../core/session-state.ts';
import type { SpawnOptions } from '../system/world.ts';
import { hasOutput } from '../worker/adopt.ts';
import type { AdoptionPlan, AttemptExit, CleanupResult, HostedAttempt, HostedCommand } from '../worker/host.ts';
import { nameTranscript } from '../worker/local-attempt.ts';
import type { CommandEnd } from '../worker/shell-command.ts';
import { Intake, keepPrinted, type Mirror } from './mirror.ts';
import type { RemoteSubject, Sender } from './order.ts';
import { makeOrder } from './order.ts';
import type { AttemptNews, ToGroup } from './wire.ts';

type Here = Pick<Extract<ToGroup, { kind: 'here' }>['attempts'][number], 'process'>;
type News<K extends AttemptNews['say']> = Extract<AttemptNews, { say: K }>;

/** When reports cannot be stored, they are requested again after this time. */
export const askAgainMs = 2_000;
/** Number of tries to apply work with git; a host that git cannot reach gets at least five minutes. */
const triesMax = 15;
const unreachedTriesMax = 150;
/** How often, and at which interval in milliseconds, output of an attempt is awaited that may lack its prompt. */
const silentLooks = 15;
const silentLookMs = 200;
const endMsMax = 30_000;

export class RemoteAttempt implements HostedAttempt {
  readonly subject: RemoteSubject;
  readonly #sender: Sender;
  readonly #mirror: Mirror;
  readonly #started = Promise.withResolvers<Result<ProcessIdentity>>();
  readonly #ended = Promise.withResolvers<AttemptExit>();
  /** Nothing of it runs on its host: it has ended, or never started. */
  readonly #gone = Promise.withResolvers<void>();
  readonly #commands = new Map<string, (end: CommandEnd) => void>();
  readonly #intake: Intake;
  #process: ProcessIdentity | undefined;
  #isThere = false;
  #isOver = false;
  #hasLeft = false;
  #end: News<'ended'> | null = null;
  #tries = 0;
  #missing: Failure | null = null;
  isLost = false;
  #knows: ((isThere: boolean) => void) | null = null;

  /** `isRecalled`: an earlier runner started it, so its host is asked for its reports. */
  constructor(subject: RemoteSubject, sender: Sender, mirror: Mirror, isRecalled: boolean) {
    this.subject = subject;
    this.#sender = sender;
    this.#mirror = mirror;
    const options = {
      printed: mirror.printed,
      takeIn: (news: Exclude<AttemptNews, { say: 'printed' }>) => this.#takeIn(news),
      have: (printed: number, checkpoint: number) => sender.say({ do: 'have', printed, checkpoint }),
      askAgain: () => sender.later(askAgainMs, () => sender.hello()),
    };
    this.#intake = new Intake(options, !isRecalled);
  }

  /** It, or a command in its folder, may still run on its host, as far as is known. */
  get isUnderWay(): boolean {
    return (!this.#isOver || this.#commands.size > 0) && !this.isLost;
  }

  async start(spawn: SpawnOptions, offset: number): Promise<Result<ProcessIdentity>> {
    const { git, paths } = this.subject;
    nameTranscript(git.world, paths, offset);
    const order = await makeOrder(this.subject, spawn);
    if (!order.ok) return order;
    if (this.isLost) return lostBefore(this.subject.place.host);
    this.#sender.say({ do: 'order', order: order.value });
    const started = await this.#started.promise;
    this.#isThere = started.ok;
    return started;
  }

  /** An earlier runner started it. Its host is asked for its last reports and received messages. */
  async takeOver(attempt: Attempt): Promise<AdoptionPlan> {
    const known = new Promise<boolean>((resolve) => {
      this.#knows = resolve;
    });
    if (attempt.isLost) this.lose();
    else this.#sender.hello();
    if (attempt.process !== undefined && (attempt.identified || this.#speaks)) return this.#adopted(attempt.process);
    if (!(await known)) return { do: 'restart' };
    // The runner may have died before the start was logged.
    const process = attempt.process ?? this.#process;
    // Its start is logged before it gets its prompt, so it may be waiting for that in vain.
    if (process !== undefined && (await this.#printsSoon()) && !this.#wasEndedUnbegun) return this.#adopted(process);
    await this.endNow();
    if (!this.#speaks) return { do: 'restart' };
    return { do: 'finalizeDead', signalled: true, wasInterrupted: true };
  }

  #adopted(process: ProcessIdentity): AdoptionPlan {
    this.#isThere = true;
    return { do: 'adopt', process, silentMs: 0, signalled: false };
  }

  get #speaks(): boolean {
    const { git, paths } = this.subject;
    return hasOutput(git.world, this.subject, paths.transcript);
  }

  /** An earlier runner, too, may have waited for its start, ended it, and died before it logged that. */
  get #wasEndedUnbegun(): boolean {
    return !this.#speaks && this.#end?.status.kind === 'signalled';
  }

  async #printsSoon(): Promise<boolean> {
    for (let looks = 0; looks < silentLooks && !this.#speaks && this.isUnderWay; looks += 1) {
      await new Promise<void>((resolve) => this.#sender.later(silentLookMs, resolve));
    }
    return this.#speaks || !this.isUnderWay;
  }

  /** An earlier runner has received its end; commands may still run in its folder. */
  recallPlace(): void {
    this.#isOver = true;
    this.#sender.hello();
  }

  /** Its host's answer to a hello; null = it is not there. */
  greeted(here: Here | null): void {
    if (here === null) {
      // An attempt that its host has forgotten is lost as soon as its lease expires.
      this.#knows?.(false);
      this.#failCommands();
      return;
    }
    this.#process = here.process as ProcessIdentity | undefined;
    this.#intake.open();
    this.#knows?.(true);
  }

  hear(news: AttemptNews): void {
    this.#intake.hear(news);
  }

  async #takeIn(news: Exclude<AttemptNews, { say: 'printed' }>): Promise<boolean> {
    switch (news.say) {
      case 'started':
        this.#started.resolve(ok(news.process as ProcessIdentity));
        return true;
      case 'refused':
        this.#isOver = true;
        this.#gone.resolve();
        this.#started.resolve(refusedBy(this.subject.place.host, news));
        this.#knows?.(true);
        return true;
      case 'checkpoint':
        return this.#takeCheckpoint(news);
      case 'ended':
        return this.#takeEnd(news);
      case 'ran':
        this.#commands.get(news.id)?.(commandEnd(news));
        this.#commands.delete(news.id);
        return true;
    }
  }

  async #takeCheckpoint(news: News<'checkpoint'>): Promise<boolean> {
    const taken = await this.#mirror.checkpoint(news);
    if (taken.ok) {
      const { blobs } = this.subject;
      if (news.files !== undefined) await blobs.dropBlob(news.files);
      this.#tries = 0;
      return true;
    }
    const { reason } = taken.failure;
    this.#tries += 1;
    // Its host is broken, or was stolen: the session must still get an outcome.
    const isBroken = reason === 'worktree-failed' && this.#tries >= triesMax;
    const isUnreached = reason === 'timeout' && this.#tries >= unreachedTriesMax;
    if (reason === 'usage' || isBroken || isUnreached) {
      this.#missing ??= notTaken(this.subject.place.host, taken.failure);
      this.#tries = 0;
      return true;
    }
    return false;
  }

  async #takeEnd(news: News<'ended'>): Promise<boolean> {
    this.#isOver = true;
    this.#end = news;
    const { host } = this.subject.place;
    this.#started.resolve(lostBefore(host));
    this.#gone.resolve();
    this.#ended.resolve(news.fenced ? { kind: 'fenced', host } : (news.status as AttemptExit));
    return true;
  }

  /** Nothing can run on its host any more, and its later reports go to LateAttempt. */
  lose(): void {
    if (!this.isUnderWay) return;
    this.isLost = true;
    this.#intake.close();
    const { host } = this.subject.place;
    this.#started.resolve(lostBefore(host));
    this.#gone.resolve();
    this.#ended.resolve({ kind: 'lost', host });
    this.#failCommands();
    this.#knows?.(true);
  }

  #failCommands(): void {
    const { host } = this.subject.place;
    const gone = { ok: false, exitCode: null, timedOut: false, printedTooMuch: false };
    const failure = lostBefore(host).failure;
    for (const answer of this.#commands.values()) answer({ ...gone, tail: failure.message, unstarted: failure });
    this.#commands.clear();
  }

  onExit(action: (status: AttemptExit) => void): void {
    void this.#ended.promise.then((end) => {
      if (!this.#hasLeft) action(end);
    });
  }

  get listens(): boolean {
    return this.#isThere && this.isUnderWay;
  }

  write(lines: string): void {
    const id = this.subject.git.world.random.uuid();
    if (this.listens) this.#sender.say({ do: 'write', id, lines });
  }

  /** Its host checks itself. */
  look(): void {}

  terminate(): void {
    this.#do('terminate');
  }

  halt(isHalted: boolean): void {
    this.#do(isHalted ? 'halt' : 'goOn');
  }

  #do(what: 'terminate' | 'halt' | 'goOn' | 'endNow'): void {
    if (this.isUnderWay) this.#sender.say({ do: what });
  }

  async reap(): Promise<CleanupResult> {
    const { git, paths, attemptId } = this.subject;
    if (this.isLost) keepPrinted(git, paths, attemptId, this.subject.offset);
    const settled = await this.#mirror.settle();
    const { leftover = false, limitsHit = [], stderrTail = '' } = this.#end ?? {};
    const unsent = this.#end?.unsent;
    const brought = unsent === undefined || !settled.ok ? settled : this.#notBrought(unsent);
    const failure = this.#missing ?? (brought.ok ? null : brought.failure);
    return { leftover, limitsHit, stderrTail, ...(failure === null ? {} : { failure }) };
  }

  /** Too large to transfer, or incomplete on a full disk: it stays where it was made. */
  #notBrought({ why, folder, isDiskFull = false }: NonNullable<News<'ended'>['unsent']>): Result<never> {
    const { place, notReached } = this.subject;
    const rest = `${why} It lies there in ${folder}.`;
    if (isDiskFull) {
      const message = `The disk of host ${place.host} is full; the session goes on from its last checkpoint. ${rest}`;
      return notReached(fail('other-host', message, 'Free some space there.').failure);
    }
    const message = `What the session made on host ${place.host} cannot be brought here: ${rest}`;
    return fail('worktree-failed', message, 'Fetch it from there before you retry the session.');
  }

  async endNow(): Promise<boolean> {
    if (!this.isUnderWay) return true;
    this.#do('endNow');
    const late = Promise.withResolvers<false>();
    this.#sender.later(endMsMax, () => late.resolve(false));
    const hasEnded = await Promise.race([this.#gone.promise.then(() => true), late.promise]);
    return hasEnded && this.#end?.leftover !== true;
  }

  /** Runs a user's command in its folder; only once it has ended. */
  run(command: string, timeoutMs: number): HostedCommand {
    const id = this.subject.git.world.random.uuid();
    const ended = new Promise<CommandEnd>((resolve) => {
      this.#commands.set(id, resolve);
    });
    this.#sender.say({ do: 'run', id, command, timeoutMs });
    return { ended, stop: () => this.#sender.say({ do: 'stopRun', id }) };
  }

  leave(): void {
    this.#hasLeft = true;
  }
}

function lostBefore(host: string) {
  return fail('other-host', `Nothing is heard of the host ${host} any more.`, 'It is tried again elsewhere.');
}

const ofMachine: ReadonlySet<string> = new Set(['busy', 'claude-missing', 'claude-unproven']);

function notTaken(host: string, { message }: Failure): Failure {
  const what = `What host ${host} sent of the session cannot be taken in: ${message}`;
  return fail('worktree-failed', what, 'Check that host before you retry the session.').failure;
}

function refusedBy(host: string, { failure }: News<'refused'>): Result<never> {
  const { reason, message, next } = failure;
  return fail(
    ofMachine.has(reason) ? 'other-host' : (reason as FailureReason),
    `On the host ${host}: ${message}`,
    next,
  );
}

function commandEnd({ exitCode, timedOut, output }: News<'ran'>): CommandEnd {
  return { ok: exitCode === 0 && !timedOut, exitCode, timedOut, printedTooMuch: false, tail: output };
}
