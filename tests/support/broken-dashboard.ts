/**
 * The program with a dashboard that breaks while it is open: once the file TEST_BREAK exists, what TEST_BROKEN names
 * throws whenever it is called.
 */
import { existsSync, readFileSync } from 'node:fs';
import { createContext } from '../../src/cli/context.ts';
import { packageRoot } from './group-fixture.ts';

const { TEST_BREAK: file = '', TEST_BROKEN: part = '' } = process.env;

/** Before what, in which source, an exception is thrown. */
const places: Readonly<Record<string, readonly [source: RegExp, place: string, changed: string]>> = {
  /** Our own part, which makes the rows. */
  frame: [
    /dashboard\/frame\.ts$/,
    'const { columns, rows } = terminal;',
    'broken(); const { columns, rows } = terminal;',
  ],
  /** The component, while react asks it what to draw. */
  component: [/tui\/app\.ts$/, 'setCursorPosition(cursor);', 'broken(); setCursorPosition(cursor);'],
  /** ink, while it writes a frame, also the last one. */
  ink: [/ink\/build\/ink\.js$/, 'onRender = () => {', 'onRender = () => { broken();'],
};
const [source, place, changed] = places[part] ?? [/^$/, '', ''];

Object.assign(globalThis, {
  broken() {
    if (existsSync(file)) throw new Error('drawing broke');
  },
});
Bun.plugin({
  name: 'broken dashboard',
  setup(build) {
    build.onLoad({ filter: source }, ({ path }) => {
      const text = readFileSync(path, 'utf8');
      if (!text.includes(place)) throw new Error(`${path} has no "${place}" any more`);
      return { contents: text.replace(place, changed), loader: path.endsWith('.ts') ? 'ts' : 'js' };
    });
  },
});
const { runToEnd } = await import('../../src/cli/program.ts');
process.exit(await runToEnd(createContext(packageRoot), process.argv.slice(2), '0.0.0'));
