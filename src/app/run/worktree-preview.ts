/** Sentences for `group plan`: size and location of the worktrees, and what does not work in them. */
import { join, relative } from 'node:path';
import { commandText } from '../../core/advice.ts';
import { ancestorsOf } from '../../core/graph.ts';
import type { SessionDefinition, SessionId } from '../../core/group.ts';
import { isolationOf } from '../../core/plan/isolation.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import { findRepository } from '../../git/git.ts';
import { askOwn, longTimeoutMs } from '../../git/run-git.ts';
import { foreseenNotes } from '../../git/worktrees/workspace.ts';
import { worktreesFolder } from '../../store/paths.ts';
import type { Files } from '../../system/world.ts';
import { plural } from '../../view/format.ts';
import { titleOf } from '../../view/wording.ts';
import { composeFiles } from '../../worker/session-variables.ts';
import type { AppContext } from '../app-context.ts';
import { readUserConfig } from '../config/user-config.ts';
import { readIn, usedBeside } from '../create/nearby-projects.ts';
import { storedGroupId } from './unused-config.ts';

/** Empty if no session has a worktree. */
export async function worktreeLines(
  context: AppContext,
  root: string,
  state: GroupState,
  ids: readonly SessionId[],
): Promise<string[]> {
  const { files } = context.world;
  const isolated = ids.filter((id) => isolationOf(state, id) === 'worktree');
  const definitions = isolated.map((id) => (state.sessions.get(id) as SessionRecord).definition);
  const tops = Map.groupBy(definitions, ({ projectPath }) => findRepository(files, projectPath)?.top ?? projectPath);
  if (tops.size === 0) return [];
  const costs: string[] = [];
  const lacks: string[][] = [];
  for (const [top, sessions] of tops) {
    costs.push(await costLine(context, top, sessions));
    const [{ projectPath, repository }] = sessions as [SessionDefinition];
    const isBegun = [...state.sessions.values()].some((one) => one.workspace?.repository === repository);
    if (repository !== undefined && !isBegun) lacks.push(await foreseenNotes(context, { projectPath, repository }));
  }
  const ofUser = await readUserConfig(context);
  const folder = (ofUser.ok ? ofUser.value.worktrees : undefined) ?? worktreesFolder(root);
  const merge = commandText(['group', 'merge', storedGroupId(context, state) ?? 'latest']);
  const where = `Worktrees are created below ${folder}. Your checkouts do not change until you run ${merge}`;
  const tripped = [...new Set(definitions.flatMap((definition) => brokenLinks(files, definition)))];
  const unlinked = definitions.flatMap((definition) => withoutWork(files, state, ids, definition));
  return [...costs, where, ...lacks.flat(), ...unlinked, ...tripped];
}

async function costLine(context: AppContext, top: string, sessions: readonly SessionDefinition[]): Promise<string> {
  const listed = await askOwn(context, top, ['ls-tree', '-r', '-l', 'HEAD'], { timeoutMs: longTimeoutMs });
  const lines = listed.ok && listed.value.exitCode === 0 ? listed.value.stdout.split('\n') : [];
  const bytes = lines.reduce((sum, line) => sum + (Number(/^\S+ \S+ \S+ +(\d+)\t/.exec(line)?.[1]) || 0), 0);
  const size = bytes < 1_000_000 ? 'less than 1 MB' : `about ${Math.round(bytes / 1_000_000)} MB`;
  const each = sessions.length === 1 ? '' : ' each';
  const setups = sessions.filter(({ setup }) => setup !== undefined).length;
  const runs = setups === 0 ? '' : `; setup runs ${setups === 1 ? 'once' : `${setups} times`} and may need more space`;
  return `${top}: ${plural(sessions.length, 'worktree')} of ${size}${each}${runs}`;
}

const parentContext = /^\s*(?:context|build)\s*:\s*["']?\.\.(?:\/|["']?\s*(?:#.*)?$)/m;

/** Sibling projects that this one uses and that other sessions change, without a dependency. */
function withoutWork(files: Files, state: GroupState, ids: readonly SessionId[], session: SessionDefinition): string[] {
  const { id, projectPath, dependsOn, repository } = session;
  const all = new Map([...state.sessions].map(([key, { definition }]) => [key, definition]));
  const paths = usedBeside(files, projectPath);
  const used = new Set(paths.map((path) => findRepository(files, path)?.repository ?? repository));
  return ids.flatMap((other) => {
    const its = all.get(other) as SessionDefinition;
    if (its.repository === repository || !used.has(its.repository)) return [];
    if (ancestorsOf(all, dependsOn).has(other) || ancestorsOf(all, its.dependsOn).has(id)) return [];
    const why = `it does not depend on ${titleOf(state, other)}, which changes it`;
    return [`${titleOf(state, id)} uses ${its.projectPath} as it is in your checkout: ${why}`];
  });
}

/** Tools that do not follow the symlinks to sibling repositories. */
function brokenLinks(files: Files, { projectPath }: SessionDefinition): string[] {
  const read = (name: string): string => readIn(files, projectPath, name);
  const top = findRepository(files, projectPath)?.top ?? projectPath;
  const found: string[] = [];
  const isOutside = (path: string) => relative(top, join(projectPath, path)).startsWith('..');
  const beside = [...read('package.json').matchAll(/"file:([^"]+)"/g)].some(([, path = '']) => isOutside(path));
  if (beside && read('yarn.lock').includes('yarn lockfile v1')) {
    const file = join(projectPath, 'package.json');
    found.push(
      `${file}: yarn 1 copies "file:" dependencies without following symlinks; use "link:", or --isolate none`,
    );
  }
  for (const name of composeFiles) {
    if (!parentContext.test(read(name)) || !isOutside('..')) continue;
    const file = join(projectPath, name);
    found.push(
      `${file}: a build with the context ".." does not follow symlinks; use --isolate none for sessions that build it`,
    );
  }
  return found;
}
