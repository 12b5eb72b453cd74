/**
 * A machine of a fleet as the tests of any machine see it: a redis-server, an agent and a guard as processes of their
 * own, and the end of the runner that talks to them.
 */
import { mkdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { attemptMark } from '../../../src/claude/launch/environment.ts';
import type { Place } from '../../../src/core/event.ts';
import type { SessionId, Workspace } from '../../../src/core/group.ts';
import type { Attempt } from '../../../src/core/session-state.ts';
import { openEngineLink } from '../../../src/fleet/engine-link.ts';
import { Fleet } from '../../../src/fleet/fleet.ts';
import { type FleetConfig, fleetPaths, writeHost } from '../../../src/fleet/fleet-files.ts';
import { FleetRedis } from '../../../src/fleet/redis.ts';
import type { RemoteAttempt } from '../../../src/fleet/remote-attempt.ts';
import { newFleetKeys } from '../../../src/fleet/seal.ts';
import { groupPaths, type SessionPaths, sessionPaths } from '../../../src/store/paths.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import type { SpawnOptions } from '../../../src/system/world.ts';
import type { AttemptSubject } from '../../../src/worker/host.ts';
import { groupId, sessionDefinition } from '../core-events.ts';
import { Machine } from '../fleet-ground.ts';
import { git, Repository } from '../git/repository.ts';
import { packageRoot } from '../group-fixture.ts';
import { type RedisServer, startRedis } from '../redis-server.ts';
import { basePath, makeTempFolder, until, unwrap } from '../system/rig.ts';
import { makeShellClaude, type OpenHost, type Preparing, spawnOf, type TestedHost } from './tested-host.ts';

const world = createRealWorld();
const leaseMs = 60_000;
const attemptFields = {
  number: 1,
  kind: 'start',
  offset: 0,
  startedAt: '2026-01-02T03:04:05.000Z',
  identified: false,
} as const;

export async function openFleetMachine(): Promise<OpenHost> {
  const temp = makeTempFolder();
  const server = await startRedis(temp.path);
  return new FleetMachine(temp, server);
}

class FleetMachine implements OpenHost {
  readonly #temp: ReturnType<typeof makeTempFolder>;
  readonly #server: RedisServer;
  readonly #config: FleetConfig;
  readonly #root: string;
  readonly #machine: Machine;
  readonly #program: string;
  readonly #repository: Repository;
  readonly #base: string;
  /** By attempt. */
  readonly #places = new Map<string, { readonly place: Place; readonly offset: number }>();
  /** Attempts that have something to set up. */
  readonly #settingUp = new Set<string>();
  #current: Fleet | null = null;

  constructor(temp: ReturnType<typeof makeTempFolder>, server: RedisServer) {
    [this.#temp, this.#server] = [temp, server];
    const { sealingKey, publicKey, signingKey } = newFleetKeys();
    const common = { version: 1 as const, redis: server.url, sealingKey, leaseMs };
    this.#config = { ...common, publicKey, signingKey };
    this.#root = join(temp.path, 'machine');
    const own = { runnerKeys: [publicKey], name: 'one', slots: 4, labels: [] };
    unwrap(writeHost(world.files, this.#root, { ...common, ...own }));
    const home = join(temp.path, 'home');
    mkdirSync(home);
    this.#program = makeShellClaude(temp.path);
    const claude = { CLAUDE_CODE_AGENT_CLAUDE: this.#program, ANTHROPIC_API_KEY: 'test-key' };
    this.#machine = new Machine(this.#root, home, { PATH: basePath, HOME: home, ...claude });
    this.#machine.start();
    this.#repository = new Repository(join(temp.path, 'project'));
    this.#base = this.#repository.commit({ 'kept.txt': 'kept\n' });
  }

  async next(): Promise<TestedHost> {
    const link = unwrap(await openEngineLink(world, this.#config, groupId, FleetRedis.open));
    const fleet = new Fleet(world, link, {
      ...{ groupId, leaseMs, git: { world, env: process.env }, packageRoot, localSlots: 1 },
      onChange: () => {},
      onLost: () => {},
    });
    // One runner at a time: what an earlier one has let go of and nobody asks for is given back by this.
    await this.#current?.close();
    this.#current = fleet;
    fleet.hello('one');
    const given = new Map<string, Attempt>();
    return {
      attempt: async (subject) => {
        const hosted = await this.#attempt(fleet, subject);
        const { place } = hosted.subject;
        given.set(subject.attemptId, { ...attemptFields, id: subject.attemptId, place });
        return hosted;
      },
      close: async () => {
        for (const attempt of given.values()) fleet.over(attempt);
      },
    };
  }

  async #attempt(fleet: Fleet, subject: AttemptSubject): Promise<RemoteAttempt> {
    const { attemptId, sessionId, paths } = subject;
    const known = this.#places.get(attemptId);
    const { place, offset } = known ?? {
      place: await granted(fleet, sessionId),
      offset: world.files.info(paths.transcript)?.size ?? 0,
    };
    this.#places.set(attemptId, { place, offset });
    const setup = this.#settingUp.has(attemptId) ? { setup: 'exec sleep 1000' } : {};
    const input = {
      ...{ ...subject, place, number: 1, offset, waits: false, definition: { ...sessionDefinition(1), ...setup } },
      workspace: () => this.#worktreeOf(subject),
    };
    return known === undefined ? fleet.attempt(input) : fleet.recall(input);
  }

  #worktreeOf({ paths }: AttemptSubject): Workspace {
    return {
      ...{ path: paths.worktree, folder: paths.worktree, repository: join(this.#repository.folder, '.git') },
      ...{ branch: `cca/test/${basename(paths.folder)}`, base: this.#base },
    };
  }

  prepare(subject: AttemptSubject): void {
    const { path, branch, base } = this.#worktreeOf(subject);
    git(this.#repository.folder, 'worktree', 'add', '--quiet', '--force', '-B', branch, path, base);
  }

  spawn(subject: AttemptSubject, script: string): SpawnOptions {
    return spawnOf(subject, script, this.#program, subject.paths.worktree);
  }

  there({ sessionId }: AttemptSubject): SessionPaths {
    return sessionPaths(groupPaths(fleetPaths(this.#root).work, groupId), sessionId);
  }

  loseProgram(): void {
    rmSync(this.#program);
  }

  async beginPreparing(host: TestedHost, subject: AttemptSubject): Promise<Preparing> {
    this.#settingUp.add(subject.attemptId);
    const hosted = await host.attempt(subject);
    void hosted.start(this.spawn(subject, 'exit 0'), 0);
    const setUp = await until(() => world.processes.findMarked(attemptMark, subject.attemptId)[0]);
    return { hosted, setUp };
  }

  async close(): Promise<void> {
    await this.#current?.close();
    await this.#machine.burn([...this.#places.keys()]);
    await this.#server.kill();
    this.#temp.remove();
  }
}

async function granted(fleet: Fleet, sessionId: SessionId): Promise<Place> {
  fleet.want([{ do: 'wish', sessionId, needs: {} }]);
  const place = await until(() => fleet.view.granted.get(sessionId));
  fleet.take(sessionId);
  return place;
}
