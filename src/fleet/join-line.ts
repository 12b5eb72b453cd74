/**
 * One line of text with everything a host needs to join a fleet. It contains keys and a password: its owner can read
 * what goes through Redis and offer slots, but start nothing, because orders are signed with a key that is not
 * included.
 */
import { type Advice, advise } from '../core/advice.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import { parseJson } from '../store/json.ts';
import { type JoinTicket, joinTicket } from './fleet-files.ts';
import { checkAddress } from './redis.ts';

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
