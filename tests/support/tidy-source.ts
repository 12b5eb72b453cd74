/**
 * Reads source files the way the tidy rules need them: comments and strings blanked out, imports, functions, members
 * of unions. Biome formats every file, so indentation tells where a function ends and no parser is needed.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';

export interface SourceFile {
  /** Relative to the repository, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

export interface Import {
  /** As written, for packages; relative to the repository for files. */
  readonly target: string;
  readonly isFile: boolean;
  readonly typeOnly: boolean;
  /** When the call that names it is reached. */
  readonly isLater: boolean;
}

export interface FunctionSpan {
  readonly line: number;
  readonly length: number;
  readonly head: string;
}

/** All files below the folders and all single files named, but nothing that is installed or generated. */
export function readSources(root: string, places: readonly string[], pattern: RegExp): SourceFile[] {
  const found: SourceFile[] = [];
  const visit = (path: string): void => {
    if (pattern.test(path)) found.push({ path, text: readFileSync(join(root, path), 'utf8') });
  };
  for (const place of places) {
    const entries = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.name === place);
    if (entries[0]?.isFile()) visit(place);
    if (!entries[0]?.isDirectory()) continue;
    for (const entry of readdirSync(join(root, place), { withFileTypes: true, recursive: true })) {
      const path = posix.join(entry.parentPath.slice(root.length + 1), entry.name);
      if (entry.isFile() && !/(^|\/)(node_modules|coverage|\.git)\//.test(path)) visit(path);
    }
  }
  return found.sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** A regular expression can only stand where a value is expected, which tells it from a division. */
const regex = /(?<=[(,=:[!&|?{};>]\s*|^\s*|return\s)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*/;
const comment = /\/\*[\s\S]*?\*\/|\/\/[^\n]*/;
const string = /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"/;
/** What does not count as code. Of a template only the beginning, see `rewrite`. */
const token = new RegExp([comment, string, regex, /`/].map(({ source }) => source).join('|'), 'gm');

/** The code with every character of comments, strings and regular expressions replaced by a space; lines stay lines. */
export function blankOut(text: string): string {
  return rewrite(text, () => true);
}

/** The same for comments alone. */
export function blankComments(text: string): string {
  return rewrite(text, (found) => found.startsWith('/*') || found.startsWith('//'));
}

/** Blanks everything but comments. */
export function commentsOf(text: string): string {
  const code = blankComments(text);
  return Array.from({ length: text.length }, (_, index) => {
    const character = text[index] as string;
    return character === code[index] && character !== '\n' ? ' ' : character;
  }).join('');
}

function rewrite(text: string, isBlanked: (found: string) => boolean): string {
  const finder = new RegExp(token);
  let result = '';
  let from = 0;
  for (let match = finder.exec(text); match !== null; match = finder.exec(text)) {
    // A template may hold code that holds templates, which no regular expression can follow.
    const end = match[0] === '`' ? templateEnd(text, match.index) : match.index + match[0].length;
    const whole = text.slice(match.index, end);
    result += text.slice(from, match.index) + (isBlanked(whole) ? whole.replace(/[^\n]/g, ' ') : whole);
    from = end;
    finder.lastIndex = end;
  }
  return result + text.slice(from);
}

/** The index behind the template that begins at `start`. */
function templateEnd(text: string, start: number): number {
  let index = start + 1;
  while (index < text.length && text[index] !== '`') {
    if (text[index] === '\\') index += 2;
    else if (text.startsWith('${', index)) index = substitutionEnd(text, index + 2);
    else index += 1;
  }
  return index + 1;
}

function substitutionEnd(text: string, start: number): number {
  let depth = 1;
  let index = start;
  while (index < text.length && depth > 0) {
    const character = text[index];
    if (character === '`') index = templateEnd(text, index);
    else if (character === "'" || character === '"') index = stringEnd(text, index);
    else {
      if (character === '{') depth += 1;
      if (character === '}') depth -= 1;
      index += 1;
    }
  }
  return index;
}

function stringEnd(text: string, start: number): number {
  let index = start + 1;
  while (index < text.length && text[index] !== text[start] && text[index] !== '\n')
    index += text[index] === '\\' ? 2 : 1;
  return index + 1;
}

const importPattern =
  /^(?:import|export)\s+(type\s)?(?:[^;'"]*?\sfrom\s+)?['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/gm;

export function readImports(file: SourceFile): Import[] {
  return [...blankComments(file.text).matchAll(importPattern)].map((match) => {
    const written = (match[2] ?? match[3]) as string;
    const isFile = written.startsWith('.');
    const target = isFile ? posix.join(posix.dirname(file.path), written) : written;
    return { target, isFile, typeOnly: match[1] !== undefined, isLater: match[3] !== undefined };
  });
}

/** Every function with a body in braces, methods and arrow functions included. */
export function functionsOf(text: string): FunctionSpan[] {
  const lines = blankOut(text).split('\n');
  const written = text.split('\n');
  // By first line: a parameter that is taken apart opens a brace of its own on the way to the body.
  const spans = new Map<number, FunctionSpan>();
  lines.forEach((line, index) => {
    if (!line.trimEnd().endsWith('{')) return;
    const start = headLine(lines, index);
    if (start === null) return;
    const indent = indentOf(lines[start] as string);
    const isEnd = (other: string) =>
      indentOf(other) === indent && /^\s*\}/.test(other) && !/[{(]$/.test(other.trimEnd());
    const after = lines.slice(index + 1).findIndex(isEnd);
    if (after < 0) return;
    const head = (written[start] as string).trim();
    spans.set(start, { line: start + 1, length: index + 1 + after - start + 1, head });
  });
  return [...spans.values()];
}

const control = /^\s*(?:\} )?(?:if|else|for|while|do|switch|try|catch|finally|return \{|case|default)\b/;
const method = /^\s+(?:(?:private|protected|public|static|async|override|get|set) )*\*?[#\w$]+(?:<.*>)?\(.*\).*\{$/;

/** The line on which the function begins whose body opens at the end of line `index`; null when no function does. */
function headLine(lines: readonly string[], index: number): number | null {
  const line = (lines[index] as string).trimEnd();
  if (/^\s*[)}]/.test(line) && /\)[^()]*\{$|=> \{$/.test(line)) {
    // The parameters stand on lines of their own; the head is the nearest line above with the same indentation.
    const indent = indentOf(line);
    for (let above = index - 1; above >= 0; above -= 1) {
      const other = lines[above] as string;
      if (other.trim() !== '' && indentOf(other) === indent && !/^\s*[)}]/.test(other)) {
        return control.test(other) ? null : above;
      }
    }
    return null;
  }
  if (control.test(line)) return null;
  return /\bfunction\b/.test(line) || line.endsWith('=> {') || method.test(line) ? index : null;
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}
