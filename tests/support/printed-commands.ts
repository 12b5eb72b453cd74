/** Each command that the program advises while tests run is one that it takes, as it stands where it is printed. */
import { parseCommand } from './parse-command.ts';

/** After what it is for, to the end of the line; a sequence is typed in one. */
const advised = /(?:(?<!Usage): |&& )claude-code-agent ([a-z]+ [^\n`·"]*)/g;
/** What a shell takes for one word, as `shellWord` writes it. */
const shellWords = /(?:'[^']*'|\\'|[^\s'\\])+/g;
const seen = new Set<string>();

/** Throws where a command in `text` is one that the program does not take. */
export async function checkPrinted(text: string): Promise<void> {
  for (const [, line = ''] of text.matchAll(advised)) {
    for (const part of line.split(' && claude-code-agent ')) {
      if (seen.has(part)) continue;
      seen.add(part);
      const words = (part.match(shellWords) ?? []).map((word) => word.replaceAll(/'([^']*)'|\\(')/g, '$1$2'));
      await parseCommand(words).catch((error: unknown) => {
        throw new Error(`This was advised, and is not taken: claude-code-agent ${part}\n${error}\nIn: ${text}`);
      });
    }
  }
}
