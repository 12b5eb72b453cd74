/** Every place in the sources that advises a command, read from their text: a new one is found without being listed. */
import { blankComments, readSources, type SourceFile } from './tidy-source.ts';

export interface AdviceSite {
  /** `src/cli/commands/group/run.ts:72`. */
  readonly where: string;
  /** Its words; what is only known when it is shown stands for itself in angle brackets. */
  readonly words: readonly string[];
}

const family = '(?:group|session|template|doctor|stop|run|faber|cpm|handover|hook|init|try|logs|ls|rm|fleet|host)';
const opening = new RegExp(`(?:\\[|\\bsee\\()\\s*'${family}'`, 'g');
/** Lists of other words: context systems, actions, hooks, fields of a workflow, rows of the dashboard. */
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

/** What a short form stands for, and the subject of an example; what git is told is no advice either. */
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

/** Where the bracket is closed before which `start` stands. */
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
    // What is only added sometimes; of a list that is handed in nothing is known.
    return [...part.matchAll(/\[([^[\]]+)\]/g)].flatMap(([, more = '']) => wordsOf(more));
  });
}

/** Split at commas that stand in no bracket and no text. */
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

/** Where the name of a command may stand in a text of the sources: what it is for. */
const named: Readonly<Record<string, RegExp>> = {
  'src/cli/entries.ts': /^ {2,4}\[?'/,
  'src/cli/program.ts': /\$ \$\{programName\}/,
  'src/template/workflow/schema.ts': /\.describe\(/,
  // What scripts have always found in `group show --json`; `why` stands beside it.
  'src/core/progress.ts': /Retry with: group run --retry-failed\./,
  // For claude, whose permissions name the program so.
  'src/context/faber/prime.ts': /claude-code-agent faber phase/,
  'src/worker/prepare/session-context.ts': /Bash\(claude-code-agent faber/,
};
/** Help: what a command does, and examples. */
const help = /\.description\(|\bsummary: |^ {2}\$ |^\s+Paused .* Resume with: |^Merges and|^Paused sessions continue/;

/** Lines that name a command in a text, to be shown or to be looked for; advice is data. */
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
