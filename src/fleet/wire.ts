/**
 * fleet/: work on other hosts. What both ends share, and the end of the runner. This file: what is said
 * between a runner and the hosts of a fleet. Everything that comes in was written by another program, perhaps of
 * another version, so it is parsed before it is trusted, and messages of an unknown kind are dropped.
 */
import { z } from 'zod';
import { fail, ok, type Result } from '../core/failure.ts';
import { hostNamePattern, labelPattern } from '../core/values.ts';
import { parseJson } from '../store/json.ts';

/** Both ends say it; a host with another one gets nothing. */
export const wireVersion = 8;

const bytes = z.string().base64();
const count = z.number().int().nonnegative();
const text = z.string();
/** What is kept and shown of a host is no longer than that, whatever it says. */
const name = z.string().max(400);
/** Sentences, and the end of what a command printed: the log takes them in, and everything reads the log. */
const told = text.transform((all) => all.slice(0, 64 * 1024));
/** Ms since 1970, as far as there are dates. */
const moment = count.max(8_640_000_000_000_000);
/** A full id: it goes into what git is told line by line. */
const commit = z.string().regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/);
/** Names folders and control groups where it runs. */
const attemptId = z.string().regex(/^[A-Za-z0-9][\w.-]{0,99}$/);
/** Nothing that git takes for an option, or for a program that it is to start. */
export const codeUrlPattern = /^(?![A-Za-z0-9]+::)[A-Za-z0-9_/]\P{Cc}*$/u;
/** It is shown, logged, and names what is sent to it. */
const hostName = z.string().regex(hostNamePattern);

/** Of a program elsewhere; pids mean something on that host alone. */
export const processIdentity = z.object({
  pid: count,
  startTime: name,
  host: name,
  bootId: name,
});

const failure = z.object({ reason: z.string().regex(/^[a-z][a-z-]{0,63}$/), message: told, next: told });

/**
 * Bytes that are too many for a message: `pieces` sealed values of at most 1 MB, `size` bytes in all. `digest`: their
 * SHA-256. Every host has the key with which they are sealed, so that a signed order holds for them only by that.
 */
export const blob = z.object({
  id: z.string().regex(/^[\w-]{1,100}$/),
  pieces: count.max(1_000),
  size: count,
  digest: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
});
export type Blob = z.infer<typeof blob>;

/** One file of a parcel; `path` is relative to the session's folder and never leads out of it. */
const parcelFile = z.object({
  path: text,
  /** Placeholders are to be replaced in it. */
  isText: z.boolean(),
  /** Where the bytes belong in the file; absent = they are the whole file. */
  offset: count.optional(),
  data: bytes,
});
export type ParcelFile = z.infer<typeof parcelFile>;
const parcel = z.object({ files: z.array(parcelFile) });
export type Parcel = z.infer<typeof parcel>;

/** The files in a blob, which is JSON. Fails with `usage` when there are none in it. */
export function parcelIn(bytes: Uint8Array): Result<Parcel> {
  const found = parcel.safeParse(parseJson(Buffer.from(bytes).toString()));
  if (found.success) return ok(found.data);
  return fail('usage', 'The files that were sent cannot be read.', 'Upgrade the older of the two programs.');
}

const command = z.object({ command: text, timeoutMs: count });

/** Of a repository's configuration: name and value. */
const gitSetting = z.tuple([text, text]);
export type GitSetting = z.infer<typeof gitSetting>;

/** Who commits, and which remotes there are: with these git does for a session what it does in the user's checkout. */
export function isSentSetting([key, value]: GitSetting): boolean {
  return /^(?:user\.(?:name|email)|remote\.[^\s]+\.(?:url|fetch)|lfs\.url)$/.test(key) && !/[\0\n]/.test(value);
}

/** Work as commits, which were pushed to the host, or to `remote` for it. Commits are full ids. */
export const shippedWork = z.object({
  /** Names the repository among all. */
  repository: z.string().regex(/^[0-9a-f]{1,128}$/),
  /** What the branch is at, and a commit on top of it that holds the files as they lie there. */
  head: commit,
  snapshot: commit,
  branch: text,
  settings: z.array(gitSetting),
  /** Commits come and go by way of this remote, because no ssh reaches the host. */
  remote: text.optional(),
});
export type ShippedWork = z.infer<typeof shippedWork>;

/** All that is needed to start an attempt on a host that has nothing of it. Paths in `args` have placeholders. */
export const order = z.object({
  attemptId,
  attempt: count,
  groupId: text,
  sessionId: text,
  args: z.array(text),
  /** Where claude is started, relative to the session's folder. */
  cwd: text,
  files: blob,
  work: shippedWork,
  setup: command.optional(),
  untrusted: z.boolean(),
  memoryBytes: count.optional(),
  processesMax: count.optional(),
  /** It is not ended when its lease is over: its runner waits for it however long that takes. */
  waits: z.boolean().optional(),
  /** Resume files that git ignores go with it, and come back. */
  handover: z.boolean().optional(),
});
export type Order = z.infer<typeof order>;

/** What is done by an order is what its signature holds for. */
const isWholeSigned = ({ files }: Order): boolean => files.digest !== undefined;

/** What a runner says about one slot. */
const slotCommand = z.discriminatedUnion('do', [
  z.object({ do: z.literal('order'), order: order.refine(isWholeSigned) }),
  z.object({ do: z.literal('release') }),
  /** Followed once for each id, like `run`; the others do no harm when they are heard again. */
  z.object({ do: z.literal('write'), id: text, lines: text }),
  z.object({ do: z.enum(['terminate', 'halt', 'goOn', 'endNow']) }),
  /** So many bytes that it printed, and its checkpoints up to this one, are on the disk here. */
  z.object({ do: z.literal('have'), printed: count, checkpoint: count }),
  /** A command of the user's in the session's worktree; answered by `ran`. */
  z.object({ do: z.literal('run'), id: text, command: text, timeoutMs: count }),
  z.object({ do: z.literal('stopRun'), id: text }),
]);
export type SlotCommand = z.infer<typeof slotCommand>;

export const toHost = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('slot'), token: text, groupId: text, command: slotCommand }),
  /** A runner of the group has begun: it wants to hear of its attempts there, and again what it does not have. */
  z.object({ kind: z.literal('hello'), groupId: text, asker: text }),
]);
export type ToHost = z.infer<typeof toHost>;

/** State of an attempt at one moment, counted from 1. `prints`: bytes printed by then. Commits are fetched. */
export const checkpoint = z.object({
  say: z.literal('checkpoint'),
  n: count,
  prints: count,
  files: blob.optional(),
  head: commit.optional(),
  snapshot: commit.optional(),
});

/** An attempt is over. What it printed, and its last checkpoint, were told before. */
export const attemptEnd = z.discriminatedUnion('say', [
  z.object({ say: z.literal('refused'), failure }),
  z.object({
    say: z.literal('ended'),
    status: z.discriminatedUnion('kind', [
      z.object({ kind: z.literal('exited'), code: z.number().int() }),
      z.object({ kind: z.literal('signalled'), signal: name }),
      z.object({ kind: z.literal('unknown') }),
    ]),
    leftover: z.boolean(),
    limitsHit: z.array(z.enum(['memory', 'processes'])),
    stderrTail: told,
    /** The guard ended it, because its lease was over. */
    fenced: z.boolean(),
    /** Some of its files, or its work, cannot be sent: why, and the folder on the host in which they lie. */
    unsent: z.object({ why: told, folder: told, isDiskFull: z.boolean().optional() }).optional(),
  }),
]);

export type AttemptEnd = z.infer<typeof attemptEnd>;

/** How a command of the user's in the session's worktree ended. */
export const ran = z.object({
  say: z.literal('ran'),
  id: name,
  exitCode: z.number().int().nullable(),
  timedOut: z.boolean(),
  /** The end of what it printed. */
  output: told,
});

/** What is said of an attempt, some of it more than once. */
const attemptNews = z.union([
  z.object({ say: z.literal('started'), process: processIdentity }),
  /** What claude printed; `offset` counts from the begin of the attempt. */
  z.object({
    say: z.literal('printed'),
    offset: count,
    data: z.custom<Uint8Array>((value) => value instanceof Uint8Array),
  }),
  checkpoint,
  attemptEnd,
  ran,
]);
export type AttemptNews = z.infer<typeof attemptNews>;

/** What a host can do, as it says itself. */
export const abilities = z.object({
  wire: count,
  version: name,
  claudeVersion: name,
  /** Changes with its login and with each start of its agent; reveals nothing of the login. Absent = not known. */
  loginKey: name.optional(),
});
export type HostAbilities = z.infer<typeof abilities>;

/** A login with which claude could do nothing, as the runner saw it; without a key whichever the host has. */
export const refusedLogin = z.object({ key: text.optional(), trouble: text });
export type RefusedLogin = z.infer<typeof refusedLogin>;

/** What a host reports about itself in the list of hosts. Times are those of Redis, ms since 1970. */
export const hostEntry = z.object({
  name: hostName,
  /** Without the one that every host has of itself. */
  labels: z.array(z.string().regex(labelPattern)),
  slots: count,
  used: count,
  abilities,
  leaseMs: count,
  since: moment,
  seenAt: moment,
  /** Without a living guard it takes nothing new either. */
  isGuarded: z.boolean(),
  /** Why nothing can be started there: its claude is missing, or was tried and may not be used. */
  refusal: told.optional(),
  /** It takes nothing new while there is so little room on its disk. */
  isFull: z.boolean().optional(),
  freeDiskBytes: count.optional(),
  /** What comes before the name of a repository when git reaches its repositories; absent = nothing does. */
  codeUrl: z.string().regex(codeUrlPattern).max(2_000).optional(),
  /** Tells hosts apart that were given the same name. */
  home: told.optional(),
  login: name.optional(),
  /** Why sessions there may not be able to log in, as its last check of that found. */
  loginWarning: told.optional(),
});
export type HostEntry = z.infer<typeof hostEntry>;

export const toGroup = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('attempt'), host: hostName, token: name, attemptId, news: attemptNews }),
  /** The answer to the `hello` of this asker: the attempts of the group that are there. */
  z.object({
    kind: z.literal('here'),
    host: hostName,
    asker: text,
    attempts: z.array(
      z.object({
        token: name,
        attemptId,
        sessionId: name,
        isOver: z.boolean(),
        process: processIdentity.optional(),
      }),
    ),
  }),
]);
export type ToGroup = z.infer<typeof toGroup>;

const newline = 10;

/** JSON; what claude printed follows as it is behind a newline, which JSON made here has nowhere. */
export function packed(message: ToGroup): Uint8Array {
  if (message.kind !== 'attempt' || message.news.say !== 'printed') return Buffer.from(JSON.stringify(message));
  const { data, ...news } = message.news;
  return Buffer.concat([Buffer.from(`${JSON.stringify({ ...message, news })}\n`), data]);
}

/** Null for what is no message, or one of another version. */
export function unpacked(message: Uint8Array): ToGroup | null {
  const end = message.indexOf(newline);
  try {
    const head: unknown = JSON.parse(Buffer.from(end < 0 ? message : message.subarray(0, end)).toString());
    if (end < 0) return toGroup.parse(head);
    const { news } = head as { readonly news?: object };
    return toGroup.parse({ ...(head as object), news: { ...news, data: message.subarray(end + 1) } });
  } catch {
    return null;
  }
}

/** Stands for paths that differ between hosts. */
export const placeholders = {
  session: '{{cca:session}}',
  worktree: '{{cca:worktree}}',
  package: '{{cca:package}}',
  bun: '{{cca:bun}}',
} as const;

/** In paths of a parcel: claude's name for its working folder, which differs between hosts (`projectSlug`). */
export const slugPlaceholder = '{{cca:slug}}';

/** How claude names the folder of conversations held in that folder: a real path, absolute. */
export function projectSlug(cwd: string): string {
  return cwd.replace(/[^A-Za-z0-9]/g, '-');
}
