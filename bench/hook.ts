/** What each hook adds to the start of a session: the whole process, beside the same job as bash and jq. */
import { join } from 'node:path';
import { packageRoot } from '../src/system/own-program.ts';
import { atMost, type Benchmark, type Figure, formatRatio, measured, median, ratio } from './support/figures.ts';
import { makeFolder, memoryPlace } from './support/group-on-disk.ts';
import { type HookFixture, type HookName, hookFixtures, idle, sessionId } from './support/hook-fixtures.ts';
import { type Contender, inTurns, type Standings } from './support/in-turns.ts';
import { installedCommand, sourceWords } from './support/installed.ts';

const launcher = join(packageRoot, 'bin', 'claude-code-agent');
/** A hook takes so little time that more of them are taken together. */
const hooksInRound = 12;
const targetMs = 20;
/** These are in every generated config, so they must cost next to nothing where they find nothing. */
const idleSystems = ['cpm', 'faber', 'handover'] as const;
const idleTargetMs = 10;
const systems = Object.keys(hookFixtures) as HookName[];
const bare = 'bun -e 0';
const oursOf = (system: HookName) => `hook ${system}`;
const peerOf = (system: HookName) => `bash + jq ${system}`;
/** The one that makes sure of what it writes, so the disk counts. */
const durable = 'faber';
const idleOf = (system: HookName) => `${oursOf(system)}, nothing to do`;
const onDisk = `${oursOf(durable)}, files on this disk`;
const fromSources = `${oursOf(durable)}, from its sources`;
const byLauncher = `${oursOf(durable)}, by the launcher`;

export const hook: Benchmark = {
  about: () =>
    'SessionStart of every kind of hook, from start to end of the process, in turns: as the settings of a session ' +
    'name it, which is the compiled program where there is one; `hook install` names the launcher. Files are in ' +
    'memory where that can be; only the hook of FABER writes any that must not be lost, with a row for the disk of ' +
    'the temporary folder. The scripts print the same files and facts in fewer words (no ages and no hints), take no ' +
    'locks, wait for no disk and neither cut nor clean what they print.',
  async run({ rounds }) {
    const [folder, disk] = [makeFolder(memoryPlace()), makeFolder()];
    try {
      const command = installedCommand('hook');
      const bareFixture: HookFixture = { env: folder.env, source: 'startup', said: /^$/ };
      const contenders = [
        { name: bare, run: () => timeOf([process.execPath, '-e', '0'], bareFixture) },
        ...systems.flatMap((system) => oursAndPeer(command.words, system, hookFixtures[system](folder))),
        ours(byLauncher, [launcher, 'hook'], durable, hookFixtures[durable](folder)),
        ...(command.isCompiled ? [ours(fromSources, sourceWords('hook'), durable, hookFixtures[durable](folder))] : []),
        ours(onDisk, command.words, durable, hookFixtures[durable](disk)),
        ...idleSystems.map((system) => ours(idleOf(system), command.words, system, idle(folder))),
      ];
      return figures(await inTurns(contenders, rounds * hooksInRound));
    } finally {
      folder.remove();
      disk.remove();
    }
  },
};

function oursAndPeer(words: readonly string[], system: HookName, fixture: HookFixture): Contender[] {
  const script = join(import.meta.dir, 'support', `${system}-hook.sh`);
  const peer = { name: peerOf(system), needs: ['bash', 'jq'], run: () => timeOf(['bash', script], fixture) };
  return [ours(oursOf(system), words, system, fixture), peer];
}

function ours(name: string, words: readonly string[], system: HookName, fixture: HookFixture): Contender {
  const command = [...words, system, 'session-start'];
  return { name, run: () => timeOf(command, fixture) };
}

/** Milliseconds of a hook from start to end; throws when it does not do its job. */
function timeOf(command: readonly string[], { env, source, said, prepare, isRecorded }: HookFixture): number {
  const stdin = Buffer.from(`${JSON.stringify({ session_id: sessionId, source })}\n`);
  prepare?.();
  const begin = performance.now();
  const { exitCode, stdout } = Bun.spawnSync([...command], { env, stdin, stderr: 'inherit' });
  const ms = performance.now() - begin;
  const isDone = exitCode === 0 && said.test(stdout.toString()) && isRecorded?.() !== false;
  if (!isDone) throw new Error(`${command.join(' ')} did not do its job, ended with ${exitCode} and said: ${stdout}`);
  return ms;
}

function figures({ taken, absent }: Standings): Figure[] {
  const valuesOf = (name: string) => taken.get(name) ?? [];
  const rowsOf = (system: HookName): Figure[] => {
    const [own, peer] = [oursOf(system), peerOf(system)];
    const ownMs = median(valuesOf(own));
    const rows: Figure[] = [{ ...measured(own, valuesOf(own)), target: atMost(ownMs, targetMs) }];
    if (system === durable) {
      const others = [byLauncher, fromSources, onDisk].filter((name) => taken.has(name));
      const aside = (name: string) => atMost(median(valuesOf(name)), targetMs);
      rows.push(...others.map((name) => ({ ...measured(name, valuesOf(name)), aside: aside(name) })));
    }
    if (!taken.has(peer)) return [...rows, ...absent.filter(({ what }) => what === peer)];
    const against = ownMs / median(valuesOf(peer));
    const compared = { what: `${own} against bash + jq`, value: formatRatio(against) };
    const target = atMost(against, 1, formatRatio);
    return [...rows, measured(peer, valuesOf(peer)), { ...compared, target, note: 'below 1 = ours is faster' }];
  };
  const idleRow = (system: HookName): Figure => {
    const values = valuesOf(idleOf(system));
    const against = `${ratio(median(values), median(valuesOf(bare)))} bare Bun`;
    return { ...measured(idleOf(system), values), ratio: against, target: atMost(median(values), idleTargetMs) };
  };
  return [measured(bare, valuesOf(bare)), ...idleSystems.map(idleRow), ...systems.flatMap(rowsOf)];
}
