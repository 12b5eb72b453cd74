/**
 * A user who attaches to a session like `session attach`: the command requests the session, opens claude in its
 * conversation, and counts the cost from claude's files. claude has no cap then.
 */
import { join } from 'node:path';
import { submit } from '../../../src/app/group-commands.ts';
import type { GroupReference } from '../../../src/app/resolve.ts';
import { openCostMeter } from '../../../src/claude/attached-cost.ts';
import type { Conversed } from '../../../src/core/event.ts';
import { fail, ok, type Result } from '../../../src/core/failure.ts';
import { noUsage } from '../../../src/core/group.ts';
import { loadGroup } from '../../../src/store/group-store.ts';
import { sessionPaths } from '../../../src/store/paths.ts';
import type { World } from '../../../src/system/world.ts';
import { costStateLine, type ModelCall, messageLine, readTotal, type Total, wholeUsd } from './claude-lines.ts';
import type { Act } from './scenario.ts';
import { type Seeded, seededFor } from './seeded.ts';
import type { VirtualMachine } from './virtual-machine.ts';
import type { VirtualProcess } from './virtual-processes.ts';
import type { VirtualRunner } from './virtual-runner.ts';

/** What really happened while a user was attached. */
export interface GuestBook {
  readonly process: VirtualProcess;
  readonly attachmentId: string;
  readonly sessionId: string;
  readonly claudeSessionId: string;
  /** What the API billed, US dollars, and how much of it claude's file shows. */
  chargedUsd: number;
  keptUsd: number;
  /** Their detach is logged, with this cost. */
  recordedUsd: number | null;
  /** Its command has counted it; otherwise another process does later, using only the times in the files. */
  isCounted: boolean;
  /** A power cut or a clock jump may have removed what the file showed. */
  isUnsure: boolean;
  /** A full disk has truncated a line, and the next one is joined to it. */
  isTorn: boolean;
}

type Attach = Extract<Act, { do: 'attach' }>;

/** A reporter without output. */
const notes = { line() {}, passing() {} };

export async function takeOver(
  machine: VirtualMachine,
  group: GroupReference,
  {
    sessionId,
    act,
    world,
    runner,
  }: {
    readonly sessionId: string;
    readonly act: Attach;
    readonly world: World;
    readonly runner: VirtualRunner;
  },
): Promise<Result<unknown>> {
  const ask = { sessionId, attachmentId: world.random.uuid() };
  const place = { world, notes };
  const kept = await submit(place, group, { kind: 'attach-session', ...ask, process: runner.process.identity });
  if (!kept.ok) return kept;
  const conversed = await visit(machine, group, { ...ask, act, world, runner });
  if (!runner.alive) return fail('usage', 'It died.', '');
  const left = await submit(place, group, {
    kind: 'detach-session',
    ...ask,
    ...(conversed.ok ? conversed.value : { usage: noUsage, claudeSessionIds: [] }),
  });
  return conversed.ok ? left : conversed;
}

interface Visit {
  readonly sessionId: string;
  readonly attachmentId: string;
  readonly act: Attach;
  readonly world: World;
  readonly runner: VirtualRunner;
}

async function visit(machine: VirtualMachine, group: GroupReference, given: Visit): Promise<Result<Conversed>> {
  const { sessionId, attachmentId, act, world, runner } = given;
  const { config } = sessionPaths(group.paths, sessionId);
  const now = loadGroup(world, group.root, group.groupId);
  if (!now.ok) return now;
  const claudeSessionId = now.value.sessions.get(sessionId)?.claudeSessionIds.at(-1) ?? '';
  const conversation = join(config, 'projects', 'p', `${claudeSessionId}.jsonl`);
  if (!((world.files.info(conversation)?.size ?? 0) > 0))
    return fail('illegal-transition', 'Nothing to go on with.', '');
  const opened = await submit({ world, notes }, group, { kind: 'open-attached', sessionId, attachmentId });
  if (!opened.ok) return opened;
  const state = loadGroup(world, group.root, group.groupId);
  if (!state.ok) return state;
  const { openedAt, reservedUsd } = state.value.sessions.get(sessionId)?.takenOver ?? {};
  if (openedAt === undefined) return fail('illegal-transition', 'No user is attached.', '');
  const meter = openCostMeter(world, config, Date.parse(openedAt), state.value.group.config.prices ?? {});
  meter.begin();
  const guest = new Guest(machine, runner.process, { attachmentId, sessionId, claudeSessionId, conversation });
  for (let said = 0; said < act.messages && guest.isThere; said += 1) {
    await pause(world, guest.luck.delay(500, 4_000));
    guest.hears();
    meter.look();
    if (reservedUsd !== undefined && meter.costUsd >= reservedUsd - 1e-9) break;
  }
  await pause(world, guest.luck.delay(50, 1_000));
  guest.leaves();
  meter.look();
  guest.isCounted();
  return ok(meter.conversed(world.clock.now(), claudeSessionId));
}

/** The claude in front of the user. */
class Guest {
  readonly luck: Seeded;
  readonly #machine: VirtualMachine;
  readonly #book: GuestBook;
  readonly #conversation: string;
  readonly #base: Total;
  readonly #calls: ModelCall[] = [];

  constructor(
    machine: VirtualMachine,
    command: VirtualProcess,
    {
      conversation,
      ...about
    }: Pick<GuestBook, 'attachmentId' | 'sessionId' | 'claudeSessionId'> & {
      readonly conversation: string;
    },
  ) {
    const process = machine.table.start('claude', command, about.attachmentId);
    const hears = (signal: string): void => {
      if (signal === 'SIGTERM') machine.table.end(process, { kind: 'signalled', signal });
    };
    process.onSignal = hears;
    this.luck = seededFor(machine.scenario.seed, process.name);
    this.#machine = machine;
    this.#conversation = conversation;
    this.#book = {
      ...about,
      process,
      chargedUsd: 0,
      keptUsd: 0,
      recordedUsd: null,
      isCounted: false,
      isUnsure: false,
      isTorn: false,
    };
    const text = new TextDecoder().decode(machine.disk.file(conversation)?.read(0, Number.MAX_SAFE_INTEGER));
    // A power cut may have truncated the last line, too.
    this.#book.isTorn = !text.endsWith('\n');
    this.#base = readTotal(text) ?? { usd: 0, calls: [] };
    machine.guests.push(this.#book);
    machine.checks.letIn(this.#book);
  }

  get isThere(): boolean {
    return this.#book.process.alive;
  }

  /** The model answers what was typed. */
  hears(): void {
    if (!this.isThere) return;
    const call: ModelCall = { input: this.luck.int(200, 3_000), output: this.luck.int(1, 600) };
    const id = `g-${this.#book.process.identity.pid}-${this.#calls.length}`;
    this.#book.chargedUsd += wholeUsd(call);
    this.#calls.push(call);
    if (this.#keep({ ...messageLine(id, call, null, call.output), ...this.#stamp() })) {
      this.#book.keptUsd += wholeUsd(call);
    }
  }

  isCounted(): void {
    this.#book.isCounted = true;
  }

  leaves(): void {
    if (!this.isThere) return;
    if (this.#machine.hasLastingTotals) {
      const usd = this.#calls.reduce((sum, call) => sum + wholeUsd(call), this.#base.usd);
      this.#keep(costStateLine({ usd, calls: [...this.#base.calls, ...this.#calls] }));
    }
    this.#machine.table.end(this.#book.process, { kind: 'exited', code: 0 });
  }

  #stamp(): object {
    return { timestamp: new Date(this.#machine.timeline.wall()).toISOString() };
  }

  #keep(line: object): boolean {
    const wasTorn = this.#book.isTorn;
    const end = this.#machine.appendQuietly(this.#conversation, Buffer.from(`${JSON.stringify(line)}\n`));
    this.#book.isTorn = end === null;
    return !wasTorn && end !== null;
  }
}

function pause(world: World, ms: number): Promise<void> {
  return new Promise((resolve) => {
    world.clock.after(ms, resolve);
  });
}
