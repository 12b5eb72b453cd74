/** Finds every place in the sources that advises a command by reading their text, so that new ones need no list. */
import { blankComments, readSources, type SourceFile } from './tidy-source.ts';

export interface AdviceSite {
  /** `src/cli/commands/group/run.ts:72`. */
  readonly where: string;
  /** Its words; a part known only at run time is its name in angle brackets. */
  readonly words: readonly string[];
}

const family = '(?:group|session|template|doctor|stop|run|faber|cpm|handover|hook|init|try|logs|ls|rm|fleet|host)';
const opening = new RegExp(`(?:\\[|\\bsee\\()\\s*'${family}'`, 'g');
/** Lists of other words: context systems, actions, hooks, workflow fields, dashboard rows. */
const noCommand = new RegExp(
  [
    /^\s*'(?:cpm|faber|handover)', '(?:cpm|faber|handover)'/,
    /^'host', 'on any machine/,
    /^'session', (?:'worktree', )?'package', 'bun'|^'init', '--bare'/,
    /^'stop', 'warn'|^'hook'$|^'(?:session|template)', definition\./,
    /^'group'(?:, '(?:template|configTemplate|onEvent)')?$/,
  ]
    .map(({ source }) => source)
    .join('|'),
);

/** The long form of a short form, and the subject of an example; git arguments are no advice either. */
const meant = /\b(?:(?:short|looking)Form|withOptions)\([^()]*\)/g;

export function adviceSites(root: string): AdviceSite[] {
  return readSources(root, ['src'], /^src\/(?!git\/|cli\/entries).*\.ts$/).flatMap(({ path, text }) => {
    const code = blankComments(text).replace(meant, (call) => call.replace(/[^\n]/g, ' '));
    return [...code.matchAll(opening)].flatMap(({ 0: found, index }) => {
      const start = index + (found.startsWith('[') ? 1 : found.indexOf('(') + 1);
      const inside = code.slice(start, endOf(code, start));
      if (noCommand.test(inside)) return [];
      return [{ where: `${path}:${code.slice(0, index).split('\n').length}`, words: wordsOf(inside) }];
    });
  });
}

/** The position of the bracket that opens before `start` and is closed after it. */
function endOf(code: string, start: number): number {
  let depth = 1;
  let quote = '';
  for (let at = start; at < code.length; at += 1) {
    const char = code[at] as string;
    if (quote !== '') quote = char === quote && code[at - 1] !== '\\' ? '' : quote;
    else if ('\'`"'.includes(char)) quote = char;
    else if ('([{'.includes(char)) depth += 1;
    else if (')]}'.includes(char)) depth -= 1;
    if (depth === 0) return at;
  }
  throw new Error('A bracket is not closed.');
}

function wordsOf(inside: string): string[] {
  return partsOf(inside).flatMap((part) => {
    const literal = /^'(.*)'$/.exec(part)?.[1];
    if (literal !== undefined) return [literal];
    if (!part.startsWith('...')) return [`<${part}>`];
    // Parts that are added conditionally. The content of a list passed in is unknown.
    return [...part.matchAll(/\[([^[\]]+)\]/g)].flatMap(([, more = '']) => wordsOf(more));
  });
}

/** Splits at commas outside brackets and strings. */
function partsOf(inside: string): string[] {
  const parts: string[] = [];
  let from = 0;
  for (let at = 0; at <= inside.length; at += 1) {
    const char = inside[at] ?? ',';
    if ('\'`"'.includes(char)) at = inside.indexOf(char, at + 1);
    else if ('([{'.includes(char)) at = endOf(inside, at + 1);
    else if (char === ',') {
      const part = inside.slice(from, at).trim();
      if (part !== '') parts.push(part);
      from = at + 1;
    }
  }
  return parts;
}

/** Where a text of the sources may contain a command's name, and why. */
const named: Readonly<Record<string, RegExp>> = {
  'src/cli/entries.ts': /^ {2,4}\[?'/,
  'src/cli/program.ts': /\$ \$\{programName\}/,
  'src/template/workflow/schema.ts': /\.describe\(/,
  // For claude, whose permission rules use this name of the program.
  'src/context/faber/prime.ts': /claude-code-agent faber phase/,
  'src/worker/attempt/attempt-setup.ts': /Bash\(claude-code-agent faber/,
};
/** Help: descriptions and examples. */
const help = /\.description\(|\bsummary: |^ {2}\$ |^\s+Paused .* Resume with: |^Merges and|^Paused sessions continue/;

/** Lines that name a command inside a text; advice must be data. */
export function commandsInTexts(files: readonly SourceFile[], program: string): string[] {
  const paths = [...program.matchAll(/(?:\[|^ {4})'([a-z]+ [a-z-]+)',/gm)].map(([, path]) => path);
  const command = new RegExp(`(?:\\\\b|\\b)(?:${paths.join('|')})\\b`);
  return files.flatMap(({ path, text }) =>
    blankComments(text)
      .split('\n')
      .flatMap((line, index) => {
        const found = command.exec(line)?.[0];
        if (found === undefined || help.test(line) || named[path]?.test(line)) return [];
        return [`${path}:${index + 1}: "${found}" in a text; advise it as data (core/advice.ts)`];
      }),
  );
}
