/**
 * `.claude-code-agent/project.yaml`: a project's defaults for its sessions. It is read once, when a session is added,
 * so that later writes to the project do not decide which commands run.
 */

import { join } from 'node:path';
import { defined } from '../../core/defined.ts';
import { type Setting, workSettings } from '../../core/definitions.ts';
import { keyOf } from '../../core/setting-values.ts';
import { schema } from '../../store/schema.ts';
import { checkYaml, readYaml, type Validated, wholeFile, yamlBytesMax } from '../../store/yaml-text.ts';
import { tryPath } from '../../system/system-error.ts';
import type { World } from '../../system/world.ts';
import { upToRepository } from '../places.ts';
import { schemaShape, settingsIn } from '../setting-schema.ts';
import { readTextFile } from '../text-file.ts';
import { Problems } from './problems.ts';
import { type GivenWork, type ResolvedWork, shellCommand } from './work-settings.ts';

const projectFileName = join('.claude-code-agent', 'project.yaml');

const isOfProject = (setting: Setting) => setting.project === true;
const projectSchema = schema((z) => z.strictObject(schemaShape(workSettings, isOfProject)));

export const projectKeys: readonly string[] = Object.entries(workSettings)
  .filter(([, setting]) => isOfProject(setting))
  .map(([name, setting]) => keyOf(name, setting));

export interface ProjectFile {
  readonly path: string;
  readonly work: GivenWork;
}

/** The project file nearest to this folder of a project; null without one. Never throws. */
export function projectFileFor(world: World, folder: string): Validated<ProjectFile | null> {
  for (const place of upToRepository(world, folder)) {
    const path = join(place, projectFileName);
    const kind = tryPath(() => world.files.entryKind(path));
    if (!kind.ok) return { ok: false, problems: [wholeFile(path, kind.trouble)] };
    if (kind.value !== null) return loadProjectFile(world, path);
  }
  return { ok: true, value: null };
}

export function isProjectFile(path: string): boolean {
  return path.endsWith(`/${projectFileName}`);
}

/** Reads and checks the file; every problem at once. Never throws because of its content. */
export function loadProjectFile(world: World, path: string): Validated<ProjectFile> {
  const read = readTextFile(world, path, yamlBytesMax);
  if (!read.ok) return { ok: false, problems: [wholeFile(path, read.trouble)] };
  const { text } = read;
  const yaml = readYaml({ text, file: path });
  if (!yaml.ok) return yaml;
  const problems = new Problems(yaml.value, text, path);
  const checked = checkYaml({ ...yaml.value, value: yaml.value.value ?? {} }, projectSchema(), 'the project file');
  if (!checked.ok) return checked;
  const work: GivenWork = settingsIn(workSettings, checked.value);
  const commandOf = (key: 'accept' | 'setup'): string | false | undefined => {
    const given = work[key];
    if (typeof given !== 'string') return given;
    const found = shellCommand(given);
    if (found.ok) return found.command;
    problems.at([key], `${key}: ${found.problem}`);
    return undefined;
  };
  const commands = defined({ accept: commandOf('accept'), setup: commandOf('setup') });
  return problems.size > 0
    ? { ok: false, problems: problems.all }
    : { ok: true, value: { path, work: { ...work, ...commands } } };
}

/** The commands of a project's file that a session runs. `nearer`: the settings that take precedence. */
export function commandsOf(
  file: ProjectFile | null,
  nearer: readonly GivenWork[],
  settings: ResolvedWork,
): ProjectCommand[] {
  if (file === null) return [];
  return (['accept', 'setup'] as const).flatMap((key) => {
    const command = nearer.every((work) => work[key] === undefined) ? settings[key] : undefined;
    return command === undefined ? [] : [{ file: file.path, key, command }];
  });
}

export interface ProjectCommand {
  readonly file: string;
  readonly key: 'accept' | 'setup';
  readonly command: string;
}
