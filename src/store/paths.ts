/** Paths of all our files. Nothing is read or created here. */
import { createHash } from 'node:crypto';
import { isAbsolute, join } from 'node:path';
import { assert, fail, ok, type Result } from '../core/failure.ts';
import type { GroupId, SessionId } from '../core/group.ts';
import { isGroupId, isSessionId } from '../core/id.ts';

export type GroupPaths = Readonly<ReturnType<typeof groupPathsIn>>;
export type SessionPaths = Readonly<ReturnType<typeof sessionPaths>>;

type Environment = Readonly<Record<string, string | undefined>>;

/** The folder that contains `session-groups`: CLAUDE_CODE_AGENT_HOME, otherwise below HOME. Fails with `usage`. */
export function dataRoot(env: Environment): Result<string> {
  const chosen = env.CLAUDE_CODE_AGENT_HOME ?? '';
  if (chosen === '') return belowHome(env, 'CLAUDE_CODE_AGENT_HOME', '.local', 'claude-code-agent');
  if (isAbsolute(chosen)) return ok(join(chosen));
  return fail(
    'usage',
    `CLAUDE_CODE_AGENT_HOME is ${JSON.stringify(chosen)}, which is not an absolute path.`,
    'Set it to a path that begins with "/" ("~" is only expanded by a shell, outside quotes).',
  );
}

/** The folder of templates and of config.yaml. A relative XDG_CONFIG_HOME is ignored (XDG specification). */
export function configRoot(env: Environment): Result<string> {
  const chosen = env.XDG_CONFIG_HOME ?? '';
  if (isAbsolute(chosen)) return ok(join(chosen, 'claude-code-agent'));
  return belowHome(env, 'XDG_CONFIG_HOME', '.config', 'claude-code-agent');
}

function belowHome(env: Environment, alternative: string, ...names: string[]): Result<string> {
  const home = env.HOME ?? '';
  if (isAbsolute(home)) return ok(join(home, ...names));
  const what = home === '' ? 'is not set' : `is ${JSON.stringify(home)}, which is not an absolute path`;
  return fail('usage', `HOME ${what}.`, `Set HOME to your home folder, or ${alternative} to an absolute path.`);
}

export function groupsFolder(root: string): string {
  return join(root, 'session-groups');
}

/** The default folder of worktrees. It is short, because the path of a Unix socket has at most 107 characters. */
export function worktreesFolder(root: string): string {
  return join(root, 'w');
}

/** The folder name of a session's worktree: a few characters, unique per session. */
export function workspaceName(groupId: GroupId, sessionId: SessionId): string {
  const digest = createHash('sha256').update(`${groupId}/${sessionId}`).digest();
  return digest.readUIntBE(0, 6).toString(36).padStart(8, '0').slice(-7);
}

/** The same for scratch worktrees, in which the work of a group is merged. */
export function mergeFolderName(groupId: GroupId): string {
  return workspaceName(groupId, 'merge');
}

/** The same for the fresh checkout in which the work of a session is checked. */
export function checkFolderName(groupId: GroupId, sessionId: SessionId): string {
  return workspaceName(groupId, `${sessionId}/check`);
}

/** The id must be checked before: an external text could name another folder. */
export function groupPaths(root: string, groupId: GroupId): GroupPaths {
  assert(isGroupId(groupId), `${JSON.stringify(groupId)} is no group id`);
  return groupPathsIn(join(groupsFolder(root), groupId));
}

/** The same names in a folder that does not have the group's id yet. */
export function groupPathsIn(folder: string) {
  const at = within(folder);
  return {
    folder,
    meta: at('meta.json'),
    events: at('events.jsonl'),
    progress: at('progress.json'),
    lock: at('runner.lock'),
    /** Folder with the output of detached runners, one file each. */
    runnerLogs: at('runner-logs'),
    /** Folder for `onEvent` commands: their input and output. */
    eventCommands: at('on-event'),
    requests: at('requests'),
    rehearsal: at('rehearsal.json'),
    sessions: at('sessions'),
    sharedConfig: at('shared-config'),
    /** Stored copies of config templates, each under its digest. */
    templates: at('templates'),
    /** The workflow from which the group was made, as it was then. */
    workflow: at('workflow.yaml'),
  };
}

export function sessionPaths(group: GroupPaths, sessionId: SessionId) {
  assert(isSessionId(sessionId), `${JSON.stringify(sessionId)} is no session id`);
  const folder = `${group.sessions}/${sessionId}`;
  const at = within(folder);
  return {
    folder,
    meta: at('meta.json'),
    config: at('claude-config'),
    transcript: at('transcript.jsonl'),
    prompt: at('prompt.md'),
    stderr: at('stderr.log'),
    fifo: at('stdin.fifo'),
    workerSettings: at('worker-settings.json'),
    /** The end of its claude's system prompt. */
    systemPrompt: at('system-prompt.md'),
    /** Folder with results that were too long for the prompt. */
    inputs: at('inputs'),
    mcpConfig: at('mcp.json'),
    tmp: at('tmp'),
    /** The plan of the worktree and its path; written before it is created. */
    workspace: at('workspace.json'),
    /** The checkouts of other repositories that were created for the session in its workspace. */
    upstream: at('upstream.json'),
    /** The earlier state of the repositories that its workspace links to. */
    linked: at('linked-before.json'),
    acceptLog: at('accept.log'),
    /** Further runs of the acceptance command: with the old guarded files, and without the session's change. */
    guardedLog: at('accept-base-guarded.log'),
    proofLog: at('accept-base.log'),
    /** The difference of the guarded files. */
    guardedDiff: at('guarded.diff'),
    setupLog: at('setup.log'),
    /** Its project of the handover system, for its hooks. */
    handover: at('handover.json'),
    /** The resume files of its worktree when they last matched the project's. */
    handoverCopies: at('handover-copies.json'),
    setupDone: at('setup.done'),
    /** Ignored files that were in the worktree before the session. */
    ignoredBefore: at('ignored-before.txt'),
    /** The state of the project before a session without a worktree. */
    begin: at('begin.json'),
    /** The branches and worktrees of its repository before the session. */
    branchesBefore: at('branches-before.txt'),
    /** While the acceptance command runs: its attempt, and the untracked files before it. */
    beforeAccept: at('accept-before.txt'),
  };
}

/** Paths below an already normalized folder: `join` would slow down a list of thousands. */
function within(folder: string): (name: string) => string {
  return (name) => `${folder}/${name}`;
}

/** File for output of an attempt that was unknown when its host was lost. */
export function latePath({ folder }: Pick<SessionPaths, 'folder'>, attemptId: string): string {
  return join(folder, `transcript.late-${attemptId}.jsonl`);
}
