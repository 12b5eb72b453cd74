/** The `template` commands. */
import { resolve } from 'node:path';
import { type Command, Option } from '@commander-js/extra-typings';
import { findNamed, type NamedTemplate, templateFolders } from '../../../app/create/named-template.ts';
import { briefPath } from '../../../app/path-argument.ts';
import {
  checkTemplates,
  type TemplateCheckResult,
  workflowTextProblems,
} from '../../../app/template/check-template.ts';
import {
  type AddedPack,
  addPack,
  findPack,
  type InstalledPack,
  type PackNote,
  packsOf,
  removePack,
  type UpdatedPack,
  updatePacks,
  withPacks,
} from '../../../app/template/packs.ts';
import { makeStarterFolder } from '../../../app/template/starter-folder.ts';
import { advise, commandText } from '../../../core/advice.ts';
import { defined } from '../../../core/defined.ts';
import { describeFailure, ok, publicFailure } from '../../../core/failure.ts';
import { nearest } from '../../../core/nearest.ts';
import { inOrder, problemsFailure } from '../../../store/yaml-text.ts';
import { loadConfigTemplate, renderConfigTemplate } from '../../../template/config-template.ts';
import {
  describeVariable,
  loadPage,
  type ShownFile,
  shownFiles,
  type TemplatePage,
} from '../../../template/describe.ts';
import { type FoundTemplate, type ListedTemplate, listTemplates, templateKinds } from '../../../template/places.ts';
import { isProgramName, loadPromptTemplate, renderPrompt } from '../../../template/prompt-template.ts';
import type { Lookup } from '../../../template/render.ts';
import { parseGiven, resolveVariables, type VariableSpec } from '../../../template/variables.ts';
import { formatTable, plural, type TableCell, titled } from '../../../view/format.ts';
import { safeJson, safeLine, safeText } from '../../../view/terminal-text.ts';
import { type CommandResult, type Context, confirmed, exitCode, need, refuse, refuseWith } from '../../context.ts';
import { collect } from '../../options/options.ts';
import { readPipedYaml, standardInput } from '../../options/prompt-source.ts';
import type { Output } from '../../output.ts';

const listExample = `
Example:
  $ claude-code-agent template list
  $ claude-code-agent template list --kind prompt --json | jq -r '.[].name'`;

export function defineTemplateList(command: Command, context: Context): void {
  command
    .description(
      'List templates. In order of precedence: .claude-code-agent/templates of this folder, the folders of ' +
        'CLAUDE_CODE_AGENT_TEMPLATES, your own, installed packs, and the built-in ones.',
    )
    .addOption(new Option('--kind <kind>', 'only templates of this kind').choices(templateKinds))
    .option('--json', 'one JSON document: an array of templates')
    .addHelpText('after', listExample)
    .action(({ kind, json }) =>
      context.run(() => {
        const rows = listTemplates(context.world, templateFolders(context))
          .filter(({ template }) => kind === undefined || template.kind === kind)
          .map((listed) => rowOf(context, listed));
        if (json) context.stdout.json(rows.map(plainRow));
        else context.stdout.lines(table(context, rows));
      }),
    );
}

interface Row {
  readonly listed: ListedTemplate;
  readonly description: string;
  readonly aliases: readonly string[];
  readonly problems: number;
}

function rowOf(context: Context, listed: ListedTemplate): Row {
  const page = loadPage(context.world, listed.template);
  if (!page.ok) return { listed, description: '', aliases: [], problems: page.problems.length };
  return { listed, ...page.value, problems: 0 };
}

function plainRow({ listed: { template, hides }, description, aliases, problems }: Row): object {
  return {
    ...plainTemplate(template),
    description,
    ...(aliases.length === 0 ? {} : { aliases }),
    ...(problems === 0 ? {} : { problems }),
    hides: hides.map(plainTemplate),
  };
}

function plainTemplate({ kind, name, path, place }: FoundTemplate): object {
  return { kind, name, origin: place.origin, ...defined({ pack: place.pack }), path };
}

function table(context: Context, rows: readonly Row[]): string[] {
  const columns = titled(['KIND', 'NAME', 'ORIGIN', 'HIDES', 'FOR']);
  const cells = rows.map(({ listed: { template, hides }, description, aliases, problems }): TableCell[] => {
    const also = aliases.length === 0 ? '' : `(also ${aliases.join(', ')}) `;
    const faulty = `faulty, see: ${commandText(['template', 'validate', template.path])}`;
    return [
      template.kind,
      template.name,
      originOf(template.place),
      [...new Set(hides.map(({ place }) => originOf(place)))].join(', '),
      problems === 0 ? safeLine(`${also}${description}`, 100) : { text: safeLine(faulty, 300), tone: 'bad' },
    ];
  });
  return formatTable(columns, cells, context.stdout.style);
}

/** `project`, `user`, or the pack's name. */
function originOf(place: FoundTemplate['place']): string {
  return place.pack === undefined ? place.origin : `pack ${place.pack}`;
}

const showExample = `
Example:
  $ claude-code-agent template show code-review
  $ claude-code-agent template show strict-typescript --json | jq -r '.files[].path'`;

export function defineTemplateShow(command: Command, context: Context): void {
  command
    .description('Show a template: its purpose, its variables, and its text or files.')
    .argument('<name>', 'name of a template, or a path with a "/"')
    .addOption(new Option('--kind <kind>', 'kind of template, if several have that name').choices(templateKinds))
    .option('--json', 'one JSON document')
    .addHelpText('after', showExample)
    .action((name, { kind, json }) =>
      context.run(() => {
        const found = need(findNamed(context, templateFolders(context), name, kind && [kind]));
        const page = loadPage(context.world, found);
        if (!page.ok) return problemsFailure(`The ${found.kind} template`, page.problems);
        if (json) context.stdout.json(plainPage(found, page.value));
        else print(context, found, page.value);
      }),
    );
}

function plainPage(
  { kind, name, path, place }: NamedTemplate,
  { description, variables, aliases, content }: TemplatePage,
): object {
  const source = { kind, name, ...defined({ origin: place?.origin, pack: place?.pack }), path };
  const rest = typeof content === 'string' ? { text: content } : { aliases, files: content };
  return { ...source, description, variables, ...rest };
}

function print({ stdout }: Context, { kind, name, path, place }: NamedTemplate, page: TemplatePage): void {
  const { description, variables, aliases, content } = page;
  const origin = place === undefined ? '' : `, ${originOf(place)}`;
  stdout.line(`${stdout.style('strong', safeLine(name, 200))} (${kind}${origin})`);
  if (description !== '') stdout.line(safeLine(description, 400));
  stdout.line(stdout.style('dim', safeLine(path, 1000)));
  if (aliases.length > 0) stdout.line(`Also found as ${aliases.join(', ')}.`);
  if (variables.length > 0) {
    stdout.line();
    stdout.line('Variables:');
    for (const variable of variables) stdout.line(`  ${safeLine(describeVariable(variable), 400)}`);
  }
  stdout.line();
  if (typeof content === 'string') stdout.line(safeText(content).trimEnd());
  else printFiles(stdout, content, '\n');
}

function printFiles({ line, style }: Output, files: readonly ShownFile[], separator = ''): void {
  for (const [index, { path, bytes, text }] of files.entries()) {
    line(`${index === 0 ? '' : separator}${style('accent', safeLine(`--- ${path}`, 400))}`);
    line(text === null ? `(${bytes} bytes, not text)` : safeText(text).trimEnd());
  }
}

const renderExample = `
Example:
  $ claude-code-agent template render code-review --var file_path=src/main.ts
  $ claude-code-agent template render ./configs/strict --var team=payments`;

export function defineTemplateRender(command: Command, context: Context): void {
  command
    .description(
      'Print a prompt or the files of a config with variables filled in. Names that only a session can ' +
        'fill, such as {{project.name}} or {{sessions.api.result}}, are left as they are.',
    )
    .argument('<name>', 'name of a prompt or config template, or a path with a "/"')
    .option('--var <name=value>', 'value of a variable; may be given several times', collect)
    .addOption(new Option('--kind <kind>', 'kind of template, if several have that name').choices(templateKinds))
    .option('--json', 'one JSON document: {"text"} of a prompt, {"files"} of a config')
    .addHelpText('after', renderExample)
    .action((name, { var: pairs = [], kind, json }) =>
      context.run(() => {
        const found = need(findNamed(context, templateFolders(context), name, kind && [kind]));
        if (found.kind === 'workflow') {
          const next = advise('See what it would start with', ['run', name, '--dry-run']);
          return refuse('usage', `"${name}" is a workflow; only prompts and configs can be rendered.`, next);
        }
        if (found.kind === 'prompt') {
          const template = loadPromptTemplate(context.world, found.path);
          if (!template.ok) return problemsFailure('The prompt template', template.problems);
          const values = valuesOf(context, template.value.variables, pairs);
          const { text, problems } = renderPrompt(template.value, values, leaveForLater);
          if (problems.length > 0) return problemsFailure('The prompt template', problems);
          context.stdout.line(json === true ? safeJson({ text }, 2) : safeText(text));
          return;
        }
        const template = loadConfigTemplate(context.world, found.path);
        if (!template.ok) return problemsFailure('The config template', template.problems);
        const values = valuesOf(context, template.value.variables, pairs);
        const { files, problems } = renderConfigTemplate(template.value, values, leaveForLater);
        if (problems.length > 0) return problemsFailure('The config template', problems);
        if (json === true) context.stdout.json({ files: shownFiles(files) });
        else printFiles(context.stdout, shownFiles(files));
      }),
    );
}

/** Names that only a session can fill are left as they are. */
const leaveForLater: Lookup = (name) => (isProgramName(name) ? `{{${name}}}` : undefined);

/** Reports all problems of the values at once. */
function valuesOf(
  context: Context,
  specs: readonly VariableSpec[],
  pairs: readonly string[],
): Readonly<Record<string, string>> {
  const given = need(parseGiven(pairs));
  const { values, problems, unused } = resolveVariables(specs, given, { world: context.world, folder: context.cwd });
  const names = specs.map((spec) => spec.name);
  const troubles = [...problems, ...unused.map((name) => unknown(name, names))];
  if (troubles.length === 0) return values;
  const text = troubles.join('; ');
  const message = text.endsWith('?') ? text : `${text}.`;
  const next = 'Give each variable of the template with --var name=value.';
  return refuse('usage', `${message[0]?.toUpperCase()}${message.slice(1)}`, next);
}

function unknown(name: string, names: readonly string[]): string {
  const near = nearest(name, names);
  const has = names.length === 0 ? 'it has none' : `it has ${names.join(', ')}`;
  return `the template has no variable "${name}"; ${near === undefined ? has : `did you mean "${near}"?`}`;
}

const validateExample = `
Example:
  $ claude-code-agent template validate prompts/code-review.md
  $ claude-code-agent template validate .claude-code-agent/templates
  $ claude-code-agent template validate .claude-code-agent/project.yaml`;

export function defineTemplateValidate(command: Command, context: Context): void {
  command
    .description(
      'Check a prompt (.md), a config (a folder), a workflow (.yaml), a folder with prompts/, configs/ and ' +
        'workflows/, or a .claude-code-agent/project.yaml. Problems are listed with file, line and column.',
    )
    .argument('<path>', 'file or folder; "-" is a workflow on standard input')
    .option('--json', 'one JSON document: {"templates", "problems"}')
    .addHelpText('after', validateExample)
    .action((typed, { json }) =>
      context.run(async () => {
        if (typed === standardInput) return validatePiped(context, json);
        const path = resolve(context.cwd, typed);
        const checked = need(checkTemplates(context, path));
        const { isFolder, templates, problems } = checked;
        const [first] = templates;
        const what = first?.kind === 'project' ? 'project file' : `${first?.kind} template`;
        const fine = isFolder
          ? `${plural(templates.length, 'template')} checked. No problems.`
          : `The ${what} is valid.`;
        return conclude(context, { source: briefPath(path), templates, problems, fine }, json);
      }),
    );
}

async function validatePiped(context: Context, json: true | undefined): Promise<CommandResult> {
  const text = need(await readPipedYaml(context));
  const source = 'standard input';
  const file = { file: source, name: 'workflow', baseFolder: context.cwd };
  const problems = workflowTextProblems(context, file, text);
  const templates = [{ kind: 'workflow', path: standardInput }] as const;
  return conclude(context, { source, templates, problems, fine: 'The workflow template is valid.' }, json);
}

interface Validated extends Pick<TemplateCheckResult, 'templates' | 'problems'> {
  /** What was checked, as the subject of a sentence. */
  readonly source: string;
  /** Printed if there are no problems. */
  readonly fine: string;
}

function conclude(
  { stdout }: Context,
  { source, templates, problems, fine }: Validated,
  json: true | undefined,
): CommandResult {
  if (json) {
    const checked = templates.map(({ kind, path }) => ({ kind, path }));
    stdout.json({ templates: checked, problems: inOrder(problems) });
    return ok(problems.length === 0 ? exitCode.done : exitCode.usage);
  }
  if (problems.length > 0) return problemsFailure(safeLine(source, 400), problems);
  stdout.line(fine);
}

const initExample = `
Example:
  $ claude-code-agent template init .claude-code-agent/templates      for everyone in this project
  $ claude-code-agent template init ~/.config/claude-code-agent/templates`;

export function defineTemplateInit(command: Command, context: Context): void {
  command
    .description('Create a folder with prompts/, configs/ and workflows/, each with an example.')
    .argument('<dir>', 'a new or empty folder')
    .option('--json', 'one JSON document: {"folder", "files"}')
    .addHelpText('after', initExample)
    .action((typed, { json }) =>
      context.run(() => {
        const next = 'Give the path of a new or empty folder.';
        if (typed === '') return refuse('usage', 'The path of the folder is empty.', next);
        const folder = resolve(context.cwd, typed);
        const made = need(makeStarterFolder(context.world, folder, next));
        const { stdout } = context;
        if (json) {
          stdout.json({ folder, files: made });
          return;
        }
        stdout.line(safeLine(`Created in ${folder}:`, 1000));
        for (const path of made) stdout.line(`  ${path}`);
        stdout.line(`Check them after every change with: ${commandText(['template', 'validate', folder])}`);
      }),
    );
}

const addExample = `
Example:
  $ claude-code-agent template add https://git.example.org/team/templates.git
  $ claude-code-agent template add git@git.example.org:team/templates.git@v2 --name team
  $ claude-code-agent template add ../team-templates`;

export function definePackAdd(command: Command, context: Context): void {
  command
    .description(
      'Fetch a pack of templates from a git repository, at one commit. A pack has prompts/, configs/ or ' +
        'workflows/ at its top level, in templates/ or in .claude-code-agent/templates/. Templates control ' +
        'what sessions do: review a pack before you use it.',
    )
    .argument('<source>', 'URL or local path of a git repository; URL@REF also works')
    .option('--ref <ref>', 'branch, tag or full commit id')
    .option('--name <name>', 'name of the pack (default: the last word of the source)')
    .option('--json', 'one JSON document: the contents of pack.json')
    .addHelpText('after', addExample)
    .action((source, given) =>
      context.run(async () => {
        const added = need(await addPack(context, source, given));
        const { note, powers, strays, hadPassword } = added;
        if (given.json === true) context.stdout.json(note);
        else context.stdout.lines(describe(added));
        printPowers(context, powers);
        if (strays.length > 0) {
          const files = strays.map(({ file }) => file).join(', ');
          context.stderr.line(safeLine(`These files cannot be found as templates: ${files}.`, 1000));
        }
        if (hadPassword) {
          context.stderr.line(
            'The password in the URL was not stored. Configure it in git before you update the pack.',
          );
        }
      }),
    );
}

function describe({ note, templates }: AddedPack): string[] {
  const { name, source, ref = 'commit', commit } = note;
  const count = plural(templates.length, 'template');
  const head = `Added pack ${name} with ${count} from ${source} (${ref} ${commit.slice(0, 10)}):`;
  return [safeLine(head, 400), ...templates.map((template) => `  ${safeLine(template, 200)}`)];
}

export function printPowers({ stderr }: Context, powers: readonly string[]): void {
  if (powers.length === 0) return;
  stderr.line('These files can start programs in your sessions. Review them before you use the pack:');
  for (const power of powers) stderr.line(`  ${safeLine(power, 400)}`);
}

const updateExample = `
Example:
  $ claude-code-agent template update
  $ claude-code-agent template update team --ref v3`;

export function definePackUpdate(command: Command, context: Context): void {
  command
    .description('Fetch a template pack again, or all packs. Local changes are lost.')
    .argument('[name]', 'name of the pack (default: all)')
    .option('--ref <ref>', 'use this branch, tag or full commit id from now on')
    .option('--json', 'one JSON document: an array with one object per pack')
    .addHelpText('after', updateExample)
    .action((name, { ref, json }) =>
      context.run(async () => {
        if (name === undefined && ref !== undefined) {
          const next = advise('Name the pack', ['template', 'update', 'NAME', '--ref', 'REF']);
          return refuse('usage', '--ref needs the name of a pack.', next);
        }
        const outcomes = need(await updatePacks(context, name, ref));
        if (json === true) context.stdout.json(outcomes.map(plainOutcome));
        else showOutcomes(context, outcomes);
        for (const outcome of outcomes) if (outcome.status === 'updated') printPowers(context, outcome.powers);
        return verdict(outcomes);
      }),
    );
}

function showOutcomes(context: Context, outcomes: readonly UpdatedPack[]): void {
  if (outcomes.length === 0) {
    context.stderr.line(`There are no template packs. Add one with: ${commandText(['template', 'add', 'SOURCE'])}`);
  }
  for (const outcome of outcomes) {
    const { name, status } = outcome;
    // `verdict` prints failures on stderr.
    if (status === 'unchanged') context.stdout.line(`${name}: up to date (${commitOf(outcome.note)})`);
    if (status === 'updated') {
      context.stdout.line(`${name}: updated, ${commitOf(outcome.from)} -> ${commitOf(outcome.note)}`);
    }
  }
}

function commitOf({ ref, commit }: PackNote): string {
  return `${ref === undefined ? '' : `${ref} `}${commit.slice(0, 10)}`;
}

function plainOutcome(outcome: UpdatedPack): object {
  if (outcome.status === 'failed') return { ...outcome, problem: publicFailure(outcome.problem) };
  if (outcome.status !== 'updated') return outcome;
  const { name, status, from, note, templates } = outcome;
  return { name, status, from: { ref: from.ref, commit: from.commit }, note, templates };
}

function verdict(outcomes: readonly UpdatedPack[]): CommandResult {
  const failed = outcomes.flatMap((outcome) => (outcome.status === 'failed' ? [outcome] : []));
  const [first] = failed;
  if (first === undefined) return;
  const { reason, message } = first.problem;
  const stays = { ...first.problem, message: `Pack ${first.name} was not updated: ${message}` };
  if (failed.length === 1) return refuseWith(stays);
  const all = failed.map(({ name, problem }) => `${name}: ${describeFailure(problem)}`);
  return refuse(reason, `${plural(failed.length, 'pack')} were not updated: ${all.join(' ')}`, '');
}

const removeExample = `
Example:
  $ claude-code-agent template remove team
  $ claude-code-agent template remove team --force`;

export function definePackRemove(command: Command, context: Context): void {
  command
    .description(
      'Remove a template pack. Groups keep the templates they were created with. Asks for confirmation ' +
        'unless --force is given.',
    )
    .argument('<name>', 'name of the pack')
    .option('-y, --yes', 'answer every question with yes')
    .option('--force', 'do not ask')
    .option('--json', 'one JSON document: {"pack"}')
    .addHelpText('after', removeExample)
    .action((name, { yes, force, json }) =>
      context.run(async () => {
        const packs = need(packsOf(context));
        const pack = need(await withPacks(context.world, packs, () => findPack(context.world, packs, name)));
        const sure = await confirmed(context, question(pack), yes === true || force === true);
        if (!sure) {
          context.stderr.line('Nothing was removed.');
          return;
        }
        // Look again: another command may have removed the pack during the question.
        const gone = await withPacks(context.world, packs, () => {
          const found = findPack(context.world, packs, name);
          if (found.ok) removePack(context.world, packs, name);
          return found;
        });
        need(gone);
        context.stderr.line(`Removed pack ${name}.`);
        if (json) context.stdout.json({ pack: name });
      }),
    );
}

function question({ name, folder, note }: InstalledPack): string {
  if (note === null) return `Remove the folder ${folder}? Its source is unknown.`;
  return `Remove pack ${name} from ${note.source}?`;
}
