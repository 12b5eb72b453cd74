/** `session allow` and `group allow`: add permission rules, such as rules for denied calls. */
import { type Command, Option } from '@commander-js/extra-typings';
import { type CommandOf, submit } from '../../app/group-commands.ts';
import { liveRunner } from '../../app/live-runner.ts';
import { whileWaiting } from '../../app/request.ts';
import { type LoadedGroup, type LoadedSession, loadReferredGroup, loadReferredSession } from '../../app/resolve.ts';
import { type DenialAdvice, denialsOf } from '../../app/watch/denied-calls.ts';
import { type Advice, adviceText, advise, type CommandLine } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import type { PermissionMode } from '../../core/definitions.ts';
import { resumeSessionCommand, retryFailedCommand, sessionReference } from '../../core/plan/advice.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import { permissionRules, rulesRule } from '../../core/setting-values.ts';
import type { GroupState } from '../../core/state.ts';
import { safeLine } from '../../view/terminal-text.ts';
import { titleOf } from '../../view/wording.ts';
import { type CommandResult, type Context, need, refuse } from '../context.ts';
import { runFailedAgain, startSession } from './group/run.ts';

const columnsMax = 300;

export function defineSessionAllow(command: Command, context: Context): void {
  const described = command
    .description(
      `Add permission rules to a session that is not running. Without a rule, show
the denied calls and the rules that would allow them; on a terminal, choose
among them.`,
    )
    .argument('<session>', 'id, unique prefix, or <group>/<number-or-name>');
  withOptions(described, ['session', 'auth-refactor/api'], 'resume it afterwards').action((named, typed, given) =>
    context.run(() => allow(context, sessionSubject(context, need(loadReferredSession(context, named))), typed, given)),
  );
}

export function defineGroupAllow(command: Command, context: Context): void {
  const described = command
    .description(
      `Add permission rules to all sessions of a group, including those added later.
A running session gets them with its next attempt. Without a rule, show the
denied calls.`,
    )
    .argument('<group>', 'id, unique prefix or slug');
  withOptions(described, ['group', 'auth-refactor'], 'retry failed sessions afterwards').action((named, typed, given) =>
    context.run(() => allow(context, groupSubject(context, need(loadReferredGroup(context, named))), typed, given)),
  );
}

function withOptions<Args extends unknown[]>(
  command: Command<Args>,
  [what, named]: readonly [string, string],
  retry: string,
) {
  const line = `claude-code-agent ${what} allow ${named}`;
  return command
    .argument('[rule...]', 'permission rules such as Edit or "Bash(git log:*)"')
    .option('--denied', 'add all rules that would allow the denied calls')
    .addOption(new Option('--retry', retry).conflicts('json'))
    .option('--rehearse [script]', 'script for the rest of the rehearsal')
    .option('--json', 'one JSON document: denied calls and added rules')
    .addHelpText(
      'after',
      `
Example:
  $ ${line.padEnd(64)} show denied calls and the rules that would allow them
  $ ${line} --denied --retry
  $ ${line} 'Bash(npm test:*)' Edit`,
    );
}

interface Given {
  readonly denied?: true | undefined;
  readonly retry?: true | undefined;
  readonly rehearse?: string | true | undefined;
  readonly json?: true | undefined;
}

/** The session or group that gets the rules. */
interface Subject {
  readonly group: LoadedGroup;
  readonly title: string;
  readonly command: CommandLine;
  readonly document: object;
  readonly records: readonly SessionRecord[];
  /** The sessions that the rules apply to. */
  readonly has: readonly string[] | undefined;
  readonly request: (rules: readonly string[]) => CommandOf<'allow-tools' | 'edit-group'>;
  /** How to continue with the new rules. */
  readonly next: Advice | null;
  readonly goOn: (how: Given) => Promise<CommandResult>;
}

function sessionSubject(context: Context, session: LoadedSession): Subject {
  const { state, sessionId, record } = session;
  const { status } = record.state;
  const reference = sessionReference(state, record);
  const goOn = advise('Continue with', resumeSessionCommand(state, record));
  const retry = advise('Retry with', ['session', 'retry', reference]);
  const kind = status === 'failed' ? 'retry-session' : 'resume-session';
  return {
    group: session,
    title: `session ${titleOf(state, sessionId)}`,
    command: ['session', 'allow', reference],
    document: { session: sessionId },
    records: [record],
    has: record.definition.allowedTools,
    request: (rules) => ({ kind: 'allow-tools', sessionId, rules }),
    next: status === 'failed' ? retry : status === 'paused' ? goOn : null,
    goOn: (how) => startSession(context, session, { kind, sessionId }, how),
  };
}

function groupSubject(context: Context, group: LoadedGroup): Subject {
  const { state, groupId } = group;
  const records = [...state.sessions.values()];
  const hasNext = state.status === 'paused' || records.some((record) => record.state.status === 'failed');
  return {
    group,
    title: `group ${groupId}`,
    command: ['group', 'allow', groupId],
    document: { group: groupId },
    records,
    has: state.group.config.allowedTools,
    request: (rules) => ({ kind: 'edit-group', allow: rules }),
    next:
      hasNext && liveRunner(context.world, group) === null ? advise('Continue with', retryFailedCommand(state)) : null,
    goOn: (how) => runFailedAgain(context, group, how),
  };
}

type Shown = DenialAdvice & {
  /** The session that made the call. */
  readonly of: SessionRecord;
  readonly isAllowed: boolean;
};

function shownDenials({ world }: Context, { group, records }: Subject): Shown[] {
  return records.flatMap((of) => {
    const { id, allowedTools = [] } = of.definition;
    return denialsOf(world, group.paths, id).map((denial) => {
      const rules = denial.rules.filter((rule) => !allowedTools.includes(rule));
      return { ...denial, of, rules, isAllowed: denial.rules.length > 0 && rules.length === 0 };
    });
  });
}

function isHelpless({ rules, isAllowed }: Shown): boolean {
  return rules.length === 0 && !isAllowed;
}

async function allow(
  context: Context,
  subject: Subject,
  typed: readonly string[],
  given: Given,
): Promise<CommandResult> {
  const { denied, retry, json } = given;
  const { group, has = [] } = subject;
  const noRule = (text: string) => `"${text}" is not a permission rule: ${rulesRule}.`;
  const own = typed.flatMap(
    (text) => permissionRules(text) ?? refuse('usage', noRule(text), 'Quote each for the shell.'),
  );
  const denials = shownDenials(context, subject);
  const offered = [...new Set(denials.flatMap(({ rules }) => rules))];
  const isShown = typed.length === 0 && denied !== true;
  if (isShown && !json && denials.length === 0) context.stdout.line(nothingDenied(subject));
  if (isShown && !json) show(context, subject, denials, offered);
  const chosen = isShown && !json ? await choose(context, subject, offered) : denied ? offered : [];
  const rules = [...new Set([...own, ...chosen])];
  if (denied && rules.length === 0) return nothingHelps(subject, denials);
  const added = rules.filter((rule) => !has.includes(rule));
  if (rules.length > 0) need(await whileWaiting(context, group, submit(context, group, subject.request(rules))));
  if (json) context.stdout.json({ ...subject.document, denied: denials.map(forScripts), allowed: added });
  else if (rules.length > 0) say(context, subject, added, retry === true);
  // A retry would be denied again.
  for (const denial of denied && !json ? denials.filter(isHelpless) : [])
    context.stderr.line(`Still denied: ${callText(denial)}; ${helplessText(denial)}`);
  if (retry && (!isShown || rules.length > 0)) return subject.goOn(given);
}

function show({ stdout }: Context, { records, group }: Subject, denials: readonly Shown[], offered: readonly string[]) {
  for (const denial of denials) {
    const whose = records.length === 1 ? '' : ` to ${titleOf(group.state, denial.of.definition.id)}`;
    stdout.line(`denied${whose}: ${callText(denial)}`);
    for (const rule of denial.rules) stdout.line(`  ${String(offered.indexOf(rule) + 1).padStart(2)} ${rule}`);
    if (denial.isAllowed) stdout.line('     already allowed');
    if (!isHelpless(denial)) continue;
    stdout.line(`     ${helplessText(denial)}`);
    stdout.line(`     ${adviceText(helpOf(group.state, denial))}`);
  }
}

function nothingDenied({ title }: Subject): string {
  return `No calls of ${title} were denied.`;
}

function helplessText({ by, despite = [], message = '' }: DenialAdvice): string {
  const inPlace = `it was denied although ${despite.join(', ')} ${despite.length === 1 ? 'was' : 'were'} set`;
  const other = despite.length === 0 ? '' : `: ${inPlace}`;
  return safeLine(`no rule helps${reasons[by ?? ''] ?? other}. ${message}`.trim(), columnsMax);
}

const reasons: Readonly<Record<string, string>> = {
  hook: ': a hook denied it',
  rule: ': a rule in its settings denies it or asks for confirmation',
};

/** The next more permissive mode. */
function freerMode(mode: PermissionMode): PermissionMode | undefined {
  if (mode === 'bypassPermissions') return undefined;
  return mode === 'acceptEdits' || mode === 'auto' ? 'bypassPermissions' : 'acceptEdits';
}

/** Suggestions for a call that no rule can allow. */
function helpOf(state: GroupState, { by, of: record }: Shown): Advice {
  const reference = sessionReference(state, record);
  const retry = ['session', 'retry', reference, '--prompt', 'TEXT'];
  if (by === 'hook') return advise('Change the hook, or tell the session to use another way', retry);
  if (by === 'rule') {
    const config = ['session', 'show', reference, '--config'];
    return advise('Look up the rule, or tell the session to use another way', config, retry);
  }
  const freer = freerMode(record.definition.permissionMode ?? 'acceptEdits');
  if (freer === undefined) return advise('Tell the session to use another way', retry);
  const edit = ['session', 'edit', reference, '--permission-mode', freer];
  return advise('Tell the session to use another way, or change its permission mode', retry, edit);
}

function callText({ tool, input }: DenialAdvice): string {
  const what = ['command', 'file_path', 'notebook_path', 'url', 'query'].map((key) => input[key]);
  const target = what.find((value) => typeof value === 'string');
  return safeLine(`${tool} ${target ?? ''}`.trim(), columnsMax);
}

/** Asks which rules to add. Without a terminal, prints the command that adds them all. */
async function choose(context: Context, { command, next }: Subject, offered: readonly string[]): Promise<string[]> {
  if (offered.length === 0) return [];
  if (!context.stdinIsTerminal || !context.stdout.isTerminal) {
    if (next === null) return [];
    const all = [...command, '--denied', '--retry'];
    context.stdout.line(adviceText(advise('Allow all of these and resume', all)));
    return [];
  }
  await context.stdout.flush();
  const answer = prompt('Allow which? Enter numbers, all, or none [none]:')?.trim().toLowerCase() ?? '';
  if (/^a(?:ll)?$/.test(answer)) return [...offered];
  if (answer === '' || /^n(?:one)?$/.test(answer)) return [];
  const numbers = answer.split(/[\s,]+/).map(Number);
  const rules = numbers.map((number) => offered[number - 1]);
  if (rules.every((rule) => rule !== undefined)) return rules;
  const message = `${safeLine(answer, columnsMax)}: enter numbers from 1 to ${offered.length}.`;
  return refuse('usage', message, 'Nothing was allowed.');
}

function nothingHelps(subject: Subject, denials: readonly Shown[]): CommandResult {
  if (denials.length === 0) return refuse('usage', nothingDenied(subject), 'Give a rule.');
  const { group, title } = subject;
  const helpless = denials.find(isHelpless);
  if (helpless === undefined || denials.some(({ isAllowed }) => isAllowed))
    return refuse('usage', `All calls that rules can allow are already allowed for ${title}.`, 'Retry it.');
  const message = `${callText(helpless)} was denied; ${helplessText(helpless)}`;
  return refuse('usage', message, helpOf(group.state, helpless));
}

function forScripts({ tool, input, message, by, rules, despite, isAllowed, of }: Shown): object {
  const { id } = of.definition;
  return { session: id, tool, input, ...defined({ message, by }), rules, ...defined({ despite }), allowed: isAllowed };
}

function say({ stdout }: Context, { title, next }: Subject, added: readonly string[], isResumed: boolean) {
  const what = added.length === 0 ? 'nothing new' : safeLine(added.join(', '), 2_000);
  const then = isResumed || next === null ? '' : ` ${adviceText(next)}`;
  stdout.line(`${title[0]?.toUpperCase()}${title.slice(1)} now allows ${what}.${then}`);
}
