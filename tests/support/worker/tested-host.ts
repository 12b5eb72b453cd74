/** What the tests of a machine must be able to do to it, whichever it is. */
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { attemptMark, tmpVariable } from '../../../src/claude/launch/environment.ts';
import type { ProcessIdentity } from '../../../src/core/event.ts';
import type { SessionPaths } from '../../../src/store/paths.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import type { SpawnOptions } from '../../../src/system/world.ts';
import type { AttemptSubject, HostedAttempt } from '../../../src/worker/host.ts';
import { LocalAttempt } from '../../../src/worker/local-attempt.ts';
import { basePath, until } from '../system/rig.ts';

const world = createRealWorld();

/** As one runner sees it. */
export interface TestedHost {
  /** The attempt there, in a place that was got for it. */
  attempt(subject: AttemptSubject): Promise<HostedAttempt>;
  /** What was got for attempts is given back. */
  close(): Promise<void>;
}

export interface Preparing {
  readonly hosted: HostedAttempt;
  readonly setUp: ProcessIdentity;
}

export interface OpenHost {
  /** The machine as the next runner finds it. */
  next(): Promise<TestedHost>;
  /** Makes what must be there before an attempt of that session. */
  prepare(subject: AttemptSubject): void;
  /** What starts the attempt as a shell that does what the script says. */
  spawn(subject: AttemptSubject, script: string): SpawnOptions;
  /** Where the files of the session lie on the machine itself. */
  there(subject: AttemptSubject): SessionPaths;
  /** From now on there is no such program. */
  loseProgram(): void;
  /** Has something prepared for an attempt that is not started yet, and never ends by itself. */
  beginPreparing(host: TestedHost, subject: AttemptSubject): Promise<Preparing>;
  close(): Promise<void>;
}

/** Does what its second argument says, as a shell; a version and a help are all that it has of claude. */
export function makeShellClaude(folder: string): string {
  const program = join(folder, 'claude');
  writeFileSync(
    program,
    `#!/bin/sh
case "$1" in
  --version) echo '2.1.331 (Claude Code)' ;;
  --help) echo 'no options' ;;
  run) exec sh -c "$2" ;;
esac
`,
  );
  chmodSync(program, 0o755);
  return program;
}

export function spawnOf(
  { attemptId, paths }: AttemptSubject,
  script: string,
  program: string,
  cwd: string,
): SpawnOptions {
  return {
    program,
    args: ['run', script],
    cwd,
    env: { PATH: basePath, [attemptMark]: attemptId, [tmpVariable]: paths.tmp },
    stdinFifo: paths.fifo,
    stdoutFile: paths.transcript,
    stderrFile: paths.stderr,
    syncsStdout: true,
    contained: attemptId,
  };
}

/** One that works here, with its program in that folder. */
export function openHere(folder: string): OpenHost {
  const program = makeShellClaude(folder);
  return {
    next: async () => ({ attempt: async (subject) => new LocalAttempt(world, subject), close: async () => {} }),
    prepare: () => {},
    spawn: (subject, script) => spawnOf(subject, script, program, folder),
    there: ({ paths }) => paths,
    loseProgram: () => rmSync(program),
    beginPreparing: async (host, subject) => {
      const { attemptId } = subject;
      const env = { PATH: basePath, [attemptMark]: attemptId };
      const child = Bun.spawn(['sleep', '1000'], { env, stdio: ['ignore', 'ignore', 'ignore'] });
      const setUp = await until(() => world.processes.identify(child.pid));
      await until(() => world.processes.findMarked(attemptMark, attemptId).length > 0);
      return { hosted: await host.attempt(subject), setUp };
    },
    close: async () => {},
  };
}
