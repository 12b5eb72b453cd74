/** `handover init`: a project that later sessions find again. */

import { basename, dirname, join, relative, resolve } from 'node:path';
import type { Command } from '@commander-js/extra-typings';
import { updateExclusively } from '../../../context/exclusive-update.ts';
import { isObject, type JsonObject, readExactJson } from '../../../context/faber/json-text.ts';
import {
  configuredFolders,
  findProjects,
  handoverConfig,
  planningFolder,
  resumeFileName,
} from '../../../context/handover/projects.ts';
import { newResumeFile } from '../../../context/handover/resume-file.ts';
import { readProjectText } from '../../../context/hook-call.ts';
import { handoverRoot } from '../../../control/handover-root.ts';
import { briefPath, tryPath } from '../../../control/path-argument.ts';
import { fail, ok, type Result } from '../../../core/failure.ts';
import { safeJson, safeLine } from '../../../report/terminal-text.ts';
import { systemFailure } from '../../../store/system-failure.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { parseText } from '../../options/option-values.ts';

const example = `
Example:
  $ claude-code-agent handover init 02-projects/28-parser
  $ claude-code-agent handover init clients/acme --name "Acme's shop"`;

const configBytesMax = 1024 * 1024;

export function define(command: Command, context: Context): void {
  command
    .description(
      `Makes ${planningFolder}/${resumeFileName} in a project's folder. A folder that is not in 02-projects is also ` +
        `named in ${handoverConfig} of the root, so that the hooks look there.`,
    )
    .argument('<dir>', 'folder of the project; made when it is missing')
    .option('--name <name>', "the project's name (default: the folder's)", parseText)
    .option('--root <dir>', 'folder in which claude is started (default: this folder)')
    .option('--json', 'one JSON document: {"project", "made", "named"}, the last two with the files that were written')
    .addHelpText('after', example)
    .action((dir, given) => context.run(() => init(context, dir, given)));
}

interface Given {
  readonly name?: string | undefined;
  readonly root?: string | undefined;
  readonly json?: true | undefined;
}

function init(context: Context, typed: string, { name, root: typedRoot, json }: Given): Work {
  if (typed === '') return fail('usage', 'The path of the folder is empty.', 'Give the path of the project.');
  const root = handoverRoot(context, typedRoot);
  if (!root.ok) return root;
  const { files } = context.world;
  const folder = withoutLinks(files, resolve(context.cwd, typed));
  const file = join(folder, planningFolder, resumeFileName);
  const config = configuredFolders(files, root.value);
  if (config.trouble !== null) {
    const next = 'Correct or remove that file, then run the command again; nothing was made.';
    return fail('corrupt-file', `${config.trouble}.`, next);
  }
  const sound = configNow(context, join(root.value, handoverConfig));
  if (!sound.ok) return sound;
  const made = make(context, folder, file, name);
  if (!made.ok && made.failure.reason !== 'duplicate') return made;
  const isFound = findProjects(files, root.value).projects.some((project) => project.file === file);
  const path = relative(root.value, folder);
  const isBelow = !path.startsWith('..');
  // A project that is there, but where no hook looks, is worth being named.
  if (!made.ok && (isFound || !isBelow || !readProjectText(files, root.value, file).ok)) return made;
  const say = (text: string): void => (json ? context.stderr : context.stdout).line(safeLine(text, 1000));
  if (made.ok) say(`Made ${file}`);
  const naming = join(root.value, handoverConfig);
  const isNamed = !isFound && isBelow;
  if (isNamed) {
    const named = nameFolder(context, naming, path);
    if (!named.ok) return named;
    say(`Named it in ${naming}`);
  } else if (!isFound) say(`Its hooks find it when claude is started in ${folder}`);
  if (json) {
    const written = { ...(made.ok ? { made: file } : {}), ...(isNamed ? { named: naming } : {}) };
    context.stdout.line(safeJson({ project: folder, ...written }, 2));
  }
  return ok(exitCode.done);
}

/** The path as the system sees it, also when its last parts are yet to be made. */
function withoutLinks(files: Context['world']['files'], path: string): string {
  const real = tryPath(() => files.realPath(path));
  if (real.ok && real.value !== null) return real.value;
  const parent = dirname(path);
  return parent === path ? path : join(withoutLinks(files, parent), basename(path));
}

function make({ world: { files, clock } }: Context, folder: string, file: string, name?: string): Result<void> {
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
      return fail('duplicate', `${brief} is already there.`, 'Go on with it; nothing was changed.');
    }
    if (code === 'EEXIST' || code === 'ENOTDIR') {
      const message = `${brief} cannot be made: a file has the name of one of its folders.`;
      return fail('usage', message, 'Give another path.');
    }
    return { ok: false, failure: systemFailure(file, error) };
  }
}

/** Adds the folder to the configuration of the root. */
function nameFolder({ world: { files, clock } }: Context, config: string, path: string): Result<unknown> {
  try {
    files.makeFolder(dirname(config), 'project');
  } catch (error) {
    return { ok: false, failure: systemFailure(config, error) };
  }
  return updateExclusively(files, {
    path: config,
    nowMs: clock.now(),
    bytesMax: configBytesMax,
    change: (before) => {
      const read = before === null ? ok<JsonObject>({}) : readConfig(config, before);
      if (!read.ok) return read;
      const { value } = read;
      const folders = Array.isArray(value.folders) ? value.folders : [];
      if (folders.includes(path)) return ok(null);
      return ok(new TextEncoder().encode(`${JSON.stringify({ ...value, folders: [...folders, path] }, null, 2)}\n`));
    },
  });
}

/** Looked at before anything is made, so that a project is never made and then not named. */
function configNow({ world: { files } }: Context, config: string): Result<JsonObject> {
  const read = tryPath(() => (files.info(config) === null ? null : files.readBytes(config, 0, configBytesMax + 1)));
  if (!read.ok) return fail('usage', `${briefPath(config)} ${read.trouble}.`, 'Check its permissions.');
  if (read.value === null) return ok({});
  if (read.value.length <= configBytesMax) return readConfig(config, read.value);
  return fail('corrupt-file', `${config} is larger than ${configBytesMax} bytes.`, 'Correct or remove it.');
}

/** Fails with `corrupt-file` also for what could not be written back as it is. */
function readConfig(config: string, bytes: Uint8Array): Result<JsonObject> {
  const refuse = (what: string) => fail('corrupt-file', what, 'Correct or remove it, then run the command again.');
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return refuse(`${config} is not valid UTF-8.`);
  }
  const read = readExactJson(text);
  if (!read.ok) return refuse(`${config}:${read.place.line}:${read.place.column}: ${read.message}.`);
  return isObject(read.value) ? ok(read.value) : refuse(`${config} is not a JSON object.`);
}
