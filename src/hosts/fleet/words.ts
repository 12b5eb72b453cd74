/** What people are told of the machines of a fleet. */
import type { Needs } from '../../core/plan/decision.ts';
import { isLost, type RegisteredHost, takesNew } from './registry.ts';

/** Completes a sentence about a slot that is waited for. `hosts`: null = not known yet. */
export function describeHosts(hosts: readonly RegisteredHost[] | null, { requires = [], host }: Needs): string {
  if (hosts === null) return 'the machines of the fleet have not answered yet';
  const fitting = hosts.filter(
    ({ name, labels }) => (host === undefined || host === name) && requires.every((label) => labels.includes(label)),
  );
  const alive = fitting.filter((one) => !isLost(one));
  const open = alive.filter(takesNew);
  if (fitting.length === 0) return host === undefined ? 'no machine has that' : 'there is no such machine';
  if (alive.length === 0) return `nothing is heard of ${plural(fitting.length, 'such machine')}`;
  if (open.length === 0)
    return `${plural(alive.length, 'such machine')} take${alive.length === 1 ? 's' : ''} nothing new`;
  const slots = open.reduce((sum, one) => sum + one.slots, 0);
  const free = open.reduce((sum, one) => sum + Math.max(0, one.slots - one.used), 0);
  const state = free === 0 ? 'all busy' : `${free} free`;
  return `${plural(open.length, 'machine')}, ${plural(slots, 'slot')}, ${state}`;
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
