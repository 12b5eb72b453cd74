/** `handover init`: creates a project that later sessions find again. */
import { basename, dirname, join, relative } from 'node:path';
import { attemptMark } from '../../claude/launch/attempt-mark.ts';
import { updateExclusively } from '../../context/exclusive-update.ts';
import {
  configuredFolders,
  findProjects,
  handoverConfig,
  type ProjectAssignment,
  planningFolder,
  readAssignment,
  resumeFileName,
} from '../../context/handover/projects.ts';
import { newResumeFile } from '../../context/handover/resume-file.ts';
import { readProjectText } from '../../context/hook-call.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { isObject, parseJson } from '../../store/json.ts';
import { systemFailure } from '../../store/system-failure.ts';
import type { Files } from '../../system/world.ts';
import type { AppContext, ProgressNotes } from '../app-context.ts';
import { briefPath, folderNamed, folderProblem, tryPath } from '../path-argument.ts';

const configBytesMax = 1024 * 1024;

export interface MadeProject {
  readonly project: string;
  readonly made?: string;
  /** The configuration to which the folder was added. */
  readonly named?: string;
}

/**
 * Creates the resume file of a project. Adds the folder to the configuration of the root if the hooks would not find it
 * otherwise. Fails with `duplicate` if both exist, and with `corrupt-file` for a faulty configuration.
 */
export function initProject(
  context: AppContext,
  root: string,
  wanted: { readonly folder: string; readonly name?: string | undefined },
  notes: Pick<ProgressNotes, 'line'>,
): Result<MadeProject> {
  const { files } = context.world;
  const folder = withoutLinks(files, wanted.folder);
  const file = join(folder, planningFolder, resumeFileName);
  const config = configuredFolders(files, root);
  if (config.trouble !== null) {
    const next = 'Correct or remove that file, then run the command again; nothing was created.';
    return fail('corrupt-file', `${config.trouble}.`, next);
  }
  const naming = join(root, handoverConfig);
  const made = make(context, folder, file, wanted.name);
  if (!made.ok && made.failure.reason !== 'duplicate') return made;
  const isFound = findProjects(files, root).projects.some((project) => project.file === file);
  const path = relative(root, folder);
  const isBelow = !path.startsWith('..');
  // The project exists, but the hooks do not find it yet.
  if (!made.ok && (isFound || !isBelow || !readProjectText(files, root, file).ok)) return made;
  if (made.ok) notes.line(`Created ${file}`);
  const isNamed = !isFound && isBelow;
  if (isNamed) {
    const named = nameFolder(context, naming, path);
    if (!named.ok) return named;
    notes.line(`Added it to ${naming}`);
  } else if (!isFound) notes.line(`The hooks find it if claude starts in ${folder}`);
  return ok({ project: folder, ...(made.ok ? { made: file } : {}), ...(isNamed ? { named: naming } : {}) });
}

/** Resolves symlinks, even if the last parts of the path do not exist. */
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
  const stray = folderProblem(files, folder);
  if (stray !== null) return fail('usage', `${briefPath(folder)} ${stray}.`, 'Give another path.');
  try {
    if (files.entryKind(file) !== null) {
      return fail('duplicate', `${briefPath(file)} already exists.`, 'Continue with it; nothing was changed.');
    }
    files.makeFolder(dirname(file), 'project');
    files.writeBytes(file, new TextEncoder().encode(text), { durable: true, access: 'project' });
    return ok(undefined);
  } catch (error) {
    return { ok: false, failure: systemFailure(file, error) };
  }
}

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

/** The folder in which claude starts: absolute, symlinks resolved. */
export function handoverRoot(context: AppContext, typed: string | undefined): Result<string> {
  const folder = folderNamed(context, typed, 'folder', 'Give the path of an existing folder to --root.');
  if (!folder.ok) return folder;
  return ok(context.world.files.realPath(folder.value) ?? folder.value);
}

/** The project that the runner assigned to this session, which holds even after `/clear` or a fork changed its id. */
export function workerAssignment({ env, world }: AppContext): ProjectAssignment | null {
  const isWorker = (env[attemptMark] ?? '') !== '' && env.CLAUDE_CONFIG_DIR;
  return isWorker ? readAssignment(world.files, dirname(env.CLAUDE_CONFIG_DIR ?? '')) : null;
}
