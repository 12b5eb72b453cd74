/**
 * Slots of machines as BullMQ jobs: a job is a wish for a slot, and its lock is the lease of whoever took it. The work
 * itself is none of BullMQ's business, so it never repeats, stalls or fails one of them. No other file knows BullMQ.
 */
import type { Queue, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { ok, type Result } from '../core/failure.ts';
import type { World } from '../system/world.ts';
import type { Lease, SlotLeases, TakenWish, WishOptions, WishPlace } from './engine.ts';
import { labelSetOf, labelSetsKey, labelsOf, queueName, queuePrefix, wishChannel } from './keys.ts';
import { type Wish, wish as wishShape } from './wire.ts';

/** The connection that this works with. */
export interface LeaseRedis {
  readonly client: Redis;
  ask<T>(question: (redis: Redis) => Promise<T>): Promise<Result<T>>;
}

const name = 'slot';
/** BullMQ's own list of what happened; nobody reads it. */
const eventsMax = 10;

export class Leases implements SlotLeases {
  readonly #redis: LeaseRedis;
  readonly #world: World;
  readonly #leaseMs: number;
  readonly #queues = new Map<string, Promise<Queue>>();
  readonly #takers = new Map<string, Promise<Worker>>();

  constructor(world: World, redis: LeaseRedis, leaseMs: number) {
    this.#world = world;
    this.#redis = redis;
    this.#leaseMs = leaseMs;
  }

  async wish(
    wish: Wish,
    { labels, priority, job = this.#world.random.uuid() }: WishOptions,
  ): Promise<Result<WishPlace>> {
    const labelSet = labelSetOf(labels);
    const options = { jobId: job, priority, attempts: 1, removeOnComplete: true, removeOnFail: true };
    const added = await this.#ask(this.#queues, labelSet, async (queue) => {
      const { client } = this.#redis;
      await client.sadd(labelSetsKey, labelSet);
      await queue.add(name, wish, options);
      await client.publish(wishChannel, labelSet);
    });
    return added.ok ? ok({ labelSet, job }) : added;
  }

  withdraw({ labelSet, job }: WishPlace): Promise<Result<boolean>> {
    return this.#ask(this.#queues, labelSet, (queue) => removeUnheld(queue, job));
  }

  async take(labels: readonly string[], token: string): Promise<Result<TakenWish | null>> {
    const own = new Set(labels);
    const sets = await this.#labelSets();
    if (!sets.ok) return sets;
    const fitting = sets.value.filter((labelSet) => labelsOf(labelSet).every((label) => own.has(label)));
    // Wishes that few machines can grant go first.
    fitting.sort((a, b) => labelsOf(b).length - labelsOf(a).length || (a < b ? -1 : 1));
    for (const labelSet of fitting) {
      const taken = await this.#ask(this.#takers, labelSet, async (worker) => {
        const job = await worker.getNextJob(token, { block: false });
        return job === undefined ? null : { id: job.id as string, data: job.data as unknown };
      });
      if (!taken.ok) return taken;
      if (taken.value === null) continue;
      const lease = { labelSet, job: taken.value.id, token };
      const wish = wishShape.safeParse(taken.value.data);
      if (wish.success) return ok({ ...lease, wish: wish.data });
      // Written by another program, or another version: nobody here understands it.
      await this.complete(lease);
    }
    return ok(null);
  }

  async renew(leases: readonly Lease[]): Promise<Result<ReadonlySet<Lease>>> {
    const missing = new Set<Lease>();
    for (const [labelSet, all] of Map.groupBy(leases, (lease) => lease.labelSet)) {
      const [jobs, tokens] = [all.map(({ job }) => job), all.map(({ token }) => token)];
      const renewed = await this.#ask(this.#takers, labelSet, (worker) =>
        worker.extendJobLocks(jobs, tokens, this.#leaseMs),
      );
      if (!renewed.ok) return renewed;
      const lost = new Set(renewed.value);
      for (const lease of all) if (lost.has(lease.job)) missing.add(lease);
    }
    return ok(missing);
  }

  complete({ labelSet, job, token }: Lease): Promise<Result<boolean>> {
    return this.#ask(this.#queues, labelSet, async (queue) => {
      const held = await queue.getJob(job);
      if (held === undefined) return false;
      try {
        await held.moveToCompleted(null, token, false);
        return true;
      } catch (error) {
        if (!/lock/i.test(String(error))) throw error;
      }
      // Where its lease is over nobody else would ever remove it.
      await removeUnheld(queue, job);
      return false;
    });
  }

  async look(places: readonly WishPlace[]): Promise<Result<(number | null)[]>> {
    return this.#redis.ask(async (redis) => {
      const pipeline = redis.pipeline();
      for (const { labelSet, job } of places) pipeline.pttl(`${queuePrefix}:${queueName(labelSet)}:${job}:lock`);
      const answers = (await pipeline.exec()) ?? [];
      return answers.map(([error, left]) => {
        if (error !== null) throw error;
        return Number(left) >= 0 ? Number(left) : null;
      });
    });
  }

  /** `taken`: by somebody who holds it, or who has lost it since (see `look`). */
  async stateOf({ labelSet, job }: WishPlace): Promise<Result<'waiting' | 'taken' | 'gone'>> {
    return this.#ask(this.#queues, labelSet, async (queue) => {
      const state = await queue.getJobState(job);
      if (state === 'active') return 'taken';
      return ['waiting', 'prioritized', 'delayed', 'paused'].includes(state) ? 'waiting' : 'gone';
    });
  }

  async dead<P extends WishPlace>(places: readonly P[]): Promise<Result<ReadonlySet<P>>> {
    const dead = new Set<P>();
    const taken: P[] = [];
    for (const [index, state] of (await Promise.all(places.map((place) => this.stateOf(place)))).entries()) {
      if (!state.ok) return state;
      const place = places[index] as P;
      if (state.value === 'gone') dead.add(place);
      else if (state.value === 'taken') taken.push(place);
    }
    // A lock comes with the taking, so afterwards only the end of a lease can have removed it.
    const locks = await this.look(taken);
    if (!locks.ok) return locks;
    for (const [index, left] of locks.value.entries()) if (left === null) dead.add(taken[index] as P);
    return ok(dead);
  }

  /** How many wishes wait, by the labels that they ask for. */
  async waiting(): Promise<Result<{ readonly labels: readonly string[]; readonly count: number }[]>> {
    const sets = await this.#labelSets();
    if (!sets.ok) return sets;
    const counts: { labels: readonly string[]; count: number }[] = [];
    for (const labelSet of sets.value) {
      const counted = await this.#ask(this.#queues, labelSet, (queue) =>
        queue.getJobCountByTypes('wait', 'prioritized'),
      );
      if (!counted.ok) return counted;
      counts.push({ labels: labelsOf(labelSet), count: counted.value });
    }
    return ok(counts);
  }

  async #labelSets(): Promise<Result<string[]>> {
    return this.#redis.ask((redis) => redis.smembers(labelSetsKey));
  }

  /** What BullMQ made is thrown away when it could not begin: it would not try again. */
  async #ask<Q extends Queue | Worker, T>(
    made: Map<string, Promise<Q>>,
    labelSet: string,
    question: (queue: Q) => Promise<T>,
  ): Promise<Result<T>> {
    return this.#redis.ask(async () => {
      let making = made.get(labelSet);
      if (making === undefined) {
        // It would wait for a connection however long that takes.
        await this.#redis.client.ping();
        making = made.get(labelSet);
      }
      if (making === undefined) {
        making = (made === (this.#takers as unknown) ? this.#taker(labelSet) : this.#queue(labelSet)) as Promise<Q>;
        made.set(labelSet, making);
        making.catch(() => made.delete(labelSet));
      }
      return question(await making);
    });
  }

  async #queue(labelSet: string): Promise<Queue> {
    const { Queue: Made } = await import('bullmq');
    const connection = this.#redis.client;
    const queue = new Made(queueName(labelSet), {
      connection,
      prefix: queuePrefix,
      skipVersionCheck: true,
      streams: { events: { maxLen: eventsMax } },
    });
    queue.on('error', () => {});
    await queue.waitUntilReady();
    return queue;
  }

  async #taker(labelSet: string): Promise<Worker> {
    const { Worker: Made, createRedisBackend } = await import('bullmq');
    const options = {
      connection: this.#redis.client,
      prefix: queuePrefix,
      autorun: false,
      lockDuration: this.#leaseMs,
      // A lease that is over is the runner's to judge, and nothing is ever done a second time by itself.
      skipStalledCheck: true,
      skipLockRenewal: true,
      maxStalledCount: 0,
      skipVersionCheck: true,
    };
    // It never waits for a job, so it needs no connections of its own.
    const worker = new Made(queueName(labelSet), null, options, (name, opts) => createRedisBackend(name, opts));
    worker.on('error', () => {});
    await worker.waitUntilReady();
    return worker;
  }
}

/** What has no lock is removed even if somebody had taken it once; false when it is held, or not there. */
async function removeUnheld(queue: Queue, job: string): Promise<boolean> {
  const { backend } = queue as unknown as { backend: { remove(id: string, children: boolean): Promise<number> } };
  return (await backend.remove(job, true)) > 0;
}
