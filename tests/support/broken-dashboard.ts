/** The program with a dashboard that breaks while it is open: once the file TEST_BREAK exists, no row is drawn. */
import { existsSync, readFileSync } from 'node:fs';
import { createContext } from '../../src/cli/context.ts';
import { fixtureRoot } from './group-fixture.ts';

const place = 'const { columns, rows } = terminal;';

Object.assign(globalThis, {
  broken() {
    if (existsSync(process.env.TEST_BREAK ?? '')) throw new Error('drawing broke');
  },
});
Bun.plugin({
  name: 'broken dashboard',
  setup(build) {
    build.onLoad({ filter: /dashboard\/frame\.ts$/ }, ({ path }) => {
      const text = readFileSync(path, 'utf8');
      if (!text.includes(place)) throw new Error(`${path} has no "${place}" any more`);
      return { contents: text.replace(place, `broken(); ${place}`), loader: 'ts' };
    });
  },
});
const { runToEnd } = await import('../../src/cli/program.ts');
process.exit(await runToEnd(createContext(fixtureRoot), process.argv.slice(2), '0.0.0'));
