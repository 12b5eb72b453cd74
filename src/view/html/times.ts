/** Times of a report: always UTC, so that the same group gives the same bytes wherever it is reported. */

/** Milliseconds since 1970; 0 when `at` is no time. */
export function timeMs(at: string): number {
  const parsed = Date.parse(at);
  return Number.isNaN(parsed) ? 0 : parsed;
}

/** `2026-01-04 14:30:22 UTC`; the text itself when it is no time. */
export function formatUtc(at: string): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return at;
  return `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** `14:30`, with seconds where there are some, `01-05 14:30` on another day than `since`. Both ms since 1970. */
export function formatMoment(atMs: number, sinceMs: number): string {
  const text = new Date(atMs).toISOString();
  const clock = atMs % 60_000 === 0 ? text.slice(11, 16) : text.slice(11, 19);
  return text.slice(0, 10) === new Date(sinceMs).toISOString().slice(0, 10) ? clock : `${text.slice(5, 10)} ${clock}`;
}
