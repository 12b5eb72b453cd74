/** Finds and loads a workflow and turns it into a new group. Writes nothing. */

import { basename, dirname, extname, resolve } from 'node:path';
import { advise, adviseInOrder } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { defaultGroupConfig, type SessionDefinition, type SessionId } from '../../core/group.ts';
import { makeSessionId, quoted } from '../../core/id.ts';
import { findRepository } from '../../git/git.ts';
import { problemsFailure, yamlBytesMax } from '../../store/yaml-text.ts';
import type { ConfigTemplate } from '../../template/config-template.ts';
import { findTemplate } from '../../template/places.ts';
import { readTextFile } from '../../template/text-file.ts';
import { type GivenVariables, parseGiven } from '../../template/variables.ts';
import type { SessionDraft, WorkflowDraft } from '../../template/workflow/session.ts';
import { loadWorkflow } from '../../template/workflow.ts';
import { safeLine } from '../../view/terminal-text.ts';
import type { AppContext } from '../app-context.ts';
import { briefPath } from '../path-argument.ts';
import { placesFor, templateFolders } from './named-template.ts';
import { type NewGroup, templateReference } from './new-group.ts';
import { projectNotes } from './new-session.ts';

const noteColumnsMax = 1000;

/**
 * The group of a workflow file, a template, or a text, whose relative paths start at the current folder. `pairs` are
 * the values of `--var`; those in `alsoKnown` belong to other templates.
 */
export function readWorkflow(
  context: AppContext,
  reference: string | { readonly text: string },
  pairs: readonly string[],
  alsoKnown: readonly string[] = [],
): Result<NewGroup> {
  const given = parseGiven(pairs);
  if (!given.ok) return given;
  if (typeof reference === 'object') {
    const piped = { path: pipedName, name: 'workflow', baseFolder: context.cwd, text: reference.text };
    return load(context, piped, given.value, alsoKnown);
  }
  const file = fileOf(context, reference);
  if (!file.ok) return file;
  const { path } = file.value;
  const read = readTextFile(context.world, path, yamlBytesMax);
  if (read.ok) {
    const name = basename(path, extname(path));
    return load(context, { ...file.value, name, text: read.text }, given.value, alsoKnown);
  }
  const next = 'Give the path of one or the name of a template, or write one';
  return fail(
    'usage',
    `The workflow ${briefPath(path)} ${read.trouble}.`,
    advise(next, ['template', 'list'], ['init']),
  );
}

const pipedName = 'standard input';

interface WorkflowFile {
  readonly path: string;
  /** Relative paths in the workflow start here. */
  readonly baseFolder: string;
}

/** A reference that looks like a path, or names a file here, is a path; others are template names. */
function fileOf(context: AppContext, reference: string): Result<WorkflowFile> {
  const { world, cwd } = context;
  const path = resolve(cwd, reference);
  const looksLikePath = /\/|\.ya?ml$/i.test(reference);
  if (looksLikePath || world.files.info(path)?.kind === 'file') return ok({ path, baseFolder: dirname(path) });
  if (/\s/.test(reference)) return noWorkflow(reference);
  const found = findTemplate(world, templateFolders(context), 'workflow', reference);
  // A shared template is not beside the projects, so its paths are relative to the current folder.
  return found.ok ? ok({ path: found.value.path, baseFolder: cwd }) : found;
}

/** A reference with a space is probably a prompt, because template names have no spaces. */
function noWorkflow(reference: string): Result<never> {
  const next = adviseInOrder(
    'Give the name of a workflow, or the path of its file. For one prompt',
    ['group', 'create', 'one'],
    ['session', 'add', 'one', '--project', '.', '--prompt', reference],
    ['group', 'run', 'one'],
  );
  return fail('usage', `${quoted(reference)} is not a workflow.`, next);
}

function load(
  context: AppContext,
  { path, name, baseFolder, text }: WorkflowFile & { readonly name: string; readonly text: string },
  given: GivenVariables,
  alsoKnown: readonly string[],
): Result<NewGroup> {
  const { world, env } = context;
  const draft = loadWorkflow({
    world,
    file: path,
    text,
    name,
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
    for (const note of notes) context.notes.line(safeLine(note, noteColumnsMax));
    return ok(groupOf(context, draft.value, text));
  }
  return problemsFailure('The workflow', draft.problems, 'Correct it and run the command again; nothing was started.');
}

function groupOf(context: AppContext, draft: WorkflowDraft, text: string): NewGroup {
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
      ...defined({ template }),
      ...(configTemplate === undefined ? {} : { configTemplate: templateReference(configTemplate) }),
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
    ...(configTemplate === undefined ? {} : { configTemplate: templateReference(configTemplate) }),
    createdAt,
  };
}
