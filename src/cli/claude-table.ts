/** `doctor --claude`: the results of a check of claude, as a table or a document. */
import { checkClaudeNow } from '../app/check/claude.ts';
import { type CheckResult, judge, withResults } from '../app/claude-check/checks.ts';
import { ok } from '../core/failure.ts';
import { padColumns, type Tone } from '../view/format.ts';
import { safeJson, safeLine } from '../view/terminal-text.ts';
import type { Context, Work } from './context.ts';
import { exitCode } from './exit-code.ts';

const tones: Readonly<Record<CheckResult['verdict'], Tone>> = { holds: 'good', broken: 'bad', unknown: 'warn' };

/** Exit code 0 when a run would start with it, else 1. */
export async function printClaudeCheck(context: Context, root: string, isJson: boolean): Promise<Work> {
  const { stdout, stderr } = context;
  const checked = await checkClaudeNow(context, root);
  if (!checked.ok) return checked;
  if (checked.value === 'interrupted') return ok(exitCode.interrupted);
  const { program, version, at, durationMs, results } = checked.value;
  const judged = judge(checked.value, undefined);
  const rows = withResults(results);
  if (isJson) stdout.line(safeJson({ ok: judged.ok, version, program, at, durationMs, checks: rows }, 2));
  else {
    stdout.line(`claude ${version} (${safeLine(program, 300)}), checked in ${(durationMs / 1000).toFixed(1)} s`);
    for (const { id, isRequired, verdict, promise, meaning, detail } of rows) {
      const lead = `${stdout.style(tones[verdict], verdict)}${' '.repeat(9 - verdict.length)}`;
      stdout.line(`${lead}${isRequired ? 'required ' : '         '}${padColumns(id, 11)}${promise}`);
      const because = detail === '' ? '' : ` (${safeLine(detail, 300)})`;
      if (verdict !== 'holds')
        stdout.line(`${' '.repeat(29)}${verdict === 'broken' ? meaning : 'This could not be checked.'}${because}`);
    }
    if (!judged.ok) stderr.line(safeLine(judged.failure.message, 1000));
  }
  return ok(judged.ok ? exitCode.done : exitCode.failed);
}
