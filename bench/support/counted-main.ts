/** The program as src/main.ts runs it, on a world that counts; the counts go to the file that BENCH_COUNTS names. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createContext } from '../../src/cli/context.ts';
import { runToEnd } from '../../src/cli/program.ts';
import { createRealWorld } from '../../src/world/real-world.ts';
import { createCountingWorld } from './counting-world.ts';

const target = process.env.BENCH_COUNTS ?? '';
delete process.env.BENCH_COUNTS;
const world = createCountingWorld(createRealWorld());
const context = createContext(join(import.meta.dir, '..', '..'));
Object.defineProperty(context, 'world', { value: world });
const code = await runToEnd(context, process.argv.slice(2), '0.0.0');
writeFileSync(target, JSON.stringify(world.counts));
process.exit(code);
