/** For the runner, which asks it of every project and finds a run in few. */
import type { ContextFiles } from '../hook-call.ts';
import { findProject, readActiveRun } from './project.ts';

/** What reads a run, loaded where there is one. */
function running(): typeof import('./running.ts') {
  return require('./running.ts');
}

/** Whether sessions in this folder need the hooks of FABER. */
export function isFaberRunning(files: ContextFiles, projectFolder: string): boolean {
  const project = findProject(files, projectFolder);
  return readActiveRun(files, project).kind === 'run' && running().runInProgress(files, project).ok;
}
