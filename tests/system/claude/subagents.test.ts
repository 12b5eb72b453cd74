/**
 * Promises: what sub-agents say stands in the stream when `--help` of the claude in use knows the option for it, is
 * shown below the call that runs them, and counts neither as the session's own words nor anew as cost. They do not see
 * the end of the system prompt, but they see what CLAUDE.md says of Git.
 */
import { afterEach, expect, setDefaultTimeout, test } from 'bun:test';
import { abilitiesIn } from '../../../src/claude/abilities.ts';
import { userMessage } from '../../../src/claude/control.ts';
import { forwardOption } from '../../../src/claude/launch/argv.ts';
import { gitForSubagents, gitGuidance } from '../../../src/claude/launch/git-guidance.ts';
import { emptyStream, foldMessage, usageOf } from '../../../src/claude/stream.ts';
import { TranscriptReader } from '../../../src/claude/transcript-entries.ts';
import { claudeBinary, openRig, patienceMs, prepareSession, type Rig, startClaude } from '../../support/claude/rig.ts';

setDefaultTimeout(patienceMs);

const rigs: Rig[] = [];
afterEach(async () => {
  for (const rig of rigs.splice(0)) await rig.close();
});

const told = 'I looked into it; there is nothing to add.';

const task = 'Look around.';

async function runSession(...more: readonly string[]) {
  const input = { description: 'look', prompt: task, subagent_type: 'general-purpose' };
  const rig = openRig([{ tool: 'Agent', input }, { text: 'done' }]);
  rigs.push(rig);
  const session = prepareSession(rig, { allowedTools: ['Agent'], git: gitGuidance({}) as string });
  const claude = startClaude(rig, [...session.args, ...more], session.env);
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

/** Each kind of session runs once, and several tests look at it. */
const ran = new Map<string, ReturnType<typeof runSession>>();

function sessionWith(...more: readonly string[]): ReturnType<typeof runSession> {
  const known = ran.get(more.join(' ')) ?? runSession(...more);
  ran.set(more.join(' '), known);
  return known;
}

const help = claudeBinary === undefined ? '' : Bun.spawnSync([claudeBinary, '--help'], { env: {} }).stdout.toString();
const isAble = abilitiesIn(help).forwardsSubagents === true;

test.skipIf(claudeBinary === undefined)('without the option only their answer to the session is there', async () => {
  const { said, outcomes } = await sessionWith();
  expect(said).toEqual([[0, 'done']]);
  expect(outcomes).toEqual([true]);
});

test.skipIf(claudeBinary === undefined)('they are told about Git what a session is not to have done', async () => {
  const { asked } = await sessionWith();
  const words = (text: string) => text.includes(gitForSubagents);
  const guidance = (text: string) => text.includes('# Sessions of a session runner');
  // The session, its sub-agent, and the session with the answer.
  expect(asked.map((text) => [words(text), guidance(text)])).toEqual([
    [true, true],
    [true, false],
    [true, true],
  ]);
  // Nobody else says it: claude's own words on Git are switched off for both.
  expect(asked[1]).not.toContain('git commit');
});

test.skipIf(!isAble)('with it they speak for themselves, at no other price', async () => {
  const plain = await sessionWith();
  const forwarded = await sessionWith(forwardOption);
  expect(forwarded.said).toEqual([
    [1, told],
    [0, 'done'],
  ]);
  expect(forwarded.usage).toEqual(plain.usage);
});

test.skipIf(claudeBinary === undefined || isAble)('a claude that does not know it would end with an error', () => {
  const ended = Bun.spawnSync([claudeBinary as string, '-p', forwardOption, 'x'], { env: {} });
  expect(ended.exitCode).toBe(1);
  expect(ended.stderr.toString()).toContain('unknown option');
});

test('the option is found as a word of its own', () => {
  expect(abilitiesIn(`  --fork-session   x\n  ${forwardOption}   Forward`)).toEqual({ forwardsSubagents: true });
  expect(abilitiesIn(`  ${forwardOption}-later   Forward`)).toEqual({ forwardsSubagents: false });
  expect(abilitiesIn('')).toEqual({ forwardsSubagents: false });
});
