/** The program: one command line in, one exit code out. */
import { join } from 'node:path';
import manifest from '../package.json' with { type: 'json' };
import { createContext } from './cli/context.ts';
import { exitCode } from './cli/exit-code.ts';
import { runToEnd } from './cli/program.ts';

/** `hook cpm session-start` is the program behind the hooks, which loads nothing of the command line. */
const [family, system = '', ...words] = process.argv.slice(2);
// claude asks for no help; a person who does must not set off the hook.
const asksForHelp = words.includes('--help') || words.includes('-h');
if (family === 'hook' && ['task', 'cpm', 'faber', 'handover', 'all'].includes(system) && !asksForHelp) {
  process.argv.splice(2, 1);
  await import('./hook-main.ts');
  process.exit(exitCode.done);
}

const context = createContext(join(import.meta.dir, '..'));
process.exit(await runToEnd(context, process.argv.slice(2), manifest.version));
