/**
 * Short forms: one word for what a family has a command for. Most take a group or a session, and are then the command
 * of that family with the same options; what they do, help and refuse is said there and nowhere else.
 */

import { Command, type OptionValues } from '@commander-js/extra-typings';
import { isGroupNamed, loadReferredGroup, loadReferredSession, sessionOf } from '../app/resolve.ts';
import { advise, commandText } from '../core/advice.ts';
import { ok, type Result } from '../core/failure.ts';
import { sessionLabel } from '../core/id.ts';
import { planOf } from '../core/plan/plan.ts';
import { listTitles, titleOf } from '../view/wording.ts';
import { type Context, need, refuse } from './context.ts';

export interface ShortForm {
  readonly word: string;
  readonly summary: string;
  readonly group: readonly string[];
  readonly session?: readonly string[];
}

export const shortForms: readonly ShortForm[] = [
  { word: 'ls', summary: 'list groups (group list)', group: ['group', 'list'] },
  { word: 'ps', summary: 'list active groups', group: ['group', 'list', '--status', 'active'] },
  {
    word: 'show',
    summary: 'show a group or a session',
    group: ['group', 'show'],
    session: ['session', 'show'],
  },
  { word: 'status', summary: 'the same as show', group: ['group', 'show'], session: ['session', 'show'] },
  {
    word: 'watch',
    summary: 'follow a group, or the log of a session',
    group: ['group', 'watch'],
    session: ['session', 'logs', '--follow'],
  },
  {
    word: 'logs',
    summary: 'read the transcript of a session, or those of a group',
    group: [],
    session: ['session', 'logs'],
  },
  { word: 'pause', summary: 'pause a group or a session', group: ['group', 'pause'], session: ['session', 'pause'] },
  {
    word: 'resume',
    summary: 'go on with a group or a session',
    group: ['group', 'resume'],
    session: ['session', 'resume'],
  },
  {
    word: 'diff',
    summary: 'show what a group or a session changed',
    group: ['group', 'diff'],
    session: ['session', 'diff'],
  },
  { word: 'why', summary: 'explain why a group or a session is not running', group: ['group', 'why'], session: [] },
];

export interface Tree {
  define(path: readonly string[], command: Command): Promise<void>;
  run(argv: readonly string[]): Promise<void>;
}

export async function defineShortForm(
  command: Command<[], OptionValues>,
  context: Context,
  form: ShortForm,
  rest: readonly string[],
  tree: Tree,
): Promise<void> {
  const forms = [form.group, form.session ?? []].filter((words) => words.length > 0);
  const long = await Promise.all(forms.map((words) => longForm(words, tree)));
  const names = forms.map((words) => commandText(words)).join('\n  ');
  command.description(`${form.summary[0]?.toUpperCase()}${form.summary.slice(1)}. Short for:\n  ${names}`);
  const given = new Set(forms.flat());
  for (const option of long.flatMap(({ options }) => options)) {
    const isKnown = command.options.some(({ long: name }) => name === option.long);
    if (!isKnown && !given.has(option.long ?? '')) command.addOption(option);
  }
  if (form.session === undefined) {
    for (const argument of long.flatMap(({ registeredArguments }) => registeredArguments))
      command.addArgument(argument);
    command.action(() => tree.run([...form.group, ...rest]));
    return;
  }
  command.argument('<group-or-session>', 'a group, or <group>/<number-or-name>, or the id of a session');
  if (form.word === 'why') command.argument('[session]', 'of the group: id, unique prefix, number or name');
  command.action(async () => {
    const [reference = ''] = command.args;
    const lines = linesFor(context, form, { reference, rest, options: command.opts() });
    if (!lines.ok) return context.run(() => lines);
    for (const { title, argv } of lines.value) {
      if (title !== undefined) context.stdout.line(context.stdout.style('strong', title));
      await tree.run(argv);
    }
  });
}

async function longForm(words: readonly string[], tree: Tree): Promise<Command> {
  const scratch = new Command();
  await tree.define(words.slice(0, 2), scratch);
  return scratch;
}

interface Typed {
  readonly reference: string;
  readonly rest: readonly string[];
  readonly options: OptionValues;
}

interface Line {
  /** Said before, where there are several. */
  readonly title?: string;
  readonly argv: readonly string[];
}

function linesFor(context: Context, form: ShortForm, typed: Typed): Result<readonly Line[]> {
  const { reference, rest } = typed;
  const isGroup = need(isGroupNamed(context, reference));
  if (form.word === 'logs' && isGroup) return logsOf(context, typed);
  if (form.word === 'why' && !isGroup) {
    const session = need(loadReferredSession(context, reference));
    const { groupId, sessionId } = session;
    return ok([{ argv: ['group', 'why', groupId, sessionId, ...without(rest, reference)] }]);
  }
  return ok([{ argv: [...((isGroup ? form.group : form.session) ?? []), ...rest] }]);
}

/** One after the other, in the order of the graph; what has no place for titles takes one session alone. */
function logsOf(context: Context, { reference, rest, options }: Typed): Result<readonly Line[]> {
  const group = need(loadReferredGroup(context, reference));
  const { state, groupId } = group;
  const { order } = planOf(state).graph;
  const [first, second] = order;
  if (first === undefined) {
    const next = advise('Add some with', ['session', 'add', groupId, '--project', 'DIR', '--prompt', 'TEXT']);
    return refuse('not-found', `The group ${groupId} has no sessions.`, next);
  }
  const argvFor = (id: string) => ['session', 'logs', `${groupId}/${id}`, ...without(rest, reference)];
  if (second === undefined) return ok([{ argv: argvFor(first) }]);
  if (options.json || options.raw || options.follow) {
    const session = sessionOf(group, first);
    const example = session.ok ? sessionLabel(first, session.value.record.definition.name) : first;
    const message = `--json, --raw and --follow are for one session, and ${groupId} has ${listTitles(state, order)}.`;
    return refuse('ambiguous', message, advise('Give one of them, such as', ['logs', `${groupId}/${example}`]));
  }
  return ok(order.map((id) => ({ title: titleOf(state, id), argv: argvFor(id) })));
}

function without(words: readonly string[], word: string): readonly string[] {
  const index = words.indexOf(word);
  return words.filter((_, position) => position !== index);
}
