/** `group archive`: puts a finished group away; it stays readable and can no longer run. */

import type { Command } from '@commander-js/extra-typings';
import type { Leftover } from '../../../app/delivery/worktree-cleanup.ts';
import { shellWord } from '../../../app/path-argument.ts';
import { type Archived, archiveGroup } from '../../../app/removal/archive-group.ts';
import { resolveGroupToDestroy } from '../../../app/resolve.ts';
import { adviceText, advise, type CommandLine } from '../../../core/advice.ts';
import { ok } from '../../../core/failure.ts';
import { repositoryDir } from '../../../git/worktrees/scratch.ts';
import { plural } from '../../../view/format.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import { titleOf } from '../../../view/wording.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent group archive auth-refactor
  $ claude-code-agent group archive auth-refactor --force        throws unmerged work away, and says what
  $ claude-code-agent group list --status archived`;

export function define(command: Command, context: Context): void {
  command
    .description(
      'Archives a completed, failed or paused group. It stays readable, but cannot run any more. Worktrees and ' +
        'branches whose work is merged go; while others hold unmerged work, nothing is archived.',
    )
    .argument('<group>', 'id, unique prefix or slug; of several groups of one slug the id')
    .option('--force', 'remove worktrees and branches with unmerged work as well')
    .option('--json', 'one JSON document: {"group", "removedWorktrees", "keptWorktrees"}')
    .addHelpText('after', example)
    .action((reference, given) => context.run(() => archive(context, reference, given)));
}

interface Given {
  readonly force?: true | undefined;
  readonly json?: true | undefined;
}

async function archive(context: Context, reference: string, given: Given): Promise<Work> {
  const group = resolveGroupToDestroy(context, reference);
  if (!group.ok) return group;
  const archived = await archiveGroup(context, group.value, given.force === true);
  if (!archived.ok) return archived;
  say(context, archived.value, given.force === true);
  if (given.json) context.stdout.line(safeJson(documentOf(archived.value), 2));
  return ok(exitCode.done);
}

function documentOf({ state, tidied: { cleaned, kept } }: Archived): object {
  return {
    group: state.group.id,
    removedWorktrees: cleaned,
    keptWorktrees: kept.map(({ sessionId }) => sessionId),
  };
}

function say({ stderr }: Context, { state, wasArchived, tidied, leftovers }: Archived, force: boolean): void {
  const { id } = state.group;
  const line = (text: string): void => stderr.line(safeLine(text, lineColumns));
  line(wasArchived ? `Group ${id} is archived already.` : `Archived ${id}.`);
  const { cleaned, kept, notes } = tidied;
  if (cleaned.length > 0) line(`Removed ${plural(cleaned.length, 'worktree')} with what belonged to it.`);
  for (const leftover of leftovers.filter(({ sessionId }) => cleaned.includes(sessionId))) {
    for (const lost of lostWith(leftover)) line(lost);
  }
  for (const note of notes) line(note);
  for (const { sessionId, why } of kept) line(`The worktree of ${titleOf(state, sessionId)} stays. ${why}`);
  if (kept.length > 0) line(advice(id, force));
}

const lineColumns = 1000;
const namesShownMax = 10;

/** Of a worktree that was removed by force: what was nowhere else. Git keeps commits for some weeks, files never. */
function lostWith({ title, doomed, standing }: Leftover): string[] {
  if (standing?.ok !== true) return [];
  const { branch, repository } = doomed;
  const { unmerged, loose, tip, registered, uncommitted, elsewhere } = standing.value;
  const back = (name: string, commit: string) =>
    `git -C ${shellWord(repositoryDir(repository))} branch ${shellWord(name)} ${commit}`;
  const lost: string[] = [];
  if (branch !== undefined && tip !== null && unmerged > 0 && elsewhere === null) {
    const what = `${plural(unmerged, 'unmerged commit')} of ${branch}, the last one ${tip}`;
    lost.push(`Thrown away: ${what}. For some weeks this brings it back: ${back(branch, tip)}`);
  }
  if (loose > 0 && registered?.head !== undefined) {
    const what = `${plural(loose, 'commit')} on no branch, the last one ${registered.head}`;
    const name = `${branch ?? title}-2`;
    lost.push(`Thrown away with the worktree of ${title}: ${what}. It comes back with: ${back(name, registered.head)}`);
  }
  if (uncommitted.length > 0) {
    const shown = uncommitted.slice(0, namesShownMax).join(', ');
    const more = uncommitted.length > namesShownMax ? ', …' : '';
    lost.push(`Thrown away with the worktree of ${title}, for good: uncommitted ${shown}${more}.`);
  }
  return lost;
}

/** For worktrees that stay although the group is archived. */
function advice(groupId: string, force: boolean): string {
  const next = force
    ? advise('When that is settled, remove it with', archiveCommand(groupId))
    : advise(
        'Merge what you need with git merge and archive again; what shall be thrown away goes with',
        archiveCommand(groupId, '--force'),
      );
  return adviceText(next);
}

function archiveCommand(groupId: string, ...more: CommandLine): CommandLine {
  return ['group', 'archive', groupId, ...more];
}
