/** Destructive commands ask on a terminal; without one they refuse unless the answer was given, by --yes or --force. */
import { fail, ok, type Result } from '../core/failure.ts';
import type { Context } from './context.ts';

/** True = go on, false = the user said no. Fails with `usage` when nobody can be asked. */
export async function confirmed(context: Context, question: string, isAnswered: boolean): Promise<Result<boolean>> {
  if (isAnswered) return ok(true);
  if (!context.stdinIsTerminal || !context.stdout.isTerminal) {
    const message = `There is no terminal on which to ask: ${question}`;
    return fail('usage', message, 'Give --force or --yes to do it without being asked.');
  }
  // The question goes out through the system's own call, after what was said before.
  await context.stdout.flush();
  return ok(confirm(question));
}
