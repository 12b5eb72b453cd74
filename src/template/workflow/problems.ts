/** What is wrong with a workflow file: collected once each, however many sessions of a matrix meet it. */
import { quoted } from '../../core/id.ts';
import { joiners, unsafeCharacters, widthless } from '../../core/text.ts';
import type { Problem, YamlPath, YamlText } from '../../store/yaml-text.ts';
import { nearest } from '../nearest.ts';

/** More than anybody corrects at once. */
const problemsMax = 200;
/** Comparing words is slow; who mistyped hundreds of names needs no hint for each. */
const hintsMax = 100;
const hintWordsMax = 1_000;
const plainLengthMax = 100;

/** What the file holds becomes part of messages, and these go to a terminal. */
const invisible = unsafeCharacters(`\\t\\n${widthless}${joiners}`);
const messageLengthMax = 2_000;

/** The problem without characters that cannot be seen. */
export function harmless({ file, line, column, message, frame }: Problem): Problem {
  const spelled = (text: string) =>
    text.replace(invisible, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
  const short = message.length > messageLengthMax ? `${message.slice(0, messageLengthMax)}…` : message;
  const safe = { file: spelled(file), line, column, message: spelled(short) };
  return frame === undefined ? safe : { ...safe, frame: frame.map(spelled) };
}

export class Problems {
  readonly #yaml: YamlText;
  readonly #text: string;
  readonly #file: string;
  readonly #found = new Map<string, Problem>();
  #hints = 0;
  #left = 0;
  #reported = 0;

  constructor(yaml: YamlText, text: string, file: string) {
    this.#yaml = yaml;
    this.#text = text;
    this.#file = file;
  }

  /** How often something was found wrong, repetitions included. */
  get size(): number {
    return this.#reported;
  }

  get all(): readonly Problem[] {
    const sorted = [...this.#found.values()].sort(
      (a, b) => this.#compareFiles(a.file, b.file) || a.line - b.line || a.column - b.column,
    );
    if (this.#left === 0) return sorted;
    const message = `there are more problems than the ${problemsMax} that are shown`;
    return [...sorted, { file: this.#file, line: 1, column: 1, message }];
  }

  /** The workflow first, then the templates. */
  #compareFiles(a: string, b: string): number {
    if (a === b) return 0;
    return a === this.#file || (b !== this.#file && a < b) ? -1 : 1;
  }

  add(...problems: readonly Problem[]): void {
    for (const problem of problems.map(harmless)) {
      this.#reported += 1;
      const key = JSON.stringify([problem.file, problem.line, problem.column, problem.message]);
      if (this.#found.has(key)) continue;
      if (this.#found.size < problemsMax) this.#found.set(key, problem);
      else this.#left += 1;
    }
  }

  /** At the value under `path`, or at the nearest thing above it. */
  at(path: YamlPath, message: string): void {
    this.add(this.#yaml.problemAt(path, message));
  }

  /** At the key itself. */
  atKey(path: YamlPath, key: string, message: string): void {
    this.add(this.#yaml.problemAtKey(path, key, message));
  }

  /** At the `nth` (counted from 0) place in the text under `path` that is written as `source`. */
  atPlace(path: YamlPath, source: string, nth: number, message: string): void {
    if (this.#found.size === problemsMax) {
      this.#reported += 1;
      this.#left += 1;
      return;
    }
    let offset = this.#yaml.offsetOf(path);
    for (let seen = 0; offset !== null && seen <= nth; seen += 1) {
      const found = this.#text.indexOf(source, seen === 0 ? offset : offset + source.length);
      offset = found < 0 ? null : found;
    }
    // A text with escapes, or one that is folded, does not hold the place as it was written.
    if (offset === null) {
      this.at(path, message);
      return;
    }
    const before = this.#text.slice(0, offset);
    const lineStart = before.lastIndexOf('\n') + 1;
    this.add({ file: this.#file, line: before.split('\n').length, column: offset - lineStart + 1, message });
  }

  /** A number or a flag must say what it says: YAML reads 1.10 as 1.1. */
  checkPlain(path: YamlPath, value: unknown): void {
    if (typeof value !== 'number' && typeof value !== 'boolean') return;
    const offset = this.#yaml.offsetOf(path);
    if (offset === null) return;
    const written = /^[^\s,[\]{}#]*/.exec(this.#text.slice(offset, offset + plainLengthMax))?.[0] ?? '';
    if (/^[&!*]/.test(written) || written === String(value)) return;
    this.at(path, `${written} means ${String(value)} in YAML; put it into quotes, or write ${String(value)}`);
  }

  /** `; did you mean "x"?`, or nothing. */
  hint(word: string, known: Iterable<string>): string {
    this.#hints += 1;
    if (this.#hints > hintsMax) return '';
    const words: string[] = [];
    for (const one of known) {
      if (words.push(one) === hintWordsMax) break;
    }
    const near = nearest(word, words);
    return near === undefined ? '' : `; did you mean ${JSON.stringify(near)}?`;
  }
}

/** A copy with the keys that are known; each other one is a problem that begins with `where`. */
export function onlyKnown(
  given: Readonly<Record<string, unknown>>,
  path: YamlPath,
  where: string,
  known: readonly string[],
  problems: Problems,
): Record<string, unknown> {
  const kept: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(given)) {
    if (known.includes(key)) kept[key] = value;
    else problems.atKey(path, key, `${where} has no ${quoted(key)}${problems.hint(key, known)}`);
  }
  return kept;
}
