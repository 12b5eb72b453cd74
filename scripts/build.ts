/**
 * Compiles the program into one executable with its modules already parsed: build.ts OUTFILE [MODULE]. MODULE is the
 * program instead of src/main.ts. Ends with 1 and the reasons when it cannot be compiled.
 */
import { closeSync, fsyncSync, openSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { BunPlugin } from 'bun';

/** ink asks for it only where somebody debugs a dashboard, and nobody installs it. */
const withoutDevtools: BunPlugin = {
  name: 'without react-devtools-core',
  setup(build) {
    build.onResolve({ filter: /^react-devtools-core$/ }, ({ path }) => ({ path, namespace: 'nothing' }));
    build.onLoad({ filter: /.*/, namespace: 'nothing' }, () => ({ contents: 'export default {}', loader: 'js' }));
  },
};

const [outfile, entry = join(import.meta.dir, '..', 'src', 'main.ts')] = process.argv.slice(2);
if (outfile === undefined) throw new Error('usage: build.ts OUTFILE [MODULE]');
const { success, logs } = await Bun.build({
  entrypoints: [resolve(entry)],
  target: 'bun',
  format: 'esm',
  bytecode: true,
  // A hook has to load only what a hook needs: without this it takes half as long again.
  splitting: true,
  minify: true,
  // The stack of an internal error names the lines of the sources.
  sourcemap: 'inline',
  define: { 'process.env.NODE_ENV': '"production"' },
  plugins: [withoutDevtools],
  // Nor does anything above the folder of this package: the file of another project would say what is compiled in.
  tsconfig: '/dev/null',
  // As the launcher's options of Bun: nothing in the folder it is called from changes what runs.
  compile: { outfile: resolve(outfile), autoloadDotenv: false, autoloadBunfig: false },
  throw: false,
});
if (!success) {
  for (const { message, position } of logs) {
    console.error(position === null ? message : `${position.file}:${position.line}: ${message}`);
  }
  process.exit(1);
}
// A file that a power cut has left short would be taken for the program.
const file = openSync(resolve(outfile), 'r');
fsyncSync(file);
closeSync(file);
