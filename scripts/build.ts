/**
 * Compiles the program into one executable with its modules already parsed: build.ts OUTFILE [MODULE]. MODULE is the
 * program instead of src/main.ts. Ends with 1 and the reasons when it cannot be compiled.
 */
import { closeSync, fsyncSync, openSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { BuildConfig, BuildOutput, BunPlugin } from 'bun';

/** ink loads it only for debugging, and it is not installed. */
const withoutDevtools: BunPlugin = {
  name: 'without react-devtools-core',
  setup(build) {
    build.onResolve({ filter: /^react-devtools-core$/ }, ({ path }) => ({ path, namespace: 'nothing' }));
    build.onLoad({ filter: /.*/, namespace: 'nothing' }, () => ({ contents: 'export default {}', loader: 'js' }));
  },
};

/** What is true of the program in every form. */
export const forEachForm = {
  target: 'bun',
  format: 'esm',
  minify: true,
  define: { 'process.env.NODE_ENV': '"production"' },
  plugins: [withoutDevtools],
  // Nothing above the folder of this package has a say: the file of another project would tell what is compiled in.
  tsconfig: '/dev/null',
  throw: false,
} as const satisfies Partial<BuildConfig>;

/** Ends this process with the reasons when it was not built. */
export function checkBuilt({ success, logs }: BuildOutput): void {
  if (success) return;
  for (const { message, position } of logs) {
    console.error(position === null ? message : `${position.file}:${position.line}: ${message}`);
  }
  process.exit(1);
}

/** For another platform than this one, and with more in it than the sources say. */
interface ForOthers {
  /** Path of a Bun of the platform. */
  readonly bun: string;
  readonly target: Bun.Build.CompileTarget;
  readonly define: Readonly<Record<string, string>>;
  readonly plugins: readonly BunPlugin[];
}

export async function compile(outfile: string, entry: string, others?: ForOthers): Promise<void> {
  const platform = others === undefined ? {} : { target: others.target, executablePath: others.bun };
  const built = await Bun.build({
    ...forEachForm,
    entrypoints: [resolve(entry)],
    bytecode: true,
    // A hook has to load only what a hook needs: without this it takes half as long again.
    splitting: true,
    // The stack of an internal error names the lines of the sources.
    sourcemap: 'inline',
    define: { ...forEachForm.define, ...others?.define },
    plugins: [...forEachForm.plugins, ...(others?.plugins ?? [])],
    // As the launcher's options of Bun: nothing in the folder it is called from changes what runs.
    compile: { outfile: resolve(outfile), autoloadDotenv: false, autoloadBunfig: false, ...platform },
  });
  checkBuilt(built);
  // A file that a power cut has left short would be taken for the program.
  const file = openSync(resolve(outfile), 'r');
  fsyncSync(file);
  closeSync(file);
}

if (import.meta.main) {
  const [outfile, entry = join(import.meta.dir, '../src/main.ts')] = process.argv.slice(2);
  if (outfile === undefined) throw new Error('usage: build.ts OUTFILE [MODULE]');
  await compile(outfile, entry);
}
