/** Environment variables for set-up, acceptance and `onEvent` commands and claude. */
import { join, relative } from 'node:path';
import type { Workspace } from '../core/group.ts';
import { sessionLabel } from '../core/id.ts';
import type { SessionRecord } from '../core/session-state.ts';
import type { GroupState } from '../core/state.ts';
import type { Git } from '../git/git.ts';
import { aroundOf, checkoutOf, placeInLevels } from '../git/worktrees/levels.ts';
import { workspaceName } from '../store/paths.ts';
import type { Files } from '../system/world.ts';

type Variables = Readonly<Record<string, string>>;

/** Maps another session's workspace to the folder that this session sees; undefined = its real folder. */
type FolderOf = (workspace: Workspace) => string | undefined;

export function sessionVariables(git: Git, state: GroupState, record: SessionRecord, folderOf?: FolderOf): Variables {
  const { definition, workspace, portBase } = record;
  const { id, name, projectPath } = definition;
  return {
    CCA_GROUP: state.group.id,
    CCA_SESSION: sessionLabel(id, name),
    CCA_PROJECT_DIR: projectPath,
    CCA_WORKSPACE: workspace?.path ?? projectPath,
    ...dependencyFolders(git, state, record, folderOf),
    ...(portBase === undefined ? {} : { CCA_PORT_BASE: String(portBase) }),
    ...composeProject(git, state, record),
  };
}

/** The folder of each dependency's work as the session sees it. */
function dependencyFolders(git: Git, state: GroupState, record: SessionRecord, folderOf?: FolderOf): Variables {
  const { files } = git.world;
  const { workspace } = record;
  const around = workspace === undefined ? null : aroundOf(git, [state.group.id, record.definition.id], workspace);
  const folders: Record<string, string> = {};
  for (const id of record.definition.dependsOn) {
    const dependency = state.sessions.get(id);
    if (dependency === undefined) continue;
    const { definition, workspace: other } = dependency;
    const place = around === null ? null : placeInLevels(around, checkoutOf(files, dependency));
    const isBeside = place !== null && place !== workspace?.path && files.info(place)?.kind === 'folder';
    const own = (other && folderOf?.(other)) ?? other?.folder ?? definition.projectPath;
    const folder = isBeside && other !== undefined ? join(place, relative(other.path, other.folder)) : own;
    const word = sessionLabel(id, definition.name)
      .toUpperCase()
      .replace(/[^A-Z0-9]/g, '_');
    folders[`CCA_DEP_${word}_DIR`] = folder;
  }
  return folders;
}

export const composeFiles = ['compose.yaml', 'compose.yml', 'docker-compose.yaml', 'docker-compose.yml'];

/** docker compose names projects after folders, and all worktrees of a repository have the same folder name. */
function composeProject({ world: { files }, env }: Git, { group }: GroupState, record: SessionRecord): Variables {
  const { workspace, definition } = record;
  if (workspace === undefined || env.COMPOSE_PROJECT_NAME !== undefined) return {};
  const folders = [...new Set([workspace.folder, workspace.path])];
  const says = (name: string, pattern: RegExp) =>
    folders.some((folder) => pattern.test(textOf(files, join(folder, name))));
  if (says('.env', /^\s*(?:export\s+)?COMPOSE_PROJECT_NAME\s*=/m)) return {};
  if (composeFiles.some((name) => says(name, /^name\s*:/m))) return {};
  // The group id is part of the name because slugs are not unique.
  return { COMPOSE_PROJECT_NAME: `${group.slug}-${workspaceName(group.id, definition.id)}` };
}

const bytesMax = 256 * 1024;

function textOf(files: Files, path: string): string {
  return files.info(path)?.kind === 'file' ? new TextDecoder().decode(files.readBytes(path, 0, bytesMax)) : '';
}
