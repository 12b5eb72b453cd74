/** tui/home/: the screen over all groups. This file: what is shown, and in which order. */
import type { HomeGroup, HomeWorkflow } from '../../app/watch/overview.ts';
import type { Glyphs } from '../dashboard/glyphs.ts';
import type { Notice } from '../dashboard/view.ts';

export interface HomeView {
  readonly groups: readonly HomeGroup[];
  readonly workflows: readonly HomeWorkflow[];
  readonly programName: string;
  readonly nowMs: number;
  readonly notice?: Notice;
}

export interface HomeTerminal {
  readonly columns: number;
  readonly rows: number;
  readonly glyphs: Glyphs;
}

/** An old failure asks for nobody any more. */
const staleMs = 24 * 3_600_000;

/** A person has to say how it goes on. */
export function waitsForPerson({ status, updatedAt }: HomeGroup, nowMs: number): boolean {
  if (status === 'paused' || status === 'interrupted') return true;
  return status === 'failed' && nowMs - Date.parse(updatedAt) < staleMs;
}

/** What waits for a person first, then what runs, then what has not begun; the newest first among its like. */
export function inHomeOrder(groups: readonly HomeGroup[], nowMs: number): readonly HomeGroup[] {
  const rank = (group: HomeGroup): number => {
    if (waitsForPerson(group, nowMs)) return 0;
    if (group.status.startsWith('running')) return 1;
    if (group.status === 'created') return 2;
    return group.status === 'archived' ? 4 : 3;
  };
  return groups.toSorted(
    (a, b) => rank(a) - rank(b) || b.createdAt.localeCompare(a.createdAt) || b.id.localeCompare(a.id),
  );
}
