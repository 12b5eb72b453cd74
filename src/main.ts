/** The program: one command line in, one exit code out. */
import { join } from 'node:path';
import manifest from '../package.json' with { type: 'json' };
import { createContext, sayException } from './cli/context.ts';
import { exitCode } from './cli/exit-code.ts';
import { runProgram } from './cli/program.ts';

const context = createContext(join(import.meta.dir, '..'));
let code: number;
try {
  await runProgram(context, process.argv.slice(2), manifest.version);
  code = context.code;
} catch (error) {
  sayException(context, error);
  code = exitCode.failed;
}
await Promise.all([context.stdout.flush(), context.stderr.flush()]);
process.exit(code);
