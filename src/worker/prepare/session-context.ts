/** The context systems of a session: hooks, permissions and instructions. */
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

/** In the order in which the model reads them. */
const systemsDefault: readonly ContextName[] = ['cpm', 'handover', 'faber'];

/** The chosen systems, or all: a system with nothing to do prints nothing. */
export function contextOf({ context }: SessionDefinition): readonly ContextName[] {
  return context ?? systemsDefault;
}

const eventArguments = {
  SessionStart: 'session-start',
  PreCompact: 'pre-compact',
  SessionEnd: 'session-end',
} as const satisfies Record<ClaudeHookEvent, string>;

/** The session's task first, then each system. */
export function ownHooks(packageRoot: string, definition: SessionDefinition, isElsewhere = false): OwnHook[] {
  const systems = contextOf(definition);
  // Only the other host knows how to start its copy of this program.
  const own = isElsewhere ? { program: hookElsewhere, args: [] } : ownCommand('hook', packageRoot);
  const chosen = definition.context === undefined ? [] : [chosenMark];
  const asks = definition.ask === 'wait' ? [asksMark] : [];
  const hook = (event: ClaudeHookEvent, system: string): OwnHook => ({
    event,
    program: {
      ...own,
      args: [...own.args, system, eventArguments[event], ...chosen, ...(system === 'task' ? asks : [])],
    },
  });
  const events: readonly ClaudeHookEvent[] = ['SessionStart', 'PreCompact', 'SessionEnd'];
  return [hook('SessionStart', 'task'), ...events.flatMap((event) => systems.map((system) => hook(event, system)))];
}

/** Allow rules for the commands that a context system instructs the model to run. */
export function ownPermissions(systems: readonly ContextName[]): string[] {
  return systems.flatMap((system) =>
    modelCommands[system].map((word) => `Bash(claude-code-agent ${system} ${word}:*)`),
  );
}

const modelCommands: Readonly<Record<ContextName, readonly string[]>> = {
  cpm: ['list', 'show'],
  handover: ['list', 'find'],
  faber: ['phase', 'status', 'prime-context', 'session-end'],
};

/** Loaded for the first project that has a resume file. */
function noteModule(): typeof import('../../context/handover/note.ts') {
  return require('../../context/handover/note.ts');
}

interface HandoverInput {
  readonly record: SessionRecord;
  readonly folder: string;
  readonly paths: SessionPaths;
}

/**
 * Writes the session's id into the project's resume file before the start, and the project's path for the hooks, which
 * in a worktree would find only a copy. If the id cannot be written, the hooks report that in hooks.log.
 */
export function noteHandover(
  world: World,
  systems: readonly ContextName[],
  { record, folder, paths }: HandoverInput,
): void {
  const { projectPath } = record.definition;
  const own = systems.includes('handover') ? handoverProjectHere(world.files, projectPath) : null;
  // A link to a file with another name is ordinary work, and each worktree has its own.
  const isOther = own !== null && basename(world.files.realPath(own.file) ?? own.file) !== resumeFileName;
  const root = isOther ? folder : projectPath;
  const here = isOther ? handoverProjectHere(world.files, root) : own;
  if (here === null) {
    world.files.remove(paths.handover);
    return;
  }
  const assignment: ProjectAssignment = { root, file: relative(root, here.file) };
  world.files.writeAtomic(paths.handover, `${JSON.stringify({ version: 1, ...assignment })}\n`);
  noteModule().noteInProject(world.files, here, conversationId(record), world.clock.now());
}

export function contextRules(systems: readonly ContextName[]): string[] {
  return systems.includes('cpm') ? [cpmRules] : [];
}

export function contextInstructions(systems: readonly ContextName[], claudeSessionId: string): string[] {
  return systems.includes('cpm') ? [cpmInstructions(claudeSessionId)] : [];
}
