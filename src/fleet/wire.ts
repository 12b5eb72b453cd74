/**
 * fleet/: the shared code for sessions on other hosts, and the runner's side. This file: the messages between a runner
 * and hosts. All input comes from another program, perhaps of another version, so it is parsed before use, and unknown
 * messages are dropped.
 */
import { z } from 'zod';
import { fail, ok, type Result } from '../core/failure.ts';
import { hostNamePattern, labelPattern } from '../core/setting-values.ts';
import { parseJson } from '../store/json.ts';

/** Both sides send it; a host with another version is sent nothing. */
export const wireVersion = 9;

const bytes = z.string().base64();
const count = z.number().int().nonnegative();
const text = z.string();
/** Maximum length of stored and shown names, whatever a host sends. */
const name = z.string().max(400);
/** Sentences and the end of a command's output, for the log, which every command reads. */
const logText = text.transform((all) => all.slice(0, 64 * 1024));
/** Ms since 1970, within the range of Date. */
const moment = count.max(8_640_000_000_000_000);
/** A full commit id: it is passed to git line by line. */
const commit = z.string().regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/);
/** Used in names of folders and control groups on the host. */
const attemptId = z.string().regex(/^[A-Za-z0-9][\w.-]{0,99}$/);
/** Excludes what git would read as an option, or as a program to run. */
export const codeUrlPattern = /^(?![A-Za-z0-9]+::)[A-Za-z0-9_/]\P{Cc}*$/u;
/** It is shown, logged, and part of names in Redis. */
const hostName = z.string().regex(hostNamePattern);

/** A process on another host; its pid is valid there only. */
export const processIdentity = z.object({
  pid: count,
  startTime: name,
  host: name,
  bootId: name,
});

const failure = z.object({ reason: z.string().regex(/^[a-z][a-z-]{0,63}$/), message: logText, next: logText });

/**
 * Data too large for a message: `pieces` sealed values of at most 1 MB, `size` bytes in all. `digest`: their SHA-256.
 * Every host has the sealing key, so only the digest ties a signed order to this data.
 */
export const blob = z.object({
  id: z.string().regex(/^[\w-]{1,100}$/),
  pieces: count.max(1_000),
  size: count,
  digest: z.string().regex(/^[0-9a-f]{64}$/),
});
export type Blob = z.infer<typeof blob>;

/** One file of a parcel; `path` is relative to the session's folder and never leads out of it. */
const parcelFile = z.object({
  path: text,
  /** Its placeholders must be replaced. */
  isText: z.boolean(),
  /** Position of the bytes in the file; absent = they are the whole file. */
  offset: count.optional(),
  data: bytes,
});
export type ParcelFile = z.infer<typeof parcelFile>;
const parcel = z.object({ files: z.array(parcelFile) });

/** Parses the files in a blob, which is JSON. Fails with `usage` if it contains none. */
export function parcelIn(bytes: Uint8Array): Result<readonly ParcelFile[]> {
  const found = parcel.safeParse(parseJson(Buffer.from(bytes).toString()));
  if (found.success) return ok(found.data.files);
  return fail('usage', 'The files that were sent cannot be read.', 'Upgrade the older of the two programs.');
}

const command = z.object({ command: text, timeoutMs: count });

/** Name and value of a setting in a repository's configuration. */
const gitSetting = z.tuple([text, text]);
export type GitSetting = z.infer<typeof gitSetting>;

/** Identity and remotes, so that git works for a session as in the user's checkout. */
export function isSentSetting([key, value]: GitSetting): boolean {
  return /^(?:user\.(?:name|email)|remote\.[^\s]+\.(?:url|fetch)|lfs\.url)$/.test(key) && !/[\0\n]/.test(value);
}

/** Work as commits that were pushed to the host, or to `remote` if it is set. Commits are full ids. */
export const shippedWork = z.object({
  /** Identifies the repository. */
  repository: z.string().regex(/^[0-9a-f]{1,128}$/),
  /** The branch's commit, and a commit on top of it with the uncommitted files. */
  head: commit,
  snapshot: commit,
  branch: text,
  settings: z.array(gitSetting),
  /** Commits are exchanged through this remote, because no ssh reaches the host. */
  remote: text.optional(),
});
export type ShippedWork = z.infer<typeof shippedWork>;

/** Those variables of a session that mean the same on every machine. Others are dropped, such as logins. */
export const sentVariables = z
  .object({ CCA_GROUP: text, CCA_SESSION: text, CCA_PORT_BASE: text, COMPOSE_PROJECT_NAME: text })
  .partial();

/** Everything needed to start an attempt on a host without prior state. Paths in `args` have placeholders. */
export const order = z.object({
  attemptId,
  attempt: count,
  groupId: text,
  sessionId: text,
  args: z.array(text),
  /** claude's working directory, relative to the session's folder. */
  cwd: text,
  files: blob,
  work: shippedWork,
  setup: command.optional(),
  /** Of the session, for its commands and claude. */
  variables: sentVariables.optional(),
  untrusted: z.boolean(),
  memoryBytes: count.optional(),
  processesMax: count.optional(),
  /** The attempt is not ended when its lease expires: its runner waits for it without limit. */
  waits: z.boolean().optional(),
});
export type Order = z.infer<typeof order>;

/** A runner's command about one slot. */
const slotCommand = z.discriminatedUnion('do', [
  z.object({ do: z.literal('order'), order }),
  z.object({ do: z.literal('release') }),
  /** Executed once per id, like `run`; the others are idempotent. */
  z.object({ do: z.literal('write'), id: text, lines: text }),
  z.object({ do: z.enum(['terminate', 'halt', 'goOn', 'endNow']) }),
  /** The runner has stored this many bytes of output, and the checkpoints up to this one. */
  z.object({ do: z.literal('have'), printed: count, checkpoint: count }),
  /** A user's command in the session's worktree; answered by `ran`. */
  z.object({ do: z.literal('run'), id: text, command: text, timeoutMs: count }),
  z.object({ do: z.literal('stopRun'), id: text }),
]);
export type SlotCommand = z.infer<typeof slotCommand>;

export const toHost = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('slot'), token: text, groupId: text, command: slotCommand }),
  /** A runner of the group has started, and requests the list of its attempts there and all missing reports. */
  z.object({ kind: z.literal('hello'), groupId: text, asker: text }),
]);
export type ToHost = z.infer<typeof toHost>;

/** State of an attempt at one moment, numbered from 1. `prints`: bytes printed so far. The runner fetches commits. */
export const checkpoint = z.object({
  say: z.literal('checkpoint'),
  n: count,
  prints: count,
  files: blob.optional(),
  head: commit.optional(),
  snapshot: commit.optional(),
});

/** Sent when an attempt is over, after its output and its last checkpoint. */
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
    stderrTail: logText,
    /** The guard ended it because its lease expired. */
    fenced: z.boolean(),
    /** Files or work that could not be sent: the reason, and their folder on the host. */
    unsent: z.object({ why: logText, folder: logText, isDiskFull: z.boolean().optional() }).optional(),
  }),
]);

export type AttemptEnd = z.infer<typeof attemptEnd>;

/** How a user's command in the session's worktree ended. */
export const ran = z.object({
  say: z.literal('ran'),
  id: name,
  exitCode: z.number().int().nullable(),
  timedOut: z.boolean(),
  /** The end of its output. */
  output: logText,
});

/** Reports about an attempt, some of them repeated. */
const attemptNews = z.union([
  z.object({ say: z.literal('started'), process: processIdentity }),
  /** claude's output; `offset` counts from the start of the attempt. */
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

/** A host's own report of its abilities. */
export const abilities = z.object({
  wire: count,
  version: name,
  claudeVersion: name,
  /** Changes with its login and with each start of its agent; reveals nothing about the login. Absent = unknown. */
  loginKey: name.optional(),
});
export type HostAbilities = z.infer<typeof abilities>;

/** A login that claude could not use, as the runner observed. Without a key, any login of the host. */
export const refusedLogin = z.object({ key: text.optional(), trouble: text });
export type RefusedLogin = z.infer<typeof refusedLogin>;

/** A host's own entry in the list of hosts. Times are those of Redis, ms since 1970. */
export const hostEntry = z.object({
  name: hostName,
  /** Excludes the label that every host has: its name. */
  labels: z.array(z.string().regex(labelPattern)),
  slots: count,
  used: count,
  abilities,
  leaseMs: count,
  since: moment,
  seenAt: moment,
  /** Whether its guard is alive. A host without a guard takes no new sessions. */
  isGuarded: z.boolean(),
  /** Why nothing can be started there: its claude is missing, or failed its check. */
  refusal: logText.optional(),
  /** Its disk has too little space for new sessions. */
  isFull: z.boolean().optional(),
  freeDiskBytes: count.optional(),
  /** URL prefix of its repositories for git; absent = git cannot reach them. */
  codeUrl: z.string().regex(codeUrlPattern).max(2_000).optional(),
  /** Distinguishes hosts with the same name. */
  home: logText.optional(),
  login: name.optional(),
  /** Why sessions there may not be able to log in, according to its last check. */
  loginWarning: logText.optional(),
});
export type HostEntry = z.infer<typeof hostEntry>;

export const toGroup = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('attempt'), host: hostName, token: name, attemptId, news: attemptNews }),
  /** The answer to this asker's `hello`: the attempts of the group that are there. */
  z.object({
    kind: z.literal('here'),
    host: hostName,
    asker: text,
    attempts: z.array(z.object({ token: name, process: processIdentity.optional() })),
  }),
]);
export type ToGroup = z.infer<typeof toGroup>;

const newline = 10;

/** JSON; claude's output follows unchanged after a newline, which our JSON never contains. */
export function packed(message: ToGroup): Uint8Array {
  if (message.kind !== 'attempt' || message.news.say !== 'printed') return Buffer.from(JSON.stringify(message));
  const { data, ...news } = message.news;
  return Buffer.concat([Buffer.from(`${JSON.stringify({ ...message, news })}\n`), data]);
}

/** Null for an invalid message, or one of another version. */
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

/** Stand for paths that differ between hosts. */
export const placeholders = {
  session: '{{cca:session}}',
  worktree: '{{cca:worktree}}',
  package: '{{cca:package}}',
  bun: '{{cca:bun}}',
} as const;

/** In paths of a parcel: claude's name for its working folder, which differs between hosts (`projectSlug`). */
export const slugPlaceholder = '{{cca:slug}}';

/** claude's name for the conversation folder of `cwd`, which is an absolute path without symlinks. */
export function projectSlug(cwd: string): string {
  return cwd.replace(/[^A-Za-z0-9]/g, '-');
}
