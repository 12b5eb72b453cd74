/** The program as src/main.ts runs it, on a world that counts; the counts go to the file that BENCH_COUNTS names. */
import { writeFileSync } from 'node:fs';
import { createContext } from '../../src/cli/context.ts';
import { runToEnd } from '../../src/cli/program.ts';
import { packageRoot } from '../../src/system/own-program.ts';
import { createRealWorld } from '../../src/system/real-world.ts';
import { createCountingWorld } from './counting-world.ts';

const { BENCH_COUNTS: target } = process.env;
// What it starts itself, such as a hook, is not to be counted. It ends this process.
if (target === undefined) await import('../../src/main.ts');
else {
  delete process.env.BENCH_COUNTS;
  const world = createCountingWorld(createRealWorld());
  const context = createContext(packageRoot);
  Object.defineProperty(context, 'world', { value: world });
  const code = await runToEnd(context, process.argv.slice(2), '0.0.0');
  writeFileSync(target, JSON.stringify(world.counts));
  process.exit(code);
}
