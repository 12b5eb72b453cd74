/** What is piped in where the name of a file could stand: `-`. */
import { fail, ok, type Result } from '../../core/failure.ts';
import { yamlBytesMax } from '../../store/yaml-text.ts';
import { sizeText, textOf } from '../../template/text-file.ts';
import type { Context } from '../context.ts';

/** In the place of the name of a file. */
export const standardInput = '-';

/** `what` is said of it, such as "The prompt". Fails with `usage` when it is longer than `bytesMax`. */
export async function readStandardInput(context: Context, what: string, bytesMax: number): Promise<Result<Uint8Array>> {
  if (context.stdinIsTerminal) context.stderr.line(`Type ${what.toLowerCase()}, then press Ctrl-D:`);
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of Bun.stdin.stream()) {
    parts.push(part);
    size += part.byteLength;
    if (size > bytesMax) {
      const message = `${what} on standard input is longer than ${sizeText(bytesMax)}.`;
      return fail('usage', message, 'Put the material into the project and name its path instead.');
    }
  }
  return ok(Buffer.concat(parts));
}

/** A workflow, or a script, from there; YAML files are text without NUL characters. */
export async function readPipedYaml(context: Context, what = 'The workflow'): Promise<Result<string>> {
  const bytes = await readStandardInput(context, what, yamlBytesMax);
  if (!bytes.ok) return bytes;
  const text = textOf(bytes.value);
  const isText = text !== null && !text.includes('\0');
  return isText ? ok(text) : fail('usage', `${what} on standard input is no text in UTF-8.`, 'Give a YAML file.');
}
