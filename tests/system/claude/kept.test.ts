/**
 * Promises: what the real claude keeps of a conversation. After an end, an interrupt or a signal it is complete. After
 * a kill at the start it is empty and can be started again under its id. On a full disk its end is missing, and we
 * detect it.
 */
import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { interruptRequest, userMessage } from '../../../src/claude/control.ts';
import {
  conversationExists,
  isCutOff,
  keptMessages,
  removeEmptyConversation,
  totalsAtEnd,
} from '../../../src/claude/conversation.ts';
import { finalUsage } from '../../../src/claude/final-usage.ts';
import { estimateCost } from '../../../src/claude/pricing.ts';
import { emptyStream, foldMessage, foldTotalAtEnd } from '../../../src/claude/stream.ts';
import { noTokens } from '../../../src/core/group.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import {
  claudeBinary,
  modelOfKnownPrice,
  openRig,
  type Probe,
  prepareSession,
  type Rig,
  type Session,
  startClaude,
  stepLimitMs,
} from '../../support/claude/rig.ts';
import { until } from '../../support/cli.ts';
import { sampled } from '../../support/long.ts';

setDefaultTimeout(stepLimitMs);

const world = createRealWorld();
let rig: Rig;
afterEach(() => rig.close());

const isAsleep = ({ pid }: Probe) =>
  Bun.spawnSync(['pgrep', '-P', String(pid), '-f', asleep.input.command]).exitCode === 0;

const asleep = { tool: 'Bash', input: { command: 'sleep 600' } };

type Begin = Parameters<typeof openRig>;

function begin(steps: Begin[0], agents?: Begin[1], options?: Parameters<typeof prepareSession>[1]) {
  rig = openRig(steps, agents);
  return prepareSession(rig, options);
}

function conversation({ paths, claudeSessionId }: Session): string {
  const projects = { cwd: join(paths.config, 'projects'), absolute: true };
  const found = [...new Bun.Glob(`*/${claudeSessionId}.jsonl`).scanSync(projects)];
  return found.map((path) => readFileSync(path, 'utf8')).join('');
}

/** The spending computed for a claude that ended without a result. */
function brokenOff(claude: Probe, { paths: { config }, claudeSessionId }: Session, startedAtMs: number) {
  const stream = claude.messages().reduce(foldMessage, emptyStream());
  const totals = totalsAtEnd(world, config, claudeSessionId, startedAtMs);
  if (totals !== null) foldTotalAtEnd(stream, totals);
  const kept = (ids: readonly string[]) => keptMessages(world, config, ids, {});
  const ended = { stream, hasBegun: true, startedAtMs, kept, isBlank: () => false };
  return { stream, ...finalUsage(ended, 0) };
}

async function isCut(claude: Probe, configDir: string): Promise<boolean> {
  await claude.exited;
  return isCutOff(world, [configDir], claude.messages().reduce(foldMessage, emptyStream()));
}

describe.skipIf(claudeBinary === undefined)('claude', () => {
  test.each(sampled(['end', 'interrupt', 'signal'], 2))('keeps the conversation when it ends by %s', async (how) => {
    const session = begin(how === 'end' ? [{ text: 'done' }] : [asleep]);
    const claude = startClaude(rig, session.args, session.env);
    claude.send(userMessage('go'));
    await claude.until((m) => m.kind === 'assistant');
    if (how === 'interrupt') claude.send(interruptRequest('1'));
    if (how !== 'signal') await claude.until((m) => m.kind === 'result');
    await claude.end();
    expect(await isCut(claude, session.paths.config)).toBe(false);
    expect(conversationExists(world, session.paths.config, session.claudeSessionId)).toBe(true);
  });

  test.each(['SIGTERM', 'SIGKILL'] as const)('reports the cost of sub-agents that run at a %s', async (signal) => {
    const input = { description: 'look', prompt: 'look', subagent_type: 'general-purpose' };
    const big = { usage: { input: 3_000, output: 4_000 } };
    const looks = { tool: 'Bash', input: { command: 'echo hi' }, ...big };
    const session = begin([{ tool: 'Agent', input }], [looks, { ...asleep, ...big }], {
      allowedTools: ['Agent', 'Bash'],
      model: modelOfKnownPrice,
    });
    const startedAtMs = Date.now();
    const claude = startClaude(rig, session.args, session.env);
    claude.send(userMessage('go'));
    await until(() => isAsleep(claude));
    process.kill(claude.pid, signal);
    await claude.exited;
    const { stream, costUsd, heldUsd = 0 } = brokenOff(claude, session, startedAtMs);
    const servedUsd = rig.api.served.total.costUsd;
    const writesTotals = conversation(session).includes('"type":"cost-state"');
    expect([stream.hasFinalTotals, writesTotals]).toEqual(Array(2).fill(signal === 'SIGTERM'));
    if (stream.hasFinalTotals) expect(costUsd).toBeCloseTo(servedUsd, 9);
    else expect(costUsd).toBeGreaterThanOrEqual(servedUsd - 1e-9);
    expect(costUsd - heldUsd).toBeLessThanOrEqual(servedUsd + 1e-9);
  });

  test.each([
    ['waits for an answer', { hang: true, text: 'never' }],
    ['is at work with a tool', asleep],
  ])('killed while it %s: one message is held, and the rest is counted', async (_, second) => {
    const session = begin([{ tool: 'Bash', input: { command: 'echo hi' } }, second], undefined, {
      allowedTools: ['Bash'],
      model: modelOfKnownPrice,
    });
    const startedAtMs = Date.now();
    const claude = startClaude(rig, session.args, session.env);
    claude.send(userMessage('go'));
    await until(() => rig.api.requests.filter(({ kind }) => kind === 'step').length === 2);
    // It writes its answer to the file a moment later.
    const isWritten = (text: string) => conversation(session).includes(text);
    await until(() => isWritten('echo hi'));
    if (second === asleep) await until(() => isAsleep(claude) && isWritten(asleep.input.command));
    process.kill(claude.pid, 'SIGKILL');
    await claude.exited;
    const { costUsd, heldUsd } = brokenOff(claude, session, startedAtMs);
    const firstMessage = { ...noTokens, output: 8_000, cacheCreation: 50_000 };
    expect(heldUsd).toBeCloseTo(estimateCost(modelOfKnownPrice, firstMessage), 6);
    expect(costUsd - (heldUsd ?? 0)).toBeCloseTo(rig.api.served.total.costUsd, 6);
  });

  test('keeps nothing when it is killed at its start, and starts again under the same id', async () => {
    const session = begin([asleep, { text: 'done' }]);
    const first = startClaude(rig, session.args, session.env);
    first.send(userMessage('go'));
    await first.until((m) => m.kind === 'assistant');
    process.kill(first.pid, 'SIGKILL');
    await first.exited;
    // How much was written by then depends on milliseconds.
    const { config } = session.paths;
    removeEmptyConversation(world, config, session.claudeSessionId);
    const continues = conversationExists(world, config, session.claudeSessionId);
    const args = session.args.map((word) => (continues && word === '--session-id' ? '--resume' : word));
    const second = startClaude(rig, args, session.env);
    second.send(userMessage('go on'));
    await second.until((m) => m.kind === 'assistant');
    await second.end();
    expect(conversationExists(world, config, session.claudeSessionId)).toBe(true);
  });
});
