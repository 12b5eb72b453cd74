/** Where everything lives on disk. Only names are made here; nothing is read or created. */
import { createHash } from 'node:crypto';
import { isAbsolute, join } from 'node:path';
import { assert, fail, ok, type Result } from '../core/failure.ts';
import type { GroupId, SessionId } from '../core/group.ts';
import { isGroupId, isSessionId } from '../core/id.ts';

export type GroupPaths = Readonly<ReturnType<typeof groupPathsIn>>;
export type SessionPaths = Readonly<ReturnType<typeof sessionPaths>>;

type Environment = Readonly<Record<string, string | undefined>>;

/** The folder that holds `session-groups`: CLAUDE_CODE_AGENT_HOME, else below HOME. Fails with `usage`. */
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

/** Where worktrees lie by default. It is short, because the path of a Unix socket has at most 107 characters. */
export function worktreesFolder(root: string): string {
  return join(root, 'w');
}

/** The folder that holds the worktree of a session: a few characters that no other session has. */
export function workspaceName(groupId: GroupId, sessionId: SessionId): string {
  const digest = createHash('sha256').update(`${groupId}/${sessionId}`).digest();
  return digest.readUIntBE(0, 6).toString(36).padStart(8, '0').slice(-7);
}

/** The same for scratch worktrees, in which the work of a group is put together. */
export function mergeFolderName(groupId: GroupId): string {
  return workspaceName(groupId, 'merge');
}

/** The id must be checked before: what came from outside could otherwise name another folder. */
export function groupPaths(root: string, groupId: GroupId): GroupPaths {
  assert(isGroupId(groupId), `${JSON.stringify(groupId)} is no group id`);
  return groupPathsIn(join(groupsFolder(root), groupId));
}

/** The same names in a folder that does not bear the group's id yet. */
export function groupPathsIn(folder: string) {
  const at = within(folder);
  return {
    folder,
    meta: at('meta.json'),
    events: at('events.jsonl'),
    progress: at('progress.json'),
    lock: at('runner.lock'),
    /** Folder with what detached runners printed, one file for each. */
    runnerLogs: at('runner-logs'),
    /** Folder for the commands that are told of events: what they are told, and what they print. */
    eventCommands: at('on-event'),
    requests: at('requests'),
    rehearsal: at('rehearsal.json'),
    sessions: at('sessions'),
    sharedConfig: at('shared-config'),
    /** Frozen copies of config templates, each under its digest. */
    templates: at('templates'),
    /** The workflow the group was made from, as it was then. */
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
    hooksLog: at('hooks.log'),
    workerSettings: at('worker-settings.json'),
    /** What its claude is told at the end of the system prompt. */
    systemPrompt: at('system-prompt.md'),
    /** Folder with what was too long for the prompt. */
    inputs: at('inputs'),
    mcpConfig: at('mcp.json'),
    tmp: at('tmp'),
    /** What is known of the worktree, and where it lies; written before it is made. */
    workspace: at('workspace.json'),
    /** The checkouts of other repositories that were made for the session in its workspace. */
    upstream: at('upstream.json'),
    /** How the repositories were to which links of its workspace lead. */
    linked: at('linked-before.json'),
    acceptLog: at('accept.log'),
    setupLog: at('setup.log'),
    /** To which project of the handover system it belongs, for its hooks. */
    handover: at('handover.json'),
    /** What the resume files of its worktree were when they last went together with the project's. */
    handoverCopies: at('handover-copies.json'),
    setupDone: at('setup.done'),
    /** Ignored files that were in the worktree before the session. */
    ignoredBefore: at('ignored-before.txt'),
    /** What the project looked like before the session, for one that has no worktree. */
    begin: at('begin.json'),
    /** The branches and worktrees of its repository before the session. */
    branchesBefore: at('branches-before.txt'),
    /** While the acceptance command runs: its attempt, and the new files that were there before it. */
    beforeAccept: at('accept-before.txt'),
  };
}

/** Paths below a folder that is already normalized: `join` would slow down a list of thousands. */
function within(folder: string): (name: string) => string {
  return (name) => `${folder}/${name}`;
}

/** File for what an attempt printed that was not known when its machine was lost. */
export function latePath({ folder }: Pick<SessionPaths, 'folder'>, attemptId: string): string {
  return join(folder, `transcript.late-${attemptId}.jsonl`);
}

/** Holds what claude kept of the conversations of a lost attempt, as the folder of a session does. */
export function lateFolder({ folder }: Pick<SessionPaths, 'folder'>, attemptId: string): string {
  return join(folder, `conversations.late-${attemptId}`);
}
