/** `doctor --claude`: tries the claude that is installed, now; and what is remembered of its last trial. */

import { chooseLogin } from '../../claude/launch/login.ts';
import { findClaude } from '../../claude/launch/program.ts';
import { whileBusy } from '../../control/busy.ts';
import { onSignal } from '../../control/signals.ts';
import { commandText, see } from '../../core/advice.ts';
import { ok } from '../../core/failure.ts';
import { padColumns, type Tone } from '../../report/format.ts';
import { safeJson, safeLine } from '../../report/terminal-text.ts';
import { type Claim, claims, type Seen, type Weight, weightFor } from '../../trial/claims.ts';
import { TrialGate } from '../../trial/gate.ts';
import { judgeTrial } from '../../trial/judge.ts';
import { type Tried, trialOf } from '../../trial/remembered.ts';
import type { Context, Work } from '../context.ts';
import { exitCode } from '../exit-code.ts';
import { type Finding, finding, fine } from './finding.ts';

const tones: Readonly<Record<Seen['verdict'], Tone>> = { holds: 'good', broken: 'bad', untried: 'warn' };

/** A row of the table. */
interface Row extends Seen {
  readonly weight: Weight;
  readonly claim: Claim;
}

/** Exit code 0 when a run would begin with it, else 1. */
export async function tryNow(context: Context, root: string, isJson: boolean): Promise<Work> {
  const { world, env, packageRoot, stdout, stderr } = context;
  const interruption = new AbortController();
  const unsubscribe = onSignal(world.clock, () => interruption.abort());
  const say = () => {};
  const gate = new TrialGate(world, { root, caller: env, packageRoot, say, stop: interruption.signal });
  const tried = await whileBusy(context, 'Trying claude at no cost', () => gate.again()).finally(unsubscribe);
  if (interruption.signal.aborted) return ok(exitCode.interrupted);
  if (!tried.ok) return tried;
  const { program, tried: trial } = tried.value;
  const login = chooseLogin(env).kind;
  const rows = rowsOf(trial, login);
  const judged = judgeTrial(trial, login, undefined);
  if (isJson) stdout.line(safeJson(documentOf(trial, rows, program, judged.ok), 2));
  else {
    stdout.line(
      `claude ${trial.version} (${safeLine(program, 300)}), tried in ${(trial.durationMs / 1000).toFixed(1)} s`,
    );
    for (const row of rows) for (const line of describe(context, row)) stdout.line(line);
    if (!judged.ok) stderr.line(safeLine(judged.failure.message, 1000));
  }
  return ok(judged.ok ? exitCode.done : exitCode.failed);
}

function rowsOf({ seen }: Tried, login: Parameters<typeof weightFor>[1]): Row[] {
  return claims.flatMap((claim) => {
    const one = seen.find(({ id }) => id === claim.id);
    return one === undefined ? [] : [{ ...one, claim, weight: weightFor(claim, login) }];
  });
}

function describe({ stdout }: Context, { verdict, what, weight, claim }: Row): string[] {
  const isAbsent = verdict === 'broken' && claim.weight === 'ability';
  const [word, tone]: readonly [string, Tone] = isAbsent ? ['absent', 'warn'] : [verdict, tones[verdict]];
  const lead = `${stdout.style(tone, word)}${' '.repeat(9 - word.length)}${padColumns(weight, 9)}`;
  const first = `${lead}${padColumns(claim.id, 17)}${claim.promise}`;
  if (verdict === 'holds') return [first];
  const because = what === '' ? '' : ` (${safeLine(what, 300)})`;
  return [first, `${' '.repeat(35)}${verdict === 'broken' ? claim.meaning : 'Nothing could be seen.'}${because}`];
}

function documentOf({ version, at, durationMs }: Tried, rows: readonly Row[], program: string, isUsable: boolean) {
  const listed = rows.map(({ id, verdict, what, weight, claim: { promise, meaning } }) => {
    return { id, weight, verdict, promise, ...(verdict === 'holds' ? {} : { meaning, what }) };
  });
  return { ok: isUsable, version, program, at, durationMs, claims: listed };
}

/** What the last trial of the claude that is installed has shown; nothing when there is no claude. */
export async function rememberedTrial({ world, env, packageRoot }: Context, root: string): Promise<Finding[]> {
  const found = findClaude(world, env, { packageRoot });
  if (!found.ok) return [];
  const check = 'trial';
  const tried = await trialOf(world, root, found.value.program, env);
  if (tried === undefined) {
    return [
      fine(
        check,
        `not tried here yet: the next run does it at no cost, and so does: ${commandText(['doctor', '--claude'])}`,
      ),
    ];
  }
  const { version, at } = tried;
  const login = chooseLogin(env).kind;
  // An ability that is absent breaks no promise.
  const promises = rowsOf(tried, login).filter(({ claim }) => claim.weight !== 'ability');
  const held = promises.filter(({ verdict }) => verdict === 'holds').length;
  const message = `claude ${version}: ${held} of ${promises.length} promises held on ${at.slice(0, 10)}`;
  const judged = judgeTrial(tried, login, undefined);
  const wrong = rowsOf(tried, login).filter((row) => row.verdict !== 'holds' && row.weight !== 'ability');
  if (wrong.length === 0) return [fine(check, message)];
  const names = wrong.map(({ id, verdict }) => `${id} ${verdict === 'broken' ? 'is broken' : 'was not seen'}`);
  const next = see('doctor', '--claude');
  return [finding(check, judged.ok ? 'warning' : 'broken', `${message}; ${names.join(', ')}`, next)];
}
