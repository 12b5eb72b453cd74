/** What is said before and after a person has a session, on a terminal and in the dashboard. */
import type { Attached } from '../app/attach/attach-session.ts';
import { adviceText, advise } from '../core/advice.ts';
import type { SessionId } from '../core/group.ts';
import { raiseAdvice, resumeSessionCommand, sessionReference } from '../core/plan/advice.ts';
import { isBudgetExhausted } from '../core/plan/budget.ts';
import type { SessionRecord } from '../core/session-state.ts';
import type { GroupState } from '../core/state.ts';
import { formatMoney } from '../core/text.ts';
import { titleOf } from '../view/wording.ts';

export function mayspendText(reservedUsd: number | undefined): string {
  const cap =
    reservedUsd === undefined
      ? 'There is no budget.'
      : `You may spend ${formatMoney(reservedUsd)}; claude is ended then.`;
  return `${cap} Leave with /exit, and the group goes on with what was said.`;
}

/** What came of it, in a few sentences. */
export function attachedText(
  { conversed, reservedUsd, isSpent, goesOn, state }: Attached,
  sessionId: SessionId,
): string {
  const record = state.sessions.get(sessionId);
  const title = titleOf(state, sessionId);
  const { usage, spoken } = conversed;
  const spent = formatMoney(usage.costUsd, usage.estimated);
  const ended = isSpent ? `claude was ended: ${formatMoney(reservedUsd ?? 0)} was what could be spent. ` : '';
  const said = spoken ? `You spent ${spent}.` : 'Nothing was said.';
  if (goesOn) return `${ended}${said} ${title} goes on${spoken ? ' with that' : ''} as soon as there is a slot.`;
  return `${ended}${said} ${record === undefined ? '' : restText(state, record, title)}`.trim();
}

function restText(state: GroupState, record: SessionRecord, title: string): string {
  const { status } = record.state;
  if (status !== 'paused' && status !== 'failed') return `${title} is ${status}.`;
  if (isBudgetExhausted(record)) return `${title} is ${status}. ${adviceText(raiseAdvice(state, record))}`;
  const goOn =
    status === 'paused' ? resumeSessionCommand(state, record) : ['session', 'retry', sessionReference(state, record)];
  return `${title} is ${status}. ${adviceText(advise('Go on with', goOn))}`;
}
