/** The program as src/main.ts runs it, on a world altered as the variable TEST_WORLD (JSON) says. */
import { createContext } from '../../src/cli/context.ts';
import { runToEnd } from '../../src/cli/program.ts';
import { createRealWorld } from '../../src/system/real-world.ts';
import { type Alteration, alterWorld } from './altered-world.ts';
import { fixtureRoot } from './group-fixture.ts';

const alteration = JSON.parse(process.env.TEST_WORLD ?? '{}') as Alteration;
delete process.env.TEST_WORLD;
const context = createContext(fixtureRoot);
Object.defineProperty(context, 'world', { value: alterWorld(createRealWorld(), alteration) });
process.exit(await runToEnd(context, process.argv.slice(2), '0.0.0'));
