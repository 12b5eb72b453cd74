/**
 * Shared by crash tests: a group on disk, run by real processes of the program that die where a test says; fakes that
 * answer by themselves; and checks of what must always hold.
 */

import { expect } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { attemptMark } from '../../src/claude/launch/environment.ts';
import { loadGroup } from '../../src/store/group-store.ts';
import { groupMeta, renderMeta, sessionMeta } from '../../src/store/snapshots.ts';
import type { Alteration } from './altered-world.ts';
import { launcher, pinnedClaude, type StartedCommand } from './cli.ts';
import type { FakeClaudeHarness, Invocation } from './fake-claude-rig.ts';
import type { GroupFixture } from './group-fixture.ts';
import { kill } from './kill.ts';
import { noteTried } from './tried.ts';

const bunFlags = ['--no-env-file', '--config=/dev/null', '--no-install'];
/** Runs on the world that TEST_WORLD describes. */
export const alteredProgram = [process.execPath, ...bunFlags, join(import.meta.dir, 'altered-main.ts')];

/** Starts a command with an emptied environment plus `env`. */
export function startCommand(command: readonly string[], env: Readonly<Record<string, string>>): StartedCommand {
  const child = Bun.spawn([...command], {
    env: { PATH: process.env.PATH ?? '', LANG: 'C.UTF-8', ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const finished = Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  return {
    pid: child.pid,
    kill: (signal) => child.kill(signal),
    finished: finished.then(([stdout, stderr]) => ({ code: child.exitCode, stdout, stderr })),
  };
}

/** One group and the processes that run it. */
export class Runners {
  readonly group: GroupFixture;
  readonly env: Readonly<Record<string, string>>;

  constructor(group: GroupFixture, env: Readonly<Record<string, string>>) {
    this.group = group;
    this.env = { HOME: join(group.folder, 'home'), CLAUDE_CODE_AGENT_HOME: group.root, ...env };
    noteTried(group.root, env.CLAUDE_CODE_AGENT_CLAUDE ?? pinnedClaude());
  }

  /** `group run` by the launcher. */
  start(output = 'quiet'): StartedCommand {
    return startCommand([launcher, 'group', 'run', this.group.groupId, '--output', output], this.env);
  }

  /** `group run` on an altered world. */
  startAltered(alteration: Alteration): StartedCommand {
    const env = { ...this.env, TEST_WORLD: JSON.stringify(alteration) };
    return startCommand([...alteredProgram, 'group', 'run', this.group.groupId, '--output', 'quiet'], env);
  }

  /** `group run` that must kill itself by SIGKILL. */
  async crash(alteration: Alteration): Promise<void> {
    const finished = await this.startAltered(alteration).finished;
    if (finished.code === null) return;
    throw new Error(`the runner never came to ${alteration.at}: ${JSON.stringify(finished)}`);
  }

  /** `group run` by the launcher until it is settled; it must complete the group. */
  async complete(): Promise<void> {
    const { code, stderr } = await this.start().finished;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expectSettled(this.group);
  }
}

/** The line that a fake prints before its result, with the process and the attempt that did the work. */
function workLine(fake: Invocation): object {
  const text = JSON.stringify({ pid: fake.hello.pid, attempt: fake.hello.env[attemptMark] });
  return { type: 'assistant', message: { id: `m${fake.hello.pid}`, content: [{ type: 'text', text }] } };
}

/** Lets a fake read its prompt and identify itself. */
export async function identify(fake: Invocation): Promise<void> {
  await fake.prompt();
  await fake.init();
}

/** Lets a started fake work once and succeed. */
export async function finish(fake: Invocation, costUsd = 0.01, result = 'done'): Promise<void> {
  await fake.print(workLine(fake));
  await fake.succeed(costUsd, result);
}

export async function finishAtOnce(fake: Invocation): Promise<void> {
  await identify(fake);
  await finish(fake);
}

/** Every fake of these sessions works as soon as it starts. */
export function answerAll(rig: FakeClaudeHarness, claudeSessionIds: readonly string[]): void {
  for (const id of claudeSessionIds) rig.answerEach(id, finishAtOnce);
}

export interface Spoken {
  /** The attempts that worked in order, one entry per process. */
  readonly workers: readonly { readonly pid: number; readonly attempt: string }[];
  readonly results: number;
  readonly costUsd: number;
}

/** The workers' output of a session, from the transcript. */
export function spoken(group: GroupFixture, name: string): Spoken {
  const lines = readFileSync(group.session(name).transcript, 'utf8').split('\n');
  const messages = lines.filter((line) => line !== '').map((line) => JSON.parse(line));
  const results = messages.filter(({ type }) => type === 'result');
  return {
    workers: messages
      .filter(({ type }) => type === 'assistant')
      .map(({ message }) => JSON.parse(message.content[0].text)),
    results: results.length,
    costUsd: results.reduce((sum, result) => sum + result.total_cost_usd, 0),
  };
}

/** The log can be reduced, every snapshot matches it, costs are those printed, and no process is left. */
export function expectSettled(group: GroupFixture): void {
  const loaded = loadGroup(group.world, group.root, group.groupId);
  if (!loaded.ok) throw new Error(loaded.failure.message);
  const state = loaded.value;
  expect(state.status).toBe('completed');
  expect(state.reservedUsd).toBe(0);
  expect(readFileSync(group.paths.meta, 'utf8')).toBe(renderMeta(groupMeta(state)));
  for (const [id, record] of state.sessions) {
    const paths = group.session(record.definition.name ?? '');
    expect(group.id(record.definition.name ?? '')).toBe(id);
    expect(readFileSync(paths.meta, 'utf8')).toBe(renderMeta(sessionMeta(record)));
  }
  expect(markedProcesses(group)).toEqual([]);
}

/** Removes a group and its live processes; after a failed test a stopped worker cannot exit by itself. */
export function removeGroup(group: GroupFixture): void {
  for (const pid of markedProcesses(group)) kill(pid);
  group.remove();
}

/** Live processes that carry the mark of an attempt in the log. */
export function markedProcesses(group: GroupFixture): number[] {
  const attempts = group.events().flatMap((event) => (event.type === 'session_starting' ? [event.attempt.id] : []));
  return attempts.flatMap((id) => group.world.processes.findMarked(attemptMark, id).map(({ pid }) => pid));
}

/** Each session was worked on by one process of one attempt, and its cost is recorded. */
export function expectWorkedOnce(group: GroupFixture, names: readonly string[]): void {
  const state = group.state();
  for (const name of names) {
    const { workers, results, costUsd } = spoken(group, name);
    const record = state.sessions.get(group.id(name));
    expect({ name, workers: workers.length, results }).toEqual({ name, workers: 1, results: 1 });
    expect(record?.usage.costUsd).toBeCloseTo(costUsd, 9);
    expect(record?.attempts).toBe(1);
  }
}
