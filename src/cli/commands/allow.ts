/** `session allow` and `group allow`: permission rules, such as those that would have allowed what was denied. */
import type { Command } from '@commander-js/extra-typings';
import { liveRunner } from '../../app/live-runner.ts';
import { whileWaiting } from '../../app/request.ts';
import { type LoadedGroup, type LoadedSession, loadReferredGroup, loadReferredSession } from '../../app/resolve.ts';
import { type CommandOf, submit } from '../../app/submit.ts';
import { type Denial, denialsOf } from '../../app/watch/denied-calls.ts';
import { type Advice, adviceText, advise, type CommandLine } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import type { PermissionMode } from '../../core/definitions.ts';
import { resumeSessionCommand, retryFailedCommand, sessionReference } from '../../core/plan/advice.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import { permissionRules, rulesRule } from '../../core/values.ts';
import { safeLine } from '../../view/terminal-text.ts';
import { titleOf } from '../../view/wording.ts';
import { type Context, need, refuse, type Work } from '../context.ts';
import { runFailedAgain, startSession } from './group/run.ts';

const columnsMax = 300;

const sessionExample = `
Example:
  $ claude-code-agent session allow auth-refactor/api                  what was denied, and which rules would allow it
  $ claude-code-agent session allow auth-refactor/api --denied --retry
  $ claude-code-agent session allow auth-refactor/api 'Bash(npm test:*)' Edit`;

export function defineSessionAllow(command: Command, context: Context): void {
  const described = command
    .description(
      'Adds permission rules to those of a session that is not running. Without a rule it shows what was denied so ' +
        'far and the rules that would have allowed it; on a terminal they can be chosen.',
    )
    .argument('<session>', 'id, unique prefix, or <group>/<number-or-name>');
  withOptions(described, 'then go on with the session', sessionExample).action((reference, typed, given) =>
    context.run(() =>
      allow(context, sessionSubject(context, need(loadReferredSession(context, reference))), typed, given),
    ),
  );
}

const groupExample = `
Example:
  $ claude-code-agent group allow auth-refactor                  what was denied, and which rules would allow it
  $ claude-code-agent group allow auth-refactor --denied --retry
  $ claude-code-agent group allow auth-refactor 'Bash(npm test:*)' Edit`;

export function defineGroupAllow(command: Command, context: Context): void {
  const described = command
    .description(
      'Adds permission rules to those of all sessions of a group, also those that are added later. A running session ' +
        'has them from its next attempt on. Without a rule it shows what was denied so far.',
    )
    .argument('<group>', 'id, unique prefix or slug');
  withOptions(described, 'then try failed sessions again', groupExample).action((reference, typed, given) =>
    context.run(() => allow(context, groupSubject(context, need(loadReferredGroup(context, reference))), typed, given)),
  );
}

function withOptions<Args extends unknown[]>(command: Command<Args>, retry: string, example: string) {
  return command
    .argument('[rule...]', 'permission rules such as Edit or "Bash(git log:*)"')
    .option('--denied', 'all rules that would have allowed what was denied')
    .option('--retry', retry)
    .option('--rehearse [script]', 'the script with which the rehearsal goes on')
    .option('--json', 'one JSON document: what was denied, the rules that are new')
    .addHelpText('after', example);
}

interface Given {
  readonly denied?: true | undefined;
  readonly retry?: true | undefined;
  readonly rehearse?: string | true | undefined;
  readonly json?: true | undefined;
}

/** What gets the rules. */
interface Subject {
  readonly group: LoadedGroup;
  /** Begins a sentence. */
  readonly title: string;
  readonly command: CommandLine;
  readonly document: object;
  readonly records: readonly SessionRecord[];
  /** All that has them already. */
  readonly has: ReadonlySet<string>;
  readonly request: (rules: readonly string[]) => CommandOf<'allow-tools' | 'edit-group'>;
  /** How it goes on with the new rules. */
  readonly next: Advice | null;
  readonly goOn: (rehearse: string | true | undefined) => Promise<Work>;
}

function sessionSubject(context: Context, session: LoadedSession): Subject {
  const { state, sessionId, record } = session;
  const { status } = record.state;
  const reference = sessionReference(state, record);
  const isFailed = status === 'failed';
  const next = isFailed
    ? advise('Try it again with', ['session', 'retry', reference])
    : advise('Go on with', resumeSessionCommand(state, record));
  return {
    group: session,
    title: `Session ${titleOf(state, sessionId)}`,
    command: ['session', 'allow', reference],
    document: { session: sessionId },
    records: [record],
    has: new Set(record.definition.allowedTools),
    request: (rules) => ({ kind: 'allow-tools', sessionId, rules }),
    next: isFailed || status === 'paused' ? next : null,
    goOn: (rehearse) =>
      startSession(context, session, { kind: isFailed ? 'retry-session' : 'resume-session', sessionId }, { rehearse }),
  };
}

function groupSubject(context: Context, group: LoadedGroup): Subject {
  const { state, groupId } = group;
  const records = [...state.sessions.values()];
  const failed = records.filter((record) => record.state.status === 'failed');
  const isHeld = liveRunner(context.world, group) !== null;
  const hasNext = failed.length > 0 || state.status === 'paused';
  return {
    group,
    title: `Group ${groupId}`,
    command: ['group', 'allow', groupId],
    document: { group: groupId },
    records,
    has: new Set(state.group.config.allowedTools),
    request: (rules) => ({ kind: 'edit-group', allow: rules }),
    next: hasNext && !isHeld ? advise('Go on with', retryFailedCommand(state)) : null,
    goOn: (rehearse) =>
      runFailedAgain(
        context,
        group,
        failed.map(({ definition: { id } }) => id),
        { rehearse },
      ),
  };
}

type Shown = Denial & {
  /** Whose call it was, where several may have made it. */
  readonly of: SessionRecord;
  readonly isAllowed: boolean;
};

function shownDenials({ world }: Context, { group, records }: Subject): Shown[] {
  return records.flatMap((record) => {
    const has = new Set(record.definition.allowedTools);
    return denialsOf(world, group.paths, record.definition.id).map((denial) => ({
      ...denial,
      of: record,
      rules: denial.rules.filter((rule) => !has.has(rule)),
      isAllowed: denial.rules.length > 0 && denial.rules.every((rule) => has.has(rule)),
    }));
  });
}

async function allow(context: Context, subject: Subject, typed: readonly string[], given: Given): Promise<Work> {
  const { denied, retry, json, rehearse } = given;
  if (json && retry) return refuse('usage', 'Both --json and --retry were given.', 'Give one of them.');
  const own = rulesOf(typed);
  const denials = shownDenials(context, subject);
  const offered = [...new Set(denials.flatMap(({ rules }) => rules))];
  const isShown = typed.length === 0 && denied !== true;
  if (isShown && !json) show(context, subject, denials);
  const chosen = isShown && !json ? await choose(context, subject, offered) : denied ? offered : [];
  const rules = [...new Set([...own, ...chosen])];
  if (denied && offered.length === 0 && own.length === 0) return nothingHelps(subject, denials);
  const added = rules.filter((rule) => !subject.has.has(rule));
  if (rules.length > 0) {
    need(await whileWaiting(context, subject.group, submit(context, subject.group, subject.request(rules))));
  }
  if (json) context.stdout.json({ ...subject.document, denied: denials.map(forScripts), allowed: added });
  else if (rules.length > 0) say(context, subject, added, retry === true);
  if (denied && !json) sayHelpless(context, denials);
  if (retry && (!isShown || rules.length > 0)) return subject.goOn(rehearse);
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

function show({ stdout }: Context, { title, records, group }: Subject, denials: readonly Shown[]): void {
  if (denials.length === 0) stdout.line(nothingDenied(title));
  let number = 0;
  const seen = new Set<string>();
  for (const denial of denials) {
    const { definition } = denial.of;
    const whose = records.length === 1 ? '' : ` to ${titleOf(group.state, definition.id)}`;
    stdout.line(`denied${whose}: ${callText(denial)}`);
    for (const rule of denial.rules) {
      if (!seen.has(rule)) number += 1;
      stdout.line(seen.has(rule) ? `     ${rule} (see above)` : `  ${String(number).padStart(2)} ${rule}`);
      seen.add(rule);
    }
    if (denial.isAllowed) stdout.line('     is allowed by now');
    else if (denial.rules.length === 0) {
      stdout.line(`     ${helplessText(denial)}`);
      stdout.line(`     ${adviceText(helpOf(group.state, denial))}`);
    }
  }
}

function nothingDenied(title: string): string {
  return `Nothing was denied to ${withinSentence(title)} so far.`;
}

function withinSentence(title: string): string {
  return `${title[0]?.toLowerCase()}${title.slice(1)}`;
}

/** Why no rule helps. */
function helplessText({ by, despite, message = '' }: Denial): string {
  const why =
    by === 'hook'
      ? ': a hook denied it'
      : by === 'rule'
        ? ': a rule of its settings denies it, or wants it to be asked'
        : despite === undefined
          ? ''
          : `: it was denied although ${despite.join(', ')} ${despite.length === 1 ? 'was' : 'were'} in place`;
  return safeLine(`no rule helps${why}. ${message}`.trim(), columnsMax);
}

/** The next mode in which claude asks less. */
function freerMode(mode: PermissionMode): PermissionMode | undefined {
  if (mode === 'bypassPermissions') return undefined;
  return mode === 'acceptEdits' || mode === 'auto' ? 'bypassPermissions' : 'acceptEdits';
}

/** What helps where no rule does: never what was tried already. */
function helpOf(state: GroupState, { by, of: record }: Shown): Advice {
  const reference = sessionReference(state, record);
  const retry = ['session', 'retry', reference, '--prompt', 'TEXT'];
  if (by === 'hook') return advise('Change the hook, or tell the session to do it in another way', retry);
  if (by === 'rule') {
    const config = ['session', 'show', reference, '--config'];
    return advise('See which rule it is, or tell the session to do it in another way', config, retry);
  }
  const freer = freerMode(record.definition.permissionMode ?? 'acceptEdits');
  if (freer === undefined) return advise('Tell the session to do it in another way', retry);
  const edit = ['session', 'edit', reference, '--permission-mode', freer];
  return advise('Tell the session to do it in another way, or give it another mode', retry, edit);
}

function callText({ tool, input }: Denial): string {
  const what = ['command', 'file_path', 'notebook_path', 'url', 'query'].map((key) => input[key]);
  const target = what.find((value) => typeof value === 'string');
  return safeLine(`${tool} ${target ?? ''}`.trim(), columnsMax);
}

/** Numbers of what was shown; without a terminal nothing is chosen, and it is said how. */
async function choose(context: Context, { command }: Subject, offered: readonly string[]): Promise<string[]> {
  if (offered.length === 0) return [];
  if (!context.stdinIsTerminal || !context.stdout.isTerminal) {
    const all = [...command, '--denied', '--retry'];
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

/** What else was denied would be denied again. */
function sayHelpless({ stderr }: Context, denials: readonly Shown[]): void {
  for (const denial of denials) {
    if (denial.rules.length > 0 || denial.isAllowed) continue;
    stderr.line(`Still denied: ${callText(denial)}; ${helplessText(denial)}`);
  }
}

function nothingHelps({ group, title }: Subject, denials: readonly Shown[]): Work {
  const [helpless] = denials.filter(({ isAllowed, rules }) => !isAllowed && rules.length === 0);
  if (denials.length === 0) return refuse('usage', nothingDenied(title), 'Name a rule.');
  if (helpless === undefined || denials.some(({ isAllowed }) => isAllowed)) {
    return refuse(
      'usage',
      `What rules can allow of that, ${withinSentence(title)} is allowed already.`,
      'Try it again.',
    );
  }
  const message = `Of what was denied, ${callText(helpless)}: ${helplessText(helpless)}`;
  return refuse('usage', message, helpOf(group.state, helpless));
}

function forScripts({ tool, input, message, by, rules, despite, isAllowed, of }: Shown): object {
  const { id } = of.definition;
  return { session: id, tool, input, ...defined({ message, by }), rules, ...defined({ despite }), allowed: isAllowed };
}

function say({ stdout }: Context, { title, next }: Subject, added: readonly string[], goesOn: boolean) {
  const what = added.length === 0 ? 'nothing that it was not allowed before' : safeLine(added.join(', '), 2_000);
  stdout.line(`${title} is allowed ${what}.${goesOn || next === null ? '' : ` ${adviceText(next)}`}`);
}
