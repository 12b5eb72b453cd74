/**
 * Promises: modules that a runner loads on demand are preloaded soon after its start, so that an update of the
 * program does not affect it.
 */
import { expect, test } from 'bun:test';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { preloadModules } from '../../../src/runner/run-group.ts';

const source = join(import.meta.dir, '../../../src');
const list = 'runner/run-group.ts';

/** Needed before the first session starts, only in runs without a session, or only in a hook's own process. */
const atOnce: ReadonlySet<string> = new Set([
  'runner/open-fleet.ts',
  'runner/open-fleet.ts',
  'context/handover/note.ts',
]);

/** Paths below src/ of the project's modules that a file imports on demand. */
function loadedBy(file: string): string[] {
  const text = readFileSync(join(source, file), 'utf8');
  const calls = text.matchAll(/\b(?:import|require)\('(\.[^']+)'\)(?!\.)/g);
  return [...calls].map(([, path = '']) => normalize(join(dirname(file), path)));
}

test('every module that a runner imports on demand is in the preload list', () => {
  const known = new Set(loadedBy(list));
  const files = globSync(['{runner,worker,context,core,claude,store,git,template,world}/**/*.ts'], { cwd: source });
  const loading = files.filter((file) => file !== list);
  const missing = loading.flatMap((file) => loadedBy(file).filter((path) => !known.has(path) && !atOnce.has(path)));
  expect(missing).toEqual([]);
  expect(known.size).toBeGreaterThan(0);
});

test('every module of the preload list can be loaded', async () => {
  for (const path of loadedBy(list)) expect(Object.keys(await import(join(source, path)))).not.toEqual([]);
  await preloadModules();
});
