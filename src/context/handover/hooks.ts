/**
 * context/handover/: projects that remember which session worked on them. This file: its hooks, which brief the model
 * and update the project.
 */
import { describeFailure } from '../../core/failure.ts';
import type { ContextSystem, HookAnswer, HookCall } from '../hook-call.ts';
import { briefing } from './briefing.ts';
import {
  type Found,
  findAssigned,
  findByFolder,
  findBySession,
  findByTranscript,
  findMostRecent,
  type ProjectAssignment,
  readAssignment,
} from './find.ts';
import { type Discovery, findProjects } from './projects.ts';

export const handover = {
  name: 'handover',
  async answer(call: HookCall): Promise<HookAnswer> {
    if (call.event === 'session-start') return sessionStart(call);
    return call.event === 'pre-compact' ? preCompact(call) : { text: '' };
  },
} satisfies ContextSystem;

function sessionStart(call: HookCall): HookAnswer {
  const discovery = findProjects(call.files, call.projectFolder);
  const { projects } = discovery;
  const belonging = readAssignment(call.files, call.sessionFolder);
  // The session's own copy first, because it is the most recent.
  const roots = belonging === null ? [call.projectFolder] : [...new Set([call.projectFolder, belonging.root])];
  const found =
    findAssigned(projects, call.projectFolder, belonging) ??
    (belonging === null ? null : atHome(call, belonging)) ??
    findBySession(projects, call.sessionId) ??
    (call.isWorker
      ? null
      : (inTranscript(call, discovery) ?? findByFolder(projects, call.projectFolder) ?? findMostRecent(projects)));
  if (found === null) return { text: '', notes: notesOf(discovery, null) };
  const { files, isWorker, nowMs } = call;
  const { text, loaded, named } = briefing({ files, roots, found, isWorker, nowMs });
  return { text, notes: { ...notesOf(discovery, found), loaded, named } };
}

/**
 * A user's session may have moved to another project, so its last work decides. In a worker the runner and the id
 * decide, and the original project is updated, never a copy.
 */
async function preCompact(call: HookCall): Promise<HookAnswer> {
  const discovery = findProjects(call.files, call.projectFolder);
  const belonging = readAssignment(call.files, call.sessionFolder);
  const byId =
    (belonging === null ? null : atHome(call, belonging)) ?? findBySession(discovery.projects, call.sessionId);
  const found = call.isWorker
    ? byId
    : (inTranscript(call, discovery) ?? byId ?? findByFolder(discovery.projects, call.projectFolder));
  const notes = notesOf(discovery, found);
  if (found === null || call.sessionId === undefined) return { text: '', notes };
  // Only here, because every session waits for its start hooks, which write nothing.
  const { noteInProject } = await import('./note.ts');
  const noted = noteInProject(call.files, found.project, call.sessionId, call.nowMs);
  return { text: '', notes: { ...notes, ...(noted.ok ? {} : { trouble: describeFailure(noted.failure) }) } };
}

/** The project's own folder, whether or not the session works in a copy of it. */
function atHome({ files }: HookCall, belonging: ProjectAssignment): Found | null {
  return findAssigned(findProjects(files, belonging.root).projects, belonging.root, belonging);
}

function inTranscript({ files, projectFolder, transcriptPath }: HookCall, { projects }: Discovery): Found | null {
  return findByTranscript(files, projects, projectFolder, transcriptPath);
}

function notesOf({ projects, troubles }: Discovery, found: Found | null): Readonly<Record<string, unknown>> {
  return {
    projects: projects.length,
    ...(found === null ? {} : { project: found.project.id, foundBy: found.by }),
    ...(troubles.length === 0 ? {} : { troubles }),
  };
}
