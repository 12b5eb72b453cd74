/** `template render`: a template with its variables filled in, as a session would get it. */

import { type Command, Option } from '@commander-js/extra-typings';
import { findNamed, placesHere } from '../../../app/create/named-template.ts';
import { advise } from '../../../core/advice.ts';
import { fail, ok, type Result } from '../../../core/failure.ts';
import { problemsFailure } from '../../../store/yaml-text.ts';
import { renderConfigTemplate } from '../../../template/config-template.ts';
import { loadTemplate } from '../../../template/describe.ts';
import { nearest } from '../../../template/nearest.ts';
import { type TemplateKind, templateKinds } from '../../../template/places.ts';
import { isProgramName, renderPrompt } from '../../../template/prompt-template.ts';
import type { Lookup } from '../../../template/render.ts';
import { textOf } from '../../../template/text-file.ts';
import { parseGiven, resolveVariables, type VariableSpec } from '../../../template/variables.ts';
import { safeJson, safeLine, safeText } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { collect } from '../../options/option-values.ts';

const example = `
Example:
  $ claude-code-agent template render code-review --var file_path=src/main.ts
  $ claude-code-agent template render ./configs/strict --var team=payments`;

export function define(command: Command, context: Context): void {
  command
    .description(
      'Prints a prompt or the files of a config with their variables filled in. Names that only a session knows, ' +
        'such as {{project.name}} or {{sessions.api.result}}, stay as they are.',
    )
    .argument('<name>', 'name of a prompt or config template, or a path with a "/"')
    .option('--var <name=value>', 'value of a variable; may be given several times', collect)
    .addOption(new Option('--kind <kind>', 'for a name that several kinds have').choices(templateKinds))
    .option('--json', 'one JSON document: {"text"} of a prompt, {"files"} of a config')
    .addHelpText('after', example)
    .action((name, given) => context.run(() => renderNamed(context, name, given)));
}

interface Given {
  readonly var?: readonly string[] | undefined;
  readonly kind?: TemplateKind | undefined;
  readonly json?: true | undefined;
}

function renderNamed(context: Context, name: string, { var: pairs = [], kind, json }: Given): Work {
  const found = findNamed(context, placesHere(context), name, kind);
  if (!found.ok) return found;
  if (found.value.kind === 'workflow') {
    const next = advise('See what it would start with', ['run', name, '--dry-run']);
    return fail('usage', `"${name}" is a workflow, which has no text to fill in.`, next);
  }
  const loaded = loadTemplate(context.world, found.value);
  if (!loaded.ok) return problemsFailure(`The ${found.value.kind} template`, loaded.problems);
  const template = loaded.value;
  if (template.kind === 'workflow') return ok(exitCode.done);
  const specs = template.kind === 'prompt' ? template.prompt.variables : template.config.variables;
  const values = valuesOf(context, specs, pairs);
  if (!values.ok) return values;
  if (template.kind === 'prompt') {
    const { text, problems } = renderPrompt(template.prompt, values.value, leaveForLater);
    if (problems.length > 0) return problemsFailure('The prompt template', problems);
    context.stdout.line(json === true ? safeJson({ text }, 2) : safeText(text));
    return ok(exitCode.done);
  }
  const { files, problems } = renderConfigTemplate(template.config, values.value, leaveForLater);
  if (problems.length > 0) return problemsFailure('The config template', problems);
  const texts = files.map(({ path, bytes, isText }) => ({
    path,
    bytes: bytes.length,
    text: isText ? textOf(bytes) : null,
  }));
  if (json === true) context.stdout.line(safeJson({ files: texts }, 2));
  else for (const file of texts) printFile(context, file);
  return ok(exitCode.done);
}

/** What a session, its project or its group answers stands as it was written. */
const leaveForLater: Lookup = (name) => (isProgramName(name) ? `{{${name}}}` : undefined);

function printFile({ stdout }: Context, file: { path: string; bytes: number; text: string | null }): void {
  stdout.line(stdout.style('accent', safeLine(`--- ${file.path}`, 400)));
  stdout.line(file.text === null ? `(${file.bytes} bytes that are no text)` : safeText(file.text).trimEnd());
}

/** All that is wrong with the values at once. Fails with `usage`. */
function valuesOf(
  context: Context,
  specs: readonly VariableSpec[],
  pairs: readonly string[],
): Result<Readonly<Record<string, string>>> {
  const given = parseGiven(pairs);
  if (!given.ok) return given;
  const { values, problems, unused } = resolveVariables(specs, given.value, {
    world: context.world,
    folder: context.cwd,
  });
  const names = specs.map((spec) => spec.name);
  const troubles = [...problems, ...unused.map((name) => unknown(name, names))];
  if (troubles.length === 0) return ok(values);
  const told = troubles.join('; ');
  const message = told.endsWith('?') ? told : `${told}.`;
  const next = 'Give each variable of the template as --var name=value.';
  return fail('usage', `${message[0]?.toUpperCase()}${message.slice(1)}`, next);
}

function unknown(name: string, names: readonly string[]): string {
  const near = nearest(name, names);
  const has = names.length === 0 ? 'it has none' : `it has ${names.join(', ')}`;
  return `the template has no variable "${name}"; ${near === undefined ? has : `did you mean "${near}"?`}`;
}
