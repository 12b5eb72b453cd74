/**
 * `session attach`: stops the worker of a session and opens its conversation in claude's own terminal, with the same
 * login and settings. Meanwhile this process counts the cost and ends claude when the reservation is spent. Afterwards
 * the group continues with the conversation.
 */

import { openCostMeter } from '../../claude/attached-cost.ts';
import { conversationExists, keptMessages } from '../../claude/conversation.ts';
import { advise } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import type { Conversed } from '../../core/event.ts';
import { errorText, fail, ok, type Result } from '../../core/failure.ts';
import { noUsage } from '../../core/group.ts';
import { sessionReference } from '../../core/plan/advice.ts';
import type { Attachment, SessionRecord } from '../../core/session-state.ts';
import { type GroupState, isRehearsal } from '../../core/state.ts';
import { withAnswerHeld } from '../../runner/attach.ts';
import { type Checkouts, openCheckouts } from '../../runner/checkouts.ts';
import type { Rehearsal } from '../../runner/run-group.ts';
import { loadGroup } from '../../store/group-store.ts';
import { sessionPaths, worktreesFolder } from '../../store/paths.ts';
import { systemFailure } from '../../store/system-failure.ts';
import {
  type ForegroundOptions,
  type ForegroundProcess,
  keepTerminal,
  runInForeground,
} from '../../system/terminal.ts';
import { titleOf } from '../../view/wording.ts';
import { createPreparer } from '../../worker/attempt/attempt-setup.ts';
import { CommandSlots } from '../../worker/attempt/command-slots.ts';
import { reap } from '../../worker/reap.ts';
import type { AppContext } from '../app-context.ts';
import { readUserConfig } from '../config/user-config.ts';
import { submit } from '../group-commands.ts';
import { liveRunner } from '../live-runner.ts';
import { whileWaiting } from '../request.ts';
import type { LoadedSession } from '../resolve.ts';
import { gateForGroup } from '../run/claude-gate.ts';
import { isUnlocked, rehearsalOf } from '../run/run-here.ts';
import { onSignal } from '../signals.ts';

const countMs = 500;
/** How long claude may take to exit after a signal, milliseconds. */
const graceMs = 8_000;

export interface AttachOptions {
  opening(reservedUsd: number | undefined): void;
  /** Gives the terminal to claude while `use` runs. */
  lend(use: () => Promise<void>): Promise<void>;
  readonly began?: (guest: ForegroundProcess) => void;
}

export interface Attached {
  readonly conversed: Conversed;
  readonly reservedUsd?: number;
  readonly isSpent: boolean;
  readonly autoResumes: boolean;
  readonly state: GroupState;
}

/** Resolves when the user has left claude. On failure, the session is unchanged or paused. */
export async function attachSession(
  context: AppContext,
  session: LoadedSession,
  ways: AttachOptions,
): Promise<Result<Attached>> {
  const { world } = context;
  const { sessionId } = session;
  const { random, machine } = world;
  const attachmentId = random.uuid();
  const about = { sessionId, attachmentId };
  const process = machine.self;
  const kept = submit(context, session, { kind: 'attach-session', ...about, process });
  const before = await whileWaiting(context, session, kept);
  if (!before.ok) return before;
  let conversed: Conversed = { usage: noUsage, claudeSessionIds: [] };
  const visit = new Visit(context, session, attachmentId, ways);
  const visited = await visit.run((now) => {
    conversed = now;
  });
  const left = await whileWaiting(
    context,
    session,
    submit(context, session, { kind: 'detach-session', ...about, ...conversed }),
  );
  await visit.giveBack();
  if (!visited.ok) return visited;
  if (!left.ok) return left;
  const state = loadGroup(world, session.root, session.groupId);
  if (!state.ok) return state;
  const record = state.value.sessions.get(sessionId);
  const autoResumes =
    liveRunner(world, session) !== null && (record?.queued === true || record?.state.status === 'running');
  return ok({ ...visited.value, conversed, autoResumes, state: state.value });
}

type Visited = Pick<Attached, 'isSpent' | 'reservedUsd'>;

class Visit {
  readonly #context: AppContext;
  readonly #session: LoadedSession;
  readonly #attachmentId: string;
  readonly #ways: AttachOptions;
  readonly #checkouts: Checkouts;
  #rehearsal: Rehearsal | undefined;

  constructor(context: AppContext, session: LoadedSession, attachmentId: string, ways: AttachOptions) {
    this.#context = context;
    this.#session = session;
    this.#attachmentId = attachmentId;
    this.#ways = ways;
    this.#checkouts = openCheckouts(context.world, session.root, session.groupId, attachmentId);
  }

  async run(tell: (conversed: Conversed) => void): Promise<Result<Visited>> {
    try {
      const prepared = await this.#prepare();
      if (!prepared.ok) return prepared;
      const { sessionId } = this.#session;
      const open = await submit(this.#context, this.#session, {
        kind: 'open-attached',
        sessionId,
        attachmentId: this.#attachmentId,
      });
      if (!open.ok) return open;
      const now = this.#look();
      if (!now.ok) return now;
      const { takenOver } = now.value.record;
      if (takenOver?.openedAt === undefined) return fail('internal', 'The session was not attached.', '');
      this.#checkouts.claimed(now.value.state, []);
      return await this.#speak(prepared.value, now.value, takenOver, tell);
    } catch (error) {
      return {
        ok: false,
        failure: systemFailure(sessionPaths(this.#session.paths, this.#session.sessionId).folder, error),
      };
    }
  }

  /** Releases the checkout and the scripted API of a rehearsal. */
  async giveBack(): Promise<void> {
    const now = loadGroup(this.#context.world, this.#session.root, this.#session.groupId);
    // A live runner owns the checkout claim and the scripted API.
    if (!now.ok || liveRunner(this.#context.world, this.#session) !== null) return;
    this.#checkouts.claimed(now.value, []);
    if (now.value.running.size === 0) await this.#rehearsal?.stop(this.#session.paths);
  }

  #look(): Result<{ readonly state: GroupState; readonly record: SessionRecord }> {
    const { root, groupId, sessionId } = this.#session;
    const state = loadGroup(this.#context.world, root, groupId);
    if (!state.ok) return state;
    const record = state.value.sessions.get(sessionId);
    return record === undefined
      ? fail('gone', `Session ${sessionId} was removed.`, '')
      : ok({ state: state.value, record });
  }

  async #prepare(): Promise<Result<ForegroundOptions>> {
    const { world, env, packageRoot } = this.#context;
    const { paths, sessionId } = this.#session;
    const now = this.#look();
    if (!now.ok) return now;
    const { state, record } = now.value;
    const problem = this.#problem(state, record);
    if (problem !== null) return problem;
    const rehearsal = await rehearsalOf(this.#context, this.#session, isRehearsal(state) || undefined);
    if (!rehearsal.ok) return rehearsal;
    this.#rehearsal = rehearsal.value;
    const url = await rehearsal.value?.start(paths);
    if (url?.ok === false) return url;
    const chosen = { config: {}, retryFailed: false, only: [sessionId] };
    const isTaken = rehearsal.value === undefined && (await isUnlocked(world, this.#session));
    const gate =
      rehearsal.value === undefined
        ? await gateForGroup(this.#context, this.#session, chosen, { isTaken })
        : ok(undefined);
    if (!gate.ok) return gate;
    if (gate.value === 'interrupted') return fail('usage', 'The command was interrupted.', '');
    const ofUser = await readUserConfig(this.#context);
    if (!ofUser.ok) return ofUser;
    const slots = new CommandSlots({ atOnce: () => world.machine.cores, chainOf: () => 0 });
    const preparer = createPreparer(world, {
      paths,
      callerEnv: env,
      packageRoot,
      worktrees: ofUser.value.worktrees ?? worktreesFolder(this.#session.root),
      slots,
      isAttended: true,
      ...(url === undefined ? {} : { rehearsalUrl: url.value }),
      ...defined({ claude: gate.value }),
    });
    const startedAt = new Date(world.clock.now()).toISOString();
    const attempt = {
      id: this.#attachmentId,
      number: record.attempts,
      kind: 'resume',
      offset: 0,
      startedAt,
      identified: true,
    } as const;
    const ignored = () => {};
    const about = { state, record, attempt, isolated: ignored, noticed: ignored };
    const launch = await preparer.prepare({ ...about, onStop: ignored });
    await gate.value?.close();
    if (!launch.ok) return launch;
    const { program, args, cwd = paths.folder, env: own } = launch.value.spawn;
    return ok({ words: [program, ...args], cwd, env: own });
  }

  #problem(state: GroupState, record: SessionRecord): Result<never> | null {
    const { world } = this.#context;
    const { paths, sessionId } = this.#session;
    const title = `Session ${titleOf(state, sessionId)}`;
    if (record.state.status === 'completed') {
      const next = advise('Run it again with', ['group', 'copy', state.group.id, '--from', sessionId]);
      return fail('illegal-transition', `${title} completed before you could attach to it.`, next);
    }
    const [id] = record.claudeSessionIds.slice(-1);
    if (id === undefined || !conversationExists(world, sessionPaths(paths, sessionId).config, id)) {
      const next = advise('Start it first with', ['session', 'resume', sessionReference(state, record)]);
      return fail('illegal-transition', `${title} has no conversation to attach to yet.`, next);
    }
    const { repository } = record.definition;
    const isShared = state.group.config.shareCheckouts || record.isolated === true || repository === undefined;
    const other = isShared ? undefined : this.#checkouts.others.workingIn(repository);
    if (other !== undefined) {
      const next = advise('Wait for it, or pause it first', ['group', 'pause', other]);
      return fail('illegal-transition', `A session of group ${other} works in the same checkout.`, next);
    }
    if (record.workspace !== undefined && world.files.info(record.workspace.path)?.kind !== 'folder') {
      const next = advise('It is made again when the session is resumed', [
        'session',
        'resume',
        sessionReference(state, record),
      ]);
      return fail('worktree-failed', `The worktree of ${titleOf(state, sessionId)} is gone.`, next);
    }
    return null;
  }

  async #speak(
    launch: ForegroundOptions,
    { state, record }: { readonly state: GroupState; readonly record: SessionRecord },
    { openedAt = '', reservedUsd }: Attachment,
    tell: (conversed: Conversed) => void,
  ): Promise<Result<Visited>> {
    const { world } = this.#context;
    const { clock } = world;
    const { config } = sessionPaths(this.#session.paths, this.#session.sessionId);
    const meter = openCostMeter(world, config, Date.parse(openedAt), state.group.config.prices ?? {});
    meter.begin();
    this.#ways.opening(reservedUsd);
    let isSpent = false;
    let trouble: unknown;
    let isKilled = false;
    await this.#ways.lend(async () => {
      const restore = keepTerminal();
      let guest: ForegroundProcess;
      try {
        guest = runInForeground(launch);
      } catch (error) {
        trouble = error;
        return;
      }
      this.#ways.began?.(guest);
      // The terminal sends Ctrl-C to claude directly. Other signals end this process and claude.
      const unsubscribe = onSignal(clock, (signal) => {
        if (signal !== 'SIGINT') guest.hangUp();
      });
      let cancel = (): void => {};
      const count = (): void => {
        meter.look();
        if (reservedUsd !== undefined && meter.costUsd >= reservedUsd - sameUsd) {
          isSpent = true;
          guest.end(true);
          cancel = clock.after(graceMs, () => guest.end(false));
        } else cancel = clock.after(countMs, count);
      };
      cancel = clock.after(countMs, count);
      const code = await guest.exited;
      cancel();
      unsubscribe();
      isKilled = code !== 0;
      // A claude that exits by itself restores the terminal.
      if (isKilled) restore();
    });
    await reap(world, this.#attachmentId);
    meter.look();
    const conversed = meter.conversed(clock.now(), record.claudeSessionIds.at(-1));
    const { prices = {} } = state.group.config;
    const kept = () => keptMessages(world, config, record.claudeSessionIds, prices);
    const money = defined({ reservedUsd, model: record.model });
    tell(isKilled && meter.isAsking ? withAnswerHeld(conversed, kept(), money, prices) : conversed);
    if (trouble !== undefined) return fail('spawn-failed', `claude cannot be started: ${errorText(trouble)}.`, '');
    return ok({ isSpent, ...defined({ reservedUsd }) });
  }
}

/** US dollars; compares with a tolerance, because sums of floats differ in their last digits. */
const sameUsd = 1e-9;
