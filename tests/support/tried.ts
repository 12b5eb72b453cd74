/** Claudes of tests are remembered as tried, so that a run begins at once; what a trial does has tests of its own. */

import { claims, holds, type Seen } from '../../src/app/claude-check/claims.ts';
import { launchDigest } from '../../src/app/claude-check/launch.ts';
import { rememberTried } from '../../src/app/claude-check/remembered.ts';
import { programFile } from '../../src/claude/launch/program.ts';
import { createRealWorld } from '../../src/system/real-world.ts';

const world = createRealWorld();
/** By path: it is the same as long as a file of tests runs. */
const versions = new Map<string, string>();

/**
 * Writes into the data root that this program has kept every promise, but for `others`.
 */
export function noteTried(root: string, program: string, ...others: readonly Seen[]): void {
  const file = programFile(world, program);
  if (file === null) return;
  const seen = claims.map(({ id }) => others.find((other) => other.id === id) ?? holds(id));
  const at = new Date(world.clock.now()).toISOString();
  rememberTried(world, root, { file, version: versionFor(program), launch: launchDigest(), at, durationMs: 1, seen });
}

function versionFor(program: string): string {
  const known = versions.get(program);
  if (known !== undefined) return known;
  const { stdout } = Bun.spawnSync([program, '--version'], { env: { PATH: process.env.PATH ?? '' } });
  const version = stdout.toString().split(' ')[0] ?? '';
  versions.set(program, version);
  return version;
}
