/**
 * The connection to the Redis of a fleet: streams, blobs, and what must be known of the server. ioredis is loaded with
 * the first one, so nobody without a fleet waits for it. Every call answers or fails within seconds: nothing is kept
 * to be sent later, because only whoever asks knows whether it is still wanted then.
 */
import { createHash } from 'node:crypto';
import type { Queue, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { defined } from '../core/defined.ts';
import { errorText, fail, ok, type Result } from '../core/failure.ts';
import type { Clock, World } from '../system/world.ts';
import type {
  Entry,
  FleetAddress,
  FleetEngine,
  Lease,
  SlotLeases,
  TakenWish,
  WishOptions,
  WishPlace,
} from './engine.ts';
import { labelSetOf, labelSetsKey, labelsOf, pieceKey, queueName, queuePrefix, wishChannel } from './engine.ts';
import { Seal, sealBytes } from './seal.ts';
import { type Blob, type Wish, wish as wishShape } from './wire.ts';

/** After so long without an answer the socket is dropped: after a cut it would hang in retransmission for a minute. */
const silentMs = 3_000;
const questionMs = 2 * silentMs;
const blockMs = 1_000;
const reconnectMs = 500;
const pieceBytes = 1_000_000;
/** One that is longer was put there by nobody who means well, and is not loaded. */
const sealedPieceBytes = pieceBytes + sealBytes;
const blobSeconds = 3_600;
const blobBytesMax = 200 * 1024 * 1024;
/** What nobody has taken for so long is for nobody: whoever said it says it again when it is asked. */
const streamSeconds = 30 * 24 * 3_600;
const entriesMax = 500;

export interface RedisHealth {
  readonly version: string;
  readonly isEncrypted: boolean;
  /** It forgets at most the last second when it is killed. */
  readonly isAppendOnly: boolean;
  /** Anything but `noeviction` may throw away leases. */
  readonly evictionPolicy: string;
}

/** Fails with `usage` when the address is wrong or would send everything unencrypted to another machine. */
export function checkAddress({ redis, insecure }: Pick<FleetAddress, 'redis' | 'insecure'>): Result<URL> {
  const url = URL.canParse(redis) ? new URL(redis) : null;
  if (url === null || !['redis:', 'rediss:'].includes(url.protocol) || url.hostname === '') {
    const next = 'Give it as rediss://user:password@host:6380.';
    return fail('usage', 'The address of Redis is not one that begins with rediss:// or redis://.', next);
  }
  if (url.protocol === 'rediss:' || isLoopback(url.hostname) || insecure === true) return ok(url);
  const message = `Redis at ${url.host} is another machine, and ${url.protocol}// does not encrypt what is sent to it.`;
  return fail('usage', message, 'Use rediss://, or say --insecure if the network is yours alone.');
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d+){3}$/.test(hostname);
}

export class FleetRedis implements FleetEngine {
  readonly seal: Seal;
  readonly #world: World;
  readonly #clock: Clock;
  readonly #url: URL;
  readonly #make: () => Redis;
  readonly #main: Redis;
  /** One for each stream that is waited for, and one for what is published. */
  readonly #others = new Map<string, Redis>();
  readonly #onConnect: (() => void)[] = [];
  #lastError: unknown = null;
  #isClosed = false;

  private constructor(world: World, url: URL, seal: Seal, make: () => Redis) {
    this.#world = world;
    this.#clock = world.clock;
    this.#url = url;
    this.seal = seal;
    this.#make = () => {
      const made = make();
      made.on('error', (error) => {
        this.#lastError = error;
      });
      return made;
    };
    this.#main = this.#make();
    this.#main.on('ready', () => {
      this.#lastError = null;
      for (const action of this.#onConnect) action();
    });
  }

  static async open(world: World, address: FleetAddress): Promise<Result<FleetRedis>> {
    const url = checkAddress(address);
    if (!url.ok) return url;
    const { Redis: Client } = await import('ioredis');
    const { protocol, hostname, port, username, password } = url.value;
    const options = {
      host: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port === '' ? 6379 : port),
      ...(password === '' ? {} : { password: decodeURIComponent(password) }),
      ...(username === '' || password === '' ? {} : { username: decodeURIComponent(username) }),
      ...(protocol === 'rediss:' ? { tls: defined({ ca: address.ca }) } : {}),
      protocol: 2 as const,
      disableClientInfo: true,
      connectTimeout: silentMs,
      socketTimeout: silentMs,
      // What is not answered on this connection has failed.
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      retryStrategy: (times: number) => Math.min(50 * times, reconnectMs),
    };
    return ok(new FleetRedis(world, url.value, new Seal(address.sealingKey, world.random), () => new Client(options)));
  }

  get client(): Redis {
    return this.#main;
  }

  leases(leaseMs: number): Leases {
    return new Leases(this.#world, this, leaseMs);
  }

  onConnect(action: () => void): void {
    this.#onConnect.push(action);
  }

  /** Fails with `timeout` when it does not answer now; with `usage` when it refuses who asks, or what is asked. */
  async ask<T>(question: (redis: Redis) => Promise<T>): Promise<Result<T>> {
    return this.#asked(this.#main, question);
  }

  async #asked<T>(redis: Redis, question: (redis: Redis) => Promise<T>): Promise<Result<T>> {
    const silence = Promise.withResolvers<never>();
    // What consists of several steps could wait for a connection that does not come.
    const cancel = this.#clock.after(questionMs, () => silence.reject(new Error('no answer')));
    try {
      return ok(await Promise.race([question(redis), silence.promise]));
    } catch (error) {
      return redisFailure(this.#url.host, error, this.#lastError);
    } finally {
      cancel();
    }
  }

  #other(name: string): Redis {
    const known = this.#others.get(name);
    if (known !== undefined) return known;
    const made = this.#make();
    this.#others.set(name, made);
    return made;
  }

  async onWish(action: () => void): Promise<void> {
    const subscriber = this.#other(wishChannel);
    subscriber.on('message', action);
    // Told again to a server that was not there by now.
    subscriber.on('ready', () => void this.#asked(subscriber, (redis) => redis.subscribe(wishChannel)));
  }

  send(stream: string, messages: readonly Uint8Array[]): Promise<Result<string[]>> {
    return this.ask(async (redis) => {
      const pipeline = redis.pipeline();
      for (const message of messages) pipeline.xadd(stream, '*', 'm', this.seal.seal(stream, message));
      pipeline.expire(stream, streamSeconds);
      return (await answersOf(pipeline.exec())).slice(0, messages.length).map(String);
    });
  }

  async read(stream: string, after: string): Promise<Result<Entry[]>> {
    // A closed connection would be made anew.
    if (this.#isClosed) return ok([]);
    return this.#asked(this.#other(stream), async (redis) => {
      const found = await redis.xreadBuffer('COUNT', entriesMax, 'BLOCK', blockMs, 'STREAMS', stream, after);
      const entries = (found as [Buffer, [Buffer, Buffer[]][]][] | null)?.[0]?.[1] ?? [];
      return entries.map(([id, fields]) => ({
        id: id.toString(),
        bytes: fields[1] === undefined ? null : this.seal.open(stream, fields[1]),
      }));
    });
  }

  have(stream: string, ids: readonly string[]): Promise<Result<boolean[]>> {
    return this.ask(async (redis) => {
      const pipeline = redis.pipeline();
      for (const id of ids) pipeline.xrange(stream, id, id);
      return (await answersOf(pipeline.exec())).map((found) => (found as unknown[]).length > 0);
    });
  }

  async drop(stream: string, ids: readonly string[]): Promise<Result<void>> {
    if (ids.length === 0) return ok(undefined);
    const dropped = await this.ask((redis) => redis.xdel(stream, ...ids));
    return dropped.ok ? ok(undefined) : dropped;
  }

  async putBlob(id: string, bytes: Uint8Array): Promise<Result<Blob>> {
    const blob = blobOf(id, bytes);
    if (!blob.ok) return blob;
    for (let piece = 0; piece < blob.value.pieces; piece += 1) {
      const key = pieceKey(id, piece);
      const part = bytes.subarray(piece * pieceBytes, (piece + 1) * pieceBytes);
      const put = await this.ask((redis) => redis.set(key, this.seal.seal(key, part), 'EX', blobSeconds));
      if (!put.ok) return put;
    }
    return blob;
  }

  async getBlob(blob: Blob): Promise<Result<Uint8Array>> {
    const { id, pieces, size } = blob;
    const gone = fail('gone', 'What was sent with an order is not in Redis any more.', 'Retry the session.');
    if (size > blobBytesMax || pieces > Math.ceil(blobBytesMax / pieceBytes)) return gone;
    const parts: Uint8Array[] = [];
    for (let piece = 0; piece < pieces; piece += 1) {
      const key = pieceKey(id, piece);
      const got = await this.ask((redis) => redis.getrangeBuffer(key, 0, sealedPieceBytes));
      if (!got.ok) return got;
      const part = got.value.length > sealedPieceBytes ? null : this.seal.open(key, got.value);
      if (part === null) return gone;
      parts.push(part);
    }
    const bytes = Buffer.concat(parts);
    return isBlob(blob, bytes) ? ok(bytes) : gone;
  }

  async dropBlob({ id, pieces }: Blob): Promise<void> {
    const keys = Array.from({ length: pieces }, (_, piece) => pieceKey(id, piece));
    // One that stays is gone within the hour.
    await this.ask((redis) => redis.unlink(...keys));
  }

  async hasBlob({ id, pieces }: Blob): Promise<Result<boolean>> {
    const keys = Array.from({ length: pieces }, (_, piece) => pieceKey(id, piece));
    const found = await this.ask((redis) => redis.exists(...keys));
    return found.ok ? ok(found.value === pieces) : found;
  }

  async setField(key: string, field: string, value: Uint8Array): Promise<Result<void>> {
    const set = await this.ask((redis) => redis.hset(key, field, Buffer.from(value)));
    return set.ok ? ok(undefined) : set;
  }

  fields(key: string): Promise<Result<Readonly<Record<string, Uint8Array>>>> {
    return this.ask((redis) => redis.hgetallBuffer(key));
  }

  members(key: string): Promise<Result<readonly string[]>> {
    return this.ask((redis) => redis.smembers(key));
  }

  async runId(): Promise<Result<string>> {
    const told = await this.ask((redis) => redis.info('server'));
    return told.ok ? ok(/^run_id:(\w+)/m.exec(told.value)?.[1] ?? '') : told;
  }

  async nowMs(): Promise<Result<number>> {
    const told = await this.ask((redis) => redis.time());
    return told.ok ? ok(Number(told.value[0]) * 1_000 + Math.floor(Number(told.value[1]) / 1_000)) : told;
  }

  async health(): Promise<Result<RedisHealth>> {
    const asked = await this.ask((redis) => redis.info());
    if (!asked.ok) return asked;
    const field = (name: string): string => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(asked.value)?.[1] ?? '';
    return ok({
      version: field('redis_version'),
      isEncrypted: this.#url.protocol === 'rediss:',
      isAppendOnly: field('aof_enabled') === '1',
      evictionPolicy: field('maxmemory_policy'),
    });
  }

  close(): void {
    this.#isClosed = true;
    for (const redis of [this.#main, ...this.#others.values()]) redis.disconnect();
  }
}

/** What bytes of that size are as a blob. Fails with `usage` when they are too many. */
export function blobOf(id: string, bytes: Uint8Array): Result<Blob> {
  const size = bytes.length;
  const fits = fitsBlob(size);
  if (!fits.ok) return fits;
  return ok({ id, pieces: Math.max(1, Math.ceil(size / pieceBytes)), size, digest: digestOf(bytes) });
}

/** Fails with `usage` when so many bytes are too many for one blob. */
export function fitsBlob(bytes: number): Result<null> {
  if (bytes <= blobBytesMax) return ok(null);
  const megabytes = Math.ceil(bytes / 1024 / 1024);
  const message = `${megabytes} MB would have to be sent to another machine; at most 200 MB can be.`;
  return fail('usage', message, 'Run the session on this machine, or make what it needs smaller.');
}

/** Whether these are its bytes, and not others that somebody has put in their place. */
export function isBlob({ size, digest }: Blob, bytes: Uint8Array): boolean {
  return bytes.length === size && (digest === undefined || digest === digestOf(bytes));
}

function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

async function answersOf(executed: Promise<[error: Error | null, result: unknown][] | null>): Promise<unknown[]> {
  const answers = (await executed) ?? [];
  return answers.map(([error, answer]) => {
    if (error !== null) throw error;
    return answer;
  });
}

/** For what is told to people on a terminal or in a log. */
export function withoutPassword(redis: string): string {
  if (!URL.canParse(redis)) return redis;
  const url = new URL(redis);
  url.password = '';
  return url.toString();
}

// What Redis or the way to it has against a question, as a sentence with the next step.

const cures: readonly (readonly [RegExp, 'usage' | 'timeout', string, string])[] = [
  [/WRONGPASS|NOAUTH/, 'usage', 'refuses the user or the password', 'Give the right ones in its address.'],
  [
    /NOPERM/,
    'usage',
    'does not allow its user what a fleet needs',
    'Give that user the rights that docs/fleet.md names.',
  ],
  [
    /OOM command/,
    'timeout',
    'has no memory left',
    'Give it more (maxmemory), or wait until blobs are gone in an hour.',
  ],
  [/MISCONF|READONLY/, 'timeout', 'takes no writes', 'See its log: its disk may be full, or it is a replica.'],
  [/LOADING/, 'timeout', 'is still loading its data', 'Wait until it has begun.'],
  [
    /certificate|CERT_|SSL|TLS|wrong version number/i,
    'usage',
    'shows a certificate that is not trusted, or speaks no TLS',
    'Give the certificate of its authority with --ca, or correct the address.',
  ],
  [/ENOTFOUND|EAI_AGAIN/, 'timeout', 'is a name that is not known here', 'Correct the address of Redis.'],
  [/ECONNREFUSED/, 'timeout', 'refuses the connection', 'Start it, or correct the address.'],
];

/** `earlier`: what the connection itself said last, when the question was only dropped with it. */
export function redisFailure(host: string, error: unknown, earlier: unknown): Result<never> {
  const said = [error, earlier].filter((one) => one !== null && one !== undefined).map(wordsOf);
  for (const text of said) {
    const known = cures.find(([pattern]) => pattern.test(text));
    if (known !== undefined) return fail(known[1], `Redis at ${host} ${known[2]}.`, known[3]);
  }
  return fail('timeout', `Redis at ${host} does not answer.`, 'Check the network and the server, then try again.');
}

function wordsOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return `${typeof code === 'string' ? code : ''} ${errorText(error)}`;
}

// * Slots of machines as BullMQ jobs: a job is a wish for a slot, and its lock is the lease of whoever took it.
// The work itself is none of BullMQ's business, so it never repeats, stalls or fails one of them. No other file
// knows BullMQ.

const name = 'slot';
/** BullMQ's own list of what happened; nobody reads it. */
const eventsMax = 10;

export class Leases implements SlotLeases {
  readonly #redis: FleetRedis;
  readonly #world: World;
  readonly #leaseMs: number;
  readonly #queues = new Map<string, Promise<Queue>>();
  readonly #takers = new Map<string, Promise<Worker>>();

  constructor(world: World, redis: FleetRedis, leaseMs: number) {
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
