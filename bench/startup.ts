/** How long a user waits for the commands that only look, and claude for a hook that finds nothing to do. */
import { join } from 'node:path';
import { createRealWorld } from '../src/system/real-world.ts';
import { atMost, type Benchmark, type Figure, formatMs, measured, median, ratio } from './support/figures.ts';
import { type BenchFolder, makeFolder, makeGroupOnDisk } from './support/group-on-disk.ts';
import { tinyClaude } from './support/places.ts';

const launcher = join(import.meta.dir, '../bin/claude-code-agent');
const targets: Readonly<Record<string, number>> = { 'group list': 60, 'hook cpm, nothing to do': 20 };
const bare = 'bun -e 0';
/** A start takes so little time that more of them are taken together. */
const startsInRound = 4;

export const startup: Benchmark = {
  about: () => 'Commands by the launcher, from the start to the end of the process; beside it a Bun that does nothing.',
  async run({ rounds }) {
    const folder = makeFolder();
    try {
      const commands = commandsIn(folder);
      const taken = new Map<string, Taken[]>();
      for (let round = 0; round < rounds * startsInRound; round += 1) {
        for (const [name, command] of commands) {
          taken.set(name, [...(taken.get(name) ?? []), timeOf(command, folder)]);
        }
      }
      return figures(taken);
    } finally {
      folder.remove();
    }
  },
};

function commandsIn(folder: BenchFolder): ReadonlyMap<string, readonly string[]> {
  const created = makeGroupOnDisk(createRealWorld(), folder, { sessions: 1 }).groupId;
  return new Map([
    [bare, [process.execPath, '-e', '0']],
    ['--version', [launcher, '--version']],
    ['group list', [launcher, 'group', 'list']],
    ['group show', [launcher, 'group', 'show', created]],
    ['group create', [launcher, 'group', 'create', 'another']],
    ['session add', [launcher, 'session', 'add', created, '--project', folder.project, '--prompt', 'Do it.']],
    ['hook cpm, nothing to do', [launcher, 'hook', 'cpm', 'session-start']],
  ]);
}

interface Taken {
  readonly wallMs: number;
  readonly cpuMs: number;
}

function figures(all: ReadonlyMap<string, readonly Taken[]>): Figure[] {
  const wallOf = (taken: readonly Taken[] = []) => taken.map(({ wallMs }) => wallMs);
  const bareMs = median(wallOf(all.get(bare)));
  return [...all].map(([name, taken]): Figure => {
    const wallMs = median(wallOf(taken));
    const limitMs = targets[name];
    return {
      ...measured(name, wallOf(taken)),
      ratio: name === bare ? '1' : `${ratio(wallMs, bareMs)} bare Bun`,
      ...(limitMs === undefined ? {} : { target: atMost(wallMs, limitMs) }),
      note: `${formatMs(median(taken.map(({ cpuMs }) => cpuMs)))} of CPU`,
    };
  });
}

/** A command from start to end; throws when it fails. */
function timeOf(command: readonly string[], folder: BenchFolder): Taken {
  const begin = performance.now();
  const { exitCode, stderr, resourceUsage } = Bun.spawnSync([...command], {
    env: { ...folder.env, CLAUDE_CODE_AGENT_CLAUDE: tinyClaude, ANTHROPIC_API_KEY: 'test-key' },
    stdin: Buffer.from('{"session_id":"bench","source":"startup"}'),
    stdout: 'ignore',
  });
  const wallMs = performance.now() - begin;
  if (exitCode !== 0) throw new Error(`${command.join(' ')} ended with ${exitCode}: ${stderr}`);
  return { wallMs, cpuMs: Number(resourceUsage?.cpuTime.total ?? 0) / 1000 };
}
