/** `session logs`: prints the transcript of a session, once or with --follow. */
import type { Command } from '@commander-js/extra-typings';
import { liveRunner } from '../../../app/live-runner.ts';
import { type LoadedSession, loadReferredSession } from '../../../app/resolve.ts';
import { followGroup } from '../../../app/watch/follow-group.ts';
import { commandText, see } from '../../../core/advice.ts';
import { runCommand } from '../../../core/plan/advice.ts';
import type { GroupState } from '../../../core/state.ts';
import { delay } from '../../../system/clock.ts';
import { nextSteps } from '../../../view/summary.ts';
import { TranscriptMarks } from '../../../view/transcript/entry-lines.ts';
import { titleOf } from '../../../view/wording.ts';
import { type Context, need, refuse } from '../../context.ts';
import { parsePattern } from '../../options/options.ts';
import {
  jsonSink,
  rawSink,
  readableSink,
  TranscriptPrinter,
  type TranscriptSink,
} from '../../transcript/transcript.ts';

const description = `Print the transcript of a session: messages, tool calls with their results,
edits, and the start and end of each attempt. Sub-agents are indented.`;

const example = `
Example:
  $ claude-code-agent session logs auth-refactor/api --follow
  $ claude-code-agent session logs auth-refactor/api --grep 'npm (test|run)'
  $ claude-code-agent session logs auth-refactor/api --json | jq -r '.entries[] | select(.kind == "said") | .text'
  $ claude-code-agent session logs auth-refactor/api --raw | jq -r 'select(.type == "result").total_cost_usd'`;

const lookEveryMs = 250;

export function define(command: Command, context: Context): void {
  command
    .description(description)
    .argument('<session>', 'id, unique prefix, or <group>/<number-or-name>')
    .option('--follow', 'follow the session through all its attempts, while its group runs')
    .option('--raw', 'print the stream-json lines exactly as claude wrote them')
    .option('--grep <regexp>', 'only lines that match', parsePattern)
    .option('--json', 'print one JSON document')
    .addHelpText('after', example)
    .action((reference, options) =>
      context.run(async () => {
        if (options.json && options.raw)
          return refuse('usage', '--json and --raw cannot be combined.', 'Give one of them.');
        if (options.json && options.follow) {
          return refuse(
            'usage',
            '--json and --follow cannot be combined.',
            'Use --raw --follow for one JSON document per line.',
          );
        }
        const session = need(loadReferredSession(context, reference));
        const { log, printer, look, isBroken } = openTranscript(context, session, sinkFor(context, session, options));
        const title = titleOf(session.state, session.sessionId);
        let hasMore = await look();
        if (options.follow && hasMore && session.state.status === 'created') {
          const start = commandText(runCommand(session.state));
          context.stderr.line(`Waiting for session ${title} to start. Start its group with: ${start}`);
        }
        while (options.follow && hasMore && !context.stdout.isClosed) {
          await delay(context.world.clock, lookEveryMs);
          hasMore = await look();
        }
        log.close();
        printer.finish(hasMore);
        // A reader that closed the pipe, such as `head`, must not be told that the transcript is empty.
        if (printer.isEmpty && !context.stdout.isClosed) context.stderr.line(whyEmpty(session));
        if (!options.follow || hasMore) return;
        if (isBroken()) {
          return refuse(
            'gone',
            `Session ${title} cannot be followed: its group was deleted, or its log is damaged.`,
            seeGroups,
          );
        }
        context.stderr.lines(leftBehind(session, log.state));
      }),
    );
}

interface Options {
  readonly follow?: true | undefined;
  readonly raw?: true | undefined;
  readonly json?: true | undefined;
  readonly grep?: RegExp | undefined;
}

function whyEmpty({ sessionId, state }: LoadedSession): string {
  const title = titleOf(state, sessionId);
  const { inherited } = state.sessions.get(sessionId) ?? {};
  if (inherited === undefined) return `Session ${title} has not printed anything yet.`;
  const log = commandText(['session', 'logs', inherited.sessionId]);
  return `Session ${title} ran in group ${inherited.groupId}. See its log: ${log}`;
}

const seeGroups = see('group', 'list');

/** Why following ended before the session did, with the next steps; empty if the session has finished. */
function leftBehind({ sessionId }: LoadedSession, state: GroupState | null): readonly string[] {
  const status = state?.sessions.get(sessionId)?.state.status;
  if (state === null || status === undefined) return ['The session was removed.'];
  if (status === 'completed' || status === 'failed') return [];
  return [`Session ${titleOf(state, sessionId)} is ${status}, and its group has no runner.`, ...nextSteps(state)];
}

function sinkFor({ stdout }: Context, session: LoadedSession, { raw, json, grep }: Options): TranscriptSink {
  if (json) return jsonSink(stdout, grep, session);
  return raw ? rawSink(stdout, grep) : readableSink(stdout, grep);
}

/** `look` prints what is new; true = more may follow. */
function openTranscript({ world, stdout }: Context, session: LoadedSession, sink: TranscriptSink) {
  let isBroken = false;
  const marks = new TranscriptMarks(session.sessionId);
  const log = followGroup(
    world,
    session,
    (event) => marks.take([event]),
    () => {
      isBroken = true;
    },
  );
  const printer = new TranscriptPrinter(world, session, { stdout, sink, marks: marks.list });
  const look = async (): Promise<boolean> => {
    const hasRunner = liveRunner(world, session) !== null;
    // Read the size before the log, so that the log contains every attempt whose output is printed.
    const size = printer.size;
    log.catchUp();
    const hasMore = !isBroken && canGrow(session, log.state, hasRunner, world);
    // The session is over and no runner can start another attempt, so print to the end.
    await printer.printTo(hasMore ? size : printer.size);
    return hasMore;
  };
  return { log, printer, look, isBroken: () => isBroken };
}

/** False when the session has ended, or when no process is left that could continue it. */
function canGrow(
  session: LoadedSession,
  state: GroupState | null,
  hasRunner: boolean,
  world: Context['world'],
): boolean {
  const record = state?.sessions.get(session.sessionId);
  if (record === undefined) return false;
  // Wait, so that `logs --follow` can be started before the run.
  if (state?.status === 'created') return true;
  switch (record.state.status) {
    case 'running': {
      const { process } = record.state.attempt;
      return hasRunner || (process !== undefined && world.processes.isAlive(process));
    }
    case 'completed':
      return false;
    case 'failed':
      return hasRunner && record.queued;
    // A live runner can still start these.
    case 'pending':
    case 'paused':
      return hasRunner;
  }
}
