/** Where a prompt comes from: the command line, a file, or standard input. Checked before anything is written. */
import { resolve } from 'node:path';
import { fail, ok, type Result } from '../core/failure.ts';
import type { Context } from './context.ts';

const promptBytesMax = 1024 * 1024;

export interface PromptOptions {
  readonly prompt?: string | undefined;
  readonly promptFile?: string | undefined;
}

/** The prompt as the user gave it. Fails with `usage` when there is none, two, or one that cannot be sent. */
export async function readPrompt(context: Context, given: PromptOptions): Promise<Result<string>> {
  if (given.prompt !== undefined && given.promptFile !== undefined) {
    return fail('usage', 'Both --prompt and --prompt-file were given.', 'Give one of them.');
  }
  if (given.promptFile !== undefined) return readPromptFile(context, given.promptFile);
  if (given.prompt === '-') return readStandardInput(context);
  if (given.prompt !== undefined) return checkPrompt(given.prompt, '--prompt');
  return fail(
    'usage',
    'The session has no task.',
    'Give it with --prompt TEXT, --prompt-file FILE or --prompt - (stdin).',
  );
}

/** A text given on the command line, or on standard input when it is "-". `source` begins the sentence of a refusal. */
export async function readText(context: Context, text: string, source: string): Promise<Result<string>> {
  return text === '-' ? readStandardInput(context) : checkPrompt(text, source);
}

function readPromptFile(context: Context, file: string): Result<string> {
  const path = resolve(context.cwd, file);
  const info = context.world.files.info(path);
  if (info === null || info.kind === 'folder') {
    const what = info === null ? 'does not exist' : 'is a folder';
    return fail('usage', `The prompt file ${path} ${what}.`, 'Give the path of a text file to --prompt-file.');
  }
  if (info.size > promptBytesMax) return tooLong(`The prompt file ${path}`);
  return checkPrompt(context.world.files.readText(path) ?? '', `The prompt file ${path}`);
}

async function readStandardInput(context: Context): Promise<Result<string>> {
  if (context.stdinIsTerminal) context.stderr.line('Type the prompt, then press Ctrl-D:');
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of Bun.stdin.stream()) {
    parts.push(part);
    size += part.byteLength;
    if (size > promptBytesMax) return tooLong('The prompt on standard input');
  }
  return checkPrompt(Buffer.concat(parts).toString('utf8'), 'The prompt on standard input');
}

function checkPrompt(text: string, source: string): Result<string> {
  if (text.trim() === '') return fail('usage', `${source} is blank.`, 'Say what the session is to do.');
  if (text.includes('\0')) {
    return fail('usage', `${source} contains a NUL character.`, 'Give plain text; a NUL is a sign of a binary file.');
  }
  return Buffer.byteLength(text) > promptBytesMax ? tooLong(source) : ok(text);
}

function tooLong(source: string): Result<never> {
  return fail(
    'usage',
    `${source} is longer than 1 MiB.`,
    'Put the material into the project and name its path instead.',
  );
}
