/** `session attach`: opens the conversation of a session in claude; afterwards the group continues with it. */
import type { Command } from '@commander-js/extra-typings';
import { type Attached, attachSession } from '../../../app/attach/attach-session.ts';
import { loadReferredSession } from '../../../app/resolve.ts';
import { adviceText, advise, commandText } from '../../../core/advice.ts';
import type { SessionId } from '../../../core/group.ts';
import { raiseAdvice, resumeSessionCommand, sessionReference } from '../../../core/plan/advice.ts';
import { isBudgetExhausted } from '../../../core/plan/budget.ts';
import type { SessionRecord } from '../../../core/session-state.ts';
import type { GroupState } from '../../../core/state.ts';
import { formatMoney } from '../../../core/text.ts';
import { titleOf } from '../../../view/wording.ts';
import { type Context, exitCode, need, refuse } from '../../context.ts';

const example = `
Example:
  $ claude-code-agent session attach auth-refactor/api`;

export function define(command: Command, context: Context): void {
  command
    .description(
      `Attach to a session: pause it and open its conversation in claude, with its
      settings and in its folder. When you leave claude with /exit, the group
      continues with that conversation. What you spend counts towards the session;
      claude is ended when the budget is exhausted. Exit codes: 0 detached, 1 cannot be
      attached now, 2 bad input or no terminal, 3 ended at the budget.`,
    )
    .argument('<session>', 'id, unique prefix, or <group>/<number-or-name>')
    .addHelpText('after', example)
    .action((reference) =>
      context.run(async () => {
        const { stdout } = context;
        const session = need(loadReferredSession(context, reference));
        if (!context.stdinIsTerminal || !stdout.isTerminal) {
          const say = commandText(['session', 'say', reference, 'TEXT']);
          return refuse('usage', 'Attaching needs a terminal.', `Without one, send it a message with: ${say}`);
        }
        const attached = await attachSession(context, session, {
          opening: (reservedUsd) => stdout.line(spendLimitText(reservedUsd)),
          lend: async (use) => {
            await stdout.flush();
            await use();
          },
        });
        if (!attached.ok) return attached;
        stdout.line(attachedText(attached.value, session.sessionId));
        return attached.value.isSpent ? exitCode.paused : exitCode.done;
      }),
    );
}

export function spendLimitText(reservedUsd: number | undefined): string {
  const cap =
    reservedUsd === undefined ? 'There is no cap.' : `You may spend ${formatMoney(reservedUsd)}; then claude is ended.`;
  return `${cap} Leave with /exit to let the group continue.`;
}

export function attachedText(
  { conversed, reservedUsd, isSpent, autoResumes, state }: Attached,
  sessionId: SessionId,
): string {
  const record = state.sessions.get(sessionId);
  const title = titleOf(state, sessionId);
  const { usage, spoken } = conversed;
  const spent = formatMoney(usage.costUsd, usage.estimated);
  const ended = isSpent ? `claude was ended: the limit of ${formatMoney(reservedUsd ?? 0)} was reached. ` : '';
  const cost = spoken ? `You spent ${spent}.` : 'No message was sent.';
  if (autoResumes) return `${ended}${cost} ${title} continues when a slot is free.`;
  return `${ended}${cost} ${record === undefined ? '' : restText(state, record, title)}`.trim();
}

function restText(state: GroupState, record: SessionRecord, title: string): string {
  const { status } = record.state;
  if (status !== 'paused' && status !== 'failed') return `${title} is ${status}.`;
  if (isBudgetExhausted(record)) return `${title} is ${status}. ${adviceText(raiseAdvice(state, record))}`;
  const goOn =
    status === 'paused' ? resumeSessionCommand(state, record) : ['session', 'retry', sessionReference(state, record)];
  return `${title} is ${status}. ${adviceText(advise('Continue with', goOn))}`;
}
