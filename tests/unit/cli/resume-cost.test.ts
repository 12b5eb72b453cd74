/**
 * Promises: what it costs to go on with a conversation that the prompt cache may have lost is told before it is paid,
 * and nothing where it costs nothing: a fresh pause, a new conversation, a rehearsal. What claude itself reckons is in
 * tests/system/claude/resume-cost.test.ts.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { EventBody } from '../../../src/core/event.ts';
import { sessionPaths } from '../../../src/store/paths.ts';
import { Ground, sessionId, story } from '../../support/cli/bad-input/ground.ts';

let user: Ground;
beforeEach(() => {
  user = new Ground();
});
afterEach(() => user.remove());

const claudeSessionId = 'aaaa0010-0000-4000-8000-000000000001';
const identified: EventBody = {
  type: 'session_identified',
  ...{ sessionId: sessionId(1), attemptId: 'first' },
  ...{ claudeSessionId, model: 'claude-opus-4-8' },
};
const usage = { input_tokens: 100, cache_read_input_tokens: 40_000, cache_creation_input_tokens: 20_000 };
const said = (more: object, parent: string | null = null) => ({
  type: 'assistant',
  parent_tool_use_id: parent,
  message: { id: 'm', model: 'claude-opus-4-8', content: [], usage: { ...usage, output_tokens: 500, ...more } },
});
/** A sub-agent has a context of its own. */
const lines = [said({ input_tokens: 9 }), said({}), said({ input_tokens: 7_000_000 }, 'toolu_1')];
const compaction = { type: 'system', subtype: 'compact_boundary' };

interface Story {
  readonly more?: readonly EventBody[];
  readonly transcript?: readonly object[];
  readonly hasConversation?: boolean;
  readonly minutesAgo?: number;
  readonly rehearsal?: true;
}

/** A group whose only session was paused that long ago. */
function paused({ more = [story.paused], transcript = lines, minutesAgo = 10, ...rest }: Story = {}): string {
  const { started } = story;
  const begun: EventBody = rest.rehearsal ? { ...started, run: { ...started.run, rehearsal: true } } : started;
  const bodies: EventBody[] = [begun, story.intended, story.spawned, identified, ...more];
  const group = user.make('auth', [{ name: 'api' }], bodies);
  const paths = sessionPaths(user.paths(group), sessionId(1));
  const kept = join(paths.config, 'projects', '-p', `${claudeSessionId}.jsonl`);
  mkdirSync(dirname(kept), { recursive: true });
  if (rest.hasConversation !== false) writeFileSync(kept, '{"type":"user"}\n');
  writeFileSync(paths.transcript, transcript.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const { events } = user.paths(group);
  const at = new Date(Date.now() - minutesAgo * 60_000).toISOString();
  writeFileSync(events, readFileSync(events, 'utf8').replaceAll(/"at":"[^"]*"/g, `"at":"${at}"`));
  return group;
}

const own = 'about $0.38 for writing 61k tokens into the prompt cache anew, should it no longer hold them';

test('of a paused session, wherever one looks before going on', async () => {
  const group = paused();
  expect(await user.ok('session', 'show', `${group}/api`)).toContain(`\nGoing on: ${own}\n`);
  const all = `Going on with 1 conversation costs ${own}.`;
  expect(await user.ok('group', 'show', group)).toContain(`\n${all}\n`);
  // Nothing is to be started here.
  const nowhere = { env: { CLAUDE_CODE_AGENT_CLAUDE: '/nowhere' } };
  expect((await user.runWith(nowhere, 'group', 'plan', group)).stdout).toContain(`\n  ${all}\n`);
  expect((await user.runWith(nowhere, 'group', 'resume', group, '--output', 'quiet')).stderr).toContain(all);
});

const nothing = { cache_read_input_tokens: 0, cache_creation_input_tokens: 0, output_tokens: 0 };

test.each<[string, Story]>([
  ['a pause just now', { minutesAgo: 1 }],
  ['a conversation that is gone', { hasConversation: false }],
  ['a rehearsal', { rehearsal: true }],
  ['a conversation that was compacted since', { transcript: [...lines, compaction] }],
  ['a session that said nothing', { transcript: [] }],
  ['a completed session', { more: [story.completed] }],
  ['so little that nobody cares', { transcript: [said({ ...nothing, input_tokens: 100 })] }],
])('nothing is said of %s', async (_, told) => {
  const group = paused(told);
  expect(await user.ok('group', 'show', group)).not.toContain('Going on');
});

test.each([
  [true, 'with 61k tokens, written into the prompt cache anew for $0.38'],
  [false, 'with 61k tokens, which the prompt cache still held'],
])('of a running one what claude said as it went on (expired: %p)', async (isCacheExpired, sentence) => {
  const { intended, spawned, paused: stopped } = story;
  const of = { sessionId: sessionId(1), attemptId: 'second' };
  const second: EventBody[] = [
    stopped,
    { ...intended, attempt: { ...intended.attempt, id: 'second', number: 2, kind: 'resume' } },
    { ...spawned, ...of, type: 'session_resumed', attempt: 2 },
  ];
  const group = paused({ more: second });
  const { hooksLog } = sessionPaths(user.paths(group), sessionId(1));
  const note = (minutesAgo: number, contextTokens: number) => {
    const at = new Date(Date.now() - minutesAgo * 60_000).toISOString();
    return `${JSON.stringify({ at, resumed: { contextTokens, cacheWriteUsd: 0.38, isCacheExpired } })}\n`;
  };
  const shown = async (log: string) => {
    writeFileSync(hooksLog, log);
    return user.ok('session', 'show', `${group}/api`);
  };
  expect(await shown(`${note(60, 1)}${note(5, 60_600)}no JSON\n`)).toContain(`\nGoing on: ${sentence}\n`);
  // It was said to an earlier attempt.
  expect(await shown(note(60, 60_600))).not.toContain('Going on');
});
