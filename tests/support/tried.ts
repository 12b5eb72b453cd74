/** Marks the claudes of tests as checked, so that a run starts at once; the check has tests of its own. */
import { type CheckResult, checks, holds } from '../../src/app/claude-check/checks.ts';
import { remember } from '../../src/app/claude-check/gate.ts';
import { programFile } from '../../src/claude/launch/program.ts';
import { createRealWorld } from '../../src/system/real-world.ts';

const world = createRealWorld();
/** By path; the program is constant during one test file. */
const versions = new Map<string, string>();
const logins = ['api-key', 'oauth-token', 'helper', 'store', 'provider'] as const;

/** Records in the data root that every check of this program passed with every login, except `others`. */
export function noteTried(root: string, program: string, ...others: readonly CheckResult[]): void {
  const file = programFile(world, program);
  if (file === null) return;
  const results = checks.map(({ id }) => others.find((other) => other.id === id) ?? holds(id));
  const at = new Date(world.clock.now()).toISOString();
  const checked = { file, program: file.path, version: versionFor(program), at, durationMs: 1, results };
  for (const login of logins) remember(world, root, { ...checked, login });
}

function versionFor(program: string): string {
  const known = versions.get(program);
  if (known !== undefined) return known;
  const { stdout } = Bun.spawnSync([program, '--version'], { env: { PATH: process.env.PATH ?? '' } });
  const version = stdout.toString().split(' ')[0] ?? '';
  versions.set(program, version);
  return version;
}
