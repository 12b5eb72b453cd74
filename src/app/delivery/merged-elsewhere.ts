/** Work that was merged into one branch and is wished for in another one, now that its own branches are gone. */

import { fail, ok, type Result } from '../../core/failure.ts';
import { quoted } from '../../core/id.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { Git } from '../../git/git.ts';
import { readTarget, tipOf } from '../../git/target.ts';
import { listed, repositoryDir } from '../../git/worktrees/scratch.ts';
import { shellWord } from '../path-argument.ts';
import { titleOfItem } from './merge-items.ts';

const titlesShown = 5;

/**
 * Says where the work is and how it gets into the branch `into`. A commit that was recorded with a session is no
 * substitute: corrections on its branch would be lost. Always fails, with `usage` or git's reason.
 */
export async function mergedElsewhere(
  git: Git,
  records: readonly SessionRecord[],
  into: string,
): Promise<Result<never>> {
  const places = new Map<string, SessionRecord[]>();
  for (const record of records) {
    const repository = record.workspace?.repository ?? record.definition.repository ?? '';
    const key = `${repository}\0${record.mergedInto}`;
    places.set(key, [...(places.get(key) ?? []), record]);
  }
  const commands: string[] = [];
  const where: string[] = [];
  for (const [key, found] of places) {
    const [repository = '', mergedInto = ''] = key.split('\0');
    const place = repositoryDir(repository);
    where.push(`${quoted(mergedInto)} of ${place}`);
    const target = await readTarget(git, repository, into);
    if (!target.ok) return target;
    const sources = await whatToMerge(git, repository, mergedInto, found);
    if (!sources.ok) return sources;
    const checkout = target.value.checkouts[0];
    const folder = shellWord(checkout ?? place);
    if (checkout === undefined) commands.push(`git -C ${folder} checkout ${shellWord(into)}`);
    for (const source of sources.value) commands.push(`git -C ${folder} merge ${shellWord(source)}`);
  }
  const titles = records.map((record) => titleOfItem({ record }));
  const more = titles.length > titlesShown ? ` and ${titles.length - titlesShown} more` : '';
  const who = `${titles.slice(0, titlesShown).join(', ')}${more}`;
  const message = `${who}: merged into ${where.join(' and ')} before, and not in ${listed([into])}.`;
  return fail('usage', message, `Merge it from there: ${commands.join(' && ')}`);
}

/** The branch that has the work; when that is gone as well, the commits themselves. */
async function whatToMerge(
  git: Git,
  repository: string,
  mergedInto: string,
  records: readonly SessionRecord[],
): Promise<Result<readonly string[]>> {
  const tip = await tipOf(git, repository, mergedInto);
  if (!tip.ok) return tip;
  if (tip.value !== null) return ok([mergedInto]);
  return ok(records.flatMap(({ state }) => (state.status === 'completed' ? (state.work?.commit ?? []) : [])));
}
