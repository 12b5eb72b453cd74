/**
 * A transcript as claude prints it, made up from a seed: the kinds of lines of a working session and their sizes. Tool
 * results carry their text twice, as claude's do, and some lines hold characters of more than one byte.
 */
import { seeded } from './seeded.ts';

const words = (
  'the runner reads a line of the log and folds it into its state const value = parse(line); if (!value.ok) return ' +
  'import { join } from "node:path"; export function // errors are told as a sentence with the next step\n  \t=> {}'
).split(' ');
const wideWords = ['prüfen', 'größer', '→', '“quoted”', '✓', '日本語', '🚀', '├──'];

const pieceBytes = 4_000_000;

export class StreamWriter {
  readonly #random: () => number;
  readonly #session = '0b5a6c1e-52a0-4d0e-9e0b-6f2f5d3c9a11';
  #count = 0;

  constructor(seed: number) {
    this.#random = seeded(seed);
  }

  /** The first line. */
  init(): string {
    const tools = ['Task', 'Bash', 'Edit', 'Glob', 'Grep', 'Read', 'Skill', 'TodoWrite', 'WebFetch', 'Write'];
    const head = { type: 'system', subtype: 'init', cwd: '/projects/one', session_id: this.#session, tools };
    return JSON.stringify({ ...head, model: 'claude-opus-4-8', permissionMode: 'acceptEdits' });
  }

  /** The lines of one step of a session: thinking or text, a tool call, its result. */
  step(): string[] {
    const message = `msg_${this.#next()}`;
    const tool = `toolu_${this.#next()}`;
    const luck = this.#random();
    const spoken =
      luck < 0.3
        ? { type: 'thinking', thinking: this.#text(1_500), signature: 'Er'.repeat(300) }
        : { type: 'text', text: this.#text(300) };
    const [name, input, result] = this.#call();
    return [
      this.#assistant(message, spoken),
      this.#assistant(message, { type: 'tool_use', id: tool, name, input }),
      this.#user(tool, result),
    ];
  }

  /** One tool result with a text of about `chars` characters (twice on the line). */
  bigResult(chars: number): string {
    const text = this.#text(chars);
    return this.#user(`toolu_${this.#next()}`, { content: text, extra: { stdout: text, stderr: '' } });
  }

  #call(): [string, object, { content: string; extra: object }] {
    const luck = this.#random();
    if (luck < 0.4) {
      const stdout = this.#text(200 + this.#random() ** 3 * 12_000);
      const extra = { stdout, stderr: '', interrupted: false, isImage: false };
      return ['Bash', { command: this.#text(80), description: this.#text(40) }, { content: stdout, extra }];
    }
    const path = `/projects/one/src/part-${Math.floor(this.#random() * 100)}.ts`;
    const file = this.#text(1_000 + this.#random() ** 2 * 25_000);
    if (luck < 0.7) {
      const numbered = file.replaceAll('\n', '\n    12→');
      const extra = { type: 'text', file: { filePath: path, content: file, numLines: 200, startLine: 1 } };
      return ['Read', { file_path: path }, { content: numbered, extra }];
    }
    const edit = { file_path: path, old_string: this.#text(300), new_string: this.#text(400) };
    const patch = [{ oldStart: 1, oldLines: 9, newStart: 1, newLines: 9, lines: edit.new_string.split('\n') }];
    const extra = { ...edit, originalFile: file, structuredPatch: patch, userModified: false };
    return ['Edit', edit, { content: `The file ${path} has been updated.`, extra }];
  }

  #assistant(id: string, block: object): string {
    const usage = { input_tokens: 4, output_tokens: 1, cache_creation_input_tokens: 900, cache_read_input_tokens: 9e4 };
    const head = { id, type: 'message', role: 'assistant', model: 'claude-opus-4-8' };
    const message = { ...head, content: [block], stop_reason: null, stop_sequence: null, usage };
    return JSON.stringify({ type: 'assistant', message, ...this.#tail(), request_id: `req_${id}` });
  }

  #user(id: string, { content, extra }: { content: string; extra: object }): string {
    const message = { role: 'user', content: [{ tool_use_id: id, type: 'tool_result', content, is_error: false }] };
    const at = '2026-01-02T03:04:05.678Z';
    return JSON.stringify({ type: 'user', message, ...this.#tail(), timestamp: at, tool_use_result: extra });
  }

  #tail(): object {
    const uuid = `f5c8e740-6114-461b-89bb-${String(this.#next()).padStart(12, '0')}`;
    return { parent_tool_use_id: null, session_id: this.#session, uuid };
  }

  #next(): number {
    this.#count += 1;
    return this.#count;
  }

  /** Code-like text; every sixth one with characters of more than one byte. */
  #text(chars: number): string {
    const wide = this.#random() < 0.17;
    const parts: string[] = [];
    for (let length = 0; length < chars; ) {
      const from = wide && this.#random() < 0.05 ? wideWords : words;
      const word = from[Math.floor(this.#random() * from.length)] as string;
      const part = this.#random() < 0.1 ? `${word}\n` : `${word} `;
      parts.push(part);
      length += part.length;
    }
    return parts.join('');
  }
}

/** Calls `write` with the pieces of a transcript of at least `bytes` bytes; returns its number of lines. */
export function writeStream(bytes: number, write: (piece: string) => void): number {
  const writer = new StreamWriter(1);
  const lines: string[] = [];
  let size = 0;
  while (size < Math.min(bytes, pieceBytes)) {
    for (const line of writer.step()) {
      lines.push(line);
      size += Buffer.byteLength(line) + 1;
    }
  }
  // The steps of one piece are repeated: making text takes its time.
  const piece = `${lines.join('\n')}\n`;
  const times = Math.ceil(bytes / size);
  write(`${writer.init()}\n`);
  for (let count = 0; count < times; count += 1) write(piece);
  return 1 + lines.length * times;
}
