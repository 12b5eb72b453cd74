/**
 * git/: the only code that calls git. This file runs it: git gets an environment of its own and settings that let
 * nothing in a repository start a program: no hooks, no file system monitor, no transport helpers. The user's own
 * configuration counts, because it says how to log in.
 */

import { dirname, join, resolve } from 'node:path';
import { defined } from '../core/defined.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import type { Files, RunOutput, World } from '../system/world.ts';
import type { UrlCredentials } from './source.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export interface Git {
  readonly world: World;
  readonly env: Environment;
  /** Variables that every git gets besides, by which it can be found should this process die. */
  readonly mark?: Readonly<Record<string, string>>;
}

export interface GitCall {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly timeoutMs: number;
  /** For a server that asks who is there; in the environment of this one call, never among the arguments. */
  readonly login?: UrlCredentials;
  /**
   * It is the user's own repository: ends of lines, links, large files and servers are handled as the user has set it
   * up, with all that the user's shell knows.
   */
  readonly own?: true;
  readonly variables?: Readonly<Record<string, string>>;
  readonly encoding?: 'latin1';
  readonly input?: string | Uint8Array;
}

/** For foreign files: symlinks must stay symlinks, and bytes are compared later. */
const foreignSettings = ['core.symlinks=true', 'core.autocrlf=false'];

/**
 * For the user's repository: no prompt for a signature can be answered, a merge must not reuse resolutions that git
 * recorded elsewhere, and git waits for other processes that hold a lock of a ref (milliseconds).
 */
const ownSettings = [
  'commit.gpgSign=false',
  'rerere.enabled=false',
  'merge.verifySignatures=false',
  'core.safecrlf=false',
  'core.filesRefLockTimeout=1000',
  'core.packedRefsTimeout=10000',
];

const settings = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.askPass=',
  'protocol.ext.allow=never',
  'submodule.recurse=false',
  'fetch.recurseSubmodules=false',
  'gc.auto=0',
  'maintenance.auto=false',
  'init.defaultBranch=main',
  'advice.detachedHead=false',
];

/** How to reach a server and log in there, as the user has set it up. */
const passed = [
  ...['PATH', 'HOME', 'USER', 'LOGNAME', 'TMPDIR', 'XDG_CONFIG_HOME', 'XDG_RUNTIME_DIR', 'DBUS_SESSION_BUS_ADDRESS'],
  ...['SSH_AUTH_SOCK', 'GIT_SSH', 'GIT_SSH_COMMAND', 'GIT_SSH_VARIANT'],
  ...['HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy', 'NO_PROXY', 'no_proxy'],
  ...[
    'SSL_CERT_FILE',
    'SSL_CERT_DIR',
    'CURL_CA_BUNDLE',
    'GIT_SSL_CAINFO',
    'GIT_SSL_CAPATH',
    'GIT_SSL_CERT',
    'GIT_SSL_KEY',
  ],
];
const passedPattern = /^GIT_CONFIG_(?:GLOBAL|SYSTEM|NOSYSTEM|COUNT|KEY_\d+|VALUE_\d+)$/;

const userVariable = 'CLAUDE_CODE_AGENT_GIT_USER';
const passwordVariable = 'CLAUDE_CODE_AGENT_GIT_PASSWORD';
/** Git asks a shell function; it answers from the environment, which only this user can read. */
const answer = `printf 'username=%s\\npassword=%s\\n' "$${userVariable}" "$${passwordVariable}"`;
const loginHelper = `!f() { test "$1" = get && ${answer}; }; f`;

/**
 * What git printed on standard output. Fails with `not-found` when git is not installed or refuses, with git's own
 * reason in the sentence, and with `timeout` when it does not end in time. The next step is left to the caller, who
 * knows what was wanted.
 */
export async function runGit(git: Git, call: GitCall): Promise<Result<string>> {
  const asked = await askGit(git, call);
  if (!asked.ok) return asked;
  const { exitCode, stdout, stderr } = asked.value;
  if (exitCode === 0) return ok(stdout);
  return fail('not-found', `git ${call.args[0]} refused: ${reasonIn(stderr, exitCode)}.`, '');
}

export interface GitAnswer extends RunOutput {
  readonly exitCode: number;
}

/** As runGit, for commands whose exit code is an answer. Fails with `not-found` (no git) and `timeout` only. */
export async function askGit({ world, env, mark }: Git, call: GitCall): Promise<Result<GitAnswer>> {
  const { args, cwd, timeoutMs, login, own, variables, encoding, input } = call;
  const options = [
    ...settings,
    ...(own ? ownSettings : foreignSettings),
    ...(login === undefined ? [] : ['credential.helper=', `credential.helper=${loginHelper}`]),
  ];
  const ran = await world.processes.run({
    program: 'git',
    args: [...options.flatMap((setting) => ['-c', setting]), ...args],
    cwd,
    env: { ...gitEnvironment(env, login, own), ...variables, ...mark },
    timeoutMs,
    ...defined({ encoding }),
    ...(input === undefined ? {} : { input: typeof input === 'string' ? Buffer.from(input) : input }),
  });
  if (!ran.ok) {
    if (ran.failure.reason !== 'not-found') return ran;
    return fail('not-found', 'The program git was not found.', 'Install git, or give a folder without --ref.');
  }
  const { exitCode, stdout, stderr } = ran.value;
  if (exitCode !== null) return ok({ exitCode, stdout, stderr });
  const seconds = Math.round(timeoutMs / 1000);
  const message = `git ${args[0]} did not end within ${seconds} seconds, or was ended by a signal.`;
  return fail('timeout', message, 'Check the connection, then run the command again.');
}

function gitEnvironment(env: Environment, login?: UrlCredentials, own?: true): Record<string, string> {
  const isKept = (name: string): boolean =>
    passed.includes(name) || passedPattern.test(name) || (own === true && isOfUser(name));
  const kept = Object.entries(env).flatMap(([name, value]) =>
    value === undefined || !isKept(name) ? [] : [[name, value]],
  );
  return {
    ...Object.fromEntries(kept),
    LC_ALL: 'C',
    // No person can answer a prompt.
    GIT_TERMINAL_PROMPT: '0',
    // A look at the user's checkout must not change its index. Elsewhere large files are no templates, and the user's
    // configuration may rewrite places, and servers send us on.
    ...(own ? { GIT_OPTIONAL_LOCKS: '0' } : { GIT_LFS_SKIP_SMUDGE: '1', GIT_ALLOW_PROTOCOL: 'https:ssh:file' }),
    ...(login === undefined ? {} : { [userVariable]: login.user, [passwordVariable]: login.password }),
  };
}

/**
 * Any variable may tell a credential helper, a filter or an agent what it needs; but what a git that started us has
 * set names its own repository and ways of its own, and a login of claude is no business of theirs.
 */
function isOfUser(name: string): boolean {
  return !/^(?:GIT_|CLAUDE|ANTHROPIC_)/.test(name) || ofUser.test(name);
}

const ofUser = /^GIT_(?:ASKPASS|ALLOW_PROTOCOL|PROXY_COMMAND|SSL_.+|HTTP_.+|(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL))$/;

/** Lines that only say that something went wrong, or what git was doing: another one tells why. */
const vague = [
  /^(?:@|hint:|To |warning:|Please make sure|and the repository exists|fetch-pack: |send-pack: )/,
  /^(?:fatal|error): (?:Could not read from remote|the remote end hung up|failed to push|early EOF|index-pack|unpack)/i,
  /^remote: *(?:$|Resolving|Counting|Compressing|Enumerating|Total)/,
];
const causes = [/^(?:remote: )?(?:fatal|error): /i, /^Host key verification failed/, /^! \[/, /^remote: /];

/** The first line of what git printed that tells why, without an end. */
export function reasonIn(stderr: string, exitCode: number): string {
  const lines = stderr
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const clear = lines.filter((line) => !vague.some((form) => form.test(line)));
  const found = causes.flatMap((cause) => clear.find((line) => cause.test(line)) ?? []);
  const line = found[0] ?? clear[0] ?? lines[0] ?? `exit code ${exitCode}`;
  return line
    .replace(/^(?:remote: )?(?:(?:fatal|error): )?/i, '')
    .replace(/\.+$/, '')
    .slice(0, 300);
}

// Which git repository a folder belongs to: found by reading files, because it is asked for every session added.

export interface FoundRepository {
  /** Real path of the git directory that all worktrees of the repository share. */
  readonly repository: string;
  /** Real path of the root of the worktree that holds the folder; of a bare repository, the repository itself. */
  readonly top: string;
}

/** A file that names a git directory holds one path. */
const pointerBytesMax = 64 * 1024;

/** As git itself would find it, without asking git; null outside of a repository, or when one cannot be read. */
export function findRepository(files: Files, folder: string): FoundRepository | null {
  try {
    return search(files, folder);
  } catch {
    return null;
  }
}

function search(files: Files, folder: string): FoundRepository | null {
  const start = files.realPath(folder);
  for (let top = start; top !== null; top = dirname(top) === top ? null : dirname(top)) {
    const dotGit = join(top, '.git');
    const kind = files.info(dotGit)?.kind;
    if (kind === 'file') return repositoryOf(files, top, pointedTo(files, top, dotGit));
    const gitDir = kind === 'folder' ? dotGit : isGitDirectory(files, top) ? top : null;
    const found = gitDir === null ? null : repositoryOf(files, top, gitDir);
    if (found !== null) return found;
  }
  return null;
}

/** What a file `.git` names: linked worktrees, submodules and repositories kept elsewhere have one. */
function pointedTo(files: Files, top: string, path: string): string | null {
  const target = /^gitdir: ([\s\S]+?)[\r\n]*$/.exec(readPointer(files, path))?.[1];
  return target === undefined ? null : resolve(top, target);
}

/** The git directory of one worktree, which holds its HEAD and its index; null when there is none. */
export function gitDirOf(files: Files, top: string): string | null {
  try {
    const dotGit = join(top, '.git');
    const kind = files.info(dotGit)?.kind;
    return kind === 'folder' ? dotGit : kind === 'file' ? pointedTo(files, top, dotGit) : null;
  } catch {
    return null;
  }
}

function repositoryOf(files: Files, top: string, gitDir: string | null): FoundRepository | null {
  const real = gitDir === null ? null : files.realPath(gitDir);
  if (real === null || files.info(join(real, 'HEAD')) === null) return null;
  const common = join(real, 'commondir');
  const shared = files.info(common)?.kind === 'file' ? readPointer(files, common).replace(/[\r\n]+$/, '') : '.';
  const repository = files.realPath(resolve(real, shared));
  return repository !== null && isGitDirectory(files, repository) ? { repository, top } : null;
}

function isGitDirectory(files: Files, path: string): boolean {
  const isFolder = (name: string): boolean => files.info(join(path, name))?.kind === 'folder';
  return files.info(join(path, 'HEAD'))?.kind === 'file' && isFolder('objects') && isFolder('refs');
}

function readPointer(files: Files, path: string): string {
  return new TextDecoder().decode(files.readBytes(path, 0, pointerBytesMax));
}
