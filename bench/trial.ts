/** What a new claude costs a user: its check, and in later runs the look at what is remembered. */
import { join } from 'node:path';
import { CheckGate } from '../src/app/claude-check/gate.ts';
import { createRealWorld } from '../src/system/real-world.ts';
import { pinnedClaude } from '../tests/support/cli.ts';
import { atMost, type Benchmark, type Figure, formatMs, measured, median } from './support/figures.ts';
import { makeFolder } from './support/group-on-disk.ts';

const trialTargetMs = 8_000;
const looks = 200;

export const trial: Benchmark = {
  about: ({ rounds }) =>
    'The pinned claude, checked against the scripted API as the first run does, ' +
    `${rounds === 1 ? 'once' : `${rounds} times`}.`,
  async run({ rounds }) {
    const trials: number[] = [];
    const remembered: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const folder = makeFolder();
      try {
        trials.push(await admit(folder.root));
        for (let look = 0; look < looks; look += 1) remembered.push(await admit(folder.root));
      } finally {
        folder.remove();
      }
    }
    return rows(trials, remembered);
  },
};

function rows(trials: readonly number[], remembered: readonly number[]): Figure[] {
  return [
    {
      ...measured('check of a claude that is new here', trials),
      target: atMost(median(trials), trialTargetMs, formatMs),
    },
    { ...measured('the same when it is remembered', remembered), note: 'in this process; no other is started' },
  ];
}

/** Milliseconds until the gate has let the claude through; throws when it does not. */
async function admit(root: string): Promise<number> {
  const caller = {
    PATH: process.env.PATH ?? '',
    CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
    ANTHROPIC_API_KEY: 'test-key',
  };
  const options = { root, caller, packageRoot: join(import.meta.dir, '..'), say: () => {} };
  const gate = new CheckGate(createRealWorld(), { ...options, stop: new AbortController().signal });
  const begin = performance.now();
  const admitted = await gate.admit(undefined);
  if (!admitted.ok) throw new Error(admitted.failure.message);
  return performance.now() - begin;
}
