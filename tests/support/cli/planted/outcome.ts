/** What a session was asked for and what it left; made by hand, without regard to how the review ranks it. */
import type { FileTree } from '../../git/repository.ts';

export interface PlantedOutcome {
  readonly name: string;
  readonly prompt: string;
  readonly said?: string;
  readonly tree: FileTree;
  readonly change?: (folder: string) => void;
  readonly accept?: string;
  readonly harm?: string;
}

/** The commits of a repository, oldest first, and the outcomes of sessions that started from the last. */
export interface Plot {
  readonly commits: readonly FileTree[];
  readonly outcomes: readonly PlantedOutcome[];
}

type Texts = Readonly<Record<string, string>>;

/** The file with each old text replaced by the new one that follows it. */
export function edited(texts: Texts, path: string, ...pairs: readonly string[]): string {
  let text = texts[path] ?? '';
  for (let index = 0; index < pairs.length; index += 2) {
    const [from = '', to = ''] = pairs.slice(index);
    if (!text.includes(from)) throw new Error(`${path} does not have ${from}`);
    text = text.replace(from, () => to);
  }
  return text;
}

export const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;
