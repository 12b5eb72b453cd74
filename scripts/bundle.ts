/**
 * Makes what is published in the place of the sources and of the packages they need: bundle.ts [FOLDER], default
 * dist/program. Bun runs it nearly as fast as what is compiled, and it has a fiftieth of that size.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { bundledParts } from '../src/system/own-program.ts';
import { checkBuilt, forEachForm } from './build.ts';

const root = join(import.meta.dir, '..');
const [folder = join(root, 'dist', 'program')] = process.argv.slice(2);
const target = resolve(folder);
mkdirSync(dirname(target), { recursive: true });
const made = mkdtempSync(`${target}-new-`);
try {
  const built = await Bun.build({
    ...forEachForm,
    entrypoints: [...bundledParts, 'src/index.ts'].map((path) => join(root, path)),
    outdir: made,
    naming: { entry: '[name].[ext]', chunk: 'part-[hash].[ext]' },
    // A hook loads only what a hook needs, and a start of the whole takes a third of the time.
    splitting: true,
    // The stack of an internal error names the lines of the sources.
    sourcemap: 'linked',
    metafile: true,
  });
  checkBuilt(built);
  for (const name of readdirSync(made).filter((file) => file.endsWith('.map'))) leaveOutTexts(join(made, name));
  writeFileSync(join(made, 'licenses.txt'), licensesOf(Object.keys(built.metafile?.inputs ?? {})));
  rmSync(target, { recursive: true, force: true });
  renameSync(made, target);
} finally {
  rmSync(made, { recursive: true, force: true });
}

/** The lines of a stack need no text of the sources, most of a map; without the member Bun reads nothing of it. */
function leaveOutTexts(path: string): void {
  const map: { readonly sources: readonly string[] } = JSON.parse(readFileSync(path, 'utf8'));
  writeFileSync(path, JSON.stringify({ ...map, sourcesContent: map.sources.map(() => '') }));
}

/** The licences of the packages that these files are of, as most of them ask for. */
function licensesOf(files: readonly string[]): string {
  const packages = new Set(files.flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []));
  const texts = [...packages].sort().map((path) => {
    const there = resolve(path);
    const { name, version, license } = JSON.parse(readFileSync(join(there, 'package.json'), 'utf8'));
    const file = readdirSync(there).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file === undefined ? `License: ${license}` : readFileSync(join(there, file), 'utf8').trim();
    return `${name} ${version}\n\n${text}\n`;
  });
  return texts.join(`\n${'-'.repeat(80)}\n\n`);
}
