/** Properties of core/, which are cheap and so run with more cases. */
import { isLongRun } from './long.ts';
import { fc } from './property.ts';

fc.configureGlobal({ ...fc.readConfigureGlobal(), numRuns: isLongRun ? 5000 : 300 });

export { fc };
