/** A transcript as a person reads it: what claude said, each tool call on one line, what came of it, the results. */
import { type ClaudeMessage, parseLine, type ResultMessage } from '../claude/messages.ts';
import { type AttemptStream, emptyStream, foldMessage } from '../claude/stream.ts';
import { formatDuration, formatMoney, formatTokens, plural, type Style } from '../report/format.ts';
import { safeLine, safeText } from '../report/terminal-text.ts';

const lineColumns = 160;

/** Turns stream-json lines into lines for people; to be given all lines of a transcript in order. */
export class TranscriptRenderer {
  readonly #style: Style;
  #stream: AttemptStream = emptyStream();
  #lastText = '';

  constructor(style: Style) {
    this.#style = style;
  }

  /** The lines for people that this line of the transcript gives; often none. */
  render(line: string): string[] {
    const message = parseLine(line);
    // Another process began: what it does has nothing to do with tools that an earlier one left open.
    if (message.kind === 'init') this.#stream = emptyStream();
    foldMessage(this.#stream, message);
    return this.#describe(message);
  }

  #describe(message: ClaudeMessage): string[] {
    switch (message.kind) {
      case 'init':
        return [this.#rule(`claude ${message.claudeVersion ?? ''} ${message.model ?? ''}`)];
      case 'assistant':
        return message.blocks.flatMap((block) => {
          if (block.kind === 'text') return this.#text(block.text, message.parentToolUseId);
          if (block.kind !== 'tool-use') return [];
          const tool = this.#stream.openTools.get(block.id);
          return [`${indent(message.parentToolUseId)}${this.#style('accent', '>')} ${call(tool, block.name)}`];
        });
      case 'user':
        return message.toolResults.map((result) => {
          const mark = result.isError ? this.#style('bad', '  x') : this.#style('dim', '  =');
          return `${indent(message.parentToolUseId)}${mark} ${firstLine(result.text)}`;
        });
      case 'result':
        return this.#result(message);
      case 'api-retry':
        return [
          this.#style('warn', `! the API did not answer (${safeLine(message.error, 60)}), try ${message.attempt}`),
        ];
      case 'rate-limit':
        return message.status === 'rejected' ? [this.#style('warn', '! a usage limit was reached')] : [];
      case 'compact-boundary':
        return [this.#rule('the conversation was compacted')];
      case 'malformed':
        return [this.#style('warn', `! unreadable line: ${safeLine(message.text, lineColumns)}`)];
      default:
        return [];
    }
  }

  #text(text: string, parent: string | undefined): string[] {
    const clean = safeText(text).trim();
    if (clean === '') return [];
    if (parent === undefined) this.#lastText = clean;
    return clean.split('\n').map((line) => `${indent(parent)}${line}`);
  }

  #result(message: ResultMessage): string[] {
    const ended = message.isError ? this.#style('bad', 'failed') : this.#style('good', 'done');
    const parts = [
      formatMoney(message.costUsd),
      formatTokens(message.tokens),
      plural(message.numTurns, 'turn'),
      formatDuration(message.durationMs),
    ];
    const said = safeText(message.result ?? '').trim();
    const errors = message.errors.map((error) => this.#style('bad', `! ${safeLine(error, lineColumns)}`));
    // As a rule the result repeats what claude said last.
    const text = said === '' || said === this.#lastText ? [] : said.split('\n');
    return [...text, ...errors, `${this.#style('dim', '--')} ${ended}: ${parts.join(', ')}`];
  }

  #rule(text: string): string {
    return this.#style('dim', `-- ${safeLine(text, lineColumns)}`);
  }
}

function call(tool: { readonly name: string; readonly target: string } | undefined, name: string): string {
  return safeLine(tool === undefined ? name : `${tool.name} ${tool.target}`, lineColumns);
}

/** The first line that says something, with a sign when more follow. */
function firstLine(text: string): string {
  const [first = '(no output)', ...rest] = text.split('\n').filter((line) => line.trim() !== '');
  return `${safeLine(first, lineColumns)}${rest.length > 0 ? ' …' : ''}`;
}

/** What a sub-agent does is set off. */
function indent(parentToolUseId: string | undefined): string {
  return parentToolUseId === undefined ? '' : '    ';
}
