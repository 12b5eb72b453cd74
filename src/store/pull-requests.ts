/**
 * What a group has pushed and opened, one entry per repository: written before a branch is pushed, so that a later
 * command knows which remote branches are the group's own.
 */
import { join } from 'node:path';
import { fail, ok, type Result } from '../core/failure.ts';
import type { World } from '../system/world.ts';
import { parseOwn } from './json.ts';
import type { GroupPaths } from './paths.ts';
import { systemFailure } from './system-failure.ts';

export interface Proposal {
  readonly repository: string;
  readonly remote: string;
  readonly branch: string;
  readonly commit?: string;
  readonly url?: string;
}

function listPath(paths: GroupPaths): string {
  return join(paths.folder, 'pull-requests.json');
}

export function readProposals(world: World, paths: GroupPaths): Result<readonly Proposal[]> {
  const text = world.files.readText(listPath(paths));
  if (text === null) return ok([]);
  const list = parseOwn<{ readonly proposals: readonly Proposal[] }>(text);
  if (list !== null) return ok(list.proposals);
  const message = `${listPath(paths)} is not a valid list of pull requests.`;
  return fail('corrupt-file', message, 'Move it away. Branches that were pushed before are then treated as foreign.');
}

export function writeProposals(world: World, paths: GroupPaths, proposals: readonly Proposal[]): Result<void> {
  try {
    const text = `${JSON.stringify({ version: 1, proposals }, null, 2)}\n`;
    world.files.writeAtomic(listPath(paths), text, { durable: true });
    return ok(undefined);
  } catch (error) {
    return { ok: false, failure: systemFailure(listPath(paths), error) };
  }
}
