/** app/handover/: what the commands of handover share. This file makes a project that later sessions find again. */
import { basename, dirname, join, relative } from 'node:path';
import { attemptMark } from '../../claude/launch/attempt-mark.ts';
import { updateExclusively } from '../../context/exclusive-update.ts';
import { type ProjectAssignment, readAssignment } from '../../context/handover/find.ts';
import {
  configuredFolders,
  findProjects,
  handoverConfig,
  planningFolder,
  resumeFileName,
} from '../../context/handover/projects.ts';
import { newResumeFile } from '../../context/handover/resume-file.ts';
import { readProjectText } from '../../context/hook-call.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { isObject, parseJson } from '../../store/json.ts';
import { systemFailure } from '../../store/system-failure.ts';
import type { Files } from '../../system/world.ts';
import type { AppContext, ProgressNotes } from '../app-context.ts';
import { briefPath, folderNamed, tryPath } from '../path-argument.ts';

const configBytesMax = 1024 * 1024;

export interface MadeProject {
  readonly project: string;
  readonly made?: string;
  /** The configuration that names the folder now. */
  readonly named?: string;
}

export interface WantedProject {
  readonly folder: string;
  readonly name?: string | undefined;
}

/**
 * Makes the resume file of a project, and names the folder in the configuration of the root where the hooks would not
 * find it otherwise; each file is told as soon as it is there. Fails with `duplicate` when all is there already, with
 * `corrupt-file` for a configuration that cannot be used (nothing was made then), with `usage`, and after a failed
 * write.
 */
export function initProject(
  context: AppContext,
  root: string,
  wanted: WantedProject,
  told: Pick<ProgressNotes, 'line'>,
): Result<MadeProject> {
  const { files } = context.world;
  const folder = withoutLinks(files, wanted.folder);
  const file = join(folder, planningFolder, resumeFileName);
  const config = configuredFolders(files, root);
  if (config.trouble !== null) {
    const next = 'Correct or remove that file, then run the command again; nothing was made.';
    return fail('corrupt-file', `${config.trouble}.`, next);
  }
  const naming = join(root, handoverConfig);
  const made = make(context, folder, file, wanted.name);
  if (!made.ok && made.failure.reason !== 'duplicate') return made;
  const isFound = findProjects(files, root).projects.some((project) => project.file === file);
  const path = relative(root, folder);
  const isBelow = !path.startsWith('..');
  // A project that is there, but where no hook looks, is worth being named.
  if (!made.ok && (isFound || !isBelow || !readProjectText(files, root, file).ok)) return made;
  if (made.ok) told.line(`Made ${file}`);
  const isNamed = !isFound && isBelow;
  if (isNamed) {
    const named = nameFolder(context, naming, path);
    if (!named.ok) return named;
    told.line(`Named it in ${naming}`);
  } else if (!isFound) told.line(`Its hooks find it when claude is started in ${folder}`);
  return ok({ project: folder, ...(made.ok ? { made: file } : {}), ...(isNamed ? { named: naming } : {}) });
}

/** The path as the system sees it, also when its last parts are yet to be made. */
function withoutLinks(files: Files, path: string): string {
  const real = tryPath(() => files.realPath(path));
  if (real.ok && real.value !== null) return real.value;
  const parent = dirname(path);
  return parent === path ? path : join(withoutLinks(files, parent), basename(path));
}

function make({ world: { files, clock } }: AppContext, folder: string, file: string, name?: string): Result<void> {
  const projectId = basename(folder);
  const timestamp = new Date(clock.now()).toISOString();
  const text = newResumeFile({ projectId, projectName: name ?? projectId, timestamp });
  try {
    files.makeFolder(dirname(file), 'project');
    files.writeBytes(file, new TextEncoder().encode(text), { durable: true, access: 'project' });
    return ok(undefined);
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (typeof code !== 'string') throw error;
    const brief = briefPath(file);
    if (code === 'EEXIST' && files.entryKind(file) !== null) {
      return fail('duplicate', `${brief} is already there.`, 'Continue with it; nothing was changed.');
    }
    if (code === 'EEXIST' || code === 'ENOTDIR') {
      const message = `${brief} cannot be made: a file has the name of one of its folders.`;
      return fail('usage', message, 'Give another path.');
    }
    return { ok: false, failure: systemFailure(file, error) };
  }
}

/** Adds the folder to the configuration of the root, which was found to be sound. */
function nameFolder({ world: { files } }: AppContext, config: string, path: string): Result<unknown> {
  try {
    files.makeFolder(dirname(config), 'project');
  } catch (error) {
    return { ok: false, failure: systemFailure(config, error) };
  }
  return updateExclusively(files, {
    path: config,
    bytesMax: configBytesMax,
    change: (before) => {
      const value = parseJson(new TextDecoder().decode(before ?? new Uint8Array(0)));
      const known = isObject(value) ? value : {};
      const folders = Array.isArray(known.folders) ? known.folders : [];
      if (folders.includes(path)) return ok(null);
      return ok(new TextEncoder().encode(`${JSON.stringify({ ...known, folders: [...folders, path] }, null, 2)}\n`));
    },
  });
}

// What the commands of the family `handover` share: the folder they look in.

/** Absolute, links resolved: the folder in which claude is started. Fails with `usage` when it is none. */
export function handoverRoot(context: AppContext, typed: string | undefined): Result<string> {
  const folder = folderNamed(context, typed, 'folder', 'Give the path of an existing folder to --root.');
  if (!folder.ok) return folder;
  return ok(context.world.files.realPath(folder.value) ?? folder.value);
}

/** Of a session of a group its runner knows the project, also when `/clear` or a fork gave the session another id. */
export function workerAssignment({ env, world }: AppContext): ProjectAssignment | null {
  const isWorker = (env[attemptMark] ?? '') !== '' && env.CLAUDE_CONFIG_DIR;
  return isWorker ? readAssignment(world.files, dirname(env.CLAUDE_CONFIG_DIR ?? '')) : null;
}
