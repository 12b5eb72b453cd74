/**
 * stdout of a virtual claude: a file opened for append, into which lines are written whole, in pieces, late or never.
 */
import type { SpawnOptions } from '../../../src/system/world.ts';
import type { ClaudeBook } from './books.ts';
import type { Seeded } from './seeded.ts';
import type { FileNode } from './virtual-disk.ts';
import type { VirtualMachine } from './virtual-machine.ts';

interface Piece {
  readonly bytes: Uint8Array;
  /** Called with the file's size after the last piece of a completely written line. */
  readonly onWritten: ((end: number) => void) | null;
}

const encoder = new TextEncoder();

export class ClaudeOutput {
  inPieces = false;
  readonly #machine: VirtualMachine;
  readonly #book: ClaudeBook;
  readonly #path: string;
  readonly #isSynced: boolean;
  readonly #luck: Seeded;
  #pieces: Piece[] = [];
  #isWriting = false;
  #isLineBroken = false;
  #isLineStart = true;
  #whenWritten: (() => void) | null = null;

  constructor(machine: VirtualMachine, book: ClaudeBook, options: SpawnOptions, luck: Seeded) {
    this.#machine = machine;
    this.#book = book;
    this.#path = options.stdoutFile;
    this.#isSynced = options.syncsStdout === true;
    this.#luck = luck;
  }

  print(line: object, onWritten: (end: number) => void): void {
    const bytes = encoder.encode(`${JSON.stringify(line)}\n`);
    // Split anywhere, even in the middle of a character.
    const at = this.inPieces ? this.#luck.int(1, bytes.length - 2) : bytes.length;
    if (at < bytes.length) this.#pieces.push({ bytes: bytes.subarray(0, at), onWritten: null });
    this.#pieces.push({ bytes: bytes.subarray(at === bytes.length ? 0 : at), onWritten });
    if (!this.inPieces && this.#pieces.length === 1) this.#write();
    else this.#writeLater();
  }

  /** Calls `action` as soon as nothing is pending. */
  whenWritten(action: () => void): void {
    if (this.#pieces.length === 0) action();
    else this.#whenWritten = action;
  }

  #writeLater(): void {
    if (this.#isWriting) return;
    this.#isWriting = true;
    this.#machine.timeline.schedule(this.#luck.delay(5, 700), 'writes a piece', this.#book.process, () => {
      this.#isWriting = false;
      this.#write();
      if (this.#pieces.length > 0) this.#writeLater();
      else this.#whenWritten?.();
    });
  }

  #write(): void {
    const piece = this.#pieces.shift();
    if (piece === undefined) return;
    // A partial line left by a full disk has no newline, so this one is joined to it.
    if (this.#isLineStart && !endsWithLine(this.#machine.disk.file(this.#path))) this.#isLineBroken = true;
    this.#isLineStart = piece.onWritten !== null;
    const end = this.#machine.appendQuietly(this.#path, piece.bytes, this.#isSynced);
    if (end === null) this.#isLineBroken = true;
    else this.#book.printedBytes += piece.bytes.length;
    if (piece.onWritten === null) return;
    if (end !== null && !this.#isLineBroken) piece.onWritten(end);
    this.#isLineBroken = false;
  }
}

function endsWithLine(file: FileNode | null): boolean {
  return file === null || file.size === 0 || file.read(file.size - 1, 1)[0] === 10;
}
