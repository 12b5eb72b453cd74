/** What a hook of CPM adds to the start of a session: the whole process, beside the same job as bash and jq. */
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isolatedBunFlags } from '../src/world/own-program.ts';
import { type Benchmark, type Figure, formatMs, median, quantile, ratio } from './support/figures.ts';
import { type BenchFolder, makeFolder } from './support/group-on-disk.ts';

const hookMain = join(import.meta.dir, '..', 'src', 'hook-main.ts');
const script = join(import.meta.dir, 'support', 'cpm-hook.sh');
const rounds = 60;
const progressFiles = 5;
const sessionId = '00000001-0000-4000-8000-000000000000';

export const hook: Benchmark = {
  about: `SessionStart of CPM with ${progressFiles} progress files, from start to end of the process, in turns.`,
  async run() {
    const folder = makeFolder();
    try {
      fill(folder);
      const env = { ...folder.env, CLAUDE_PROJECT_DIR: folder.project };
      const commands = new Map<string, readonly string[]>([
        ['bun -e 0', [process.execPath, '-e', '0']],
        ['hook-main.ts cpm', [process.execPath, ...isolatedBunFlags, hookMain, 'cpm', 'session-start']],
      ]);
      const lacking = ['bash', 'jq'].filter((name) => Bun.which(name) === null);
      if (lacking.length === 0) commands.set('bash + jq', ['bash', script]);
      const times = new Map([...commands.keys()].map((name) => [name, [] as number[]]));
      // In turns, so that whatever else the machine does meets all of them alike.
      for (let round = 0; round < rounds; round += 1) {
        for (const [name, command] of commands) times.get(name)?.push(timeOf(command, env));
      }
      return figures(times, lacking);
    } finally {
      folder.remove();
    }
  },
};

function figures(times: ReadonlyMap<string, readonly number[]>, lacking: readonly string[]): Figure[] {
  const bashMs = times.get('bash + jq');
  const all = [...times].map(([name, taken]): Figure => {
    const spread = `${formatMs(quantile(taken, 0.9))} at the 9th decile`;
    const isOurs = name.startsWith('hook-main');
    const beside = isOurs && bashMs !== undefined ? `; ${ratio(median(taken), median(bashMs))} bash + jq` : '';
    return {
      what: name,
      value: formatMs(median(taken)),
      beside: `${isOurs ? 'target ≤ 25 ms; ' : ''}${spread}${beside}`,
    };
  });
  if (lacking.length === 0) return all;
  return [...all, { what: 'bash + jq', value: 'skipped', beside: `${lacking.join(' and ')} not installed` }];
}

/** Four fresh files and a stale one, of the size that skills write. */
function fill(folder: BenchFolder): void {
  const plans = join(folder.project, 'docs', 'plans');
  mkdirSync(plans, { recursive: true });
  for (let number = 1; number <= progressFiles; number += 1) {
    const path = join(plans, `.cpm-progress-0000000${number}-0000-4000-8000-000000000000.md`);
    const phases = Array.from(
      { length: 12 },
      (_, phase) => `### Phase ${phase}\nDecided: ${'a matter, '.repeat(10)}\n`,
    );
    const header = `# CPM Session State\n\n**Skill**: cpm:do\n**Phase**: ${number} of 6 — Work\n`;
    writeFileSync(path, `${header}\n## Completed Phases\n\n${phases.join('\n')}\n## Next Action\nGo on.\n`);
    if (number === progressFiles) utimesSync(path, 0, 0);
  }
}

/** Milliseconds of a hook from start to end; throws when it does not do its job. */
function timeOf(command: readonly string[], env: Readonly<Record<string, string>>): number {
  const stdin = Buffer.from(`${JSON.stringify({ session_id: sessionId, source: 'startup' })}\n`);
  const begin = performance.now();
  const { exitCode, stdout } = Bun.spawnSync([...command], { env, stdin, stderr: 'inherit' });
  const ms = performance.now() - begin;
  const isBare = command.includes('-e');
  const isDone = exitCode === 0 && (isBare || /^CPM_SESSION_ID: .*--- END ---.*STALE: /s.test(stdout.toString()));
  if (!isDone) throw new Error(`${command.join(' ')} ended with ${exitCode} and said: ${stdout}`);
  return ms;
}
