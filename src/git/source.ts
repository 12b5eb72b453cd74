/**
 * Repositories of template packs. Parses them as people write them: a URL, `user@host:path`, or a path on this machine.
 * URLs that would make git run a program, and insecure transports, are refused before git sees them. Fetches the files
 * of one commit, without history, submodules or a remaining connection.
 */
import { posix } from 'node:path';
import { defined } from '../core/defined.ts';
import { type Failure, fail, ok, type Result } from '../core/failure.ts';
import { type Git, runGit, type UrlCredentials } from './git.ts';

export interface CloneSource {
  /** As git takes it, without a password; this is stored and shown. */
  readonly url: string;
  readonly login?: UrlCredentials;
}

const kinds = 'Give an https://, ssh:// or file:// URL, user@host:path, or the path of a folder.';
// biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is what this is for.
const control = /[\u0000-\u001f\u007f]/;
const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):\/\//;
/** Git's own rule: a colon before the first slash marks a host; everything else is a path. */
const hostAndPath = /^(?:([^/:@]+)@)?([^/:@]+):(.+)$/;

/** The repository that `text` names, or null for a path on this machine. Fails with `usage`. */
export function parseRepository(text: string): Result<CloneSource | null> {
  if (text.trim() === '' || control.test(text)) return fail('usage', 'The location of the pack is invalid.', kinds);
  if (/^[^/]*::/.test(text)) {
    return fail('usage', 'A location with "::" would make git start a program.', kinds);
  }
  const protocol = scheme.exec(text)?.[1]?.toLowerCase();
  if (protocol !== undefined) return parseUrl(text, protocol);
  const short = hostAndPath.exec(text);
  if (short === null) return ok(null);
  const [, user = '', host = '', path = ''] = short;
  if ([user, host, path].some((part) => part.startsWith('-'))) return optionLike();
  return ok({ url: text });
}

function parseUrl(text: string, protocol: string): Result<CloneSource> {
  if (protocol === 'http' || protocol === 'git') {
    const message = `${protocol}:// is not encrypted, so the templates could be changed on the network.`;
    return fail('usage', message, 'Use the https:// or ssh:// URL of the repository.');
  }
  if (protocol !== 'https' && protocol !== 'ssh' && protocol !== 'file') {
    return fail('usage', `${protocol}:// is not a supported URL scheme for a pack.`, kinds);
  }
  if (text.includes('#')) return fail('usage', 'The URL contains a "#".', 'Name the branch, tag or commit with --ref.');
  const invalid = fail('usage', 'The URL of the pack is invalid.', `Give a URL as for git clone. ${kinds}`);
  try {
    const url = new URL(text);
    if (url.search !== '') return invalid;
    if (protocol === 'file') return fileUrl(text, url);
    const path = decodeURIComponent(url.pathname);
    const user = decodeURIComponent(url.username);
    const password = decodeURIComponent(url.password);
    if (url.hostname === '' || /^\w+:\/\/\//.test(text)) return invalid;
    if (url.hostname.startsWith('-') || user.startsWith('-')) return optionLike();
    if (control.test(`${user}${password}${path}`)) return invalid;
    // ssh needs the user name; it accepts no passwords in a URL.
    const name = protocol === 'ssh' && url.username !== '' ? `${url.username}@` : '';
    const repository = { url: `${protocol}://${name}${url.host}${url.pathname}` };
    if (protocol === 'ssh' || (user === '' && password === '')) return ok(repository);
    return ok({ ...repository, login: { user, password } });
  } catch {
    return invalid;
  }
}

function fileUrl(text: string, url: URL): Result<CloneSource> {
  if (url.host === '' && /^file:\/\/\//i.test(text)) return ok({ url: `file://${url.pathname}` });
  return fail(
    'usage',
    'A file:// URL names another host.',
    'Write file:// with an absolute path, such as file:///srv/t.',
  );
}

function optionLike(): Result<never> {
  return fail('usage', 'A host, user or path that begins with "-" looks like an option.', kinds);
}

/** The default name of a pack: the last part of its path, without `.git`. */
export function nameOfSource(source: string): string {
  const last = posix.basename(source.replace(/[/:]+$/, '').replaceAll(':', '/'));
  return last.replace(/\.git$/i, '');
}

const withRef = /^([a-z][\w+.-]*:\/\/[^/]*\/.+|(?:[^/:@]+@)?[^/:@]+:(?!\/\/).+)@([^@/:]+)$/i;

/** Splits off the ref of `URL@REF`; paths on this machine stay whole. */
export function splitRef(address: string): { readonly repository: string; readonly ref?: string } {
  const [, repository, ref] = withRef.exec(address) ?? [];
  return repository === undefined || ref === undefined ? { repository: address } : { repository, ref };
}

/** Letters, digits and other characters of branch and tag names, without any that git interprets. */
const plainRef = /^[A-Za-z0-9_][A-Za-z0-9_./+#@=-]*$/;
const refMax = 200;

/** A branch, a tag or a full commit id. Fails with `usage`. */
export function parseRef(ref: string): Result<string> {
  const isPlain = plainRef.test(ref) && !/\.\.|\/\/|@\{|\/\.|[./]$/.test(ref) && !ref.endsWith('.lock');
  if (isPlain && ref.length <= refMax) return ok(ref);
  const shown = JSON.stringify(ref.slice(0, refMax));
  return fail(
    'usage',
    `${shown} is not a branch, tag or commit id.`,
    'Give one such as main, v1.2 or a full commit id.',
  );
}

// Fetches the files of a repository at one commit, without history, submodules or a remaining connection.

/** Enough for a slow connection and a large repository. */
const fetchTimeoutMs = 5 * 60_000;
const localTimeoutMs = 60_000;

export interface CheckoutInput {
  /** URL, or absolute path of a repository on this machine. */
  readonly repository: string;
  /** Branch, tag or full commit id, checked by parseRef; absent = the repository's HEAD. */
  readonly ref?: string;
  readonly login?: UrlCredentials;
  readonly folder: string;
}

export interface CheckedOut {
  readonly commit: string;
}

/**
 * Fills the folder. Fails with git's reason (`not-found`, `timeout`); the folder then contains whatever was fetched.
 */
export async function checkOut(git: Git, input: CheckoutInput): Promise<Result<CheckedOut>> {
  const { repository, ref, login, folder } = input;
  const local = { cwd: folder, timeoutMs: localTimeoutMs };
  // The user's git template folder could contain hooks, so an empty one is used.
  const made = await runGit(git, { ...local, args: ['init', '--quiet', '--template=', '.'] });
  if (!made.ok) return made;
  const fetched = await runGit(git, {
    cwd: folder,
    timeoutMs: fetchTimeoutMs,
    args: ['fetch', '--quiet', '--depth=1', '--no-tags', '--no-recurse-submodules', '--', repository, ref ?? 'HEAD'],
    ...defined({ login }),
  });
  if (!fetched.ok) return withNext(fetched.failure, ref);
  const found = await runGit(git, { ...local, args: ['rev-parse', '--verify', '--quiet', 'FETCH_HEAD^{commit}'] });
  if (!found.ok) return fail('not-found', `${ref ?? 'HEAD'} is not a commit.`, 'Give a branch, a tag or a commit id.');
  const commit = found.value.trim();
  const filled = await runGit(git, { ...local, args: ['checkout', '--quiet', '--force', '--detach', commit, '--'] });
  if (filled.ok) return ok({ commit });
  return withNext(filled.failure, undefined);
}

export interface TreeEntry {
  readonly path: string;
  readonly isLink: boolean;
}

export async function filesAt(git: Git, folder: string, commit: string): Promise<Result<readonly TreeEntry[]>> {
  const args = ['ls-tree', '-r', '-z', '--full-tree', commit];
  const listed = await runGit(git, { cwd: folder, timeoutMs: localTimeoutMs, args });
  if (!listed.ok) return listed;
  const lines = listed.value.split('\0').filter((line) => line !== '');
  return ok(lines.map((line) => ({ path: line.slice(line.indexOf('\t') + 1), isLink: line.startsWith('120000') })));
}

function withNext(failure: Failure, ref: string | undefined): Result<never> {
  if (failure.next.sentence !== '') return { ok: false, failure };
  const which = ref === undefined ? '' : ` and that ${ref} is a branch, tag or full commit id`;
  return fail(failure.reason, failure.message, `Check that git can read the repository${which}.`);
}
