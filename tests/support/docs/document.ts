/** Finds the commands and files of a Markdown document, so that tests can run them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkoutRoot } from '../cli.ts';

/** One command of the document, with its comment. */
export interface TypedCommand {
  readonly line: number;
  readonly text: string;
  /** From an HTML comment: prepares what a reader of the page already has. */
  readonly isUnseen: boolean;
}

/** A fenced block that is marked as not run by the tests. */
export interface Exception {
  readonly line: number;
  readonly why: string;
  readonly commands: readonly string[];
}

export interface Document {
  readonly name: string;
  readonly text: string;
  readonly commands: readonly TypedCommand[];
  readonly exceptions: readonly Exception[];
  /** Contents by file name, from blocks that a comment `file: NAME` precedes. */
  readonly files: ReadonlyMap<string, string>;
  /** Lines that look like a command, in blocks that the tests do not run. */
  readonly overlooked: readonly string[];
}

/** A fenced block, or a comment with commands. */
interface Block {
  readonly kind: 'unseen' | (string & {});
  readonly line: number;
  readonly lines: readonly string[];
  /** The HTML comment directly above the block. */
  readonly note: string;
}

/** The README and everything in docs/. */
export function documents(): Document[] {
  const pages = readdirSync(join(checkoutRoot, 'docs')).filter((name) => name.endsWith('.md'));
  return ['README.md', ...pages.toSorted().map((name) => `docs/${name}`)].map(readDocument);
}

export function readDocument(name: string): Document {
  const text = readFileSync(join(checkoutRoot, name), 'utf8');
  const commands: TypedCommand[] = [];
  const exceptions: Exception[] = [];
  const files = new Map<string, string>();
  const overlooked: string[] = [];
  for (const { kind, line, lines, note } of blocksOf(text)) {
    if (kind === 'unseen') {
      commands.push(...commandsOf(lines, line + 1, true));
      continue;
    }
    const file = /^file: (\S+)$/.exec(note)?.[1];
    if (file !== undefined) files.set(file, `${lines.join('\n')}\n`);
    if (kind === 'sh') {
      const shown = commandsOf(lines, line + 1, false);
      const why = /^not typed: (.+)$/s.exec(note)?.[1];
      if (why === undefined) commands.push(...shown);
      else exceptions.push({ line, why, commands: shown.map((command) => command.text) });
      continue;
    }
    // Steps of a CI workflow.
    const steps = lines.map((one) => /^- run: (.*)$/.exec(one)?.[1] ?? '');
    commands.push(...commandsOf(steps, line + 1, false));
    overlooked.push(...lines.filter((one) => /^(?:\$ )?(?:cca|claude-code-agent|npm|git) /.test(one)));
  }
  return { name, text, commands, exceptions, files, overlooked };
}

function blocksOf(text: string): Block[] {
  const blocks: Block[] = [];
  const lines = text.split('\n');
  let note = '';
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? '';
    const opening = /^( *)```(\w*)/.exec(line);
    if (opening !== null) {
      const end = lines.findIndex((other, index) => index > at && other.trim() === '```');
      const body = lines.slice(at + 1, end).map((one) => one.slice(opening[1]?.length));
      blocks.push({ kind: opening[2] ?? '', line: at + 1, lines: body, note });
      note = '';
      at = end;
    } else if (line.startsWith('<!--')) {
      const end = lines.findIndex((other, index) => index >= at && other.endsWith('-->'));
      if (line === '<!-- typed before:') {
        blocks.push({ kind: 'unseen', line: at + 1, lines: lines.slice(at + 1, end), note: '' });
      } else
        note = lines
          .slice(at, end + 1)
          .join('\n')
          .slice('<!--'.length, -'-->'.length)
          .trim();
      at = end;
    } else if (line.trim() !== '') note = '';
  }
  return blocks;
}

/** Joins the lines of a command that spans several lines. */
function commandsOf(lines: readonly string[], first: number, isUnseen: boolean): TypedCommand[] {
  const commands: TypedCommand[] = [];
  let begun = '';
  let start = first;
  for (const [index, line] of lines.entries()) {
    if (begun === '') start = first + index;
    begun += `${line}\n`;
    if (line.endsWith('\\') || !isWhole(begun)) continue;
    if (begun.replace(/^\s*#.*$/gm, '').trim() !== '') commands.push({ line: start, text: begun.trim(), isUnseen });
    begun = '';
  }
  if (begun !== '') throw new Error(`The shell cannot parse line ${start}: ${begun}`);
  return commands;
}

function isWhole(text: string): boolean {
  if (!/['"`$(]/.test(text)) return true;
  return Bun.spawnSync(['sh', '-n'], { stdin: Buffer.from(text), stderr: 'ignore' }).success;
}
