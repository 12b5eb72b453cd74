/** A tree of commands as a man page. The macros are those of man(7) that every formatter knows. */

export interface PageOption {
  readonly flags: string;
  readonly description: string;
}

export interface PageCommand {
  /** Without the name of the program, such as `group run`. */
  readonly path: string;
  /** Arguments as the usage line shows them. */
  readonly usage: string;
  readonly description: string;
  readonly arguments: readonly PageOption[];
  readonly options: readonly PageOption[];
  /** What its help says besides, line by line as it stands. */
  readonly notes: string;
}

export interface PageSection {
  readonly title: string;
  /** Paragraphs, or a term and what it means. */
  readonly parts: readonly (string | readonly [term: string, meaning: string])[];
}

export interface Page {
  readonly name: string;
  readonly version: string;
  readonly summary: string;
  readonly synopsis: readonly string[];
  readonly description: string;
  readonly commands: readonly PageCommand[];
  readonly sections: readonly PageSection[];
}

export function renderPage(page: Page): string {
  const { name, version, summary, synopsis, description, commands, sections } = page;
  return [
    '.\\" Made by npm run man from the definitions of the commands; changes here are lost.',
    `.TH ${word(name.toUpperCase())} 1 "" ${word(`${name} ${version}`)} "User Commands"`,
    '.SH NAME',
    `${plain(name)} \\- ${plain(summary)}`,
    '.SH SYNOPSIS',
    ...synopsis.flatMap((line, index) => [...(index === 0 ? [] : ['.br']), `.B ${plain(line)}`]),
    '.SH DESCRIPTION',
    plain(description),
    '.SH COMMANDS',
    ...commands.flatMap((command) => commandLines(name, command)),
    ...sections.flatMap(sectionLines),
    '',
  ].join('\n');
}

function commandLines(name: string, { path, usage, description, arguments: args, options, notes }: PageCommand) {
  return [
    `.SS ${plain(`${name} ${path}${usage === '' ? '' : ` ${usage}`}`)}`,
    plain(description),
    ...[...args, ...options].flatMap(({ flags, description: meaning }) => [
      '.TP',
      `.B ${plain(flags)}`,
      plain(meaning),
    ]),
    ...(notes === '' ? [] : ['.PP', '.nf', ...notes.split('\n').map(plain), '.fi']),
  ];
}

function sectionLines({ title, parts }: PageSection): string[] {
  const lines = parts.flatMap((part) =>
    typeof part === 'string' ? ['.PP', plain(part)] : ['.TP', `.B ${plain(part[0])}`, plain(part[1])],
  );
  return [`.SH ${title}`, ...lines];
}

/** Text without any meaning for the formatter; a hyphen stays one that can be pasted. */
function plain(text: string): string {
  const escaped = text.replaceAll('\\', '\\e').replaceAll('-', '\\-');
  return escaped.replaceAll(/^([.'])/gm, '\\&$1');
}

function word(text: string): string {
  return `"${plain(text).replaceAll('"', '\\(dq')}"`;
}
