/**
 * Promises: the text of sub-agents is in the stream and is shown below the call that runs them. It counts neither as
 * the session's own text nor as extra cost. Sub-agents do not get the end of the system prompt, but they get what
 * CLAUDE.md says about Git.
 */
import { afterEach, expect, setDefaultTimeout, test } from 'bun:test';
import { userMessage } from '../../../src/claude/control.ts';
import { gitForSubagents, gitGuidance } from '../../../src/claude/launch/instructions.ts';
import { emptyStream, foldMessage, usageOf } from '../../../src/claude/stream.ts';
import { TranscriptReader } from '../../../src/claude/transcript-entries.ts';
import { claudeBinary, openRig, prepareSession, type Rig, startClaude, stepLimitMs } from '../../support/claude/rig.ts';

setDefaultTimeout(stepLimitMs);

const rigs: Rig[] = [];
afterEach(async () => {
  for (const rig of rigs.splice(0)) await rig.close();
});

const told = 'I looked into it; there is nothing to add.';

const task = 'Look around.';

async function runSession(isKept: (arg: string) => boolean = () => true) {
  const input = { description: 'look', prompt: task, subagent_type: 'general-purpose' };
  const rig = openRig([{ tool: 'Agent', input }, { text: 'done' }]);
  rigs.push(rig);
  const session = prepareSession(rig, { allowedTools: ['Agent'], git: gitGuidance({}) as string });
  const claude = startClaude(rig, session.args.filter(isKept), session.env);
  claude.send(userMessage('go'));
  await claude.until((m) => m.kind === 'result');
  await claude.end();
  const { costUsd, tokens, turns, estimated } = usageOf(claude.messages().reduce(foldMessage, emptyStream()), 0);
  const reader = new TranscriptReader();
  const entries = claude
    .text()
    .split('\n')
    .flatMap((line) => reader.read(line));
  const asked = rig.api.requests.filter(({ kind }) => kind === 'step').map(({ body }) => JSON.stringify(body));
  return {
    asked,
    usage: { costUsd, tokens, turns, estimated },
    said: entries.flatMap((entry) => (entry.kind === 'said' ? [[entry.depth, entry.text]] : [])),
    outcomes: entries.flatMap((entry) => (entry.kind === 'outcome' ? [entry.text.includes(told)] : [])),
  };
}

test.skipIf(claudeBinary === undefined)('sub-agents get the Git rules of the session', async () => {
  const { asked } = await runSession();
  const words = (text: string) => text.includes(gitForSubagents);
  const guidance = (text: string) => text.includes('# Sessions of a session runner');
  // The session, its sub-agent, and the session with the answer.
  expect(asked.map((text) => [words(text), guidance(text)])).toEqual([
    [true, true],
    [true, false],
    [true, true],
  ]);
  // No other text says it: claude's own Git instructions are switched off for both.
  expect(asked[1]).not.toContain('git commit');
});

test.skipIf(claudeBinary === undefined)('sub-agent text in the stream costs nothing extra', async () => {
  const plain = await runSession((arg) => arg !== '--forward-subagent-text');
  expect(plain.said).toEqual([[0, 'done']]);
  expect(plain.outcomes).toEqual([true]);
  const forwarded = await runSession();
  expect(forwarded.said).toEqual([
    [1, told],
    [0, 'done'],
  ]);
  expect(forwarded.usage).toEqual(plain.usage);
});
