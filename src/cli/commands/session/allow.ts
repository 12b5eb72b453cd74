/** `session allow`: permission rules for a session, such as those that would have allowed what was denied. */
import type { Command } from '@commander-js/extra-typings';
import { whileWaiting } from '../../../app/request.ts';
import { type LoadedSession, loadReferredSession } from '../../../app/resolve.ts';
import { submit } from '../../../app/submit.ts';
import { type Denial, denialsOf } from '../../../app/watch/denied-calls.ts';
import { adviceText, advise } from '../../../core/advice.ts';
import { defined } from '../../../core/defined.ts';
import { resumeSessionCommand, sessionReference } from '../../../core/plan/advice.ts';
import { permissionRules, rulesRule } from '../../../core/values.ts';
import { safeLine } from '../../../view/terminal-text.ts';
import { titleOf } from '../../../view/wording.ts';
import { type Context, need, refuse, type Work } from '../../context.ts';
import { startSession } from '../group/run.ts';

const example = `
Example:
  $ claude-code-agent session allow auth-refactor/api                  what was denied, and which rules would allow it
  $ claude-code-agent session allow auth-refactor/api --denied --retry
  $ claude-code-agent session allow auth-refactor/api 'Bash(npm test:*)' Edit`;

const columnsMax = 300;

export function define(command: Command, context: Context): void {
  command
    .description(
      'Adds permission rules to those of a session that is not running. Without a rule it shows what was denied so ' +
        'far and the rules that would have allowed it; on a terminal they can be chosen.',
    )
    .argument('<session>', 'id, unique prefix, or <group>/<number-or-name>')
    .argument('[rule...]', 'permission rules such as Edit or "Bash(git log:*)"')
    .option('--denied', 'all rules that would have allowed what was denied')
    .option('--retry', 'then go on with the session')
    .option('--rehearse [script]', 'the script with which the rehearsal goes on')
    .option('--json', 'one JSON document: the session, what was denied, the rules that are new')
    .addHelpText('after', example)
    .action((reference, typed, given) =>
      context.run(async () => {
        const { denied, retry, json, rehearse } = given;
        if (json && retry) return refuse('usage', 'Both --json and --retry were given.', 'Give one of them.');
        const session = need(loadReferredSession(context, reference));
        const own = rulesOf(typed);
        const { record, sessionId, paths } = session;
        const has = new Set(record.definition.allowedTools);
        const denials = denialsOf(context.world, paths, sessionId).map((denial) => ({
          ...denial,
          rules: denial.rules.filter((rule) => !has.has(rule)),
          isAllowed: denial.rules.length > 0 && denial.rules.every((rule) => has.has(rule)),
        }));
        const offered = [...new Set(denials.flatMap(({ rules }) => rules))];
        const isShown = typed.length === 0 && denied !== true;
        if (isShown && !json) show(context, session, denials);
        const chosen = isShown && !json ? await choose(context, session, offered) : denied ? offered : [];
        const rules = [...new Set([...own, ...chosen])];
        if (denied && offered.length === 0 && own.length === 0) return nothingHelps(session, denials);
        const added = rules.filter((rule) => !has.has(rule));
        if (rules.length > 0) {
          const asked = submit(context, session, { kind: 'allow-tools', sessionId, rules });
          need(await whileWaiting(context, session, asked));
        }
        if (json) context.stdout.json({ session: sessionId, denied: denials.map(forScripts), allowed: added });
        else if (rules.length > 0) say(context, session, added, retry === true);
        if (retry && (!isShown || rules.length > 0)) return goOn(context, session, rehearse);
      }),
    );
}

function rulesOf(typed: readonly string[]): string[] {
  const rules: string[] = [];
  for (const text of typed) {
    const found = permissionRules(text);
    if (found === null)
      return refuse('usage', `"${text}" is no permission rule: ${rulesRule}.`, 'Quote each for the shell.');
    rules.push(...found);
  }
  return rules;
}

type Shown = Denial & { readonly isAllowed: boolean };

function show({ stdout }: Context, { state, sessionId }: LoadedSession, denials: readonly Shown[]): void {
  if (denials.length === 0) stdout.line(`Nothing was denied to session ${titleOf(state, sessionId)} so far.`);
  let number = 0;
  const seen = new Set<string>();
  for (const denial of denials) {
    stdout.line(`denied: ${callText(denial)}`);
    for (const rule of denial.rules) {
      if (!seen.has(rule)) number += 1;
      stdout.line(seen.has(rule) ? `     ${rule} (see above)` : `  ${String(number).padStart(2)} ${rule}`);
      seen.add(rule);
    }
    if (denial.isAllowed) stdout.line('     is allowed by now');
    else if (denial.rules.length === 0)
      stdout.line(`     no rule helps. ${safeLine(denial.message ?? '', columnsMax)}`);
  }
}

function callText({ tool, input }: Denial): string {
  const what = ['command', 'file_path', 'notebook_path', 'url', 'query'].map((key) => input[key]);
  const target = what.find((value) => typeof value === 'string');
  return safeLine(`${tool} ${target ?? ''}`.trim(), columnsMax);
}

/** Numbers of what was shown; without a terminal nothing is chosen, and it is said how. */
async function choose(
  context: Context,
  { state, record }: LoadedSession,
  offered: readonly string[],
): Promise<string[]> {
  if (offered.length === 0) return [];
  if (!context.stdinIsTerminal || !context.stdout.isTerminal) {
    const all = ['session', 'allow', sessionReference(state, record), '--denied', '--retry'];
    context.stdout.line(adviceText(advise('Allow all of it, and go on', all)));
    return [];
  }
  await context.stdout.flush();
  const answer = prompt('Which are to be allowed? Numbers, all, or none [none]:')?.trim().toLowerCase() ?? '';
  if (/^a(?:ll)?$/.test(answer)) return [...offered];
  if (answer === '' || /^n(?:one)?$/.test(answer)) return [];
  const numbers = answer.split(/[\s,]+/).map(Number);
  const rules = numbers.map((number) => offered[number - 1]);
  if (rules.every((rule) => rule !== undefined)) return rules;
  return refuse(
    'usage',
    `${safeLine(answer, columnsMax)} are no numbers from 1 to ${offered.length}.`,
    'Nothing was allowed.',
  );
}

function nothingHelps({ state, sessionId, record }: LoadedSession, denials: readonly Shown[]): Work {
  const title = titleOf(state, sessionId);
  if (denials.length === 0) return refuse('usage', `Nothing was denied to session ${title} so far.`, 'Name a rule.');
  if (denials.some(({ isAllowed }) => isAllowed)) {
    return refuse('usage', `What rules can allow of that, session ${title} is allowed already.`, 'Try it again.');
  }
  const edit = ['session', 'edit', sessionReference(state, record), '--permission-mode', 'acceptEdits'];
  const next = advise('Give it another mode, for example with', edit);
  return refuse('usage', `No rule would have allowed what was denied to session ${title}.`, next);
}

function forScripts({ tool, input, message, rules, isAllowed }: Shown): object {
  return { tool, input, ...defined({ message }), rules, allowed: isAllowed };
}

function say(
  { stdout }: Context,
  { state, sessionId, record }: LoadedSession,
  added: readonly string[],
  goesOn: boolean,
) {
  const title = titleOf(state, sessionId);
  const what = added.length === 0 ? 'nothing that it was not allowed before' : safeLine(added.join(', '), 2_000);
  const { status } = record.state;
  const next =
    status === 'failed'
      ? advise('Try it again with', ['session', 'retry', sessionReference(state, record)])
      : advise('Go on with', resumeSessionCommand(state, record));
  const isResting = status === 'failed' || status === 'paused';
  stdout.line(`Session ${title} is allowed ${what}.${goesOn || !isResting ? '' : ` ${adviceText(next)}`}`);
}

function goOn(context: Context, session: LoadedSession, rehearse: string | true | undefined): Promise<Work> {
  const { sessionId, record } = session;
  const kind = record.state.status === 'failed' ? 'retry-session' : 'resume-session';
  return startSession(context, session, { kind, sessionId }, { rehearse });
}
