/** The program as src/main.ts runs it, on a world that counts; the counts go to the file that BENCH_COUNTS names. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createContext, finishOutput, sayException } from '../../src/cli/context.ts';
import { exitCode } from '../../src/cli/exit-code.ts';
import { runProgram } from '../../src/cli/program.ts';
import { createRealWorld } from '../../src/world/real-world.ts';
import { createCountingWorld } from './counting-world.ts';

const target = process.env.BENCH_COUNTS ?? '';
delete process.env.BENCH_COUNTS;
const world = createCountingWorld(createRealWorld());
const context = createContext(join(import.meta.dir, '..', '..'));
Object.defineProperty(context, 'world', { value: world });
try {
  await runProgram(context, process.argv.slice(2), '0.0.0');
} catch (error) {
  sayException(context, error);
  context.code = exitCode.failed;
}
await finishOutput(context);
writeFileSync(target, JSON.stringify(world.counts));
process.exit(context.code);
