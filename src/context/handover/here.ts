/** The project a folder has, when that can be only one; asked at every start of a session. */
import type { ContextFiles } from '../hook-call.ts';
import { findByFolder } from './find.ts';
import { findProjects, type HandoverProject } from './projects.ts';

/**
 * The project a session works on that starts in `folder` (absolute) and is known by no id yet: the one that the folder
 * itself is, or the only one it holds. Null when it holds none, or several.
 */
export function projectHere(files: ContextFiles, folder: string): HandoverProject | null {
  const { projects } = findProjects(files, folder);
  const own = findByFolder(projects, folder)?.project;
  return own ?? (projects.length === 1 ? (projects[0] ?? null) : null);
}
