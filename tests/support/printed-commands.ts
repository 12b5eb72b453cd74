/** Checks that each command advised during tests is accepted by the program exactly as printed. */
import { parseArguments } from './parse-command.ts';

/** After its purpose, to the end of the line; a sequence is typed in one line. */
const advised = /(?:(?<!Usage): |&& )claude-code-agent ([a-z]+ [^\n`·"]*)/g;
/** One shell word as `shellWord` writes it. */
const shellWords = /(?:'[^']*'|\\'|[^\s'\\])+/g;
const seen = new Set<string>();

/** Throws if `text` contains a command that the program does not accept. */
export async function checkPrinted(text: string): Promise<void> {
  for (const [, line = ''] of text.matchAll(advised)) {
    for (const part of line.split(' && claude-code-agent ')) {
      if (seen.has(part)) continue;
      seen.add(part);
      const words = (part.match(shellWords) ?? []).map((word) => word.replaceAll(/'([^']*)'|\\(')/g, '$1$2'));
      await parseArguments(words).catch((error: unknown) => {
        throw new Error(`This was advised, and is not taken: claude-code-agent ${part}\n${error}\nIn: ${text}`);
      });
    }
  }
}
