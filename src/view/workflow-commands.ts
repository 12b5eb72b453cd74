/**
 * What GitHub Actions obeys in the output of a step: a line that begins with two colons, blanks before them or not, and
 * the older form wherever it stands.
 */

/** `text` with no command in it. `isLineBegin`: nothing but blanks stands before it in its first line. */
export function withoutCommands(text: string, isLineBegin = true): string {
  const plain = text.replaceAll('##[', '## [');
  const rest = isLineBegin ? 0 : plain.search(/[\r\n]|$/);
  return plain.slice(0, rest) + plain.slice(rest).replace(/^(\s*)::/gm, '$1| ::');
}

/** Whether what is written after `text` begins a line, blanks before it or not. */
export function endsInLineBegin(text: string, wasLineBegin: boolean): boolean {
  const line = text.split(/[\r\n]/);
  return (line.length > 1 || wasLineBegin) && (line.at(-1) ?? '').trim() === '';
}
