/** The program: one command line in, one exit code out. */
import { join } from 'node:path';
import manifest from '../package.json' with { type: 'json' };
import { createContext, finishOutput, sayException } from './cli/context.ts';
import { exitCode } from './cli/exit-code.ts';
import { runProgram } from './cli/program.ts';

/** `hook cpm session-start` is the program behind the hooks, which loads nothing of the command line. */
const [family, system = ''] = process.argv.slice(2);
if (family === 'hook' && ['cpm', 'faber', 'handover', 'all'].includes(system)) {
  process.argv.splice(2, 1);
  await import('./hook-main.ts');
  process.exit(exitCode.done);
}

const context = createContext(join(import.meta.dir, '..'));
try {
  await runProgram(context, process.argv.slice(2), manifest.version);
} catch (error) {
  sayException(context, error);
  context.code = exitCode.failed;
}
await finishOutput(context);
process.exit(context.code);
