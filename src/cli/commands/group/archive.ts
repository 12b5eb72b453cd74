/** `group archive`: puts a finished group away; it stays readable and can no longer run. */

import type { Command } from '@commander-js/extra-typings';
import { changeGroup } from '../../../control/change-group.ts';
import { shellWord } from '../../../control/path-argument.ts';
import { resolveGroup } from '../../../control/resolve.ts';
import { adviceText, advise, type CommandLine } from '../../../core/advice.ts';
import { fail, ok, type Result } from '../../../core/failure.ts';
import { runCommand } from '../../../core/plan/advice.ts';
import type { GroupState } from '../../../core/state.ts';
import { nextGroupStatus } from '../../../core/status.ts';
import { finishMerge } from '../../../delivery/finish.ts';
import { recoveryHint } from '../../../delivery/recovery-hint.ts';
import { cleanUpSessions, type Leftover, leftoversOf, whyKept } from '../../../delivery/worktree-cleanup.ts';
import { repositoryDir } from '../../../git/worktrees/scratch.ts';
import { plural } from '../../../report/format.ts';
import { safeLine } from '../../../report/terminal-text.ts';
import { titleOf } from '../../../report/wording.ts';
import type { GroupWriter } from '../../../store/group-writer.ts';
import type { Context, Work } from '../../context.ts';
import { type ExitCode, exitCode } from '../../exit-code.ts';

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
    .argument('<group>', 'id, unique prefix or slug')
    .option('--force', 'remove worktrees and branches with unmerged work as well')
    .addHelpText('after', example)
    .action((reference, { force }) => context.run(() => archive(context, reference, force === true)));
}

async function archive(context: Context, reference: string, force: boolean): Promise<Work> {
  const group = resolveGroup(context, reference);
  if (!group.ok) return group;
  return changeGroup(context, group.value, { direct: (writer) => archiveNow(context, writer, force) });
}

async function archiveNow(context: Context, writer: GroupWriter, force: boolean): Promise<Result<ExitCode>> {
  const { status, group } = writer.state;
  const isArchived = status === 'archived';
  if (!isArchived && nextGroupStatus(status, 'group_archived') === null) {
    return fail(
      'illegal-transition',
      `Group ${group.id} is ${status}; only completed, failed and paused groups can be archived.`,
      status === 'running'
        ? advise('Its runner is gone. Finish it with', runCommand(writer.state))
        : advise('Run it first, or remove it with', ['group', 'delete', group.id]),
    );
  }
  const finished = await finishMerge(context, writer);
  if (!finished.ok) return finished;
  const leftovers = (await leftoversOf(context, writer.paths, writer.state)).filter(
    ({ record }) => record !== undefined,
  );
  if (!isArchived && !force) {
    const possible = checkArchivable(context, writer.state, leftovers);
    if (!possible.ok) return possible;
  }
  // Archived first: worktrees are looked at again by the same command, should this end in between.
  if (!isArchived) writer.record([{ type: 'group_archived' }]);
  const tidied = await cleanUpSessions(context, writer, [...writer.state.sessions.keys()], { force });
  if (!tidied.ok) return tidied;
  const { cleaned, kept, notes } = tidied.value;
  const { stderr } = context;
  const say = (text: string): void => stderr.line(safeLine(text, lineColumns));
  say(isArchived ? `Group ${group.id} is archived already.` : `Archived ${group.id}.`);
  if (cleaned.length > 0) say(`Removed ${plural(cleaned.length, 'worktree')} with what belonged to it.`);
  for (const leftover of leftovers.filter(({ sessionId }) => cleaned.includes(sessionId))) {
    for (const line of lostWith(leftover)) say(line);
  }
  for (const note of notes) say(note);
  for (const { sessionId, why } of kept) {
    say(`The worktree of ${titleOf(writer.state, sessionId)} stays. ${why}`);
  }
  if (kept.length > 0) say(advice(group.id, force));
  return ok(exitCode.done);
}

const lineColumns = 1000;
const namesShownMax = 10;

/** An archived group cannot be merged any more, so what waits for that must not be put away with it. */
function checkArchivable(context: Context, state: GroupState, leftovers: readonly Leftover[]): Result<void> {
  const obstacles = leftovers.flatMap((leftover) => {
    const why = whyKept(context, withoutLock(leftover), 'keep-unmerged');
    return why === null ? [] : [{ leftover, why }];
  });
  const [first] = obstacles;
  if (first === undefined) return ok(undefined);
  const { id } = state.group;
  const rest = obstacles.length === 1 ? '' : ` So it is with ${plural(obstacles.length - 1, 'further session')}.`;
  return fail(
    'illegal-transition',
    `Group ${id} is not archived: unmerged work would stay. The worktree of ${first.leftover.title}: ` +
      `${first.why}${rest}`,
    advise(
      `${recoveryHint(state, first.leftover)} and archive again, or throw it away with`,
      archiveCommand(id, '--force'),
    ),
  );
}

/** A lock keeps the worktree, but says nothing about what is in it. */
function withoutLock(leftover: Leftover): Leftover {
  const { standing } = leftover;
  if (standing?.ok !== true || standing.value.registered === null) return leftover;
  const { lock: _lock, ...registered } = standing.value.registered;
  return { ...leftover, standing: ok({ ...standing.value, registered }) };
}

/** Of a worktree that was removed by force: what was nowhere else. Git keeps commits for some weeks, files never. */
function lostWith({ title, doomed, standing, isUncertain }: Leftover): string[] {
  if (standing?.ok !== true) return [];
  const { branch, repository } = doomed;
  const { unmerged, loose, tip, registered, uncommitted, elsewhere } = standing.value;
  const back = (name: string, commit: string) =>
    `git -C ${shellWord(repositoryDir(repository))} branch ${shellWord(name)} ${commit}`;
  const lost: string[] = [];
  // A branch of that name that may be somebody else's stays.
  const isForeign = elsewhere !== null || (isUncertain && registered?.branch !== branch);
  if (branch !== undefined && tip !== null && unmerged > 0 && !isForeign) {
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
