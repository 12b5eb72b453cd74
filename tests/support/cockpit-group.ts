/**
 * A group of any size in the middle of its run, as files that a dashboard reads. This process holds its lock like a
 * runner, and no session has a process. All times are hours ago, so that their display is stable.
 */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EventBody } from '../../src/core/event.ts';
import {
  defaultGroupConfig,
  noUsage,
  type SessionDefinition,
  type SessionId,
  type Usage,
} from '../../src/core/group.ts';
import { makeGroupId, makeSessionId } from '../../src/core/id.ts';
import { groupProgress, type LiveSession } from '../../src/core/progress.ts';
import { createGroup } from '../../src/store/group-store.ts';
import { type GroupWriter, openGroupWriter } from '../../src/store/group-writer.ts';
import { groupPaths, sessionPaths } from '../../src/store/paths.ts';
import { createRealWorld } from '../../src/system/real-world.ts';

export interface CockpitGroup {
  readonly groupId: string;
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  readonly ids: readonly SessionId[];
  readonly writer: GroupWriter;
  /** Writes the current activity of the running sessions. */
  show(live: ReadonlyMap<SessionId, LiveSession>): void;
  remove(): void;
}

/** 2 h 03 m and some seconds ago: the shown minute stays the same for a while. */
const ageMs = 2 * 3_600_000 + 3 * 60_000 + 10_000;
const minuteMs = 60_000;

const words = ['schema', 'api', 'web', 'mobile', 'notes', 'worker'];
/** For each six sessions, by index, their dependencies. */
const after: readonly (readonly number[])[] = [[], [0], [0], [1], [2, 3], [0]];

function usage(costUsd: number, thousands: number, durationMs: number): Usage {
  const tokens = { input: thousands * 1000, output: thousands * 40, cacheRead: thousands * 900, cacheCreation: 5000 };
  return { ...noUsage, costUsd, tokens, durationMs, turns: 7 };
}

type End = 'completed' | 'failed' | 'running' | 'pending';

/** The state of each six sessions: the first ones are running. */
function endOf(index: number, count: number): End {
  const [block, place] = [Math.floor(index / 6), index % 6];
  if (count === 1) return 'running';
  if (block === 0) return (['completed', 'running', 'running', 'pending', 'pending', 'failed'] as const)[place] as End;
  if (block % 3 === 1) return 'completed';
  if (block % 3 === 2) return place === 0 ? 'completed' : place === 1 ? 'failed' : 'pending';
  return place === 0 ? 'running' : 'pending';
}

export function makeCockpitGroup(count: number): CockpitGroup {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'cca-cockpit-')));
  const root = join(folder, 'data');
  const real = createRealWorld();
  let nowMs = real.clock.now() - ageMs;
  const world = { ...real, clock: { ...real.clock, now: () => nowMs } };
  const groupId = makeGroupId(Date.parse('2026-01-04T14:30:22Z'), 'release');
  const createdAt = new Date(nowMs).toISOString();
  const uuid = (index: number) => `${String(index).padStart(8, '0')}-0000-4000-8000-000000000000`;
  const ids = Array.from({ length: count }, (_, index) => makeSessionId(index + 1, uuid(index)));
  const sessions = ids.map((id, index): SessionDefinition => {
    const [block, place] = [Math.floor(index / 6), index % 6];
    const word = words[place] as string;
    const dependsOn = (after[place] ?? []).map((other) => ids[block * 6 + other] as SessionId);
    const name = block === 0 ? word : `${word}-${block}`;
    const projectPath = join('/projects', word);
    return { id, name, description: '', projectPath, prompt: `Do the ${word} part.`, dependsOn, createdAt };
  });
  const config = { ...defaultGroupConfig, warmCache: false, maxBudgetUsd: 50, maxConcurrentSessions: 100 };
  const definition = { id: groupId, name: 'Release', description: '', slug: 'release', createdAt, config };
  const created = createGroup(world, root, definition, sessions);
  if (!created.ok) throw new Error(created.failure.message);
  const opened = openGroupWriter(world, root, groupId, 'run-1');
  if (!opened.ok) throw new Error(opened.failure.message);
  const writer = opened.value;
  const live = play(writer, ids, count, (ms) => {
    nowMs += ms;
  });
  const paths = groupPaths(root, groupId);
  const show = (now: ReadonlyMap<SessionId, LiveSession>) =>
    real.files.writeAtomic(paths.progress, JSON.stringify(groupProgress(writer.state, now, real.clock.now())));
  show(live);
  const [first] = live.keys();
  if (first !== undefined) writeTranscript(sessionPaths(paths, first).transcript);
  const home = join(folder, 'home');
  mkdirSync(home);
  return {
    groupId,
    folder,
    env: { PATH: process.env.PATH ?? '', HOME: home, CLAUDE_CODE_AGENT_HOME: root, LANG: 'C.UTF-8' },
    ids,
    writer,
    show,
    remove() {
      writer.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Logs the events that led to this state, and the activity of the running sessions. */
function play(writer: GroupWriter, ids: readonly SessionId[], count: number, pass: (ms: number) => void) {
  const live = new Map<SessionId, LiveSession>();
  const runner = writer.state.run?.runner ?? createRealWorld().machine.self;
  writer.record([{ type: 'group_started', run: { id: 'run-1', runner } }]);
  for (const [index, sessionId] of ids.entries()) {
    const end = endOf(index, count);
    if (end === 'pending') continue;
    const attemptId = `attempt-${index}`;
    const attempt = { id: attemptId, number: 1, kind: 'start', offset: 0, reservedUsd: 1 } as const;
    const claudeSessionId = sessionId.slice(4);
    const events: EventBody[] = [
      { type: 'session_starting', sessionId, attempt },
      { type: 'session_started', sessionId, attemptId, attempt: 1, process: runner },
      { type: 'session_identified', sessionId, attemptId, claudeSessionId, model: 'claude-opus-4-8' },
    ];
    writer.record(events);
    if (end === 'running') {
      live.set(sessionId, liveOf(live.size));
      continue;
    }
    if (index < 6) pass(2 * minuteMs);
    const used = usage(0.15 + (index % 7) / 20, 20 + index, 2 * minuteMs + index * 1000);
    const of = { sessionId, attemptId, usage: used };
    const work = { commit: 'c'.repeat(40), files: 2 + (index % 3), insertions: 40 + index, deletions: index };
    if (end === 'completed') writer.record([{ type: 'session_completed', ...of, result: 'It is **done**.', work }]);
    else {
      const failure = {
        reason: 'no-result',
        message: 'claude ended without a result.',
        next: 'Look at its log.',
      } as const;
      writer.record([{ type: 'session_failed', ...of, ...failure }]);
    }
  }
  return live;
}

function liveOf(nth: number): LiveSession {
  const lastText = `Part ${nth + 1} of the **login** works; now I write the test for an expired token.`;
  const now = { lastText, usage: usage(0.4 + nth / 10, 30 + nth, 0) };
  return nth % 2 === 0 ? { ...now, currentTool: `Bash npm run test -- packages/part-${nth + 1}/src` } : now;
}

function writeTranscript(path: string): void {
  const model = 'claude-opus-4-8';
  const said = (id: string, content: unknown) => ({ type: 'assistant', message: { id, model, content: [content] } });
  const tool = { type: 'tool_use', id: 't1', name: 'Bash', input: { command: 'npm run test -- packages/part-1/src' } };
  const lines = [
    { type: 'system', subtype: 'init', session_id: 's', model, claude_code_version: '2.1.331', tools: [] },
    said('m1', { type: 'text', text: 'I look at the login first, and then at what calls it.' }),
    said('m2', { type: 'tool_use', id: 't0', name: 'Read', input: { file_path: '/projects/api/src/login.ts' } }),
    { type: 'user', message: { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't0', content: 'ok' }] } },
    said('m3', { type: 'text', text: 'The **login** works; now I write the test for an expired token.' }),
    said('m4', tool),
  ];
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
}
