/**
 * The program: one command line in, one exit code out. The parts that it starts itself (system/own-program.ts) load
 * nothing of the command line.
 */
import manifest from '../package.json' with { type: 'json' };
import { startedAs } from './core/program-name.ts';
import { nameVariable, packageRoot } from './system/own-program.ts';

const [family, system = '', ...words] = process.argv.slice(2);
// claude asks for no help; a person who does must not set off the hook.
const asksForHelp = words.includes('--help') || words.includes('-h');
if (family === 'hook' && ['task', 'cpm', 'faber', 'handover', 'all'].includes(system) && !asksForHelp) {
  process.argv.splice(2, 1);
  await import('./hook-main.ts');
}

startedAs(process.env[nameVariable]);
const { createContext } = await import('./cli/context.ts');
const { runToEnd } = await import('./cli/program.ts');
process.exit(await runToEnd(createContext(packageRoot), process.argv.slice(2), manifest.version));
