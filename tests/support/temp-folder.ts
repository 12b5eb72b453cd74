/** A folder for each test of a file, with an awkward name, removed after the test. */
import { afterEach, beforeEach } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Its path has spaces, quotes and non-ASCII letters. */
export function withTempFolder(): { readonly path: string } {
  let path = '';
  beforeEach(() => {
    path = mkdtempSync(join(tmpdir(), `cca world "ü" it's `));
  });
  afterEach(() => rmSync(path, { recursive: true, force: true }));
  return {
    get path() {
      return path;
    },
  };
}
