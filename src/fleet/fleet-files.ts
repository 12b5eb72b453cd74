/** A host's private files about its fleets: as the one that runs groups, and as one that runs sessions. */
import { join } from 'node:path';
import { z } from 'zod';
import { type Advice, advise, shellWord } from '../core/advice.ts';
import { defined } from '../core/defined.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import { parseJson } from '../store/json.ts';
import { systemFailure } from '../store/system-failure.ts';
import type { Files } from '../system/world.ts';
import { checkAddress } from './redis.ts';

const text = z.string();
/** Base64. */
const key = z.string().base64();

export const fleetConfig = z.object({
  version: z.literal(1),
  /** With user and password. */
  redis: text,
  /** 32 bytes that seal everything sent through Redis. */
  sealingKey: key,
  /** Ed25519: PKCS #8 and SPKI, DER. */
  signingKey: key,
  publicKey: key,
  /** Milliseconds for which a host may work without an answer of Redis. */
  leaseMs: z.number().int().min(2_000),
  /** PEM of the authority that signed the certificate of Redis; absent = the system's authorities. */
  ca: text.optional(),
  /** Explicit option for a remote Redis without TLS. */
  insecure: z.boolean().optional(),
});
export type FleetConfig = z.infer<typeof fleetConfig>;

export const joinTicket = fleetConfig
  .pick({ version: true, sealingKey: true, leaseMs: true, ca: true, insecure: true })
  .extend({ redis: text, runnerKeys: z.array(key).min(1) });
export type JoinTicket = z.infer<typeof joinTicket>;

export const hostConfig = joinTicket.extend({
  name: text,
  slots: z.number().int().min(1).max(1_000),
  labels: z.array(text),
  login: text.optional(),
  acceptClaude: text.optional(),
  /** URL prefix by which git reaches the host's repositories from where groups run; absent = only through a remote. */
  codeUrl: text.optional(),
});
export type HostConfig = z.infer<typeof hostConfig>;

/** A host that was added from here, so that it can be removed from here. */
const addedHost = z.object({
  ssh: text,
  /** The program's folder there; empty = it was there before. */
  program: text,
  login: text.optional(),
});
export type AddedHost = z.infer<typeof addedHost>;
const addedHosts = z.record(text, addedHost);

const addedPath = (root: string): string => join(fleetPaths(root).folder, 'added.json');

/** Undefined = no fleet here. `url`: CLAUDE_CODE_AGENT_FLEET, which overrides the stored one. */
export function readFleet(files: Files, root: string, url?: string): Result<FleetConfig | undefined> {
  const read = readPrivate(files, fleetPaths(root).config, fleetConfig);
  if (!read.ok || read.value === undefined || url === undefined || url === '') return read;
  return ok({ ...read.value, redis: url });
}

export function readHost(files: Files, root: string): Result<HostConfig | undefined> {
  return readPrivate(files, fleetPaths(root).host, hostConfig);
}

export function readAdded(files: Files, root: string): Result<Readonly<Record<string, AddedHost>>> {
  const read = readPrivate(files, addedPath(root), addedHosts);
  return read.ok ? ok(read.value ?? {}) : read;
}

export function writeFleet(files: Files, root: string, config: FleetConfig): Result<void> {
  return writePrivate(files, root, fleetPaths(root).config, JSON.stringify(config, null, 2));
}

export function writeHost(files: Files, root: string, config: HostConfig): Result<void> {
  return writePrivate(files, root, fleetPaths(root).host, JSON.stringify(config, null, 2));
}

export function writeAdded(files: Files, root: string, hosts: Readonly<Record<string, AddedHost>>): Result<void> {
  return writePrivate(files, root, addedPath(root), JSON.stringify(hosts, null, 2));
}

export function ticketOf(config: FleetConfig): JoinTicket {
  const { version, sealingKey, leaseMs, publicKey, redis, ca, insecure } = config;
  const trust = defined({ ca, insecure });
  return { version, redis, sealingKey, leaseMs, runnerKeys: [publicKey], ...trust };
}

const inOrder = advise('Create the fleet again', ['fleet', 'init', '--redis', 'URL']);

function readPrivate<T>(files: Files, path: string, shape: z.ZodType<T>): Result<T | undefined> {
  const found = readPrivateText(files, path);
  if (!found.ok || found.value === null) return found.ok ? ok(undefined) : found;
  const value = parseJson(found.value);
  const version = (value as { version?: unknown } | null)?.version;
  if (typeof version === 'number' && version > 1) {
    return fail('newer-version', `${path} was written by a newer version of this program.`, 'Upgrade this one.');
  }
  const parsed = shape.safeParse(value);
  if (parsed.success) return ok(parsed.data);
  return fail('corrupt-file', `${path} is damaged and is not used.`, inOrder);
}

/** A file with keys. Null when there is none; fails with `usage` when other users can read it. */
export function readPrivateText(files: Files, path: string): Result<string | null> {
  try {
    const info = files.info(path);
    if (info === null) return ok(null);
    if (info.kind !== 'file') return fail('usage', `${path} is no file.`, 'Look at it and move it away.');
    if (info.isPrivate === false) {
      const message = `${path} contains keys, and other users of this host may read it.`;
      return fail('usage', message, `Remove that permission with: chmod 600 ${shellWord(path)}`);
    }
    return ok(files.readText(path));
  } catch (error) {
    const { message } = systemFailure(path, error);
    return fail('usage', message.replace('Cannot write', 'Cannot read'), 'Check its permissions.');
  }
}

function writePrivate(files: Files, root: string, path: string, content: string): Result<void> {
  try {
    files.makeFolder(fleetPaths(root).folder);
    files.writeAtomic(path, `${content}\n`, { durable: true });
    return ok(undefined);
  } catch (error) {
    return { ok: false, failure: systemFailure(path, error) };
  }
}

export type FleetPaths = ReturnType<typeof fleetPaths>;

export function fleetPaths(root: string) {
  const folder = join(root, 'fleet');
  const at = (name: string): string => join(folder, name);
  return {
    folder,
    /** On the host that runs groups. */
    config: at('fleet.json'),
    /** On a host that runs sessions of others. */
    host: at('host.json'),
    /** Folder with one file per login, `NAME.env`. */
    logins: at('logins'),
    /** The attempts' leases and their last renewals: written by the agent for the guard. */
    leases: at('leases.json'),
    /** When the guard last checked. */
    guard: at('guard.json'),
    guardLock: at('guard.lock'),
    agentLock: at('agent.lock'),
    /** Folder with one folder per slot in use. */
    slots: at('slots'),
    /** Folder of bare repositories. */
    repositories: at('repositories'),
    /** Contains `session-groups` like a data root, for the sessions of others. */
    work: at('work'),
  } as const;
}

// One line of text with everything a host needs to join a fleet. It contains keys and a password: its owner can
// read what goes through Redis and offer slots, but start nothing, because orders are signed with a key that is
// not included.

const prefix = 'cca-join:';
const again: Advice = advise('Print it again on the host that runs groups', ['fleet', 'join-line']);
const keyBytes = 32;

export function joinLine(ticket: JoinTicket): string {
  return prefix + Buffer.from(JSON.stringify(ticket)).toString('base64url');
}

/** Fails with `usage` or `newer-version`; no part of the line appears in a message. */
export function parseJoinLine(line: string): Result<JoinTicket> {
  const [, body = ''] = /^cca-join:([\w-]+)$/.exec(line.trim()) ?? [];
  const value = parseJson(Buffer.from(body, 'base64url').toString());
  const version = (value as { version?: unknown } | null | undefined)?.version;
  if (typeof version === 'number' && version > 1) {
    const next = 'Upgrade claude-code-agent on this host to the version that runs groups.';
    return fail('newer-version', 'The join line was made by a newer version of this program.', next);
  }
  const parsed = joinTicket.safeParse(value);
  const isWhole = parsed.success && Buffer.from(parsed.data.sealingKey, 'base64').length === keyBytes;
  if (!isWhole)
    return fail('usage', 'That is not a complete join line: one line, in quotes, that begins with "cca-join:".', again);
  const url = checkAddress(parsed.data);
  return url.ok ? ok(parsed.data) : url;
}
