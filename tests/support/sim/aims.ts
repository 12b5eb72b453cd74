/** The cells of the coverage matrix that a seed is aimed at. */
import { aimedCells, applicableCells, type Cell, type CrashPoint, isWorkKind } from './coverage.ts';

/** Consecutive seeds aim at different cells, and soon at all of them; a prime. */
const aimStride = 7_919;

/** The cell that the scenario of this seed tries to hit. */
export function aimOf(seed: number): Cell {
  return aimedCells[(seed * aimStride) % aimedCells.length] as Cell;
}

/** In the order in which they are passed when one decision is logged. */
const pointsOfBatch: readonly CrashPoint[] = [
  'before-append',
  'after-append',
  'after-fsync',
  'before-snapshot',
  'after-snapshot',
];

/** Cells with the same decision, at which an aimed scenario may also be interrupted. */
export function related({ point, decision }: Cell): readonly Cell[] {
  // Work to be accepted is approved or rejected a little later.
  const isSame = (other: Cell) => other.decision === decision || (isWorkKind(decision) && isWorkKind(other.decision));
  // A scenario aimed at a later point must not die before; an unlogged decision is made again.
  const place = pointsOfBatch.indexOf(point);
  const isBefore = (other: Cell) => {
    const passed = pointsOfBatch.indexOf(other.point);
    return passed > 0 && passed < place;
  };
  return applicableCells.filter((cell) => isSame(cell) && !isBefore(cell));
}

/** Whether a scenario needs many steps to get there. */
export function isLate(point: CrashPoint): boolean {
  return pointsOfBatch.indexOf(point) >= 3;
}
