/**
 * Promises: a command that exceeds its session's memory limit is killed, and the session continues. Where claude may
 * not create control groups, nothing is limited. All commands that run at once share one limit.
 */
import { afterAll, afterEach, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { userMessage } from '../../../src/claude/control.ts';
import { claudeBinary, openRig, prepareSession, type Rig, startClaude, stepLimitMs } from '../../support/claude/rig.ts';

setDefaultTimeout(stepLimitMs);

/** Where claude creates its control group: below ours (version 1) or beside it (version 2). */
function groupOfTools(): string | null {
  try {
    const groups = readFileSync('/proc/self/cgroup', 'utf8')
      .trim()
      .split('\n')
      .map((line) => line.split(':'));
    const [, , first] = groups.find(([, controllers]) => controllers?.split(',').includes('memory')) ?? [];
    const [, , second = '/'] = groups.find(([number]) => number === '0') ?? [];
    const folder = first === undefined ? join('/sys/fs/cgroup', second, '..') : join('/sys/fs/cgroup/memory', first);
    return join(folder, 'claude-code-bash');
  } catch {
    return null;
  }
}

const group = groupOfTools();

function mayLimit(): boolean {
  if (group === null || claudeBinary === undefined) return false;
  try {
    mkdirSync(`${group}-try`);
    readFileSync(join(`${group}-try`, 'cgroup.procs'));
    rmdirSync(`${group}-try`);
    return true;
  } catch {
    return false;
  }
}

const rigs: Rig[] = [];
afterEach(async () => {
  for (const rig of rigs.splice(0)) await rig.close();
});
afterAll(() => {
  try {
    if (group !== null) rmdirSync(group);
  } catch {
    // Another claude of this machine owns it, or none was created.
  }
});

/** `tail` keeps the last line, which here is the whole output. */
const takes = (bytes: number) => `head -c ${bytes} /dev/zero | tail > /dev/null; echo "code=\${PIPESTATUS[1]}"`;

async function codesOf(memoryBytes?: number): Promise<string[]> {
  const commands = [takes(400_000_000), 'echo code=still-here'];
  const steps = commands.map((command) => ({ tool: 'Bash', input: { command } }));
  const rig = openRig([...steps, { text: 'done' }]);
  rigs.push(rig);
  const session = prepareSession(rig, memoryBytes === undefined ? {} : { memoryBytes });
  const claude = startClaude(rig, session.args, session.env);
  claude.send(userMessage('go'));
  await claude.until((m) => m.kind === 'result');
  await claude.end();
  const results = claude.messages().flatMap((m) => (m.kind === 'user' ? m.toolResults : []));
  return results.flatMap(({ text }) => /code=(\S+)/.exec(text)?.[1] ?? []);
}

test.if(claudeBinary !== undefined)('only the command that exceeds its memory limit is killed', async () => {
  expect(await codesOf()).toEqual(['0', 'still-here']);
  expect(await codesOf(2_000_000_000)).toEqual(['0', 'still-here']);
  expect(await codesOf(100_000_000)).toEqual([mayLimit() ? '137' : '0', 'still-here']);
});
