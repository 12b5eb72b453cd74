/** Promises: what fleet.test.ts promises, for the seeds after those of a plain run. */
import { longTest } from '../../support/long.ts';
import { runSeeds } from './fleet-seed-run.ts';

longTest('every promise holds among machines for further seeds', () => void runSeeds(21, 80), 600_000);
