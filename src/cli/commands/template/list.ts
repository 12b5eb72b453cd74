/** `template list`: every template that can be named here, where it comes from and what it hides. */

import { type Command, Option } from '@commander-js/extra-typings';
import { placesHere } from '../../../app/create/named-template.ts';
import { commandText } from '../../../core/advice.ts';
import { defined } from '../../../core/defined.ts';
import { ok } from '../../../core/failure.ts';
import { descriptionOf, loadTemplate } from '../../../template/describe.ts';
import {
  type FoundTemplate,
  type ListedTemplate,
  listTemplates,
  type TemplateKind,
  templateKinds,
} from '../../../template/places.ts';
import { type Cell, formatTable } from '../../../view/format.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent template list
  $ claude-code-agent template list --kind prompt --json | jq -r '.[].name'`;

export function define(command: Command, context: Context): void {
  command
    .description(
      'Lists templates. One in .claude-code-agent/templates of this folder hides those of the same name in the ' +
        'folders of CLAUDE_CODE_AGENT_TEMPLATES, these hide your own, then come installed packs and the shipped ones.',
    )
    .addOption(new Option('--kind <kind>', 'only templates of this kind').choices(templateKinds))
    .option('--json', 'one JSON document: an array of templates')
    .addHelpText('after', example)
    .action(({ kind, json }) => context.run(() => list(context, kind, json === true)));
}

interface Row {
  readonly listed: ListedTemplate;
  readonly description: string;
  readonly aliases: readonly string[];
  readonly problems: number;
}

function list(context: Context, kind: TemplateKind | undefined, json: boolean): Work {
  const rows = listTemplates(context.world, placesHere(context))
    .filter(({ template }) => kind === undefined || template.kind === kind)
    .map((listed) => rowOf(context, listed));
  if (json) {
    context.stdout.line(safeJson(rows.map(plain), 2));
    return ok(exitCode.done);
  }
  if (rows.length === 0) {
    context.stderr.line(`There are no templates. Make some with: ${commandText(['template', 'init', 'DIR'])}`);
    return ok(exitCode.done);
  }
  for (const line of table(context, rows)) context.stdout.line(line);
  return ok(exitCode.done);
}

function rowOf(context: Context, listed: ListedTemplate): Row {
  const loaded = loadTemplate(context.world, listed.template);
  if (!loaded.ok) return { listed, description: '', aliases: [], problems: loaded.problems.length };
  const aliases = loaded.value.kind === 'config' ? loaded.value.aliases : [];
  return { listed, description: descriptionOf(loaded.value), aliases, problems: 0 };
}

function plain({ listed: { template, hides }, description, aliases, problems }: Row): object {
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
  const columns = [{ title: 'KIND' }, { title: 'NAME' }, { title: 'ORIGIN' }, { title: 'HIDES' }, { title: 'FOR' }];
  const cells = rows.map(({ listed: { template, hides }, description, aliases, problems }): Cell[] => {
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
