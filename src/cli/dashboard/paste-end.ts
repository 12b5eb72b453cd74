/** Keys for ink, which waits for the end of a paste without limit and would not even hear Ctrl-C until it comes. */

const pasteStart = '\u001b[200~';
const pasteEnd = '\u001b[201~';
const ctrlC = '\u0003';

/** The terminal's input, in which Ctrl-C ends a paste that was cut off. */
export function withPasteEnds(stdin: typeof process.stdin): typeof process.stdin {
  const pastes = new Pastes();
  const read = (size?: number): unknown => {
    const chunk: unknown = stdin.read(size);
    return typeof chunk === 'string' ? pastes.take(chunk) : chunk;
  };
  return new Proxy(stdin, {
    get(target, name) {
      if (name === 'read') return read;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

export class Pastes {
  #isOpen = false;
  /** A mark may come in two parts. */
  #before = '';

  /** What was typed or pasted, with the end of a paste put before a Ctrl-C that comes last in the middle of one. */
  take(chunk: string): string {
    const text = this.#before + chunk;
    const [begin, end] = [text.lastIndexOf(pasteStart), text.lastIndexOf(pasteEnd)];
    if (begin !== end) this.#isOpen = begin > end;
    this.#before = text.slice(1 - pasteStart.length);
    // Terminals take control characters out of what is pasted, so this one was pressed.
    if (!this.#isOpen || !chunk.endsWith(ctrlC)) return chunk;
    this.#isOpen = false;
    return `${chunk.slice(0, -1)}${pasteEnd}${ctrlC}`;
  }
}
