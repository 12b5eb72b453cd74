/** `inbox` and `answer`: requests of sessions that need an answer of the user. */
import type { Command } from '@commander-js/extra-typings';
import { answerItem, type InboxItem, readInbox } from '../../app/inbox.ts';
import { adviceText, advise } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import { openItems } from '../../core/item.ts';
import { goOnAdvice } from '../../core/plan/advice.ts';
import { formatAge } from '../../view/format.ts';
import { answersOf, choicesOf } from '../../view/review/review.ts';
import { safeLine } from '../../view/terminal-text.ts';
import { type Context, need, refuse } from '../context.ts';
import { parseWhole } from '../options/options.ts';

const columnsMax = 400;

const inboxExample = `
Example:
  $ claude-code-agent inbox
  $ claude-code-agent inbox auth-refactor --json | jq -r '.items[].text'`;

export function defineInbox(command: Command, context: Context): void {
  command
    .description('List what waits for you: permissions, questions, changed tests and waves, oldest first.')
    .argument('[group]', 'id, unique prefix or slug; all groups otherwise')
    .option('--json', 'one JSON document: {"items": [{"id", "group", "session", "kind", "text", "options", "since"}]}')
    .addHelpText('after', inboxExample)
    .action((reference, { json }) =>
      context.run(() => {
        const items = need(readInbox(context, reference));
        if (json) {
          context.stdout.json({ items: items.map(({ label: _, ...item }) => item) });
          return;
        }
        if (items.length === 0) context.stdout.line('The inbox is empty.');
        const nowMs = context.world.clock.now();
        for (const [index, item] of items.entries()) {
          if (index > 0) context.stdout.line('');
          context.stdout.lines(itemLines(item, nowMs));
        }
      }),
    );
}

function itemLines(item: InboxItem, nowMs: number): string[] {
  const { id, group, label, kind, text, since, diff, logs = [] } = item;
  const age = formatAge(Math.max(0, nowMs - Date.parse(since)));
  const head = `${id}  ${label === '' ? group : `${group}/${label}`}  ${kind}, ${age}`;
  const files = diff === undefined ? [] : [`  Difference: ${diff}`, `  Output: ${logs.join(', ')}`];
  return [
    head,
    `  ${safeLine(text, columnsMax)}`,
    ...files,
    ...choicesOf(item).map((choice) => `  ${safeLine(choice, columnsMax)}`),
    ...answersOf(item).map((line) => `  ${line}`),
  ];
}

const parseNumber = parseWhole(1, 1_000);

function collectNumber(text: string, before: readonly number[] = []): readonly number[] {
  return [...before, parseNumber(text)];
}

const answerExample = `
Example:
  $ claude-code-agent answer 1a2b3c4d allow
  $ claude-code-agent answer 1a2b3c4d deny --note "Use the mirror instead."
  $ claude-code-agent answer auth-refactor/api --option 2
  $ claude-code-agent answer 5e6f7a8b "Neither: keep the present format."`;

export function defineAnswer(command: Command, context: Context): void {
  command
    .description(
      `Answer an item of the inbox. Only the first answer counts; a second one exits
      with 2. Answer a permission or changed tests with allow or deny, a wave with continue or stop,
      and a question with a text or one option per question.`,
    )
    .argument('<item>', 'id or prefix, <group>/<session> if it has one item, or the group of a wave')
    .argument('[text]', 'allow or deny, continue or stop, or the answer to a question')
    .option('--option <n>', 'number of an option of the question; can be repeated', collectNumber)
    .option('--always', 'allow, and add a rule to the group that allows such calls')
    .option('--note <text>', 'a note to the session; for a wave, a sentence added to all later prompts')
    .option('--json', 'one JSON document: {"item", "group", "session", "answer"}')
    .addHelpText('after', answerExample)
    .action((reference, text, { option: options = [], always, note, json }) =>
      context.run(async () => {
        if (text === undefined && options.length === 0)
          refuse('usage', 'No answer was given.', advise('See the open items with', ['inbox']));
        const given = { ...defined({ text, note, always }), ...(options.length > 0 ? { options } : {}) };
        const { group, record, item, by } = need(await answerItem(context, reference, given));
        const { id: session = null, name = undefined } = record?.definition ?? {};
        const words = text ?? options.join(', ');
        if (json) {
          context.stdout.json({ item: item.id, group: group.groupId, session, answer: words });
          return;
        }
        const hasMore = record !== undefined && openItems(record).length > 0;
        const goesOn = by === 'runner' ? 'The session continues.' : '';
        const then = hasMore ? 'More questions are open.' : goesOn;
        const next = by === 'log' ? adviceText(goOnAdvice(group.state)) : then;
        const whose = session === null ? 'a wave' : `session ${name ?? session}`;
        context.stdout.line(safeLine(`Answered ${item.id} of ${whose}. ${next}`.trim(), columnsMax));
      }),
    );
}
