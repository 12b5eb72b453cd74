/** `doctor --claude`: what a trial of claude has shown, as a table or a document. */
import { type Trial, type TrialRow, tryClaude } from '../app/check/claude.ts';
import { ok } from '../core/failure.ts';
import { padColumns, type Tone } from '../view/format.ts';
import { safeJson, safeLine } from '../view/terminal-text.ts';
import type { Context, Work } from './context.ts';
import { exitCode } from './exit-code.ts';

const tones: Readonly<Record<TrialRow['verdict'], Tone>> = { holds: 'good', broken: 'bad', untried: 'warn' };

/** Exit code 0 when a run would begin with it, else 1. */
export async function tryNow(context: Context, root: string, isJson: boolean): Promise<Work> {
  const { stdout, stderr } = context;
  const trial = await tryClaude(context, root);
  if (!trial.ok) return trial;
  if (trial.value === 'interrupted') return ok(exitCode.interrupted);
  const { program, tried, rows, judged } = trial.value;
  if (isJson) stdout.line(safeJson(documentOf(trial.value), 2));
  else {
    const took = `${(tried.durationMs / 1000).toFixed(1)} s`;
    stdout.line(`claude ${tried.version} (${safeLine(program, 300)}), tried in ${took}`);
    for (const row of rows) for (const line of describe(context, row)) stdout.line(line);
    if (!judged.ok) stderr.line(safeLine(judged.failure.message, 1000));
  }
  return ok(judged.ok ? exitCode.done : exitCode.failed);
}

function describe({ stdout }: Context, { verdict, what, weight, claim }: TrialRow): string[] {
  const lead = `${stdout.style(tones[verdict], verdict)}${' '.repeat(9 - verdict.length)}${padColumns(weight, 9)}`;
  const first = `${lead}${padColumns(claim.id, 17)}${claim.promise}`;
  if (verdict === 'holds') return [first];
  const because = what === '' ? '' : ` (${safeLine(what, 300)})`;
  return [first, `${' '.repeat(35)}${verdict === 'broken' ? claim.meaning : 'Nothing could be seen.'}${because}`];
}

function documentOf({ program, tried, rows, judged }: Trial) {
  const { version, at, durationMs } = tried;
  const listed = rows.map(({ id, verdict, what, weight, claim: { promise, meaning } }) => {
    return { id, weight, verdict, promise, ...(verdict === 'holds' ? {} : { meaning, what }) };
  });
  return { ok: judged.ok, version, program, at, durationMs, claims: listed };
}
