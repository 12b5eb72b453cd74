/**
 * git/: the only code that calls git. This file runs it with its own environment and with settings that prevent a
 * repository from starting programs: no hooks, no file system monitor, no transport helpers. The user's own
 * configuration applies, because it says how to log in.
 */

import { dirname, join, resolve } from 'node:path';
import { defined } from '../core/defined.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import type { Files, RunOutput, World } from '../system/world.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** A user name and a password or token from a URL. Used once and never stored. */
export interface UrlCredentials {
  readonly user: string;
  readonly password: string;
}

export interface Git {
  readonly world: World;
  readonly env: Environment;
  /** Additional variables of every git process, by which it can be found if this process dies. */
  readonly mark?: Readonly<Record<string, string>>;
}

export interface GitCall {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly timeoutMs: number;
  /** Credentials for the server, passed in the environment of this call and never in arguments. */
  readonly login?: UrlCredentials;
  /**
   * The user's own repository: line endings, symlinks, large files and servers are handled as the user configured, with
   * all variables of the user's shell.
   */
  readonly own?: true;
  readonly variables?: Readonly<Record<string, string>>;
  readonly encoding?: 'latin1';
  readonly input?: string | Uint8Array;
}

/** For other repositories: symlinks must stay symlinks, and bytes are compared later. */
const foreignSettings = ['core.symlinks=true', 'core.autocrlf=false'];

/**
 * For the user's repository: no signature prompt (it could not be answered), no recorded conflict resolutions, and
 * waiting for ref locks of other processes (milliseconds).
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

/** The user's settings for reaching a server and logging in. */
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
/** Git calls a shell function, which answers from the environment that only this user can read. */
const answer = `printf 'username=%s\\npassword=%s\\n' "$${userVariable}" "$${passwordVariable}"`;
const loginHelper = `!f() { test "$1" = get && ${answer}; }; f`;

/**
 * Git's standard output. Fails with `not-found` when git is missing or refuses, with git's reason in the sentence, and
 * with `timeout`. The caller, who knows the goal, adds the next step.
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

/** As runGit, for commands whose exit code is an answer. Fails only with `not-found` (no git) and `timeout`. */
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
  const message = `git ${args[0]} timed out after ${seconds} seconds or was ended by a signal.`;
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
    // Prompts cannot be answered.
    GIT_TERMINAL_PROMPT: '0',
    // Reading the user's checkout must not change its index. In other repositories, large files are not templates, and
    // the user's configuration may rewrite URLs, and servers may redirect.
    ...(own ? { GIT_OPTIONAL_LOCKS: '0' } : { GIT_LFS_SKIP_SMUDGE: '1', GIT_ALLOW_PROTOCOL: 'https:ssh:file' }),
    ...(login === undefined ? {} : { [userVariable]: login.user, [passwordVariable]: login.password }),
  };
}

/**
 * A credential helper, filter or agent may need any of the user's variables. Not passed: what a calling git has set
 * about its own repository, and logins of claude.
 */
function isOfUser(name: string): boolean {
  return !/^(?:GIT_|CLAUDE|ANTHROPIC_)/.test(name) || ofUser.test(name);
}

const ofUser = /^GIT_(?:ASKPASS|ALLOW_PROTOCOL|PROXY_COMMAND|SSL_.+|HTTP_.+|(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL))$/;

/** Lines that only say that something failed, or what git was doing; another line has the reason. */
const vague = [
  /^(?:@|hint:|To |warning:|Please make sure|and the repository exists|fetch-pack: |send-pack: )/,
  /^(?:fatal|error): (?:Could not read from remote|the remote end hung up|failed to push|early EOF|index-pack|unpack)/i,
  /^remote: *(?:$|Resolving|Counting|Compressing|Enumerating|Total)/,
];
const causes = [/^(?:remote: )?(?:fatal|error): /i, /^Host key verification failed/, /^! \[/, /^remote: /];

/** The first line of git's output with a reason, without its final punctuation. */
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

// The git repository of a folder, found by reading files, because it is needed for every added session.

export interface FoundRepository {
  /** Real path of the git directory that all worktrees of the repository share. */
  readonly repository: string;
  /** Real path of the root of the folder's worktree; of a bare repository, the repository itself. */
  readonly top: string;
}

/** A file that names a git directory contains one path. */
const pointerBytesMax = 64 * 1024;

/** As git would find it, without running git; null outside a repository, or when one cannot be read. */
export function findRepository(files: Files, folder: string): FoundRepository | null {
  try {
    return search(files, folder);
  } catch {
    return null;
  }
}

/**
 * Whether the real path is the root of a linked worktree of the repository. If not, git may answer for an enclosing
 * one; and a session could replace its worktree by a symlink to the user's checkout.
 */
export function isWorktreeOf(files: Files, repository: string, path: string): boolean {
  if (files.entryKind(path) !== 'folder' || files.entryKind(join(path, '.git')) !== 'file') return false;
  const found = findRepository(files, path);
  return found?.top === path && found.repository === (files.realPath(repository) ?? repository);
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

/** The target of a `.git` file: linked worktrees, submodules and repositories stored elsewhere have one. */
function pointedTo(files: Files, top: string, path: string): string | null {
  const target = /^gitdir: ([\s\S]+?)[\r\n]*$/.exec(readPointer(files, path))?.[1];
  return target === undefined ? null : resolve(top, target);
}

/** The git directory of one worktree, with its HEAD and index; null without one. */
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
