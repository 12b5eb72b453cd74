/** Properties of core/, which are cheap and so run with more cases. */
import { isLongRun } from './long.ts';

export { fc } from './property.ts';

export const cases = { numRuns: isLongRun ? 5000 : 300 };
