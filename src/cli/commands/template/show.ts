/**
 * cli/commands/template/: the commands of templates. This one: `template show` shows one template, its variables and
 * its files.
 */
import { type Command, Option } from '@commander-js/extra-typings';
import { findNamed, type NamedTemplate, placesHere } from '../../../app/create/named-template.ts';
import { defined } from '../../../core/defined.ts';
import { ok } from '../../../core/failure.ts';
import { problemsFailure } from '../../../store/yaml-text.ts';
import { describeVariable, descriptionOf, type LoadedTemplate, loadTemplate } from '../../../template/describe.ts';
import { type TemplateKind, templateKinds } from '../../../template/places.ts';
import { textOf } from '../../../template/text-file.ts';
import type { VariableSpec } from '../../../template/variables.ts';
import { safeJson, safeLine, safeText } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent template show code-review
  $ claude-code-agent template show strict-typescript --json | jq -r '.files[].path'`;

export function define(command: Command, context: Context): void {
  command
    .description('Shows a template: what it is for, its variables and its text or files.')
    .argument('<name>', 'name of a template, or a path with a "/"')
    .addOption(new Option('--kind <kind>', 'for a name that several kinds have').choices(templateKinds))
    .option('--json', 'one JSON document')
    .addHelpText('after', example)
    .action((name, { kind, json }) => context.run(() => show(context, name, kind, json === true)));
}

interface Page {
  readonly description: string;
  readonly variables: readonly VariableSpec[];
  readonly aliases: readonly string[];
  /** Texts by name; null for what is no text. */
  readonly files: readonly { readonly path: string; readonly bytes: number; readonly text: string | null }[];
}

function show(context: Context, name: string, kind: TemplateKind | undefined, json: boolean): Work {
  const found = findNamed(context, placesHere(context), name, kind);
  if (!found.ok) return found;
  const loaded = loadTemplate(context.world, found.value);
  if (!loaded.ok) return problemsFailure(`The ${found.value.kind} template`, loaded.problems);
  const page = pageOf(loaded.value);
  if (json) context.stdout.line(safeJson(plain(found.value, page), 2));
  else print(context, found.value, page);
  return ok(exitCode.done);
}

function pageOf(loaded: LoadedTemplate): Page {
  const description = descriptionOf(loaded);
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
        text: isText ? textOf(bytes) : null,
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

function plain({ kind, name, path, place }: NamedTemplate, { description, variables, aliases, files }: Page): object {
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
    stdout.line(text === null ? `(${bytes} bytes that are no text)` : safeText(text).trimEnd());
  }
}
