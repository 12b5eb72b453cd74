/** What a trial means for a run. Pure. */

import type { Login } from '../../claude/launch/login.ts';
import { adviceText, advise } from '../../core/advice.ts';
import { type Failure, fail, ok, type Result } from '../../core/failure.ts';
import { type Claim, claims, type Seen, type Weight, weightFor } from './claims.ts';

export interface Trial {
  readonly version: string;
  readonly seen: readonly Seen[];
}

const isGrave = (weight: Weight): boolean => weight === 'money' || weight === 'safety';

/** It need not be tried again: something grave is broken, or all that is grave was seen. */
export function isConclusive(seen: readonly Seen[]): boolean {
  const grave = seen.filter(({ id }) => claims.some((claim) => claim.id === id && isGrave(claim.weight)));
  return grave.some(({ verdict }) => verdict === 'broken') || grave.every(({ verdict }) => verdict === 'holds');
}

/**
 * Whether a run may begin, and what its user should know: one sentence for each broken promise. Fails with
 * `claude-unproven` when one of them endangers money or safety and `accepted` is not that very version.
 */
export function judgeTrial(
  { version, seen }: Trial,
  login: Login['kind'],
  accepted: string | undefined,
): Result<readonly string[]> {
  const wrong = claims.flatMap((claim) => {
    const one = seen.find(({ id }) => id === claim.id);
    return one === undefined || one.verdict === 'holds' ? [] : [{ claim, one, weight: weightFor(claim, login) }];
  });
  const grave = wrong.filter(({ weight }) => isGrave(weight));
  const told = wrong.filter(({ weight, one }) => weight !== 'none' && one.verdict === 'broken');
  const warnings = told.map(({ claim, one }) => `claude ${version}: ${sentence(claim, one)}`);
  if (grave.length === 0) return ok(warnings);
  if (accepted === version)
    return ok([...warnings, `claude ${version} is used all the same, as --accept-claude says.`]);
  const broken = grave.filter(({ one }) => one.verdict === 'broken');
  return broken.length > 0
    ? refuseTrial(version, broken.map(({ claim, one }) => sentence(claim, one)).join(' '))
    : refuseTrial(version, `It could not be seen whether it keeps all of them (${grave.map(describe).join('; ')}).`);
}

const describe = ({ claim, one }: { readonly claim: Claim; readonly one: Seen }): string =>
  one.what === '' ? claim.promise : `${claim.promise}: ${one.what}`;

function sentence({ meaning }: Claim, { what }: Seen): string {
  return what === '' ? meaning : `${meaning.replace(/\.$/, '')} (${what}).`;
}

const tryAgain = ['doctor', '--claude'];

function refuseTrial(version: string, why: string): { readonly ok: false; readonly failure: Failure } {
  const message = `claude ${version} was tried at no cost, and money or safety would be endangered with it. ${why}`;
  const risk = `or go on at your own risk with --accept-claude ${version}`;
  const next = `Use another version of Claude Code, update this program, ${risk}. See all and try again with`;
  return fail('claude-unproven', message, advise(next, tryAgain));
}

/** Whether the version that a user accepts is the one that would be started. Fails with `usage`. */
export function checkAccepted(installed: string, accepted: string | undefined): Result<void> {
  if (accepted === undefined || accepted === installed) return ok(undefined);
  const message = `--accept-claude names ${accepted}, but the claude that is installed is ${installed}.`;
  const next = `Leave it out to hear whether ${installed} needs it, or accept that one: --accept-claude ${installed}`;
  return fail('usage', message, next);
}

/** A trial that did not take place shows nothing, good or bad. */
export function refuseUntried(version: string, { message, next }: Failure): ReturnType<typeof fail> {
  const risk = `Or go on at your own risk with --accept-claude ${version}`;
  return fail(
    'claude-unproven',
    `claude ${version} is new here and could not be tried: ${message}`,
    next.sentence === '' ? advise(`${risk}. Try again with`, tryAgain) : `${adviceText(next)} ${risk}.`,
  );
}
