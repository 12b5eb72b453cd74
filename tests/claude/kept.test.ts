/**
 * Promises: what the real claude keeps of a conversation. After an end, an interrupt or a signal all of it is there; of
 * one that was killed as it began nothing is, and it can be begun again under its id; on a full disk its end is
 * missing, and we notice.
 */
import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { interruptRequest, userMessage } from '../../src/claude/control.ts';
import { conversationExists, isCutOff, removeEmptyConversation } from '../../src/claude/conversation.ts';
import { emptyStream, foldMessage } from '../../src/claude/stream.ts';
import { createRealWorld } from '../../src/world/real-world.ts';
import { sampled } from '../support/long.ts';
import { claudeBinary, openRig, type Probe, patienceMs, prepareSession, type Rig, startClaude } from './rig.ts';

setDefaultTimeout(patienceMs);

const world = createRealWorld();
let rig: Rig;
const mounts: string[] = [];
afterEach(async () => {
  for (const mount of mounts.splice(0)) Bun.spawnSync(['umount', mount]);
  await rig.close();
});

const run = (...command: string[]) => Bun.spawnSync(command).exitCode === 0;
const mayMount = process.platform === 'linux' && process.getuid?.() === 0;

const asleep = { tool: 'Bash', input: { command: 'sleep 600' } };

function begin(steps: Parameters<typeof openRig>[0]) {
  rig = openRig(steps);
  return prepareSession(rig);
}

async function isCut(claude: Probe, configDir: string): Promise<boolean> {
  await claude.exited;
  return isCutOff(world, [configDir], claude.messages().reduce(foldMessage, emptyStream()));
}

describe.skipIf(claudeBinary === undefined)('claude', () => {
  test.each(sampled(['end', 'interrupt', 'signal'], 2))('keeps all of a conversation that ends by %s', async (how) => {
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

  test('keeps nothing when it is killed as it begins, and begins again under the same id', async () => {
    const session = begin([asleep, { text: 'done' }]);
    const first = startClaude(rig, session.args, session.env);
    first.send(userMessage('go'));
    await first.until((m) => m.kind === 'assistant');
    process.kill(first.pid, 'SIGKILL');
    await first.exited;
    // How much of it was written by then is a matter of milliseconds.
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

  test.skipIf(!mayMount)('loses the end of a conversation to a full disk', async () => {
    const session = begin([{ tool: 'Bash', input: { command: 'echo' } }, { text: 'much was said '.repeat(2_000) }]);
    const projects = join(session.paths.config, 'projects');
    mkdirSync(projects, { recursive: true });
    expect(run('mount', '-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', projects)).toBe(true);
    mounts.push(projects);
    const claude = startClaude(rig, session.args, session.env);
    claude.send(userMessage('go'));
    await claude.until((m) => m.kind === 'assistant');
    expect(() => writeFileSync(join(projects, 'fill'), Buffer.alloc(1024 ** 2))).toThrow('ENOSPC');
    await claude.until((m) => m.kind === 'result');
    await claude.end();
    expect(await isCut(claude, session.paths.config)).toBe(true);
  });
});
