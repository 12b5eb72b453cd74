/** `session logs`: the transcript of a session, readable or as it is, up to now or as it grows. */

import type { Command } from '@commander-js/extra-typings';
import { ok } from '../../core/failure.ts';
import type { GroupState } from '../../core/state.ts';
import { titleOf } from '../../report/wording.ts';
import { LineSplitter } from '../../runner/line-splitter.ts';
import { sessionPaths } from '../../store/paths.ts';
import { delay } from '../../world/clock.ts';
import { liveRunner } from '../change-group.ts';
import type { Context, Work } from '../context.ts';
import { exitCode } from '../exit-code.ts';
import { followGroup } from '../follow-group.ts';
import { parsePattern } from '../option-values.ts';
import { type LoadedSession, loadReferredSession } from '../resolve.ts';
import { TranscriptRenderer } from '../transcript.ts';

const example = `
Example:
  $ claude-code-agent session logs auth-refactor/api --follow
  $ claude-code-agent session logs auth-refactor/api --grep 'npm (test|run)'
  $ claude-code-agent session logs auth-refactor/api --raw | jq -r 'select(.type == "result").total_cost_usd'`;

const chunkBytes = 1024 * 1024;
const lookEveryMs = 250;

export function define(command: Command, context: Context): void {
  command
    .description('Prints the transcript of a session: what claude said, its tool calls and their outcome.')
    .argument('<session>', 'id, unique prefix, or <group>/<number-or-name>')
    .option('--follow', 'go on until the session has ended')
    .option('--raw', 'the stream-json lines as claude printed them')
    .option('--grep <regexp>', 'only lines that match', parsePattern)
    .addHelpText('after', example)
    .action((reference, { follow, raw, grep }) =>
      context.run(() => logs(context, reference, { follow: follow === true, raw: raw === true, grep })),
    );
}

interface Wish {
  readonly follow: boolean;
  readonly raw: boolean;
  readonly grep: RegExp | undefined;
}

async function logs(context: Context, reference: string, wish: Wish): Promise<Work> {
  const session = loadReferredSession(context, reference);
  if (!session.ok) return session;
  const printer = createPrinter(context, session.value, wish);
  if (wish.follow) await followTranscript(context, session.value, printer);
  else await printer.toEnd();
  printer.finish();
  const title = titleOf(session.value.state, session.value.sessionId);
  if (printer.isEmpty()) context.stderr.line(`Session ${title} has not printed anything yet.`);
  return ok(exitCode.done);
}

interface Printer {
  /** Prints what was added since; resolves at the present end of the file. */
  toEnd(): Promise<void>;
  /** Prints a last half line too. */
  finish(): void;
  isEmpty(): boolean;
}

function createPrinter(context: Context, session: LoadedSession, { raw, grep }: Wish): Printer {
  const { stdout, world } = context;
  const { transcript } = sessionPaths(session.paths, session.sessionId);
  const splitter = new LineSplitter();
  const renderer = new TranscriptRenderer(stdout.style);
  let offset = 0;
  const print = (line: string): void => {
    const lines = raw ? [line] : renderer.render(line);
    for (const one of lines) {
      // Colours are ours and not part of what is looked for.
      if (grep === undefined || grep.test(raw ? one : Bun.stripANSI(one))) stdout.line(one);
    }
  };
  return {
    async toEnd() {
      while (!stdout.isClosed) {
        const chunk = world.files.readBytes(transcript, offset, chunkBytes);
        if (chunk.length === 0) return;
        offset += chunk.length;
        if (raw && grep === undefined) stdout.bytes(chunk);
        else for (const line of splitter.push(chunk)) print(line);
        // A reader that is slower than the disk must not make us keep the whole transcript.
        await stdout.flush();
      }
    },
    finish() {
      const rest = splitter.rest();
      if (rest !== null) print(rest);
    },
    isEmpty: () => offset === 0,
  };
}

/** Until the session has ended, or nobody is left who could make it go on. */
async function followTranscript(context: Context, session: LoadedSession, printer: Printer): Promise<void> {
  const { world, stdout } = context;
  let isBroken = false;
  const follower = followGroup(
    world,
    session,
    () => {},
    () => {
      isBroken = true;
    },
  );
  try {
    while (!stdout.isClosed) {
      // Asked before the file is read: what was printed before the end is then printed for certain.
      const isOver = isBroken || !(await canGoOn(context, session, follower));
      await printer.toEnd();
      if (isOver) return;
      await delay(world.clock, lookEveryMs);
    }
  } finally {
    follower.close();
  }
}

async function canGoOn(
  { world }: Context,
  session: LoadedSession,
  follower: { readonly state: GroupState | null; catchUp(): void },
): Promise<boolean> {
  const hasRunner = liveRunner(world, session) !== null;
  if (!hasRunner) follower.catchUp();
  if (follower.state === null) return true;
  const state = follower.state.sessions.get(session.sessionId)?.state;
  if (state?.status === 'running') {
    const { process } = state.attempt;
    return hasRunner || (process !== undefined && world.processes.isAlive(process));
  }
  return state?.status === 'pending' && hasRunner;
}
