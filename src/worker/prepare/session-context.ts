/** Which context systems a session has, and the hooks and words by which it gets them. */
import { basename, relative } from 'node:path';
import { type ClaudeHookEvent, hookElsewhere, type OwnHook } from '../../claude/launch/settings.ts';
import { cpmInstructions, cpmRules } from '../../context/cpm/state.ts';
import type { ProjectAssignment } from '../../context/handover/find.ts';
import { handoverProjectHere } from '../../context/handover/find.ts';
import { resumeFileName } from '../../context/handover/projects.ts';
import { asksMark, chosenMark } from '../../context/hook-call.ts';
import type { ContextName } from '../../core/definitions.ts';
import type { SessionDefinition } from '../../core/group.ts';
import { conversationId, type SessionRecord } from '../../core/session-state.ts';
import type { SessionPaths } from '../../store/paths.ts';
import { ownCommand } from '../../system/own-program.ts';
import type { World } from '../../system/world.ts';

/** In the order in which the model reads them. FABER, too: a session may begin a run itself. */
const systemsDefault: readonly ContextName[] = ['cpm', 'handover', 'faber'];

/** What was chosen, else all of them: where they find nothing to do they say nothing. */
export function contextOf({ context }: SessionDefinition): readonly ContextName[] {
  return context ?? systemsDefault;
}

const spoken = {
  SessionStart: 'session-start',
  PreCompact: 'pre-compact',
  SessionEnd: 'session-end',
} as const satisfies Record<ClaudeHookEvent, string>;

/** The session's own task first, then each system: the model reads them in this order. */
export function ownHooks(packageRoot: string, definition: SessionDefinition, isElsewhere = false): OwnHook[] {
  const systems = contextOf(definition);
  // In what form the program is there that machine alone knows.
  const own = isElsewhere ? { program: hookElsewhere, args: [] } : ownCommand('hook', packageRoot);
  const chosen = definition.context === undefined ? [] : [chosenMark];
  const asks = definition.ask === 'wait' ? [asksMark] : [];
  const hook = (event: ClaudeHookEvent, system: string): OwnHook => ({
    event,
    program: { ...own, args: [...own.args, system, spoken[event], ...chosen, ...(system === 'task' ? asks : [])] },
  });
  const events: readonly ClaudeHookEvent[] = ['SessionStart', 'PreCompact', 'SessionEnd'];
  return [hook('SessionStart', 'task'), ...events.flatMap((event) => systems.map((system) => hook(event, system)))];
}

/** Commands that a context system has the model run must be allowed: no person is there to permit them. */
export function ownPermissions(systems: readonly ContextName[]): string[] {
  return systems.flatMap((system) => called[system].map((word) => `Bash(claude-code-agent ${system} ${word}:*)`));
}

const called: Readonly<Record<ContextName, readonly string[]>> = {
  cpm: ['list', 'show'],
  handover: ['list', 'find'],
  faber: ['phase', 'status', 'prime-context', 'session-end'],
};

/** What changes a resume file, loaded for the first project that has one. */
function noting(): typeof import('../../context/handover/note.ts') {
  return require('../../context/handover/note.ts');
}

interface NotedPlaces {
  readonly record: SessionRecord;
  readonly folder: string;
  readonly paths: SessionPaths;
}

/**
 * A project of the handover system learns the session's id before it starts, and the hooks of the session learn which
 * project that is: in a worktree they would find only a copy of it. An id that cannot be written is left to the hooks,
 * which say so in hooks.log.
 */
export function noteHandover(
  world: World,
  systems: readonly ContextName[],
  { record, folder, paths }: NotedPlaces,
): void {
  const { projectPath } = record.definition;
  const own = systems.includes('handover') ? handoverProjectHere(world.files, projectPath) : null;
  // A link to a file of another name: that is work like any other, and each worktree has its own.
  const isOther = own !== null && basename(world.files.realPath(own.file) ?? own.file) !== resumeFileName;
  const root = isOther ? folder : projectPath;
  const here = isOther ? handoverProjectHere(world.files, root) : own;
  if (here === null) {
    world.files.remove(paths.handover);
    return;
  }
  const belonging: ProjectAssignment = { root, file: relative(root, here.file) };
  world.files.writeAtomic(paths.handover, `${JSON.stringify({ version: 1, ...belonging })}\n`);
  noting().noteInProject(world.files, here, conversationId(record), world.clock.now());
}

/** What the system prompt says of the systems: how any session keeps its state. */
export function contextRules(systems: readonly ContextName[]): string[] {
  return systems.includes('cpm') ? [cpmRules] : [];
}

export function contextInstructions(systems: readonly ContextName[], claudeSessionId: string): string[] {
  return systems.includes('cpm') ? [cpmInstructions(claudeSessionId)] : [];
}
