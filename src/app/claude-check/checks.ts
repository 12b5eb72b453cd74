/**
 * The compatibility checks of a claude that is new on this machine: what is checked against the scripted API, what a
 * failure means, and whether a run may start after it. Pure.
 */
import { adviceText, advise } from '../../core/advice.ts';
import { type Failure, fail, ok, type Result } from '../../core/failure.ts';

export type CheckId = 'login' | 'prompt' | 'hooks' | 'deny' | 'interrupt' | 'cost' | 'cap' | 'resume';

export interface Check {
  readonly id: CheckId;
  readonly promise: string;
  /** What a failure means for a user; a whole sentence. */
  readonly meaning: string;
  /** A failure prevents runs; otherwise it is a warning. */
  readonly isRequired: boolean;
}

const rows: readonly (readonly [CheckId, 'required' | 'warning', promise: string, meaning: string])[] = [
  ['login', 'required', 'uses the login that a session gets', 'Sessions cannot log in, or another login pays.'],
  ['prompt', 'warning', 'sends the prompt to the model', 'Sessions do not receive their task.'],
  ['hooks', 'warning', 'runs the SessionStart hook', 'Sessions work without their saved state and rules.'],
  ['deny', 'required', 'obeys deny rules', 'A session can do what its rules forbid.'],
  ['interrupt', 'warning', 'ends the running command on an interrupt', 'A pause leaves commands running.'],
  ['cost', 'warning', 'reports the cost of one process', 'Costs are counted wrongly, so budgets are inexact.'],
  ['cap', 'required', 'stops at --max-budget-usd', 'A session can spend more than its budget.'],
  ['resume', 'warning', 'resumes a conversation', 'After a pause a session starts again from the beginning.'],
];

export const checks: readonly Check[] = rows.map(([id, weight, promise, meaning]) => ({
  ...{ id, promise, meaning },
  isRequired: weight === 'required',
}));

/** `unknown`: the check could not be made, because an earlier step failed. */
export interface CheckResult {
  readonly id: CheckId;
  readonly verdict: 'holds' | 'broken' | 'unknown';
  /** What happened; empty when the check holds. */
  readonly detail: string;
  /** A specific suggestion, if there is one. */
  readonly cure?: string;
}

export const holds = (id: CheckId): CheckResult => ({ id, verdict: 'holds', detail: '' });
export const broken = (id: CheckId, detail: string): CheckResult => ({ id, verdict: 'broken', detail });
export const unknown = (id: CheckId, detail: string): CheckResult => ({ id, verdict: 'unknown', detail });

export function resultOf(id: CheckId, faults: readonly (string | false)[]): CheckResult {
  const fault = faults.find((one): one is string => one !== false);
  return fault === undefined ? holds(id) : broken(id, fault);
}

export function withResults(results: readonly CheckResult[]): (Check & CheckResult)[] {
  return checks.flatMap((check) => {
    const result = results.find(({ id }) => id === check.id);
    return result === undefined ? [] : [{ ...check, ...result }];
  });
}

/** A repeated check would have the same result: a required check failed, or all of them hold. */
export function isConclusive(results: readonly CheckResult[]): boolean {
  const required = withResults(results).filter(({ isRequired }) => isRequired);
  return required.some(({ verdict }) => verdict === 'broken') || required.every(({ verdict }) => verdict === 'holds');
}

/** Warnings. Fails with `claude-unproven` when a required check does not hold, unless `accepted` is this version. */
export function judgeCheck(
  { version, results }: { readonly version: string; readonly results: readonly CheckResult[] },
  accepted: string | undefined,
): Result<readonly string[]> {
  const failed = withResults(results).filter(({ verdict }) => verdict !== 'holds');
  const required = failed.filter(({ isRequired }) => isRequired);
  const warnings = failed
    .filter(({ verdict, isRequired }) => verdict === 'broken' || isRequired)
    .map((one) => `claude ${version}: ${sentence(one)}`);
  if (required.length === 0) return ok(warnings);
  if (accepted === version) return ok([...warnings, `claude ${version} is used anyway, because of --accept-claude.`]);
  const why = required.map(sentence).join(' ');
  const cure = required.find((one) => one.cure !== undefined)?.cure;
  if (cure !== undefined) return fail('claude-unproven', `claude ${version} failed a check. ${why}`, cure);
  const next = `Use another version of Claude Code, update this program, or ${atOwnRisk(version)}`;
  const advice = advise(`${next}. Repeat the check with`, checkAgain);
  return fail('claude-unproven', `claude ${version} failed a check. ${why}`, advice);
}

const checkAgain = ['doctor', '--claude'];
const atOwnRisk = (version: string): string => `continue at your own risk with --accept-claude ${version}`;

function sentence({ verdict, promise, meaning, detail, isRequired, cure }: Check & CheckResult): string {
  const because = detail === '' ? '' : ` (${detail})`;
  if (verdict === 'unknown') return `It is unknown whether it ${promise}${because}.`;
  const next = isRequired || cure === undefined ? '' : ` ${cure}`;
  return `${meaning.replace(/\.$/, '')}${because}.${next}`;
}

export function refuseUncheckedVersion(version: string, { message, next }: Failure): ReturnType<typeof fail> {
  const because = `claude ${version} is new here and could not be checked: ${message}`;
  const risk = `Or ${atOwnRisk(version)}`;
  const advice = next.sentence === '' ? advise(`${risk}. Retry with`, checkAgain) : `${adviceText(next)} ${risk}.`;
  return fail('claude-unproven', because, advice);
}

export function checkAccepted(installed: string, accepted: string | undefined): Result<void> {
  if (accepted === undefined || accepted === installed) return ok(undefined);
  const message = `--accept-claude names ${accepted}, but the claude that is installed is ${installed}.`;
  return fail('usage', message, `Leave it out, or accept the installed version: --accept-claude ${installed}`);
}
