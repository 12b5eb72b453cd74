/**
 * The users at the keyboard and the faults of the machine: a scenario's actions, and then whatever brings the group to
 * its end.
 */
import type { GroupReference } from '../../../src/app/resolve.ts';
import { describeFailure, type Result } from '../../../src/core/failure.ts';
import type { GroupConfig } from '../../../src/core/group.ts';
import { type RunResult, runGroup } from '../../../src/runner/run-group.ts';
import type { World } from '../../../src/system/world.ts';
import type { Reporter } from '../../../src/view/reporter.ts';
import type { RunnerSignal } from '../../../src/worker/facts.ts';
import { invariants } from './checks.ts';
import { Commands } from './commands.ts';
import { callerEnv, simulatedPackageRoot } from './group-setup.ts';
import type { Act } from './scenario.ts';
import { SystemError } from './virtual-files.ts';
import type { VirtualMachine } from './virtual-machine.ts';
import { VirtualRunner } from './virtual-runner.ts';

/** What planted bugs insert between the program and the machine. */
export type Wrap = (world: World, runner: VirtualRunner) => World;
export type Listen = (runner: VirtualRunner) => Pick<Reporter, 'event' | 'progress' | 'resting'>;

const deaf: ReturnType<Listen> = { event() {}, progress() {} };

const lookMs = 900;
/** How long a hanging claude is watched before the user presses Ctrl-C. */
const patienceMs = 8_000;
/** Longer than a silence that its runner must notice, or than a slow tool. */
const muteMs = 120_000;
const roundsMax = 7;
/** A group that is started this often never ends. */
const roundsLimit = 60;
/** A command, or a run without hanging processes, takes no longer. */
const longestMs = 9_000_000;

interface Run {
  readonly runner: VirtualRunner;
  readonly signals: Set<(signal: RunnerSignal) => void>;
  readonly sinceMs: number;
}

export class SimulatedUser {
  /** The group has ended, and no action is pending. */
  isDone = false;
  readonly #machine: VirtualMachine;
  readonly #group: GroupReference;
  readonly #wrap: Wrap;
  readonly #listen: Listen;
  #run: Run | null = null;
  #actsLeft = 0;
  #rounds = 0;
  #hangsSinceMs: number | null = null;
  #raised: Partial<GroupConfig> = {};
  #raises = 0;
  /** Live processes of commands, with their start times. */
  readonly #acting = new Map<VirtualRunner, number>();
  readonly #commands: Commands;

  constructor(
    machine: VirtualMachine,
    group: GroupReference,
    { wrap = (world) => world, listen = () => deaf }: { readonly wrap?: Wrap; readonly listen?: Listen },
  ) {
    this.#machine = machine;
    this.#group = group;
    this.#wrap = wrap;
    this.#listen = listen;
    this.#commands = new Commands({
      machine,
      group,
      command: (work) => this.#command(work),
      runOnly: (only) => this.#start(false, only),
      onDeleted: () => {
        this.isDone = true;
      },
    });
    const { acts } = machine.scenario;
    this.#actsLeft = acts.length;
    for (const { atMs, ...act } of acts) {
      machine.timeline.schedule(atMs, `user: ${act.do}`, null, () => {
        this.#actsLeft -= 1;
        this.#do(act as Act);
      });
    }
    this.#lookLater();
  }

  #lookLater(): void {
    this.#machine.timeline.schedule(lookMs, 'user looks', null, () => {
      this.#look();
      if (!this.isDone) this.#lookLater();
    });
  }

  #do(act: Act): void {
    const { machine } = this;
    machine.say(`USER ${JSON.stringify(act)}`);
    machine.coverage.note(`act ${act.do}`);
    switch (act.do) {
      case 'run':
        this.#start(act.retryFailed);
        return;
      case 'signal':
        this.#signal(act.signal);
        return;
      case 'kill':
        this.#run?.runner.die('kill -9');
        return;
      case 'kill-attached':
        for (const { process } of machine.guests.filter(({ process: guest }) => guest.alive)) {
          machine.runners.find(({ process: command }) => command === process.parent)?.die('kill -9');
        }
        return;
      case 'power-cut':
        machine.cutPower();
        return;
      case 'disk-full':
        machine.trouble.full = true;
        machine.timeline.schedule(act.forMs, 'the disk has room again', null, () => {
          machine.trouble.full = false;
        });
        return;
      case 'clock-jump':
        machine.timeline.wallOffsetMs += act.byMs;
        for (const guest of machine.guests) guest.isUnsure = true;
        return;
      case 'short':
        this.#shorten(act.of, act.forMs);
        return;
      default:
        this.#ask(act);
    }
  }

  #shorten(what: 'memory' | 'disk', forMs: number): void {
    const { machine } = this;
    const set = (isShort: boolean) => {
      if (what === 'memory') machine.isMemoryShort = isShort;
      else machine.trouble.low = isShort;
    };
    set(true);
    machine.timeline.schedule(forMs, `enough ${what} again`, null, () => set(false));
  }

  /** Requests by separate commands. */
  #ask(
    act: Exclude<
      Act,
      {
        do: ('run' | 'signal' | 'kill' | 'kill-attached' | 'power-cut' | 'disk-full') | ('clock-jump' | 'short');
      }
    >,
  ): void {
    const commands = this.#commands;
    switch (act.do) {
      case 'run-only': {
        const sessionId = [...(this.#machine.log.state?.sessions.keys() ?? [])][act.index];
        if (sessionId !== undefined) this.#start(false, [sessionId]);
        return;
      }
      case 'pause':
        commands.pause(act.mode);
        return;
      case 'thaw':
        commands.thaw();
        return;
      case 'raise-budget':
        commands.raiseBudget(act.byUsd);
        return;
      case 'add-session':
        commands.addSession(act.dependsOnLast);
        return;
      case 'remove-session':
        commands.removeSession(act.index);
        return;
      case 'delete':
        commands.delete();
        return;
      case 'attach':
        commands.attach(act);
        return;
      case 'answer':
        commands.answer(act.words);
        return;
      default:
        commands.ofSession(act);
    }
  }

  /** The user continues until the group has an end that only a person could change. */
  #look(): void {
    const { machine } = this;
    for (const [runner, sinceMs] of this.#acting) {
      if (!runner.alive) this.#acting.delete(runner);
      else if (machine.timeline.nowMs - sinceMs > longestMs) this.#stuck(runner);
    }
    if (this.#run !== null && !this.#run.runner.alive) this.#run = null;
    if (this.#run !== null) {
      this.#watchRun(this.#run);
      return;
    }
    if (this.#actsLeft > 0) {
      if (machine.luck.chance(0.5)) this.#start(false);
      return;
    }
    const { state } = machine.log;
    const isOver = state?.status === 'completed' || (this.#rounds >= roundsMax && state?.status !== 'running');
    // Without sessions there is nothing to run, whatever state a crash left the group in.
    const isEmpty = state === null || state.sessions.size === 0;
    if ((isOver || isEmpty) && machine.locks.size === 0) {
      this.isDone = true;
      return;
    }
    machine.trouble.full = false;
    machine.trouble.low = false;
    machine.isMemoryShort = false;
    // Without an answer nothing would continue.
    if (this.#commands.answer('allow')) return;
    if (this.#rounds >= roundsMax) machine.callOffCrashes();
    if (this.#rounds >= roundsLimit) {
      machine.violate(invariants.liveness, `${roundsLimit} runs did not bring the group to an end`);
      this.isDone = true;
      return;
    }
    this.#rounds += 1;
    this.#start(this.#rounds % 2 === 0);
  }

  #watchRun({ runner, sinceMs }: Run): void {
    const { timeline } = this.#machine;
    const untold = this.#machine
      .livingClaudes()
      .find(({ begun, process }) => !begun && timeline.nowMs - Math.max(process.bornMs, sinceMs) > muteMs);
    if (untold) this.#machine.violate(invariants.liveness, `${untold.process.name} waits for its task`);
    // A full disk may have lost the end of a tool, so that its session looks busy for ever.
    const isMute = (spokeMs: number) => timeline.nowMs - spokeMs > muteMs;
    if (this.#machine.livingClaudes().some(({ hangs, begun, spokeMs }) => hangs || (begun && isMute(spokeMs)))) {
      this.#hangsSinceMs ??= timeline.nowMs;
      if (timeline.nowMs - this.#hangsSinceMs < patienceMs) return;
      this.#hangsSinceMs = null;
      this.#signal('SIGINT');
    } else if (timeline.nowMs - sinceMs > longestMs) this.#stuck(runner);
  }

  #stuck(runner: VirtualRunner): void {
    this.#machine.violate(
      invariants.liveness,
      `${runner.process.name} has been at work for ${longestMs / 60_000} minutes`,
    );
  }

  #start(retryFailed: boolean, only?: readonly string[]): void {
    const runner = new VirtualRunner(this.#machine);
    const run: Run = { runner, signals: new Set(), sinceMs: this.#machine.timeline.nowMs };
    // A second `group run` is refused; the first one still gets the signals.
    if (this.#run === null || !this.#run.runner.alive) this.#run = run;
    const overrides = this.#raised;
    this.#raised = {};
    const listener = this.#listen(runner);
    const work = runGroup(this.#wrap(runner.world, runner), {
      root: this.#group.root,
      groupId: this.#group.groupId,
      callerEnv,
      packageRoot: simulatedPackageRoot,
      overrides,
      retryFailed,
      ...(only === undefined ? {} : { only }),
      reporter: {
        event: (event, state, live) => {
          this.#machine.checks.knows(runner, state);
          listener.event(event, state, live);
        },
        progress: (...what) => listener.progress(...what),
        resting: (...what) => listener.resting?.(...what),
        waiting: (_reason, message) => this.#machine.checks.says('group run', message),
        summarize: () => {},
      },
      onSignal: (handler) => {
        run.signals.add(handler);
        return () => run.signals.delete(handler);
      },
    });
    this.#conclude(runner, work, (result) => this.#onResult(runner, result));
  }

  #onResult(runner: VirtualRunner, result: RunResult): void {
    const { machine } = this;
    if (result.kind === 'refused') machine.checks.says('group run', describeFailure(result.failure));
    machine.say(`group run: ${result.kind} ${result.kind === 'refused' ? JSON.stringify(result.failure) : ''}`);
    machine.coverage.note(`run ${result.kind === 'refused' ? `refused ${result.failure.reason}` : result.kind}`);
    if (result.kind === 'refused' && /^(?:corrupt-file|internal|newer-version)$/.test(result.failure.reason)) {
      machine.violate(invariants.exceptions, `the run was refused: ${result.failure.message}`);
    }
    if (result.kind === 'left') machine.checks.supervision.left();
    if (result.kind !== 'settled') return;
    machine.checks.ended(runner);
    machine.checks.settled();
    if (result.status !== 'completed' && result.state.reason === 'budget') {
      const { maxBudgetUsd } = result.state.group.config;
      if (maxBudgetUsd !== undefined) {
        // At first by so little that it is exhausted again.
        this.#raises += 1;
        this.#raised = { maxBudgetUsd: maxBudgetUsd + (this.#raises <= 3 ? 0.08 : 0.5) };
      }
    }
  }

  #signal(signal: RunnerSignal): void {
    const run = this.#run;
    if (run === null || !run.runner.alive) return;
    // Without a handler a signal ends the process.
    if (run.signals.size === 0) run.runner.die(signal);
    for (const handler of run.signals) handler(signal);
  }

  /** A user's process that acts on the group and ends. */
  #command<T>(work: (world: World, runner: VirtualRunner) => Promise<Result<T>>): void {
    const runner = new VirtualRunner(this.#machine);
    this.#acting.set(runner, this.#machine.timeline.nowMs);
    this.#conclude(runner, work(this.#wrap(runner.world, runner), runner), (result) => {
      if (!result.ok) this.#machine.checks.says('a command', describeFailure(result.failure));
      this.#machine.say(`command: ${result.ok ? 'done' : result.failure.message}`);
      this.#machine.coverage.note(result.ok ? 'command done' : `command refused ${result.failure.reason}`);
    });
  }

  #conclude<T>(runner: VirtualRunner, work: Promise<T>, onEnd: (result: T) => void): void {
    const over = (end: () => void) => {
      if (!runner.alive) return;
      runner.exit();
      end();
    };
    work.then(
      (result) => over(() => onEnd(result)),
      (error: unknown) =>
        over(() => {
          this.#machine.say(`${runner.process.name} failed: ${error}`);
          if (error instanceof SystemError) return;
          this.#machine.violate(
            invariants.exceptions,
            error instanceof Error ? (error.stack ?? String(error)) : String(error),
          );
        }),
    );
  }

  private get machine(): VirtualMachine {
    return this.#machine;
  }
}
