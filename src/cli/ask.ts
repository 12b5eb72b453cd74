/** Questions with a text for an answer, on a terminal. */
import type { Context } from './context.ts';

export type Checked<T> = { readonly value: T } | { readonly problem: string };

/**
 * The answer, `usual` when nothing but Enter was pressed; asked again while `check` finds a problem. Null when the
 * terminal's input has ended: the person wants no more.
 */
export async function ask<T>(
  context: Context,
  question: string,
  usual: string,
  check: (answer: string) => Checked<T>,
): Promise<{ readonly value: T } | null> {
  for (;;) {
    // The question goes out through the system's own call, after what was said before.
    await context.stdout.flush();
    await context.stderr.flush();
    const typed = prompt(question, usual);
    if (typed === null) return null;
    const checked = check(typed.trim());
    if ('value' in checked) return checked;
    context.stderr.line(checked.problem);
  }
}
