/** `host forget`: takes a machine out of the fleet, here or on the machine itself, and books what it may have spent. */
import type { Command } from '@commander-js/extra-typings';
import {
  bookHeld,
  type HeldGroup,
  heldBy,
  leaveFleet,
  lookAtHost,
  type ToForget,
  takeOut,
} from '../../../app/fleet/forget-host.ts';
import { whileBusy } from '../../../app/live-runner.ts';
import { ok } from '../../../core/failure.ts';
import { formatMoney, plural } from '../../../view/format.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import { confirmed } from '../../confirm.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent host forget gpu1`;

export function define(command: Command, context: Context): void {
  command
    .description(`Takes a machine out of the fleet. What is held because it may have spent it when it was lost is booked
as spent. Of a machine that was added from here, agent, login and program are removed there. On the machine itself it
ends the agent, and the sessions that are at work.`)
    .argument('<name>', 'of the machine')
    .option('-y, --yes', 'answer every question with yes')
    .option('--json', 'one JSON document: {"host", "booked": [{"group", "session", "usd"}]}')
    .addHelpText('after', example)
    .action((name, given) => context.run(() => forget(context, name, given)));
}

interface Given {
  readonly yes?: true | undefined;
  readonly json?: true | undefined;
}

async function forget(context: Context, name: string, { yes, json }: Given): Promise<Work> {
  const root = context.root();
  if (!root.ok) return root;
  const host = await lookAtHost(context, root.value, name);
  if (!host.ok) return host;
  const held = host.value.isHere ? [] : heldBy(context, root.value, name);
  const sure = await confirmed(context, question(host.value, held), yes === true);
  if (!sure.ok) return sure;
  if (!sure.value) {
    context.stderr.line('Nothing was changed.');
    return ok(exitCode.done);
  }
  const forgetting = async () =>
    host.value.isHere ? leaveFleet(context, root.value) : takeOut(context, root.value, host.value);
  const forgotten = await whileBusy(context, `Taking ${name} out`, forgetting);
  if (!forgotten.ok) return forgotten;
  if (forgotten.value !== undefined) {
    context.stderr.line(safeLine(`${forgotten.value} What was put there stays there.`, 1_000));
  }
  const booked = [];
  for (const one of held) {
    const done = await bookHeld(context, one);
    if (done.ok) booked.push(one);
    else context.stderr.line(safeLine(`${one.groupId}: ${done.failure.message}`, 1_000));
  }
  const money = booked.map(({ groupId, sessionId, usd }) => ({ group: groupId, session: sessionId, usd }));
  if (json) context.stdout.line(safeJson({ host: name, booked: money }, 2));
  else
    context.stdout.line(
      `${name} is out of the fleet${booked.length > 0 ? `; ${sumText(booked)} booked as spent` : ''}.`,
    );
  return ok(exitCode.done);
}

function question({ name, isHere, ssh, used }: ToForget, held: readonly HeldGroup[]): string {
  const parts = [
    isHere ? `Let this machine leave the fleet` : `Take ${name} out of the fleet`,
    ...(used === undefined || used === 0 ? [] : [`with ${plural(used, 'session')} at work there`]),
    ...(ssh === undefined ? [] : [`and remove what was installed at ${ssh}`]),
    ...(held.length === 0 ? [] : [`and book as spent ${sumText(held)} that it may have cost`]),
  ];
  return `${parts.join(', ')}?`;
}

function sumText(held: readonly HeldGroup[]): string {
  const sum = held.reduce((all, { usd }) => all + usd, 0);
  const sessions = held.map(({ groupId, sessionId }) => `${groupId}/${sessionId.slice(0, 3)}`);
  return `${formatMoney(sum, true)} (${sessions.join(', ')})`;
}
