/** What a hook of CPM adds to the start of a session: the whole process, beside the same job as bash and jq. */
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isolatedBunFlags } from '../src/world/own-program.ts';
import { atMost, type Benchmark, type Figure, formatRatio, measured, median } from './support/figures.ts';
import { type BenchFolder, makeFolder } from './support/group-on-disk.ts';
import { inTurns, type Standings } from './support/in-turns.ts';

const hookMain = join(import.meta.dir, '..', 'src', 'hook-main.ts');
const script = join(import.meta.dir, 'support', 'cpm-hook.sh');
/** A hook takes so little time that more of them are taken together. */
const hooksInRound = 12;
const progressFiles = 5;
const targetMs = 20;
const sessionId = '00000001-0000-4000-8000-000000000000';
const [bare, ours, peer] = ['bun -e 0', 'hook-main.ts cpm', 'bash + jq'] as const;

export const hook: Benchmark = {
  about: () => `SessionStart of CPM with ${progressFiles} progress files, from start to end of the process, in turns.`,
  async run({ rounds }) {
    const folder = makeFolder();
    try {
      fill(folder);
      const env = { ...folder.env, CLAUDE_PROJECT_DIR: folder.project };
      const time = (...command: string[]) => timeOf(command, env);
      const standings = await inTurns(
        [
          { name: bare, run: () => time(process.execPath, '-e', '0') },
          { name: ours, run: () => time(process.execPath, ...isolatedBunFlags, hookMain, 'cpm', 'session-start') },
          { name: peer, needs: ['bash', 'jq'], run: () => time('bash', script) },
        ],
        rounds * hooksInRound,
      );
      return figures(standings);
    } finally {
      folder.remove();
    }
  },
};

function figures({ taken, absent }: Standings): Figure[] {
  const oursMs = median(taken.get(ours) ?? []);
  const peerMs = median(taken.get(peer) ?? []);
  const rows = [...taken].map(([name, values]): Figure => {
    return { ...measured(name, values), ...(name === ours ? { target: atMost(oursMs, targetMs) } : {}) };
  });
  if (Number.isNaN(peerMs)) return [...rows, ...absent];
  const against = oursMs / peerMs;
  const compared = { what: `${ours} against ${peer}`, value: formatRatio(against) };
  return [...rows, { ...compared, target: atMost(against, 1, formatRatio), note: 'below 1 = ours is faster' }];
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
