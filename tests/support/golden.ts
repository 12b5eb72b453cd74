/** Texts kept next to the tests. UPDATE_GOLDEN=1 rewrites them, to be read before they are committed. */
import { expect } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export function expectGolden(folder: string, name: string, text: string): void {
  const path = join(folder, `${name}.txt`);
  if (process.env.UPDATE_GOLDEN === '1') {
    mkdirSync(folder, { recursive: true });
    writeFileSync(path, text);
  }
  expect(text).toBe(existsSync(path) ? readFileSync(path, 'utf8') : `${path} is missing`);
}
