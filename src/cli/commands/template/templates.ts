/** `template list`, `show`, `render`, `validate` and `init`. */
import { resolve } from 'node:path';
import { type Command, Option } from '@commander-js/extra-typings';
import { findNamed, type NamedTemplate, templateFolders } from '../../../app/create/named-template.ts';
import { briefPath } from '../../../app/path-argument.ts';
import {
  checkTemplates,
  type TemplateCheckResult,
  workflowTextProblems,
} from '../../../app/template/check-template.ts';
import { makeStarterFolder } from '../../../app/template/starter-folder.ts';
import { advise, commandText } from '../../../core/advice.ts';
import { defined } from '../../../core/defined.ts';
import { ok } from '../../../core/failure.ts';
import { nearest } from '../../../core/nearest.ts';
import { inOrder, problemsFailure } from '../../../store/yaml-text.ts';
import { renderConfigTemplate } from '../../../template/config-template.ts';
import {
  describeVariable,
  type LoadedTemplate,
  loadTemplate,
  templateDescription,
} from '../../../template/describe.ts';
import { type FoundTemplate, type ListedTemplate, listTemplates, templateKinds } from '../../../template/places.ts';
import { isProgramName, renderPrompt } from '../../../template/prompt-template.ts';
import type { Lookup } from '../../../template/render.ts';
import { decodeText } from '../../../template/text-file.ts';
import { parseGiven, resolveVariables, type VariableSpec } from '../../../template/variables.ts';
import { formatTable, plural, type TableCell, titled } from '../../../view/format.ts';
import { safeJson, safeLine, safeText } from '../../../view/terminal-text.ts';
import { type CommandResult, type Context, exitCode, need, refuse } from '../../context.ts';
import { collect } from '../../options/options.ts';
import { readPipedYaml, standardInput } from '../../options/prompt-source.ts';

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
        if (json) {
          context.stdout.json(rows.map(plainRow));
          return;
        }
        if (rows.length === 0) {
          const init = commandText(['template', 'init', '.claude-code-agent/templates']);
          context.stderr.line(`There are no templates. Create some with: ${init}`);
          return;
        }
        context.stdout.lines(table(context, rows));
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
  const loaded = loadTemplate(context.world, listed.template);
  if (!loaded.ok) return { listed, description: '', aliases: [], problems: loaded.problems.length };
  const aliases = loaded.value.kind === 'config' ? loaded.value.aliases : [];
  return { listed, description: templateDescription(loaded.value), aliases, problems: 0 };
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
      originOf(template),
      [...new Set(hides.map(originOf))].join(', '),
      problems === 0 ? safeLine(`${also}${description}`, 100) : { text: safeLine(faulty, 300), tone: 'bad' },
    ];
  });
  return formatTable(columns, cells, context.stdout.style);
}

/** `project`, `user`, or the pack's name. */
function originOf({ place }: FoundTemplate): string {
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
        const found = need(findNamed(context, templateFolders(context), name, kind));
        const loaded = loadTemplate(context.world, found);
        if (!loaded.ok) return problemsFailure(`The ${found.kind} template`, loaded.problems);
        const page = pageOf(loaded.value);
        if (json) context.stdout.json(plainPage(found, page));
        else print(context, found, page);
      }),
    );
}

interface Page {
  readonly description: string;
  readonly variables: readonly VariableSpec[];
  readonly aliases: readonly string[];
  readonly files: readonly { readonly path: string; readonly bytes: number; readonly text: string | null }[];
}

function pageOf(loaded: LoadedTemplate): Page {
  const description = templateDescription(loaded);
  switch (loaded.kind) {
    case 'prompt': {
      const { body, variables } = loaded.prompt;
      const bytes = Buffer.byteLength(body.text);
      return { description, variables, aliases: [], files: [{ path: 'prompt', bytes, text: body.text }] };
    }
    case 'config': {
      const { config, aliases } = loaded;
      const files = config.files.map(({ path, bytes, isText }) => ({
        path,
        bytes: bytes.length,
        text: isText ? decodeText(bytes) : null,
      }));
      return { description, variables: config.variables, aliases, files };
    }
    case 'workflow': {
      const { text } = loaded.workflow;
      const files = [{ path: 'workflow', bytes: Buffer.byteLength(text), text }];
      return { description, variables: [], aliases: [], files };
    }
  }
}

function plainPage(
  { kind, name, path, place }: NamedTemplate,
  { description, variables, aliases, files }: Page,
): object {
  return {
    kind,
    name,
    ...(place === undefined ? {} : { origin: place.origin }),
    ...defined({ pack: place?.pack }),
    path,
    description,
    variables,
    ...(kind === 'config' ? { aliases, files } : { text: files[0]?.text ?? '' }),
  };
}

function print({ stdout }: Context, { kind, name, path, place }: NamedTemplate, page: Page): void {
  const { description, variables, aliases, files } = page;
  const origin = place === undefined ? '' : `, ${place.pack === undefined ? place.origin : `pack ${place.pack}`}`;
  stdout.line(`${stdout.style('strong', safeLine(name, 200))} (${kind}${origin})`);
  if (description !== '') stdout.line(safeLine(description, 400));
  stdout.line(stdout.style('dim', safeLine(path, 1000)));
  if (aliases.length > 0) stdout.line(`Also found as ${aliases.join(', ')}.`);
  if (variables.length > 0) {
    stdout.line();
    stdout.line('Variables:');
    for (const variable of variables) stdout.line(`  ${safeLine(describeVariable(variable), 400)}`);
  }
  for (const { path: file, bytes, text } of files) {
    stdout.line();
    if (kind === 'config') stdout.line(stdout.style('accent', safeLine(`--- ${file}`, 400)));
    stdout.line(text === null ? `(${bytes} bytes, not text)` : safeText(text).trimEnd());
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
        const found = need(findNamed(context, templateFolders(context), name, kind));
        if (found.kind === 'workflow') {
          const next = advise('See what it would start with', ['run', name, '--dry-run']);
          return refuse('usage', `"${name}" is a workflow; only prompts and configs can be rendered.`, next);
        }
        const loaded = loadTemplate(context.world, found);
        if (!loaded.ok) return problemsFailure(`The ${found.kind} template`, loaded.problems);
        const template = loaded.value;
        if (template.kind === 'workflow') return;
        const specs = template.kind === 'prompt' ? template.prompt.variables : template.config.variables;
        const values = valuesOf(context, specs, pairs);
        if (template.kind === 'prompt') {
          const { text, problems } = renderPrompt(template.prompt, values, leaveForLater);
          if (problems.length > 0) return problemsFailure('The prompt template', problems);
          context.stdout.line(json === true ? safeJson({ text }, 2) : safeText(text));
          return;
        }
        const { files, problems } = renderConfigTemplate(template.config, values, leaveForLater);
        if (problems.length > 0) return problemsFailure('The config template', problems);
        const texts = files.map(({ path, bytes, isText }) => ({
          path,
          bytes: bytes.length,
          text: isText ? decodeText(bytes) : null,
        }));
        if (json === true) context.stdout.json({ files: texts });
        else for (const file of texts) printFile(context, file);
      }),
    );
}

/** Names that only a session can fill are left as they are. */
const leaveForLater: Lookup = (name) => (isProgramName(name) ? `{{${name}}}` : undefined);

function printFile({ stdout }: Context, file: { path: string; bytes: number; text: string | null }): void {
  stdout.line(stdout.style('accent', safeLine(`--- ${file.path}`, 400)));
  stdout.line(file.text === null ? `(${file.bytes} bytes, not text)` : safeText(file.text).trimEnd());
}

/** Reports all problems of the values at once. */
function valuesOf(
  context: Context,
  specs: readonly VariableSpec[],
  pairs: readonly string[],
): Readonly<Record<string, string>> {
  const given = need(parseGiven(pairs));
  const { values, problems, unused } = resolveVariables(specs, given, {
    world: context.world,
    folder: context.cwd,
  });
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
