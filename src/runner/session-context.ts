/** Which context systems a session has, and the hooks and words by which it gets them. */
import { join, relative } from 'node:path';
import type { HookEvent, OwnHook } from '../claude/settings.ts';
import { cpmInstructions } from '../context/cpm/instructions.ts';
import { isFaberRunning } from '../context/faber/running.ts';
import type { Belonging } from '../context/handover/find.ts';
import { noteInProject, projectHere } from '../context/handover/note.ts';
import type { ContextName, SessionDefinition } from '../core/group.ts';
import type { SessionPaths } from '../store/paths.ts';
import { isolatedBunFlags } from '../world/own-program.ts';
import type { World } from '../world/world.ts';

/** What was chosen; else cpm and handover, and faber while the project's run says that it is in progress. */
export function contextOf(world: World, { context, projectPath }: SessionDefinition): readonly ContextName[] {
  if (context !== undefined) return context;
  return ['cpm', 'handover', ...(isFaberRunning(world.files, projectPath) ? (['faber'] as const) : [])];
}

const spoken = {
  SessionStart: 'session-start',
  PreCompact: 'pre-compact',
  SessionEnd: 'session-end',
} as const satisfies Record<HookEvent, string>;

/** The session's own task first, then each system: the model reads them in this order. */
export function ownHooks(world: World, packageRoot: string, systems: readonly ContextName[]): OwnHook[] {
  const hookMain = join(packageRoot, 'src', 'hook-main.ts');
  const hook = (event: HookEvent, system: string): OwnHook => ({
    event,
    program: { program: world.machine.bun, args: [...isolatedBunFlags, hookMain, system, spoken[event]] },
  });
  const events: readonly HookEvent[] = ['SessionStart', 'PreCompact', 'SessionEnd'];
  return [hook('SessionStart', 'task'), ...events.flatMap((event) => systems.map((system) => hook(event, system)))];
}

/** What a system has the model call must not stop at the question whether it may, which nobody is there to answer. */
export function ownPermissions(systems: readonly ContextName[]): string[] {
  if (!systems.includes('faber')) return [];
  return ['phase', 'status', 'prime-context', 'session-end'].map((word) => `Bash(claude-code-agent faber ${word}:*)`);
}

/**
 * A project of the handover system learns the session's id before it starts, and the hooks of the session learn which
 * project that is: in a worktree they would find only a copy of it. `projectPath` is the user's own folder. An id that
 * cannot be written is left to the hooks, which say so in hooks.log.
 */
export function noteHandover(
  world: World,
  systems: readonly ContextName[],
  { projectPath, paths }: { readonly projectPath: string; readonly paths: SessionPaths },
  claudeSessionId: string,
): void {
  const here = systems.includes('handover') ? projectHere(world.files, projectPath) : null;
  if (here === null) {
    world.files.remove(paths.handover);
    return;
  }
  const belonging: Belonging = { root: projectPath, file: relative(projectPath, here.file) };
  world.files.writeAtomic(paths.handover, `${JSON.stringify({ version: 1, ...belonging })}\n`);
  noteInProject(world.files, here, claudeSessionId, world.clock.now());
}

/** What CLAUDE.md says of the systems: how the session keeps its state. */
export function contextInstructions(systems: readonly ContextName[], claudeSessionId: string): string[] {
  return systems.includes('cpm') ? [cpmInstructions(claudeSessionId)] : [];
}
