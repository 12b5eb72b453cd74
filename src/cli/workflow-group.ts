/** From a workflow file to a group that could be created: found, loaded, given ids. Writes nothing. */

import { basename, dirname, extname, resolve } from 'node:path';
import { placesFor, placesHere } from '../control/create/named-template.ts';
import { type NewGroup, referenceTo } from '../control/create/new-group.ts';
import { briefPath } from '../control/path-argument.ts';
import { advise } from '../core/advice.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import { defaultGroupConfig, type SessionDefinition, type SessionId } from '../core/group.ts';
import { makeSessionId, quoted } from '../core/id.ts';
import { findRepository } from '../git/repository.ts';
import { safeLine } from '../report/terminal-text.ts';
import { problemsFailure, yamlBytesMax } from '../store/yaml-text.ts';
import type { ConfigTemplate } from '../template/config-template.ts';
import { findTemplate } from '../template/places.ts';
import { readTextFile } from '../template/text-file.ts';
import { type GivenVariables, parseGiven } from '../template/variables.ts';
import type { SessionDraft, WorkflowDraft } from '../template/workflow/draft.ts';
import { loadWorkflow } from '../template/workflow.ts';
import type { Context } from './context.ts';
import { projectNotes } from './options/session-work.ts';

const noteColumnsMax = 1000;

/**
 * The group that `reference` describes: the path of a workflow file, or the name of a workflow template. `pairs` are
 * the values of `--var`, `alsoKnown` names among them that are for others. Fails with every problem of the file.
 */
export function readWorkflow(
  context: Context,
  reference: string,
  pairs: readonly string[],
  alsoKnown: readonly string[] = [],
): Result<NewGroup> {
  const given = parseGiven(pairs);
  if (!given.ok) return given;
  const file = fileOf(context, reference);
  if (!file.ok) return file;
  return loadFile(context, file.value, given.value, alsoKnown);
}

interface WorkflowFile {
  readonly path: string;
  /** Relative paths in it are meant from here. */
  readonly baseFolder: string;
}

/** What looks like a path is one; a name is looked for among the templates, unless such a file lies here. */
function fileOf(context: Context, reference: string): Result<WorkflowFile> {
  const { world, cwd } = context;
  const path = resolve(cwd, reference);
  const looksLikePath = /\/|\.ya?ml$/i.test(reference);
  if (looksLikePath || world.files.info(path)?.kind === 'file') return ok({ path, baseFolder: dirname(path) });
  if (/\s/.test(reference)) return noWorkflow(reference);
  const found = findTemplate(world, placesHere(context), 'workflow', reference);
  // A shared workflow does not lie beside the projects: its paths are those of whoever runs it.
  return found.ok ? ok({ path: found.value.path, baseFolder: cwd }) : found;
}

/** No template has a blank in its name: it is the task itself, or a path that was not found. */
function noWorkflow(reference: string): Result<never> {
  const next = advise(
    'Give a name that the last of these lists. For one prompt',
    ['group', 'create', 'one'],
    ['session', 'add', 'one', '--project', '.', '--prompt', reference],
    ['group', 'run', 'one'],
    ['template', 'list'],
  );
  return fail('usage', `${quoted(reference)} is no workflow.`, next);
}

function loadFile(
  context: Context,
  { path, baseFolder }: WorkflowFile,
  given: GivenVariables,
  alsoKnown: readonly string[],
): Result<NewGroup> {
  const { world, env } = context;
  const read = readTextFile(world, path, yamlBytesMax);
  if (!read.ok) {
    const message = `The workflow ${briefPath(path)} ${read.trouble}.`;
    return fail('usage', message, advise('Give the path of a YAML file, or a name of', ['template', 'list']));
  }
  const draft = loadWorkflow({
    world,
    file: path,
    text: read.text,
    name: basename(path, extname(path)),
    baseFolder,
    givenFolder: context.cwd,
    alsoKnown,
    home: env.HOME,
    given,
    places: (folders) => placesFor(context, folders),
    repositoryOf: (folder) => findRepository(world.files, folder)?.repository ?? null,
  });
  if (draft.ok) {
    const notes = projectNotes(draft.value.projectCommands, 'accept: false and setup: false leave them out');
    for (const note of notes) context.stderr.line(safeLine(note, noteColumnsMax));
    return ok(groupOf(context, draft.value, read.text));
  }
  return problemsFailure('The workflow', draft.problems, 'Correct it and run the command again; nothing was started.');
}

function groupOf(context: Context, draft: WorkflowDraft, text: string): NewGroup {
  const { world } = context;
  const createdAt = new Date(world.clock.now()).toISOString();
  const ids = new Map(draft.sessions.map(({ key }, index) => [key, makeSessionId(index + 1, world.random.uuid())]));
  const idOf = (key: string): SessionId => ids.get(key) as SessionId;
  const templates = new Map<string, ConfigTemplate>();
  for (const { configTemplate } of [draft, ...draft.sessions]) {
    if (configTemplate !== undefined) templates.set(configTemplate.digest, configTemplate);
  }
  const { slug, name, description, config, template, configTemplate, variables, workflow } = draft;
  return {
    definition: {
      slug,
      name,
      description,
      config: { ...defaultGroupConfig, ...config },
      ...(template === undefined ? {} : { template }),
      ...(configTemplate === undefined ? {} : { configTemplate: referenceTo(configTemplate) }),
      variables,
      workflow,
    },
    sessions: draft.sessions.map((session) => sessionOf(session, idOf, createdAt)),
    configTemplates: [...templates.values()],
    workflow: text,
  };
}

function sessionOf(draft: SessionDraft, idOf: (key: string) => SessionId, createdAt: string): SessionDefinition {
  const { key, definition, dependsOn, references, configTemplate } = draft;
  return {
    ...definition,
    id: idOf(key),
    dependsOn: dependsOn.map(idOf),
    ...(references.length === 0
      ? {}
      : { promptReferences: references.map(({ keys, ...rest }) => ({ ...rest, sessionIds: keys.map(idOf) })) }),
    ...(configTemplate === undefined ? {} : { configTemplate: referenceTo(configTemplate) }),
    createdAt,
  };
}
