/**
 * The connection to a fleet's Redis: streams, blobs, and server properties. ioredis is loaded on first use, so a run
 * without a fleet does not wait for it. Every call answers or fails within seconds: nothing is queued for later,
 * because only the caller knows whether it is still wanted then.
 */
import { createHash } from 'node:crypto';
import type { Redis } from 'ioredis';
import { defined } from '../core/defined.ts';
import type { SlotLease } from '../core/event.ts';
import { errorText, fail, ok, type Result } from '../core/failure.ts';
import type { Clock, World } from '../system/world.ts';
import { Seal, sealBytes } from './seal.ts';
import type { Blob } from './wire.ts';

/**
 * After this time without an answer the socket is dropped: after a network cut it would hang in retransmission for a
 * minute.
 */
const silentMs = 3_000;
const questionMs = 2 * silentMs;
const blockMs = 1_000;
const reconnectMs = 500;
const pieceBytes = 1_000_000;
/** A longer one is an attack, and is not loaded. */
const sealedPieceBytes = pieceBytes + sealBytes;
const blobSeconds = 3_600;
const blobBytesMax = 200 * 1024 * 1024;
/** An unread message is dropped after this time: its sender repeats it on request. */
const streamSeconds = 30 * 24 * 3_600;
const entriesMax = 500;

export interface RedisHealth {
  readonly version: string;
  readonly isEncrypted: boolean;
  /** It loses at most the last second when it is killed. */
  readonly isAppendOnly: boolean;
  /** Any policy but `noeviction` may delete leases. */
  readonly evictionPolicy: string;
}

/** Fails with `usage` when the address is wrong or would send everything unencrypted to another host. */
export function checkAddress({ redis, insecure }: Pick<FleetAddress, 'redis' | 'insecure'>): Result<URL> {
  const url = URL.canParse(redis) ? new URL(redis) : null;
  if (url === null || !['redis:', 'rediss:'].includes(url.protocol) || url.hostname === '') {
    const next = 'Give it as rediss://user:password@host:6380.';
    return fail('usage', 'The address of Redis is not one that begins with rediss:// or redis://.', next);
  }
  if (url.protocol === 'rediss:' || isLoopback(url.hostname) || insecure === true) return ok(url);
  const message = `Redis at ${url.host} is another host, and ${url.protocol}// does not encrypt what is sent to it.`;
  return fail('usage', message, 'Use rediss://, or say --insecure if the network is yours alone.');
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d+){3}$/.test(hostname);
}

export class FleetRedis {
  readonly seal: Seal;
  readonly #clock: Clock;
  readonly #url: URL;
  readonly #make: () => Redis;
  readonly #main: Redis;
  /** For the stream that is waited for. */
  #reader: Redis | null = null;
  readonly #onConnect: (() => void)[] = [];
  #lastError: unknown = null;
  #isClosed = false;

  private constructor(world: World, url: URL, seal: Seal, make: () => Redis) {
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
      // A command without an answer on this connection has failed.
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      retryStrategy: (times: number) => Math.min(50 * times, reconnectMs),
    };
    return ok(new FleetRedis(world, url.value, new Seal(address.sealingKey, world.random), () => new Client(options)));
  }

  get client(): Redis {
    return this.#main;
  }

  leases(leaseMs: number): SlotLeases {
    return new Leases(this, leaseMs);
  }

  onConnect(action: () => void): void {
    this.#onConnect.push(action);
  }

  /** Fails with `timeout` when Redis does not answer now, with `usage` when it refuses the login or the command. */
  async ask<T>(question: (redis: Redis) => Promise<T>): Promise<Result<T>> {
    return this.#asked(this.#main, question);
  }

  async #asked<T>(redis: Redis, question: (redis: Redis) => Promise<T>): Promise<Result<T>> {
    const silence = Promise.withResolvers<never>();
    // A sequence of commands could wait for a connection that never comes.
    const cancel = this.#clock.after(questionMs, () => silence.reject(new Error('no answer')));
    try {
      return ok(await Promise.race([question(redis), silence.promise]));
    } catch (error) {
      return redisFailure(this.#url.host, error, this.#lastError);
    } finally {
      cancel();
    }
  }

  send(stream: string, messages: readonly Uint8Array[]): Promise<Result<string[]>> {
    return this.ask(async (redis) => {
      const pipeline = redis.pipeline();
      for (const message of messages) pipeline.xadd(stream, '*', 'm', this.seal.seal(stream, message));
      pipeline.expire(stream, streamSeconds);
      return (await answersOf(pipeline.exec())).slice(0, messages.length).map(String);
    });
  }

  /** Entries after that one (`0` = all); waits a moment for the first. */
  async read(stream: string, after: string): Promise<Result<Entry[]>> {
    // A closed connection would be opened again.
    if (this.#isClosed) return ok([]);
    this.#reader ??= this.#make();
    return this.#asked(this.#reader, async (redis) => {
      const found = await redis.xreadBuffer('COUNT', entriesMax, 'BLOCK', blockMs, 'STREAMS', stream, after);
      const entries = (found as [Buffer, [Buffer, Buffer[]][]][] | null)?.[0]?.[1] ?? [];
      return entries.map(([id, fields]) => ({
        id: id.toString(),
        bytes: fields[1] === undefined ? null : this.seal.open(stream, fields[1]),
      }));
    });
  }

  async drop(stream: string, ids: readonly string[]): Promise<Result<void>> {
    const dropped = await this.ask((redis) => redis.xdel(stream, ...ids));
    return dropped.ok ? ok(undefined) : dropped;
  }

  /** Kept for an hour; the same id is the same blob. Fails with `usage` when it is too large. */
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

  /** Fails with `gone` when it no longer exists, otherwise when there is no answer. */
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
    // A remaining piece expires within the hour.
    await this.ask((redis) => redis.unlink(...keys));
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

  /** Milliseconds since 1970 by its clock, which all hosts share. */
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
    this.#main.disconnect();
    this.#reader?.disconnect();
  }
}

/** The description of a blob of that size. Fails with `usage` when it is too large. */
export function blobOf(id: string, bytes: Uint8Array): Result<Blob> {
  const size = bytes.length;
  const fits = fitsBlob(size);
  if (!fits.ok) return fits;
  return ok({ id, pieces: Math.max(1, Math.ceil(size / pieceBytes)), size, digest: digestOf(bytes) });
}

/** Fails with `usage` when this many bytes are too many for one blob. */
export function fitsBlob(bytes: number): Result<null> {
  if (bytes <= blobBytesMax) return ok(null);
  const megabytes = Math.ceil(bytes / 1024 / 1024);
  const message = `${megabytes} MB would have to be sent to another host; at most 200 MB can be.`;
  return fail('usage', message, 'Run the session on this host, or make what it needs smaller.');
}

/** Whether these are its bytes, and not replaced ones. */
export function isBlob({ size, digest }: Blob, bytes: Uint8Array): boolean {
  return bytes.length === size && digest === digestOf(bytes);
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

/** For messages on a terminal or in a log. */
export function withoutPassword(redis: string): string {
  if (!URL.canParse(redis)) return redis;
  const url = new URL(redis);
  url.password = '';
  return url.toString();
}

// Why Redis did not answer, as a sentence with the next step.

const password = [/WRONGPASS|NOAUTH/, 'refuses the user or the password', 'Correct them in its address.'] as const;
const refused = [/ECONNREFUSED/, 'refuses the connection', 'Start it, or correct the address.'] as const;
const certificate = [
  /certificate|CERT_|SSL|TLS|wrong version number/i,
  'has no certificate that is trusted, or speaks no TLS',
  'Give the certificate of its authority with --ca, or correct the address.',
] as const;
/** Errors that no retry can fix. */
const isLasting = /WRONGPASS|NOAUTH|NOPERM|certificate|CERT_|SSL|TLS|wrong version number/i;

/** `earlier`: the last error of the connection, if the command was only dropped with it. */
export function redisFailure(host: string, error: unknown, earlier: unknown): Result<never> {
  const said = [error, earlier].filter((one) => one !== null && one !== undefined).map(wordsOf);
  const reason = said.some((text) => isLasting.test(text)) ? 'usage' : 'timeout';
  for (const text of said) {
    const known = [password, refused, certificate].find(([pattern]) => pattern.test(text));
    if (known !== undefined) return fail(reason, `Redis at ${host} ${known[1]}.`, known[2]);
  }
  const own = said
    .find((text) => /^ ?[A-Z]{4,}/.test(text))
    ?.trim()
    .replace(/\.$/, '');
  const what = own === undefined ? 'does not answer' : `refuses: ${own}`;
  return fail(reason, `Redis at ${host} ${what}.`, 'Check the network and the server, then try again.');
}

function wordsOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return `${typeof code === 'string' ? code : ''} ${errorText(error)}`;
}

// Slots. A script decides in one step, by the clock of Redis, which all hosts share.

const now = "local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000) ";
const takeScript = `${now}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('SISMEMBER', KEYS[2], ARGV[4]) == 1 then return 0 end
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[1])
return 1`;
/** The remaining time of each lease, renewed if an argument is given; -1 for an expired one. */
const lookScript = `${now}
local left = {}
for i = 2, #ARGV do
  local over = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[i]) or 0)
  if over > now and ARGV[1] ~= '' then
    over = now + ARGV[1]
    redis.call('ZADD', KEYS[1], over, ARGV[i])
  end
  left[i - 1] = over > now and over - now or -1
end
return left`;

class Leases {
  readonly #redis: FleetRedis;
  readonly #leaseMs: number;

  constructor(redis: FleetRedis, leaseMs: number) {
    this.#redis = redis;
    this.#leaseMs = leaseMs;
  }

  /** Takes one of the host's slots; false when all are held, or the host is drained. */
  async take({ host, token }: SlotLease, slots: number): Promise<Result<boolean>> {
    const taken = await this.#redis.ask((redis) =>
      redis.eval(takeScript, 2, slotsKey(host), drainedKey, token, slots, this.#leaseMs, host),
    );
    return taken.ok ? ok(taken.value === 1) : taken;
  }

  /** The leases that are no longer held. Fails without an answer: then it is unknown. */
  async renew(leases: readonly SlotLease[]): Promise<Result<ReadonlySet<SlotLease>>> {
    const left = await this.#left(leases, String(this.#leaseMs));
    return left.ok ? ok(new Set(leases.filter((_, index) => left.value[index] === null))) : left;
  }

  async free({ host, token }: SlotLease): Promise<Result<void>> {
    const freed = await this.#redis.ask((redis) => redis.zrem(slotsKey(host), token));
    return freed.ok ? ok(undefined) : freed;
  }

  /** Remaining milliseconds of each lease without a renewal; null for one that is not held. */
  look(leases: readonly SlotLease[]): Promise<Result<(number | null)[]>> {
    return this.#left(leases, '');
  }

  #left(leases: readonly SlotLease[], renewal: string): Promise<Result<(number | null)[]>> {
    return this.#redis.ask(async (redis) => {
      const byHost = Map.groupBy(leases, ({ host }) => host);
      const left = new Map<SlotLease, number>();
      for (const [host, all] of byHost) {
        const tokens = all.map(({ token }) => token);
        const answer = (await redis.eval(lookScript, 1, slotsKey(host), renewal, ...tokens)) as number[];
        for (const [index, lease] of all.entries()) left.set(lease, answer[index] as number);
      }
      return leases.map((lease) => {
        const ms = left.get(lease) as number;
        return ms < 0 ? null : ms;
      });
    });
  }
}

// What both ends of a fleet need of the engine between them: streams, slots with leases, temporary blobs, and
// the list of hosts. A failed call may still have taken effect.

export interface FleetAddress {
  readonly redis: string;
  readonly sealingKey: string;
  readonly ca?: string | undefined;
  readonly insecure?: boolean | undefined;
}

/** Does not wait for a connection. Fails with `usage` when the address can never work. */
export type OpenEngine = (world: World, address: FleetAddress) => Promise<Result<FleetEngine>>;

export interface Entry {
  readonly id: string;
  /** Null when it was not sealed with the fleet's key. */
  readonly bytes: Uint8Array | null;
}

/** Data too large for a message. */
export type BlobStore = Pick<FleetRedis, 'putBlob' | 'getBlob' | 'dropBlob'>;
export type FleetEngine = Omit<Pick<FleetRedis, keyof FleetRedis>, 'client' | 'ask' | 'health'>;
/** Only the holder of a slot's token can renew or free it. */
export type SlotLeases = Pick<Leases, keyof Leases>;

interface Following {
  /** Never throws. */
  readonly hear: (entry: Entry) => void | Promise<void>;
  readonly isClosed: () => boolean;
  readonly pause: () => Promise<void>;
}

/** Receives a stream in order, and drops handled entries. */
export async function follow(engine: FleetEngine, stream: string, { hear, isClosed, pause }: Following): Promise<void> {
  let heard: string[] = [];
  for (let after = '0'; !isClosed(); ) {
    const read = await engine.read(stream, after);
    if (isClosed()) return;
    if (!read.ok) {
      await pause();
      continue;
    }
    for (const entry of read.value) {
      await hear(entry);
      after = entry.id;
      heard.push(entry.id);
    }
    // Without an answer the entries may still be there.
    if (heard.length > 0 && (await engine.drop(stream, heard)).ok) heard = [];
  }
}

// Names in Redis: all begin with `cca:`, the only prefix that the users of a fleet may access.

/** Hash: host name → its sealed entry. */
export const hostsKey = 'cca:hosts';
/** Set of hosts that must take no new sessions. */
export const drainedKey = 'cca:drained';
/** Hash: host name → its refused login, sealed. */
export const refusedLoginsKey = 'cca:refused-logins';

/** Messages of runners to a host. */
export const toHostStream = (host: string): string => `cca:h:${host}`;
/** Messages of hosts to the runner of a group. */
export const toGroupStream = (groupId: string): string => `cca:g:${groupId}`;
export const pieceKey = (blob: string, piece: number): string => `cca:b:${blob}:${piece}`;
/** Sorted set: token of each held slot → end of its lease, ms since 1970 by the clock of Redis. */
export const slotsKey = (host: string): string => `cca:s:${host}`;
