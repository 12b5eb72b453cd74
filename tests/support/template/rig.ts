/** A folder of templates on the real disk, made file by file. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Validated } from '../../../src/store/yaml-text.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';

export const templateWorld = createRealWorld();

export class TemplateFixture {
  readonly path = realpathSync(mkdtempSync(join(tmpdir(), 'cca template ')));

  at(...names: string[]): string {
    return join(this.path, ...names);
  }

  /** Writes a file with all folders above it; its absolute path. */
  write(name: string, content: string | Uint8Array): string {
    const path = this.at(name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    return path;
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** The value of something that must be without problems. */
export function valid<T>(checked: Validated<T>): T {
  if (!checked.ok) throw new Error(checked.problems.map(({ message }) => message).join('; '));
  return checked.value;
}

/** Every problem as `line:column message`, with the last name of its file where `named`. */
export function problemsIn(checked: Validated<unknown>): string[] {
  if (checked.ok) return [];
  return checked.problems.map(({ line, column, message }) => `${line}:${column} ${message}`);
}
