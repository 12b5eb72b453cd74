/**
 * context/handover/: projects that remember which session worked on them. This file: its hooks, from an event of
 * claude to what the model is told, and to what the project remembers.
 */
import { describeFailure } from '../../core/failure.ts';
import type { ContextSystem, HookAnswer, HookCall } from '../hook-call.ts';
import { briefing } from './briefing.ts';
import { type Found, findByFolder, findBySession, findByTranscript, findMostRecent } from './find.ts';
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
  const found =
    findBySession(projects, call.sessionId) ??
    (call.isWorker
      ? null
      : (inTranscript(call, discovery) ?? findByFolder(projects, call.projectFolder) ?? findMostRecent(projects)));
  if (found === null) return { text: '', notes: notesOf(discovery, null) };
  const { files, projectFolder: root, isWorker, nowMs } = call;
  const { text, loaded, named } = briefing({ files, root, found, isWorker, nowMs });
  return { text, notes: { ...notesOf(discovery, found), loaded, named } };
}

/**
 * A person's session may have moved on to another project since its id was written down, so what it worked on last
 * decides; in a worker only the id does. Nothing is said: the summary is not ours to write.
 */
async function preCompact(call: HookCall): Promise<HookAnswer> {
  const discovery = findProjects(call.files, call.projectFolder);
  const byId = findBySession(discovery.projects, call.sessionId);
  const found = call.isWorker
    ? byId
    : (inTranscript(call, discovery) ?? byId ?? findByFolder(discovery.projects, call.projectFolder));
  const notes = notesOf(discovery, found);
  if (found === null || call.sessionId === undefined) return { text: '', notes };
  // Only here, for every session waits for the hooks of its start, which write nothing.
  const { noteInProject } = await import('./note.ts');
  const noted = noteInProject(call.files, found.project, call.sessionId, call.nowMs);
  return { text: '', notes: { ...notes, ...(noted.ok ? {} : { trouble: describeFailure(noted.failure) }) } };
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
