/** Ids of groups and sessions: made, checked and looked up. */
import { type Advice, advise, see } from './advice.ts';
import { fail, ok, type Result } from './failure.ts';
import type { GroupId, SessionId } from './group.ts';
import { hint } from './nearest.ts';
import { joiners, listNames, unsafeCharacters, widthless } from './text.ts';

const slugPattern = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
const slugLengthMax = 64;

/** Converts any text to a slug; empty when no character is usable. */
export function slugify(text: string): string {
  return text
    .normalize('NFKD')
    .replace(/[\u0300-\u036f]/g, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, slugLengthMax)
    .replace(/-+$/, '');
}

/** Checks a user's slug. Fails with `usage` and suggests the nearest valid one. */
export function checkSlug(slug: string): Result<string> {
  if (slugPattern.test(slug) && slug.length <= slugLengthMax) return ok(slug);
  const suggestion = slugify(slug);
  const next =
    suggestion === '' ? 'Give a slug such as "auth-refactor".' : `Try "${suggestion}" and put the rest into --name.`;
  if (slug.trim() === '') return fail('usage', 'The slug is blank.', next);
  const what = slugPattern.test(slug)
    ? `has ${slug.length} characters where ${slugLengthMax} are allowed`
    : 'is not made of lower-case letters, digits and single hyphens';
  return fail('usage', `The slug ${quoted(slug)} ${what}.`, next);
}

const quotedLengthMax = 120;

/** A user's text in double quotes: long texts are cut, invisible characters are escaped. */
export function quoted(text: string, lengthMax = quotedLengthMax): string {
  const shown = text.length > lengthMax ? `${text.slice(0, lengthMax)}…` : text;
  return JSON.stringify(shown).replace(invisible, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

const invisible = unsafeCharacters(widthless + joiners);
/** A sentence is one line, in which spaces are collapsed. */
const lostBlanks = /^\s|\s$|\s\s|[^\S ]/;

/** Whether a sentence would not show all characters of this text, so that it must be quoted there. */
export function needsQuotes(text: string): boolean {
  return lostBlanks.test(text) || text.search(invisible) >= 0;
}

/** `YYYYMMDD-HHMMSS-slug` in UTC, so that ids sort by creation time. */
export function makeGroupId(atMs: number, slug: string): GroupId {
  const stamp = new Date(atMs).toISOString().replace(/[-:]/g, '').replace('T', '-').slice(0, 15);
  return `${stamp}-${slug}`;
}

const groupIdPattern = /^\d{8}-\d{6}-[a-z0-9]+(?:-[a-z0-9]+)*$/;

export function isGroupId(text: string): boolean {
  return groupIdPattern.test(text);
}

export function slugOf(id: GroupId): string {
  return id.slice(16);
}

export function createdAtOf(id: GroupId): string {
  return id.replace(/^(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)-.*$/, '$1-$2-$3T$4:$5:$6.000Z');
}

/** `NNN-uuid`; the number grows beyond three digits when needed. */
export function makeSessionId(number: number, uuid: string): SessionId {
  return `${String(number).padStart(3, '0')}-${uuid}`;
}

const sessionIdPattern = /^\d{3,6}-[A-Za-z0-9][A-Za-z0-9-]{0,80}$/;

export function isSessionId(text: string): boolean {
  return sessionIdPattern.test(text);
}

export function sessionNumber(id: SessionId): number {
  return Number.parseInt(id, 10);
}

/** The part after the number: a uuid, and the Claude session id of the first attempt. */
export function sessionUuid(id: SessionId): string {
  return id.slice(id.indexOf('-') + 1);
}

export function sessionLabel(id: SessionId, name: string | undefined): string {
  return name ?? String(sessionNumber(id)).padStart(3, '0');
}

/** `002 update-lib`, or `002` for a session without a name. */
export function numberedName(id: SessionId, name: string | undefined): string {
  const number = String(sessionNumber(id)).padStart(3, '0');
  return name === undefined ? number : `${number} ${name}`;
}

/** By full id, slug (the newest) or unique prefix. Fails with `not-found` or `ambiguous` (with candidates). */
export function findGroup(ids: readonly GroupId[], reference: string): Result<GroupId> {
  if (ids.includes(reference)) return ok(reference);
  const sameSlug = ids.filter((id) => slugOf(id) === reference).sort();
  const newest = sameSlug.at(-1);
  if (newest !== undefined) return ok(newest);
  const matches = reference === '' ? [] : ids.filter((id) => id.startsWith(reference));
  if (matches.length > 0) return onlyMatch(matches, 'group', reference, groupListing);
  const isFile = /\.ya?ml$/.test(reference);
  const next = isFile ? advise('See what a workflow would do with', ['run', reference, '--dry-run']) : groupListing;
  return fail('not-found', `There is no group ${quoted(reference)}${slugHint(reference, ids) || '.'}`, next);
}

/** `; did you mean "auth"?` of a mistyped slug. */
export function slugHint(reference: string, ids: readonly GroupId[]): string {
  return hint(reference, new Set(ids.map(slugOf)));
}

/** The same for a command that destroys the group: a slug of several groups, `latest` included, is ambiguous. */
export function findGroupToDestroy(
  ids: readonly GroupId[],
  reference: string,
  latest: GroupId | undefined,
): Result<GroupId> {
  if (ids.includes(reference)) return ok(reference);
  const meant = new Set(ids.filter((id) => slugOf(id) === reference));
  if (meant.size > 0 && recencyOf(reference) !== null && latest !== undefined) meant.add(latest);
  if (meant.size > 1) return onlyMatch([...meant].sort().reverse(), 'group', reference, groupListing);
  return findGroup(ids, reference);
}

/** 0 for `@` or `latest`, the group created last; 1 for `@1`, the one before it; null = another reference. */
export function recencyOf(reference: string): number | null {
  if (reference === '@' || reference === 'latest') return 0;
  const [, count] = /^@(\d{1,9})$/.exec(reference) ?? [];
  return count === undefined ? null : Number(count);
}

/** By full id, number, name, or unique prefix of id or uuid. Fails with `not-found` or `ambiguous`. */
export function findSession(
  sessions: readonly { readonly id: SessionId; readonly name?: string | undefined }[],
  reference: string,
): Result<SessionId> {
  const exact =
    sessions.find((session) => session.id === reference) ?? sessions.find((session) => session.name === reference);
  if (exact) return ok(exact.id);
  if (/^\d{1,6}$/.test(reference)) {
    const byNumber = sessions.find((session) => sessionNumber(session.id) === Number.parseInt(reference, 10));
    // Digits mean this number, never a session whose uuid begins with them.
    return byNumber ? ok(byNumber.id) : onlyMatch([], 'session', reference, sessionListing);
  }
  const matches = sessions
    .map((session) => session.id)
    .filter((id) => reference !== '' && (id.startsWith(reference) || sessionUuid(id).startsWith(reference)));
  return onlyMatch(matches, 'session', reference, sessionListing);
}

const candidatesMax = 10;
const groupListing = see('group', 'list');
const sessionListing = see('session', 'list');

function onlyMatch(matches: readonly string[], noun: string, reference: string, listing: Advice): Result<string> {
  const [first, second] = matches;
  const shown = quoted(reference);
  if (first === undefined) return fail('not-found', `There is no ${noun} ${shown}.`, listing);
  if (second === undefined) return ok(first);
  const candidates = listNames(matches, candidatesMax);
  return fail('ambiguous', `${shown} fits ${matches.length} ${noun}s: ${candidates}.`, 'Give more of the id.');
}
