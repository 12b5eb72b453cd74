/** The problems of a workflow file: each once, however many sessions of a matrix have it. */
import type { Problem, YamlPath, YamlText } from '../../store/yaml-text.ts';

const problemsMax = 200;

export class Problems {
  readonly #yaml: YamlText;
  readonly #text: string;
  readonly #file: string;
  readonly #found = new Map<string, Problem>();
  #reported = 0;

  constructor(yaml: YamlText, text: string, file: string) {
    this.#yaml = yaml;
    this.#text = text;
    this.#file = file;
  }

  /** Number of problems found, including repetitions. */
  get size(): number {
    return this.#reported;
  }

  /** Those of the workflow first, then those of templates. */
  get all(): readonly Problem[] {
    const rank = ({ file }: Problem) => (file === this.#file ? '' : file);
    const order = (a: Problem, b: Problem) => rank(a).localeCompare(rank(b)) || a.line - b.line || a.column - b.column;
    return [...this.#found.values()].sort(order).slice(0, problemsMax);
  }

  add(...problems: readonly Problem[]): void {
    this.#reported += problems.length;
    for (const problem of problems) this.#found.set(JSON.stringify(problem), problem);
  }

  /** At the value under `path`, or at its nearest existing parent. */
  at(path: YamlPath, message: string): void {
    this.add(this.#yaml.problemAt(path, message));
  }

  atKey(path: YamlPath, key: string, message: string): void {
    this.add(this.#yaml.problemAtKey(path, key, message));
  }

  /** At the first reference in the text under `path` that is written as `source`. */
  atPlace(path: YamlPath, source: string, message: string): void {
    const offset = this.#text.indexOf(source, this.#yaml.scalarAt(path)?.offset ?? this.#text.length);
    // A text with escapes, or a folded one, does not contain the reference as written.
    if (offset < 0) this.at(path, message);
    else {
      const before = this.#text.slice(0, offset).split('\n');
      this.add({ file: this.#file, line: before.length, column: (before.at(-1) ?? '').length + 1, message });
    }
  }

  /** A number or a flag must be unambiguous: YAML reads 1.10 as 1.1. */
  checkPlain(path: YamlPath, value: unknown): void {
    const { isPlain = false, source = '' } = this.#yaml.scalarAt(path) ?? {};
    if (!isPlain || typeof value === 'string' || source === String(value)) return;
    this.at(path, `${source} means ${String(value)} in YAML; quote it, or write ${String(value)}`);
  }
}
