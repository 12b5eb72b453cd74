/** `group list`: all groups, newest first. */

import { type Command, Option } from '@commander-js/extra-typings';
import { type GroupListing, listGroups } from '../../../app/groups.ts';
import { presentGroup } from '../../../app/watch/live-view.ts';
import { commandText } from '../../../core/advice.ts';
import { describeFailure, type Failure, ok, publicFailure } from '../../../core/failure.ts';
import { activeGroupStatuses, groupStatuses } from '../../../core/status.ts';
import { type Cell, formatAge, formatMoney, formatTable } from '../../../view/format.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import { statusTone } from '../../../view/wording.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent group list --status active
  $ claude-code-agent group list --json | jq -r '.[].id'`;

const description = `Lists session groups, newest first. Active groups are created, running or paused ones.
What a rehearsal cost is play money, and marked.`;

const statuses = [...groupStatuses, 'active'] as const;
type StatusFilter = (typeof statuses)[number];

export function define(command: Command, context: Context): void {
  command
    .description(description)
    .addOption(new Option('--status <status>', 'only groups of this status').choices(statuses))
    .option(
      '--json',
      'one JSON document: an array of meta.json contents as of now, with a "problem" where the log cannot be read',
    )
    .addHelpText('after', example)
    .action(({ status, json }) => context.run(() => list(context, status, json === true)));
}

function list(context: Context, status: StatusFilter | undefined, json: boolean): Work {
  const root = context.root();
  if (!root.ok) return root;
  const all = listGroups(context.world, root.value);
  const listings = all.filter((listing) => isWanted(listing, status));
  if (json) {
    context.stdout.line(
      safeJson(
        listings.map((listing) => plain(context, root.value, listing)),
        2,
      ),
    );
    return ok(exitCode.done);
  }
  if (listings.length === 0) {
    context.stderr.line(nothingToShow(status, all.length));
  } else {
    // At once: thousands of lines take longer to hand over one by one than to put together.
    context.stdout.line(table(context, root.value, listings).join('\n'));
  }
  for (const listing of listings) {
    const { id, problem } = listing;
    if (problem !== undefined) context.stderr.line(`${id}: ${safeLine(describeFailure(problem), 400)}`);
  }
  return ok(exitCode.done);
}

function nothingToShow(status: StatusFilter | undefined, all: number): string {
  if (status === undefined || all === 0)
    return `There are no groups. Make one with: ${commandText(['group', 'create', 'SLUG'])}`;
  const others = `Of any status there ${all === 1 ? 'is 1' : `are ${all}`}: ${commandText(['group', 'list'])}`;
  const archiving = `A finished group is put away with: ${commandText(['group', 'archive', 'GROUP'])}`;
  return `There are no ${status} groups. ${others}${status === 'archived' ? `\n${archiving}` : ''}`;
}

/** Groups of which nothing is known are always shown: whatever is looked for, it may be in them. */
function isWanted({ meta }: GroupListing, status: StatusFilter | undefined): boolean {
  if (status === undefined || meta === undefined) return true;
  return status === 'active' ? activeGroupStatuses.has(meta.status) : meta.status === status;
}

function plain(context: Context, root: string, { id, meta, problem }: GroupListing): object {
  const present = meta === undefined ? {} : presentGroup(context, root, meta).meta;
  return { id, ...present, ...(problem === undefined ? {} : { problem: publicFailure(problem) }) };
}

function table(context: Context, root: string, listings: readonly GroupListing[]): string[] {
  const columns = [
    { title: 'GROUP' },
    { title: 'STATUS' },
    { title: 'DONE', align: 'right' },
    { title: 'COST', align: 'right' },
    { title: 'AGE', align: 'right' },
    { title: 'NAME' },
  ] as const;
  const nowMs = context.world.clock.now();
  const rows = listings.map((listing): Cell[] => {
    if (listing.meta === undefined) return [listing.id, troubled(listing.problem)];
    const { id, problem } = listing;
    const { meta, status } = presentGroup(context, root, listing.meta);
    const done = meta.sessions.filter((session) => session.status === 'completed').length;
    return [
      id,
      problem === undefined ? { text: status, tone: statusTone(status.split(' ')[0] ?? '') } : troubled(problem),
      `${done}/${meta.sessions.length}`,
      // Nobody is to add up what was spent with what was not.
      `${formatMoney(meta.cost, meta.estimated)}${meta.rehearsal ? ' play' : ''}`,
      formatAge(nowMs - Date.parse(listing.meta.createdAt)),
      meta.name === meta.slug ? '' : safeLine(meta.name, 60),
    ];
  });
  return formatTable(columns, rows, context.stdout.style);
}

/** In the place of a status, which nobody can tell. */
function troubled({ reason }: Failure): Cell {
  if (reason === 'newer-version') return { text: 'newer version', tone: 'warn' };
  if (reason === 'older-version') return { text: 'older version', tone: 'warn' };
  return { text: 'damaged', tone: 'bad' };
}
