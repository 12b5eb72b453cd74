/** `session pause`, `resume`, `retry`, `say` and `remove`. */
import { type Command, Option } from '@commander-js/extra-typings';
import { checkCommand, submit } from '../../../app/group-commands.ts';
import { liveRunner } from '../../../app/live-runner.ts';
import { removeSession } from '../../../app/removal.ts';
import { whileWaiting } from '../../../app/request.ts';
import { type LoadedSession, loadReferredSession, resolveGroupToDestroy } from '../../../app/resolve.ts';
import { commandText } from '../../../core/advice.ts';
import { defined } from '../../../core/defined.ts';
import { resumeSessionCommand, runCommand } from '../../../core/plan/advice.ts';
import type { SessionState } from '../../../core/session-state.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import { titleOf } from '../../../view/wording.ts';
import { besideDocument, type Context, confirmed, type ExitCode, exitCode, need } from '../../context.ts';
import { parseMoney, parseWhole } from '../../options/options.ts';
import { readText } from '../../options/prompt-source.ts';
import { printSession, runSession, startSession } from '../group/run.ts';

const pauseExample = `
Example:
  $ claude-code-agent session pause auth-refactor/api
  $ claude-code-agent session resume auth-refactor/api`;

export function definePause(command: Command, context: Context): void {
  command
    .description(
      `Pause a session and return when it is paused. The other sessions of its group
      continue. A session that has not started is held back.`,
    )
    .argument('<session>', 'id, unique prefix, or <group>/<number-or-name>')
    .option('--json', 'one JSON document: {"group", "session", "status"}')
    .addHelpText('after', pauseExample)
    .action((reference, { json }) =>
      context.run(async () => {
        const session = need(loadReferredSession(context, reference));
        const { sessionId } = session;
        const pausing = submit(context, session, { kind: 'pause-session', sessionId });
        const ended = need(await whileWaiting(context, session, pausing));
        const code = conclude(json ? besideDocument(context) : context, session, ended);
        if (json) printSession(context, session);
        return code;
      }),
    );
}

function conclude(context: Context, session: LoadedSession, ended: SessionState): ExitCode {
  const { stdout } = context;
  const { state, sessionId, record } = session;
  const { status } = ended;
  const title = `Session ${titleOf(state, sessionId)}`;
  const wasRunning = record.state.status === 'running';
  const goOn = `Resume with: ${commandText(resumeSessionCommand(state, record))}`;
  // A live runner would have started or resumed it.
  const wasNext = status === 'pending' || (status === 'paused' && !wasRunning && record.queued);
  if (wasNext && liveRunner(context.world, session) !== null) stdout.line(`${title} is held back. ${goOn}`);
  else if (status === 'paused') stdout.line(`${title} is ${wasRunning ? '' : 'already '}paused. ${goOn}`);
  else if (status === 'pending')
    stdout.line(`${title} is not running. It starts with its group: ${commandText(runCommand(state))}`);
  else if (status === 'failed') stdout.line(`${title} is failed: ${safeLine(ended.failure.message, 400)}`);
  else stdout.line(`${title} is ${status} and was not paused.`);
  return status === 'running' || (status === 'failed' && wasRunning) ? exitCode.failed : exitCode.done;
}

const resumeExample = `
Example:
  $ claude-code-agent session resume auth-refactor/api
  $ claude-code-agent session resume auth-refactor/api --max-budget-usd 5     after its own budget was exhausted`;

export function defineSessionResume(command: Command, context: Context): void {
  command
    .description(
      `Resume a paused session in the same conversation. If the group has a runner,
      it starts the session when a slot is free; otherwise this command runs only
      that session. Exit codes: 0 completed (or requested), 1 failed, 2 bad input, 3
      paused again.`,
    )
    .argument('<session>', 'id, unique prefix, or <group>/<number-or-name>')
    .option('--max-budget-usd <usd>', 'new cap of the session over all its attempts', parseMoney)
    .option('--rehearse [script]', 'script for the rest of the rehearsal')
    .option('--json', 'one JSON document: {"group", "session", "status"}')
    .addHelpText('after', resumeExample)
    .action((named, { maxBudgetUsd, ...how }) =>
      context.run(async () => {
        const session = need(loadReferredSession(context, named));
        const { sessionId, record } = session;
        // A session left running without a runner needs no resume request, only a new runner.
        const isLeft = record.state.status === 'running' && liveRunner(context.world, session) === null;
        if (isLeft && maxBudgetUsd === undefined) return runSession(context, session, how);
        const raised = defined({ maxBudgetUsd });
        return startSession(context, session, { kind: 'resume-session', sessionId, ...raised }, how);
      }),
    );
}

const retryExample = `
Example:
  $ claude-code-agent session retry auth-refactor/api
  $ claude-code-agent session retry auth-refactor/api --prompt "The tests need the database of docker compose."
  $ claude-code-agent session retry auth-refactor/api --rewind 3`;

export function defineRetry(command: Command, context: Context): void {
  command
    .description(
      `Retry a failed session, or one that waits for an answer, in the same
      conversation. A completed session needs --prompt with a further task. If the
      group has a runner, it starts the session when a slot is free; otherwise this
      command runs only that session. Exit codes: 0 completed (or requested), 1
      failed, 2 bad input, 3 paused.`,
    )
    .argument('<session>', 'id, unique prefix, or <group>/<number-or-name>')
    .option('--prompt <text>', 'message for the session in addition to its task; "-" reads standard input')
    .addOption(new Option('--fresh', 'start a new conversation; keep its work').conflicts('rewind'))
    .addOption(
      new Option('--rewind [n]', "drop the model's last n messages (default: 1)")
        .preset('1')
        .argParser(parseWhole(1, 1_000)),
    )
    .option('--rehearse [script]', 'script for the rest of the rehearsal')
    .option('--json', 'one JSON document: {"group", "session", "status"}')
    .addHelpText('after', retryExample)
    .action((named, given) =>
      context.run(async () => {
        const session = need(loadReferredSession(context, named));
        const { prompt: typed } = given;
        const prompt = typed === undefined ? undefined : need(await readText(context, typed, 'The text of --prompt'));
        const { sessionId } = session;
        const { fresh, rewind } = given;
        const how = { ...defined({ prompt, rewind }), ...(fresh ? { fresh } : {}) };
        return startSession(context, session, { kind: 'retry-session', sessionId, ...how }, given);
      }),
    );
}

const sayExample = `
Example:
  $ claude-code-agent session say auth-refactor/api "Use the staging database, not the local one."
  $ git diff | claude-code-agent session say auth-refactor/api -`;

export function defineSay(command: Command, context: Context): void {
  command
    .description(
      'Send a message to a session. A running session receives it at its next step, others with their next attempt.',
    )
    .argument('<session>', 'id, unique prefix, or <group>/<number-or-name>')
    .argument('<text>', 'the message; "-" reads standard input')
    .option('--json', 'one JSON document: {"group", "session", "delivered": "now" or "next-attempt"}')
    .addHelpText('after', sayExample)
    .action((reference, given, { json }) =>
      context.run(async () => {
        const session = need(loadReferredSession(context, reference));
        const text = need(await readText(context, given, 'The message'));
        const { groupId, sessionId, state } = session;
        const change = submit(context, session, { kind: 'say', sessionId, text: text });
        const delivery = need(await whileWaiting(context, session, change));
        const title = titleOf(state, sessionId);
        const message =
          delivery === 'now'
            ? `Message sent to session ${title}.`
            : `Session ${title} gets the message with its next attempt.`;
        context.stdout.line(json ? safeJson({ group: groupId, session: sessionId, delivered: delivery }, 2) : message);
      }),
    );
}

const removeExample = `
Example:
  $ claude-code-agent session remove auth-refactor/003`;

const noteColumns = 600;

export function defineRemoveSession(command: Command, context: Context): void {
  command
    .description(
      'Remove a session that is not running, with its transcript and worktree. Its cost still counts. ' +
        'Refuses if the worktree has uncommitted work. A branch with unmerged commits is kept.',
    )
    .argument('<session>', 'id, unique prefix, or <group>/<number-or-name>')
    .option('-y, --yes', 'answer every question with yes')
    .option('--force', 'do not ask; commit uncommitted work to its branch first')
    .option('--json', 'one JSON document: {"group", "session"}')
    .addHelpText('after', removeExample)
    .action((reference, { yes, force: forced, json }) =>
      context.run(async () => {
        const force = forced === true;
        const session = need(loadReferredSession(context, reference, resolveGroupToDestroy));
        const { sessionId, state, record, groupId } = session;
        need(checkCommand(context.world, session, { kind: 'remove-session', sessionId }));
        const title = titleOf(state, sessionId);
        // A session that never ran has nothing to lose but its definition.
        const isAnswered = force || yes === true || record.attempts === 0;
        const sure = await confirmed(context, `Delete session ${title} with its transcript?`, isAnswered);
        if (!sure) return;
        const command = ['session', 'remove', `${groupId}/${sessionId}`];
        const tell = (note: string): void => context.stderr.line(safeLine(note, noteColumns));
        const removing = removeSession(context, session, { force, command, tell });
        need(await whileWaiting(context, session, removing));
        context.stderr.line(`Removed ${title} from ${state.group.id}.`);
        if (json) context.stdout.json({ group: groupId, session: sessionId });
      }),
    );
}
