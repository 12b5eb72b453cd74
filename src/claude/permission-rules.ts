/** The narrowest permission rules (`--allowedTools`) that would have allowed a tool call. */

import { permissionRules } from '../core/setting-values.ts';
import type { JsonObject } from '../store/json.ts';
import { text } from './lenient.ts';

export interface DeniedCall {
  readonly tool: string;
  readonly input: JsonObject;
  readonly message?: string;
  /** What denied it, such as `hook` or `rule`. */
  readonly by?: string;
}

/**
 * Empty when no rule helps: outside the session's folders, or denied for safety, by a hook, or by a deny or ask rule.
 */
export function rulesFor({ tool, input, message = '', by }: DeniedCall): string[] {
  if (by === 'hook' || by === 'rule' || by === 'safetyCheck') return [];
  // A mode or another folder may help there, but no rule.
  if (/is a sensitive file|outside the working director/.test(message)) return [];
  const rules = wantedRules(tool, input);
  // An unbalanced bracket would end the rule.
  return rules.every((rule) => permissionRules(rule)?.length === 1) ? [...new Set(rules)] : [];
}

/**
 * Rules that let a session run a user's command line (`accept` or `setup`): each of its commands exactly as written.
 * claude matches the commands of a line one by one, without output redirections. A command with `*` gets no rule,
 * because claude reads it as any text; nor does one that reads its input, such as `sh`, because the rule would allow
 * any input.
 */
export function rulesForOwnCommand(line: string): string[] {
  const whole = [{ command: line.trim(), readsInput: false }];
  const commands = (simpleCommands(line) ?? whole).filter(({ readsInput }) => !readsInput);
  const rules = commands.filter(needsRule).map(({ command }) => `Bash(${command})`);
  return [...new Set(rules)].filter((rule) => !rule.includes('*') && permissionRules(rule)?.length === 1);
}

/** Lets a session read everything in the folder. */
export function readRules(folder: string): string[] {
  return rulePaths(folder, true).map((path) => `Read(${path})`);
}

/** The path as written in a rule; empty for a name that a rule would read as a pattern. */
export function rulePaths(path: string, isFolder: boolean): string[] {
  if (!/^\/[^*?[\]\\!{}()\p{Cc}]+$/u.test(path)) return [];
  return [isFolder ? `/${path}/**` : `/${path}`];
}

/** Denies claude’s file tools every folder of that name below `top`, or anywhere if `top` is a pattern. */
export function denyEdits(top: string, name: string): string {
  const [rule] = readRules(top);
  return rule === undefined ? `Edit(//**/${name}/**)` : `Edit(/${top}/**/${name}/**)`;
}

function wantedRules(tool: string, input: JsonObject): string[] {
  switch (tool) {
    case 'Bash':
      return commandRules(text(input.command) ?? '').map((command) => `Bash(${command})`);
    case 'Write':
    case 'Edit':
    case 'NotebookEdit': {
      const path = text(input.file_path) ?? text(input.notebook_path) ?? '';
      // claude requests permission for these regardless of the rules.
      if (/(?:^|\/)\.(?:claude|git)(?:\/|$)/.test(path)) return [];
      return [path.startsWith('/') ? `Edit(/${path})` : 'Edit'];
    }
    case 'Read': {
      const path = text(input.file_path) ?? '';
      return [path.startsWith('/') ? `Read(/${path})` : 'Read'];
    }
    case 'WebFetch': {
      const host = URL.parse(text(input.url) ?? '')?.hostname;
      return [host === undefined ? 'WebFetch' : `WebFetch(domain:${host})`];
    }
    default:
      return tool === '' ? [] : [tool];
  }
}

/** claude checks each part separately, unless it cannot split the line: then only the whole can be allowed. */
function commandRules(line: string): string[] {
  const parts = simpleCommands(line);
  if (parts === null) return [line.trim()];
  return parts.filter(needsRule).map(({ command }) => commandRule(command));
}

function needsRule({ command }: SimpleCommand): boolean {
  return !/^(?:cd|pwd|true|exit)\b/.test(command);
}

/** Programs whose first argument names a task; the rest are its options. */
const taskPrograms = new Set(
  'npm pnpm yarn bun cargo go make just rake gradle ./gradlew mvn ./mvnw dotnet poetry composer bundle mix git'.split(
    ' ',
  ),
);
/** Tasks that run arbitrary arguments. */
const openTasks = new Set(['exec', 'x', 'dlx', 'eval', 'create', 'config']);
const task = /^[a-z][a-z0-9:_-]*$/;

function commandRule(command: string): string {
  const [program = '', first = '', second = ''] = command.split(/\s+/);
  if (!taskPrograms.has(program) || !task.test(first) || openTasks.has(first)) return command;
  if (first !== 'run') return `${program} ${first}:*`;
  return task.test(second) ? `${program} run ${second}:*` : command;
}

const operators = /^(?:&&|\|\||\|&|[;|&\n])/;
/** Constructs that prevent splitting: substitution, loops, grouping. */
const nesting = /^(?:\$[({A-Za-z_]|`|[<>]\(|<<|[(){}])/;
const shellWords = /^(?:for|while|until|if|case|select|function|!|\[\[|then|do|else)(?:\s|$)/;
/** Output redirections are checked separately; within the project they need no rule. */
const redirection = /^\d*(?:>>?|<|&>>?)(?:&\d|\s*[^\s;|&]+)?/;

interface SimpleCommand {
  readonly command: string;
  readonly readsInput: boolean;
}

/** The commands of a line without connectors and redirections; null when it cannot be split. */
function simpleCommands(line: string): SimpleCommand[] | null {
  const parts: SimpleCommand[] = [];
  let part = '';
  let readsInput = false;
  for (let rest = line; rest !== ''; ) {
    const quoted = /^(?:'[^']*'|"(?:[^"\\$`]|\\[\s\S])*"|\\[\s\S])/.exec(rest)?.[0];
    if (quoted !== undefined) {
      part += quoted;
      rest = rest.slice(quoted.length);
      continue;
    }
    const comment = part === '' || /\s$/.test(part) ? /^#[^\n]*/.exec(rest)?.[0] : undefined;
    if (comment !== undefined) {
      rest = rest.slice(comment.length);
      continue;
    }
    if (/^["'\\]/.test(rest) || nesting.test(rest)) return null;
    const directed = part === '' || /\s$/.test(part) || /^[<>&]/.test(rest) ? redirection.exec(rest)?.[0] : undefined;
    const operator = directed === undefined ? operators.exec(rest)?.[0] : undefined;
    if (directed?.startsWith('<')) readsInput = true;
    if (operator !== undefined) {
      parts.push({ command: part.trim(), readsInput });
      part = '';
      readsInput = operator === '|' || operator === '|&';
    } else if (directed === undefined) part += rest[0];
    rest = rest.slice((directed ?? operator ?? rest[0] ?? ' ').length);
  }
  const commands = [...parts, { command: part.trim(), readsInput }].filter(({ command }) => command !== '');
  return commands.some(({ command }) => shellWords.test(command)) ? null : commands;
}
