/** Starts and ends the scripted API of a rehearsal, a separate process that survives a killed runner. */
import { dirname, join } from 'node:path';
import { defined } from '../core/defined.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import { parseScript } from '../rehearsal/script.ts';
import { findRehearsal, loadScript } from '../rehearsal/serve.ts';
import type { Rehearsal } from '../runner/run-group.ts';
import type { GroupPaths } from '../store/paths.ts';
import { waitUntil } from '../system/clock.ts';
import { ownCommand } from '../system/own-program.ts';
import type { ExitStatus, World } from '../system/world.ts';
import type { AppContext } from './app-context.ts';
import { stopRehearsal } from './leftovers.ts';
import { tryPath } from './path-argument.ts';

export interface RehearsalProcessOptions {
  readonly packageRoot: string;
  /** Absolute path; absent = the default script. */
  readonly scriptFile?: string;
  /** The environment of this command; the process gets only the variables that it needs to start. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Long, because a machine under load may start processes slowly. */
const startMsMax = 30_000;
const lookMs = 20;

/** Stores a piped script in a file named by its content, so that the runner that resumes the rehearsal can read it. */
export function keepScript(context: Pick<AppContext, 'world' | 'root'>, text: string): Result<string> {
  const script = parseScript(text, 'standard input');
  if (!script.ok) return script;
  const data = context.root();
  if (!data.ok) return data;
  const digest = new Bun.CryptoHasher('sha256').update(text).digest('hex').slice(0, 16);
  const file = join(data.value, 'rehearsal-scripts', `${digest}.yaml`);
  const { files } = context.world;
  const kept = tryPath(() => {
    files.makeFolder(dirname(file));
    files.writeAtomic(file, text, { durable: true });
  });
  return kept.ok
    ? ok(file)
    : fail('write-failed', `The rehearsal script ${file} ${kept.trouble}.`, 'Give it as a file.');
}

/** The rehearsal for `--rehearse`. Fails with `usage` if the script is faulty. */
export function createRehearsal(world: World, options: RehearsalProcessOptions): Result<Rehearsal> {
  const script = loadScript(world, options.scriptFile);
  if (!script.ok) return script;
  const { scriptFile } = options;
  return ok({
    ...defined({ scriptFile }),
    start: (paths) => start(world, paths, options),
    stop: (paths) => stopRehearsal(world, paths),
  });
}

async function start(world: World, paths: GroupPaths, options: RehearsalProcessOptions): Promise<Result<string>> {
  const running = findRehearsal(world, paths.folder);
  if (running !== null) return ok(running.url);
  const log = join(paths.folder, 'rehearsal.log');
  const script = options.scriptFile === undefined ? [] : ['--script', options.scriptFile];
  const { program, args } = ownCommand('main', options.packageRoot);
  const spawned = world.processes.spawn({
    program,
    args: [...args, 'rehearsal-serve', '--group-folder', paths.folder, ...script],
    cwd: paths.folder,
    env: {
      PATH: options.env.PATH ?? '',
      HOME: join(paths.folder, 'rehearsal-home'),
      // Bun would write compiled sources into that home, readable by other users.
      BUN_RUNTIME_TRANSPILER_CACHE_PATH: '0',
    },
    stdoutFile: log,
    stderrFile: log,
  });
  if (!spawned.ok) return spawned;
  let exit: ExitStatus | null = null;
  spawned.value.onExit((status) => {
    exit = status;
  });
  let server = findRehearsal(world, paths.folder);
  await waitUntil(world.clock, startMsMax, lookMs, () => {
    server = findRehearsal(world, paths.folder);
    return exit !== null || server !== null;
  });
  if (server !== null) return ok(server.url);
  const printed = (world.files.readText(log) ?? '').trim().split('\n').at(-1) ?? '';
  return fail(
    'internal',
    `The scripted API did not start: ${printed === '' ? 'it printed nothing' : printed}.`,
    `See ${log}.`,
  );
}
