/**
 * Promises: whatever a runner loads on demand is loaded soon after its start, so that an update of the program during
 * the night meets none of it; and each of these modules can be loaded.
 */
import { expect, test } from 'bun:test';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { preloadModules } from '../../../src/runner/run-group.ts';

const source = join(import.meta.dir, '../../../src');
const list = 'runner/run-group.ts';

/** Needed before the first session starts, or when none does, where they are needed at all. */
const atOnce: ReadonlySet<string> = new Set(['runner/open-fleet.ts', 'runner/book-late.ts']);

/** Paths of the modules of ours that a file loads on demand, from src/. */
function loadedBy(file: string): string[] {
  const text = readFileSync(join(source, file), 'utf8');
  const calls = text.matchAll(/\b(?:import|require)\('(\.[^']+)'\)(?!\.)/g);
  return [...calls].map(([, path = '']) => normalize(join(dirname(file), path)));
}

test('nothing that a runner loads on demand is missing in the list', () => {
  const known = new Set(loadedBy(list));
  const files = globSync(['{runner,context,core,claude,store,git,template,world}/**/*.ts'], { cwd: source });
  const loading = files.filter((file) => file !== list);
  const missing = loading.flatMap((file) => loadedBy(file).filter((path) => !known.has(path) && !atOnce.has(path)));
  expect(missing).toEqual([]);
  expect(known.size).toBeGreaterThan(5);
});

test('each of them can be loaded', async () => {
  for (const path of loadedBy(list)) expect(Object.keys(await import(join(source, path)))).not.toEqual([]);
  await preloadModules();
});
