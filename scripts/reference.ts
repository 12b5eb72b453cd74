/** The pages of docs/reference/ as Markdown: commands, workflow keys, and codes. scripts/man.ts writes them. */
import { projectKeys } from '../src/template/workflow/project-file.ts';
import { workflowJsonSchema } from '../src/template/workflow/schema.ts';
import { causeTables, eventTable } from './man/codes.ts';
import type { PageCommand, PageSection } from './man/roff.ts';

const generated = '<!-- Made by `npm run man` from the definitions. Changes here are lost. -->';

/** By file name. */
export function referencePages(
  commands: readonly PageCommand[],
  sections: readonly PageSection[],
): Record<string, string> {
  return {
    'commands.md': commandsPage(commands, sections),
    'workflow.md': workflowPage(),
    'codes.md': codesPage(sections),
  };
}

function page(title: string, ...blocks: readonly string[]): string {
  return `${[`# ${title}`, generated, ...blocks].join('\n\n')}\n`;
}

function commandsPage(commands: readonly PageCommand[], sections: readonly PageSection[]): string {
  return page(
    'Commands',
    '`cca` is a second name of `claude-code-agent`. `cca help COMMAND` prints the text below for one command.',
    ...commands.map(commandBlock),
    ...sections.map(sectionBlock),
  );
}

function commandBlock({ path, usage, description, arguments: args, options, notes }: PageCommand): string {
  const depth = usage === 'COMMAND' || !path.includes(' ') ? '##' : '###';
  const rows = [...args, ...options].map(({ flags, description: meaning }) => [code(flags), prose(meaning)]);
  return [
    `${depth} ${code(`${path} ${usage}`.trim())}`,
    prose(description),
    ...(rows.length === 0 ? [] : [table(['option', 'meaning'], rows)]),
    ...(notes === '' ? [] : [`\`\`\`text\n${notes}\n\`\`\``]),
  ].join('\n\n');
}

function sectionBlock({ title, parts }: PageSection): string {
  const rows = parts.flatMap((part) => (typeof part === 'string' ? [] : [[code(part[0]), prose(part[1])]]));
  const texts = parts.filter((part) => typeof part === 'string').map(prose);
  const name = title[0] + title.slice(1).toLowerCase();
  return [`## ${name}`, ...texts, ...(rows.length === 0 ? [] : [table(['', 'meaning'], rows)])].join('\n\n');
}

interface Schema {
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly string[];
  readonly const?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly pattern?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
}

function workflowPage(): string {
  const file = workflowJsonSchema() as Schema;
  const { group = {}, sessions = {}, vars = {} } = file.properties ?? {};
  const session = sessions.additionalProperties ?? {};
  const variable = vars.additionalProperties?.anyOf?.find(({ properties }) => properties !== undefined) ?? {};
  const { matrix = {}, config = {} } = session.properties ?? {};
  return page(
    'Workflow keys',
    'The keys of a [workflow](../workflows.md) file. Editors get the same from `templates/workflow.schema.json`.',
    `## The file\n\n${keyTable(file)}`,
    '## `vars`\n\nEach variable is a plain value, which is its default, or a map with these keys:',
    keyTable(variable),
    'A `boolean` accepts `true`, `false`, `yes` and `no`. A `name` is safe in file and branch names. A `path` ' +
      'becomes absolute. A `file` is replaced by its contents, at most 256 KiB.',
    `## \`group\`\n\n${keyTable(group)}`,
    `## \`sessions\`\n\nThe keys of one session:\n\n${keyTable(session)}`,
    `## \`matrix\` of a session\n\n${keyTable(matrix)}`,
    `## \`config\` of a session\n\n${keyTable(config)}`,
    '## Limits\n\nA file may have 1 MiB and make 10,000 sessions. A prompt may have 1 MiB, a command 32 KiB and an ' +
      '`outputSchema` 64 KiB. YAML anchors work, merge keys (`<<`) do not.',
    '## `.claude-code-agent/project.yaml`\n\nThe keys that a project may set for sessions that work in it. ' +
      `They mean the same as in a session.\n\n${projectKeys.map((key) => `- ${code(key)}`).join('\n')}`,
  );
}

function keyTable({ properties = {} }: Schema): string {
  const rows = Object.entries(properties).map(([key, schema]) => {
    const [meaning = '', standard = ''] = (schema.description ?? '').split('; default: ');
    return [code(key), valueText(schema), prose(meaning), standard === '' ? '' : prose(standard)];
  });
  return table(['key', 'value', 'meaning', 'default'], rows);
}

function valueText(schema: Schema): string {
  const { enum: words, const: fixed, type, anyOf, items, minimum, maximum, pattern } = schema;
  if (words !== undefined) return words.map(code).join(', ');
  if (fixed !== undefined) return code(String(fixed));
  if (anyOf !== undefined) return [...new Set(anyOf.map(valueText))].join(' or ');
  if (type === 'array') return `list of ${items === undefined ? 'values' : valueText(items)}`;
  if (type === 'object' || type === undefined) return 'map';
  if (pattern?.includes('[mM]')) return 'duration';
  const name = [type].flat().join(', ').replace('string', 'text').replace('boolean', '`true`, `false`');
  return minimum === undefined ? name : `${name}, ${minimum} to ${maximum}`;
}

function codesPage(sections: readonly PageSection[]): string {
  const codes = sections.filter(({ title }) => title === 'EXIT STATUS');
  const events = eventTable().map(([name, fields, meaning]) => [code(name), fields.map(code).join(', '), meaning]);
  return page(
    'Exit codes, events and reason codes',
    ...codes.map(sectionBlock),
    [
      '## Events',
      '`--output json` prints one event per line, after a header line `{"type":"header","version":1,"groupId":…}`. ' +
        'Each event has `at`, `type` and `groupId`. Events from the log have `seq`. ' +
        'Events about a session have `sessionId`. Costs are US dollars, times are milliseconds.',
      table(['event', 'further fields', 'when'], events),
    ].join('\n\n'),
    ...causeTables().map(({ title, text, rows }) =>
      [
        `## ${title}`,
        text,
        table(
          ['code', 'meaning'],
          rows.map(([name, meaning]) => [code(name), meaning]),
        ),
      ].join('\n\n'),
    ),
  );
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

function code(text: string): string {
  return `\`${text.replaceAll('|', '\\|')}\``;
}

/** Words in angle brackets are not HTML, and a line break does not end a table row. */
function prose(text: string): string {
  return text.replaceAll('\n', ' ').replaceAll('|', '\\|').replaceAll('<', '\\<').replaceAll('*', '\\*');
}
