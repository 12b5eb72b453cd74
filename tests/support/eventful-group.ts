/**
 * A group with an event of every kind: a usage limit, a failure and what it blocks, an overnight pause, a transient
 * failure, accepted work in a worktree, a warning, and hostile texts.
 */
import type { EventBody, GroupEvent } from '../../src/core/event.ts';
import { defaultGroupConfig, type SessionDefinition, type SessionId, type Usage } from '../../src/core/group.ts';
import { createLog } from '../../src/store/event-log.ts';
import { groupPaths } from '../../src/store/paths.ts';
import { createRealWorld } from '../../src/system/real-world.ts';

const minute = 60_000;
export const eventfulId = '20260104-213000-release';
const begin = Date.UTC(2026, 0, 4, 21, 30);
const runner = { pid: 4711, startTime: '1', host: 'here', bootId: 'boot' };
const worker = { ...runner, pid: 4712 };

const names = ['schema', 'api', 'web', 'mobile', 'docs', 'release'] as const;
type Name = (typeof names)[number];
const after: Readonly<Record<Name, readonly Name[]>> = {
  schema: [],
  api: ['schema'],
  web: ['schema'],
  mobile: ['api'],
  docs: ['api', 'web'],
  release: ['mobile', 'docs'],
};

function idOf(name: Name): SessionId {
  const number = names.indexOf(name) + 1;
  return `00${number}-${String(number).repeat(8)}-1111-4111-8111-111111111111`;
}

function usage(costUsd: number, minutes: number, model: string): Usage {
  const tokens = { input: 2400, output: 9100, cacheRead: 410_000, cacheCreation: 38_000 };
  return { costUsd, tokens, durationMs: minutes * minute, turns: 14, models: { [model]: { costUsd, tokens } } };
}

class Story {
  readonly events: GroupEvent[] = [];
  private atMs = begin;
  private readonly attempts = new Map<Name, number>();

  /** Advances the clock. */
  pass(minutes: number): this {
    this.atMs += minutes * minute;
    return this;
  }

  add(...bodies: EventBody[]): this {
    for (const body of bodies) {
      this.atMs += 1000;
      const at = new Date(this.atMs).toISOString();
      this.events.push({ seq: this.events.length + 1, at, groupId: eventfulId, ...body });
    }
    return this;
  }

  of(name: Name): { readonly sessionId: SessionId; readonly attemptId: string } {
    return { sessionId: idOf(name), attemptId: `${name}-${this.attempts.get(name) ?? 0}` };
  }

  start(name: Name, kind: 'start' | 'resume' | 'retry' = 'start'): this {
    const number = (this.attempts.get(name) ?? 0) + 1;
    this.attempts.set(name, number);
    const of = this.of(name);
    const type = { start: 'session_started', resume: 'session_resumed', retry: 'session_retrying' } as const;
    const attempt = { id: of.attemptId, number, kind, offset: 0, isolated: true as const };
    const path = `/worktrees/${name}`;
    const workspace = { path, folder: path, repository: '/repos/shop/.git', branch: `cca/release/${name}`, base: 'b' };
    this.add({ type: 'session_starting', sessionId: of.sessionId, attempt });
    if (number === 1) this.add({ type: 'session_isolated', ...of, workspace });
    return this.add(
      { type: type[kind], ...of, attempt: number, process: worker },
      { type: 'session_identified', ...of, claudeSessionId: 'c', model: 'claude-opus-4-5' },
    );
  }

  complete(name: Name, costUsd: number, minutes: number, result: string): this {
    const of = { ...this.of(name), result, usage: usage(costUsd, minutes, 'claude-opus-4-5') };
    const work = { commit: '5f3c9a1e07bd42', files: 7, insertions: 212, deletions: 48 };
    this.add({ type: 'session_accepting', ...of });
    return this.pass(2).add({ type: 'session_completed', ...of, work });
  }
}

function definitions(): SessionDefinition[] {
  return names.map((name) => ({
    id: idOf(name),
    name,
    description: `the ${name} part of the release`,
    projectPath: `/repos/shop/${name}`,
    prompt: `Bring ${name} up to date.\nThen <script>alert("${name}")</script> & \u202eback\u202c.`,
    dependsOn: after[name].map(idOf),
    createdAt: new Date(begin).toISOString(),
  }));
}

/** About sixty events over a night. The group ends failed. */
export function eventfulEvents(): GroupEvent[] {
  const story = new Story();
  const group = {
    id: eventfulId,
    name: 'Release 2.0 <b>"now"</b>',
    description: 'Everything for the release: </script><img src="http://127.0.0.1:9/x.png" onerror="alert(1)">',
    slug: 'release',
    createdAt: new Date(begin).toISOString(),
    config: { ...defaultGroupConfig, maxBudgetUsd: 10, maxConcurrentSessions: 2 },
  };
  story.add({ type: 'group_created', group });
  for (const session of definitions()) story.add({ type: 'session_added', sessionId: session.id, session });
  story.add({ type: 'group_started', run: { id: 'run-1', runner } });
  story.start('schema').pass(14).complete('schema', 1.1, 14, 'The schema has the new tables.\n\n- orders\n- refunds');
  story.start('api').start('web').pass(9);
  const limit = { resetsAt: new Date(begin + 60 * minute).toISOString(), limitType: 'five_hour' };
  story.add({ type: 'limit_reached', ...limit });
  const parked = { reason: 'limit', message: 'A usage limit is in force.', retryAt: limit.resetsAt } as const;
  for (const name of ['api', 'web'] as const) {
    story.add({ type: 'session_paused', ...story.of(name), ...parked, usage: usage(0.7, 9, 'claude-opus-4-5') });
  }
  story.pass(34).add({ type: 'limit_lifted' });
  story.start('api', 'resume').start('web', 'resume').pass(11);
  story.complete('api', 2.4, 11, `Done.\u001b[31m ${'All of the API is there. '.repeat(200)}</pre></details></script>`);
  const pausing = { reason: 'user', message: 'Paused. Continue with: group resume.' } as const;
  story.add({ type: 'group_pausing', reason: 'user' });
  story.add({ type: 'session_paused', ...story.of('web'), ...pausing, usage: usage(0.9, 12, 'claude-haiku-4-5') });
  story.add({ type: 'group_paused', ...pausing });
  story.pass(9 * 60).add({ type: 'group_resumed', run: { id: 'run-2', runner }, retry: [] });
  story.start('web', 'resume').start('mobile').pass(6);
  const retryAt = new Date(begin + 11 * 60 * minute).toISOString();
  const overloaded = { reason: 'transient', message: 'The API was overloaded (529).', retryAt } as const;
  story.add({ type: 'session_paused', ...story.of('web'), ...overloaded, usage: usage(0.2, 6, 'claude-opus-4-5') });
  story.pass(5).start('web', 'resume').pass(3);
  const rejected = {
    reason: 'not-accepted',
    message: 'The acceptance command failed: bun test ended with 1.',
    next: 'See what it printed, then: session retry release/mobile',
    output: 'FAIL checkout.test.ts\n  expected "ä" <but> got & \u001b[2J',
  } as const;
  story.add({ type: 'session_failed', ...story.of('mobile'), ...rejected, usage: usage(1.3, 14, 'claude-opus-4-5') });
  const denied = { code: 'denied-tools', message: '2 tools were denied: Bash(rm -rf), WebFetch.' } as const;
  story.add({ type: 'session_warning', sessionId: idOf('web'), warning: denied });
  story.complete('web', 0.8, 4, 'The shop shows refunds.');
  story.add({ type: 'budget_warning', usage: 8.1, limit: 10 }).start('docs').pass(7);
  story.complete('docs', 0.6, 7, 'Docs are written.');
  const message = '1 session failed and 1 blocked by it. See: group show. Then: group run --retry-failed.';
  return story.add({ type: 'group_failed', reason: 'sessions-failed', message }).events;
}

/** Writes the group below a data root. */
export function storeEventfulGroup(root: string): void {
  const world = createRealWorld();
  const paths = groupPaths(root, eventfulId);
  world.files.makeFolder(paths.sessions);
  createLog(world, paths.events, eventfulId, eventfulEvents()).close();
}
