/** Pure: changes of a group after its creation. */

import { advise } from './advice.ts';
import type { ChangesOf } from './definitions.ts';
import { changed, changedNames } from './edit.ts';
import type { EventBody } from './event.ts';
import { fail, ok, type Result } from './failure.ts';
import { addUsage, type GroupConfig, type GroupDescription, type Usage } from './group.ts';
import { configProblem } from './setting-values.ts';
import type { GroupState } from './state.ts';
import { formatMoney } from './text.ts';
import { lineProblem } from './values.ts';

export function groupDescription({ group }: Pick<GroupState, 'group'>): GroupDescription {
  const { id: _id, slug: _slug, createdAt: _createdAt, config: _config, ...description } = group;
  return description;
}

const aLine = (text: string) => lineProblem(text) ?? (text.trim() === '' ? 'must not be blank' : null);

/** The problem with a group's description, as a sentence without its full stop. */
function descriptionProblem(changes: ChangesOf<GroupDescription>): string | null {
  const { name = 'a', description = '', template } = changes;
  const problems = {
    name: name === null ? 'cannot be left out' : aLine(name),
    description: description === null ? 'cannot be left out' : lineProblem(description),
    template: aLine(template ?? 'a'),
  };
  const [wrong] = Object.entries(problems).filter(([, problem]) => problem !== null);
  return wrong === undefined ? null : `The ${wrong[0]} of the group ${wrong[1]}`;
}

export type GroupChanges = {
  readonly config?: ChangesOf<GroupConfig>;
  readonly group?: ChangesOf<GroupDescription>;
};

/** Why this change of the group is not possible now; null when it is. `used`: usage of running attempts so far. */
function groupEditProblem(
  state: GroupState,
  { config = {}, group = {} }: GroupChanges,
  used: () => Iterable<Usage>,
): Result<never> | null {
  const problem = configProblem(config) ?? descriptionProblem(group);
  if (problem !== null) return fail('usage', `${problem}.`, 'Give another one.');
  const cap = config.maxBudgetUsd ?? undefined;
  return cap === undefined || cap === state.group.config.maxBudgetUsd ? null : capProblem(state, cap, used);
}

/** The settings of the group; fails when they, or another part of the request, cannot be changed. */
export function configEvents(state: GroupState, asked: GroupChanges, used: () => Iterable<Usage>): Result<EventBody[]> {
  const problem = groupEditProblem(state, asked, used);
  if (problem !== null) return problem;
  const config = changed(state.group.config, asked.config ?? {});
  const names = changedNames(state.group.config, config);
  return ok(names.length > 0 ? [{ type: 'group_changed', config, changed: names }] : []);
}

/** A cap is never below what is spent, nor below what running sessions may still spend. */
function capProblem(state: GroupState, cap: number, used: () => Iterable<Usage>): Result<never> | null {
  const { group, reservedUsd } = state;
  const wanted = formatMoney(cap);
  let spent = state.usage;
  for (const usage of used()) spent = addUsage(spent, usage);
  if (cap <= spent.costUsd) {
    const already = formatMoney(spent.costUsd, spent.estimated);
    const message = `Group ${group.id} has already spent ${already}, so its cap cannot be ${wanted}.`;
    return fail('usage', message, 'Give a higher amount.');
  }
  const before = group.config.maxBudgetUsd;
  const promised = state.usage.costUsd + reservedUsd;
  if (state.running.size + state.takenOver.size === 0 || before === undefined || cap >= Math.min(before, promised))
    return null;
  const share = `Running sessions have reserved part of the cap of group ${group.id}`;
  const message = `${share} until it reaches ${formatMoney(promised)}.`;
  const next = advise('Give at least that, or take it back first with', ['group', 'pause', group.id]);
  return fail('usage', message, next);
}
