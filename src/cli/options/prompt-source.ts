/** Texts, prompts and workflows from the command line, a file or standard input. Checked before anything is written. */
import { resolve } from 'node:path';
import type { NewGroup } from '../../app/create/new-group.ts';
import { readWorkflow } from '../../app/create/workflow-group.ts';
import { briefPath, lookAt } from '../../app/path-argument.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { promptBytesMax, promptProblem } from '../../core/setting-values.ts';
import { yamlBytesMax } from '../../store/yaml-text.ts';
import { decodeText, readTextFile, sizeText } from '../../template/text-file.ts';
import type { Context } from '../context.ts';

export interface PromptOptions {
  readonly prompt?: string | undefined;
  readonly promptFile?: string | undefined;
}

export function promptSource(context: Context, given: PromptOptions): (() => Promise<Result<string>>) | undefined {
  const { prompt, promptFile } = given;
  if (prompt !== undefined && promptFile !== undefined) {
    return async () => fail('usage', '--prompt and --prompt-file cannot be combined.', 'Give one of them.');
  }
  if (promptFile !== undefined) {
    return async () => (promptFile === standardInput ? readPipedPrompt(context) : readPromptFile(context, promptFile));
  }
  return prompt === undefined ? undefined : () => readText(context, prompt, 'The text of --prompt');
}

export async function readText(context: Context, text: string, source: string): Promise<Result<string>> {
  return text === standardInput ? readPipedPrompt(context) : checkPrompt(text, source);
}

function readPromptFile(context: Context, file: string): Result<string> {
  const next = 'Give the path of a text file to --prompt-file.';
  if (file === '') return fail('usage', 'The path of the prompt file is empty.', next);
  const path = resolve(context.cwd, file);
  return readPrompt(context, path, `The prompt file ${briefPath(path)}`, next);
}

export function readPrompt(context: Context, path: string, source: string, next: string): Result<string> {
  const { world } = context;
  const found = lookAt(world.files, path);
  // A pipe, such as <(command) in bash, has no size and cannot be seeked. Read it to its end.
  if (found.ok && found.value === 'fifo') return checkPrompt(world.files.readText(path, 'pipe') ?? '', source);
  const read = readTextFile(world, path, promptBytesMax);
  return read.ok ? checkPrompt(read.text, source) : fail('usage', `${source} ${read.trouble}.`, next);
}

async function readPipedPrompt(context: Context): Promise<Result<string>> {
  const bytes = await readStandardInput(context, 'The prompt', promptBytesMax);
  if (!bytes.ok) return bytes;
  const source = 'The prompt on standard input';
  const text = decodeText(bytes.value);
  return text === null ? fail('usage', `${source} is not UTF-8 text.`, plainText) : checkPrompt(text, source);
}

const plainText = 'Give plain text in UTF-8.';

function checkPrompt(text: string, source: string): Result<string> {
  if (Buffer.byteLength(text) > promptBytesMax) {
    const next = 'Put the material into the project and refer to its path.';
    return fail('usage', `${source} is longer than 1 MiB.`, next);
  }
  const problem = promptProblem(text);
  if (problem === null) return ok(text);
  return fail(
    'usage',
    `${source} ${problem}.`,
    text.trim() === '' ? 'Describe what the session should do.' : plainText,
  );
}

export const standardInput = '-';

export async function readStandardInput(context: Context, what: string, bytesMax: number): Promise<Result<Uint8Array>> {
  if (context.stdinIsTerminal) context.stderr.line(`Type ${what.toLowerCase()}, then press Ctrl-D:`);
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of Bun.stdin.stream()) {
    parts.push(part);
    size += part.byteLength;
    if (size > bytesMax) {
      const message = `${what} on standard input is longer than ${sizeText(bytesMax)}.`;
      return fail('usage', message, 'Put the material into the project and refer to its path.');
    }
  }
  return ok(Buffer.concat(parts));
}

export async function readPipedYaml(context: Context, what = 'The workflow'): Promise<Result<string>> {
  const bytes = await readStandardInput(context, what, yamlBytesMax);
  if (!bytes.ok) return bytes;
  const text = decodeText(bytes.value);
  const isText = text !== null && !text.includes('\0');
  return isText ? ok(text) : fail('usage', `${what} on standard input is not UTF-8 text.`, 'Give a YAML file.');
}

/** `pairs` are the values of `--var`; those in `alsoKnown` belong to other templates. */
export async function readNamedWorkflow(
  context: Context,
  reference: string,
  pairs: readonly string[],
  alsoKnown: readonly string[] = [],
): Promise<Result<NewGroup>> {
  if (reference !== standardInput) return readWorkflow(context, reference, pairs, alsoKnown);
  const text = await readPipedYaml(context);
  return text.ok ? readWorkflow(context, { text: text.value }, pairs, alsoKnown) : text;
}
