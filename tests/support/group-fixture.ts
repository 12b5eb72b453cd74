/** A group on disk for tests of the runner: temp data root, temp projects, sessions with fixed uuids. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defined } from '../../src/core/defined.ts';
import type { GroupEvent } from '../../src/core/event.ts';
import { defaultGroupConfig, type GroupConfig, type SessionDefinition } from '../../src/core/group.ts';
import { makeGroupId, makeSessionId, sessionUuid } from '../../src/core/id.ts';
import type { GroupState } from '../../src/core/state.ts';
import { type RunResult, runGroup } from '../../src/runner/run-group.ts';
import { readLog } from '../../src/store/event-log.ts';
import { createGroup, loadGroup } from '../../src/store/group-store.ts';
import { type GroupPaths, groupPaths, type SessionPaths, sessionPaths } from '../../src/store/paths.ts';
import { awaitAnswer, type RequestAnswer, type RequestBody, sendRequest } from '../../src/store/requests.ts';
import { createRealWorld } from '../../src/system/real-world.ts';
import type { Clock, World } from '../../src/system/world.ts';
import type { ClaudeGate } from '../../src/worker/attempt/attempt-setup.ts';
import type { RunnerSignal } from '../../src/worker/facts.ts';
import { worktreePath } from './git/workspace-rig.ts';

export const fixtureRoot = join(import.meta.dir, '../..');

export interface SessionSketch {
  readonly name: string;
  readonly after?: readonly string[];
  readonly prompt?: string;
  readonly project?: string;
  readonly fields?: Partial<SessionDefinition>;
}

export interface GroupFixture {
  readonly world: World;
  readonly folder: string;
  readonly root: string;
  readonly groupId: string;
  readonly paths: GroupPaths;
  /** Session id by name. */
  id(name: string): string;
  /** Claude session id by name. */
  claudeId(name: string): string;
  session(name: string): SessionPaths & { readonly worktree: string };
  project(name: string): string;
  state(): GroupState;
  events(): GroupEvent[];
  /** Starts `group run` inside this process. */
  run(env: Readonly<Record<string, string>>, wish?: RunWish): RunningGroup;
  /** From now on the clock runs at this factor; waiting timers follow. */
  hurry(speed: number): void;
  remove(): void;
}

export interface RunWish {
  readonly overrides?: Partial<GroupConfig>;
  readonly retryFailed?: boolean;
  /** The claude to start; absent = the one of the environment, unchecked. */
  readonly claude?: ClaudeGate;
  /** Called for every event, after it was logged. */
  readonly onEvent?: (event: GroupEvent) => void;
  /** Called when the run waits, with the reason and the sentence. */
  readonly onWaiting?: (reason: string, message: string) => void;
  readonly onWarning?: (message: string) => void;
}

export interface RunningGroup {
  readonly result: Promise<RunResult>;
  /** As if this process received the signal. */
  signal(signal: RunnerSignal): void;
  /** Sends the runner a request as another process would; returns its answer. */
  ask(body: RequestBody): Promise<RequestAnswer | 'runner-gone'>;
  /** Resolves with the first event of the given type (and session), past or future. */
  event(type: GroupEvent['type'], sessionId?: string): Promise<GroupEvent>;
}

/** The grace periods of a stop (worker/attempt/worker.ts): a fake answers in real time, so these are not scaled. */
const graces: ReadonlySet<number> = new Set([5_000, 8_000]);

interface Timer {
  readonly dueMs: number;
  readonly action: () => void;
  cancel(): void;
}

/** A clock that runs `speed` times as fast as the real one, so that tests can wait for minutes. */
class FastClock implements Clock {
  readonly #real: Clock;
  #speed: number;
  #fromMs: number;
  #realFromMs: number;
  readonly #timers = new Set<Timer>();

  constructor(real: Clock, speed: number) {
    [this.#real, this.#speed] = [real, speed];
    this.#fromMs = this.#realFromMs = real.now();
  }

  now(): number {
    return this.#fromMs + (this.#real.now() - this.#realFromMs) * this.#speed;
  }

  after(delayMs: number, action: () => void): () => void {
    if (graces.has(delayMs)) return this.#real.after(delayMs, action);
    const timer: Timer = { dueMs: this.now() + delayMs, action, cancel: () => {} };
    this.#timers.add(timer);
    this.#arm(timer, delayMs);
    return () => {
      this.#timers.delete(timer);
      timer.cancel();
    };
  }

  runs(speed: number): void {
    [this.#fromMs, this.#realFromMs, this.#speed] = [this.now(), this.#real.now(), speed];
    for (const timer of this.#timers) {
      timer.cancel();
      this.#arm(timer, timer.dueMs - this.now());
    }
  }

  #arm(timer: Timer, delayMs: number): void {
    timer.cancel = this.#real.after(delayMs / this.#speed, () => {
      this.#timers.delete(timer);
      timer.action();
    });
  }
}

export interface FixtureOptions {
  /** Factor of the clock. */
  readonly speed?: number;
  /** Data root shared with another fixture. */
  readonly root?: string;
  /** Gets the fixture's folder before the sessions are defined; projects must be in `projects/`. */
  readonly beforeSessions?: (folder: string) => void;
}

/** Numbers the sessions in the given order; each has its own project folder by default. */
export function makeGroup(
  sketches: readonly SessionSketch[],
  config: Partial<GroupConfig> = {},
  { speed = 1, root: sharedRoot, beforeSessions = () => {} }: FixtureOptions = {},
): GroupFixture {
  const real = createRealWorld();
  const clock = new FastClock(real.clock, speed);
  const world = { ...real, clock };
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'cca group ')));
  const root = sharedRoot ?? join(folder, 'data');
  const now = Date.parse('2026-01-04T14:30:22Z');
  const groupId = makeGroupId(now, `fixture-${crypto.randomUUID().slice(0, 8)}`);
  const ids = new Map(sketches.map(({ name }, index) => [name, makeSessionId(index + 1, crypto.randomUUID())]));
  const id = (name: string) => {
    const found = ids.get(name);
    if (found === undefined) throw new Error(`no session ${name} in this fixture`);
    return found;
  };
  const project = (name: string) => join(folder, 'projects', name);
  beforeSessions(folder);
  const sessions = sketches.map(({ name, after = [], prompt, project: shared, fields }): SessionDefinition => {
    mkdirSync(project(shared ?? name), { recursive: true });
    return {
      id: id(name),
      name,
      description: `the ${name} part`,
      projectPath: project(shared ?? name),
      prompt: prompt ?? `do ${name}`,
      dependsOn: after.map(id),
      createdAt: new Date(now).toISOString(),
      ...fields,
    };
  });
  const created = createGroup(
    world,
    root,
    {
      id: groupId,
      name: 'Fixture',
      description: 'a group for a test',
      slug: 'fixture',
      createdAt: new Date(now).toISOString(),
      // Fakes are silent until they are stepped, so waiting for warm caches would always time out.
      config: { ...defaultGroupConfig, warmCache: false, ...config },
    },
    sessions,
  );
  if (!created.ok) throw new Error(created.failure.message);
  const paths = groupPaths(root, groupId);
  const projects = new Map(sessions.map((one) => [one.name, one.projectPath]));
  const worktreeAt = (name: string) => worktreePath(world, root, [groupId, id(name)], projects.get(name) ?? '');
  return {
    world,
    folder,
    root,
    groupId,
    paths,
    id,
    claudeId: (name) => sessionUuid(id(name)),
    session: (name) => ({ ...sessionPaths(paths, id(name)), worktree: worktreeAt(name) }),
    project,
    state: () => unwrap(loadGroup(world, root, groupId)),
    events: () => unwrap(readLog(world, paths.events)),
    run: (env, wish = {}) => startRun(world, root, groupId, env, wish),
    hurry: (speed) => clock.runs(speed),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function unwrap<T>(result: { ok: true; value: T } | { ok: false; failure: { message: string } }): T {
  if (!result.ok) throw new Error(result.failure.message);
  return result.value;
}

function startRun(
  world: World,
  root: string,
  groupId: string,
  env: Readonly<Record<string, string>>,
  wish: RunWish,
): RunningGroup {
  const handlers = new Set<(signal: RunnerSignal) => void>();
  const seen: GroupEvent[] = [];
  const waiting: { type: string; sessionId: string | undefined; resolve: (event: GroupEvent) => void }[] = [];
  const matches = (event: GroupEvent, type: string, sessionId: string | undefined) =>
    event.type === type && (sessionId === undefined || ('sessionId' in event && event.sessionId === sessionId));
  const callerEnv = { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', ...env };
  const result = runGroup(world, {
    root,
    groupId,
    callerEnv,
    packageRoot: fixtureRoot,
    overrides: wish.overrides ?? {},
    retryFailed: wish.retryFailed ?? false,
    ...defined({ claude: wish.claude }),
    reporter: {
      event: (event) => {
        seen.push(event);
        wish.onEvent?.(event);
        for (const wait of waiting) if (matches(event, wait.type, wait.sessionId)) wait.resolve(event);
      },
      progress: () => {},
      waiting: (reason, message) => wish.onWaiting?.(reason, message),
      warning: (message) => wish.onWarning?.(message),
      summarize: () => {},
    },
    onSignal: (handler) => {
      handlers.add(handler);
      return () => handlers.delete(handler);
    },
  });
  return {
    result,
    signal: (signal) => {
      for (const handler of handlers) handler(signal);
    },
    ask: (body) => {
      const paths = groupPaths(root, groupId);
      const started = seen.findLast((event) => event.type === 'group_started' || event.type === 'group_resumed');
      const runId = started && 'run' in started ? started.run.id : '';
      const id = crypto.randomUUID();
      const sinceSize = world.files.info(paths.events)?.size ?? 0;
      sendRequest(world, paths, { id, runId, at: new Date().toISOString(), ...body });
      return awaitAnswer(world, paths, { id }, sinceSize);
    },
    event: (type, sessionId) => {
      const past = seen.find((event) => matches(event, type, sessionId));
      if (past) return Promise.resolve(past);
      return new Promise((resolve) => waiting.push({ type, sessionId, resolve }));
    },
  };
}
