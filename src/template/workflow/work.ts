/** Where one session of a workflow works and how its work is checked. */
import { workSettings } from '../../core/definitions.ts';
import { keyOf } from '../../core/setting-values.ts';
import type { YamlPath } from '../../store/yaml-text.ts';
import { settingsIn } from '../setting-schema.ts';
import { checkedCommand, shellCommand, wholeVariable } from './command-text.ts';
import type { ProjectFile } from './project-file.ts';
import { meaningsIn, type Scope } from './text.ts';
import { isUntrusted, type SessionContext, type SessionView } from './view.ts';
import { type GivenWork, type ResolvedWork, resolveWork, workFaults } from './work-settings.ts';

/** The settings; what is wrong goes to the problems. */
export function workOf(view: SessionView, context: SessionContext): ResolvedWork {
  const { spec, path, projectPath } = view;
  const { group, problems, projects } = context;
  const repository = projects.repositoryOf(projectPath);
  const file = isUntrusted(view, context) ? ({ ok: true, value: null } as const) : projects.fileFor(projectPath);
  if (!file.ok) problems.add(...file.problems);
  const ofProject = file.ok && file.value !== null ? file.value : undefined;
  const own = givenWork(spec, path, view, context);
  const ofGroup = givenWork(group, ['group'], view, context);
  const given = [own, ofGroup, ...(ofProject === undefined ? [] : [ofProject.work])];
  const settings = resolveWork(given, repository);
  context.isolations.set(view.instance, settings.isolate);
  noteCommands(ofProject, [own, ofGroup], settings, context);
  if (repository === undefined) return settings;
  for (const { key, problem } of workFaults(own, settings, repository)) {
    const name = keyOf(key, workSettings[key]);
    problems.at([...path, name], `${name} ${problem}`);
  }
  if (settings.isolate === 'worktree' && repository === null) {
    const who = own.isolate !== undefined ? '' : ofGroup.isolate !== undefined ? 'group: ' : `${ofProject?.path}: `;
    const what = `${who}isolate: worktree takes a git repository, and ${projectPath} is in none`;
    problems.at(own.isolate === undefined ? path : [...path, 'isolate'], what);
  }
  return settings;
}

function noteCommands(
  ofProject: ProjectFile | undefined,
  nearer: readonly GivenWork[],
  settings: ResolvedWork,
  { projects }: SessionContext,
): void {
  if (ofProject === undefined) return;
  for (const key of ['accept', 'setup'] as const) {
    const command = settings[key];
    const isOfProject = nearer.every((work) => work[key] === undefined);
    if (command !== undefined && isOfProject) projects.use({ file: ofProject.path, key, command });
  }
}

function givenWork(spec: object, path: YamlPath, view: SessionView, context: SessionContext): GivenWork {
  const given: GivenWork = settingsIn(workSettings, spec);
  return {
    ...given,
    accept: commandOf(given.accept, [...path, 'accept'], view, context),
    setup: commandOf(given.setup, [...path, 'setup'], view, context),
  };
}

/** A variable may be the whole command; one that is blank says nothing, so that a workflow can leave it open. */
function commandOf(
  given: string | false | undefined,
  path: YamlPath,
  { scope: { matrix } }: SessionView,
  { problems, values }: SessionContext,
): string | false | undefined {
  if (typeof given !== 'string') return given;
  const name = wholeVariable(given);
  const found = name === undefined ? shellCommand(given) : undefined;
  if (found?.ok) return found.command;
  let problem = found?.problem;
  if (name !== undefined) {
    // The name of a folder is no command.
    const own = [...(matrix ?? [])].filter(([key]) => key !== 'project' && key !== 'name');
    const scope: Scope = { variables: [values], ...(matrix === undefined ? {} : { matrix: new Map(own) }) };
    const meaning = meaningsIn(scope, problems.hint.bind(problems))(name);
    if ('text' in meaning) {
      if (meaning.text.trim() === '') return undefined;
      const checked = checkedCommand(meaning.text);
      if (checked.ok) return checked.command;
      problem = `{{${name}}}: ${checked.problem}`;
    } else problem = 'problem' in meaning ? meaning.problem : undefined;
  }
  if (problem !== undefined) problems.at(path, `${path.at(-1)}: ${problem}`);
  return undefined;
}
