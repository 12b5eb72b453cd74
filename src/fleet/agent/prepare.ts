/** From an order to what is to be started: files, worktree, set-up, login and program, all on this machine. */
import { dirname, join } from 'node:path';
import { commandEnvironment } from '../../claude/launch/environment.ts';
import { inCleanEnvironment, telemetryOf, withHooksHere, workerSettings } from '../../claude/launch/settings.ts';
import type { JsonObject } from '../../claude/lenient.ts';
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { Snapshot } from '../../git/worktrees/snapshot.ts';
import type { SessionPaths } from '../../store/paths.ts';
import { systemFailure } from '../../store/system-failure.ts';
import type { Files, SpawnOptions } from '../../system/world.ts';
import { linkFailure } from '../../system/write-failure.ts';
import { checkLimits, limitsOf } from '../../worker/limits.ts';
import { commandFailure, runShellCommand } from '../../worker/shell-command.ts';
import { type Order, type ParcelFile, parcel, projectSlug } from '../wire.ts';
import { SessionFiles } from './checkpoint.ts';
import type { AgentContext } from './context.ts';
import { fillIn, layOut, type Places, removeOtherConversations } from './lay-out.ts';
import { environmentFor } from './login.ts';
import { isSent, takeSent } from './resume-files.ts';
import type { Slot } from './slot.ts';
import { layOutWork, noteSetUp, type RemoteWorktree } from './worktree.ts';

export interface PrepareOptions {
  /** Takes what ends a command of the user's early. */
  readonly onStop: (stop: () => void) => void;
  /** Told as soon as there is a place of work, also when its set-up fails afterwards. */
  readonly onWork: (work: AttemptWork) => void;
}

/** Where an attempt works, and what of it its runner has. */
export interface AttemptWork {
  readonly places: Places;
  readonly worktree: RemoteWorktree;
  /** claude's working directory. */
  readonly folder: string;
  readonly files: SessionFiles;
  told: Snapshot;
}

/** Fails with what keeps the attempt from being started, which is told to its runner. */
export async function prepareAttempt(
  context: AgentContext,
  slot: Slot,
  options: PrepareOptions,
): Promise<Result<SpawnOptions>> {
  const { paths, order } = slot;
  try {
    return await prepare(context, slot, order, options);
  } catch (error) {
    return { ok: false, failure: systemFailure(paths.folder, error) };
  }
}

async function prepare(
  context: AgentContext,
  slot: Slot,
  order: Order,
  { onStop, onWork }: PrepareOptions,
): Promise<Result<SpawnOptions>> {
  const { world, git, engine } = context;
  const { paths } = slot;
  const claude = await context.claude();
  if (!claude.ok) return claude;
  const { processesMax: maxProcesses, memoryBytes } = order;
  const wanted = {
    ...(order.untrusted ? { untrusted: true as const } : {}),
    ...defined({ maxProcesses, memoryBytes }),
  };
  const limitable = checkLimits(wanted, world.processes);
  if (!limitable.ok) return limitable;
  const env = environmentFor(world.files, {
    root: context.root,
    agentEnv: context.env,
    ownLogin: context.config.login,
    order,
    paths,
    programs: join(context.packageRoot, 'bin'),
  });
  if (!env.ok) return env;
  const link = [paths.folder, paths.config, paths.tmp].find((path) => world.files.entryKind(path) === 'link');
  if (link !== undefined) return { ok: false, failure: linkFailure(link) };
  for (const folder of [paths.folder, paths.config, paths.tmp]) world.files.makeFolder(folder);
  const sent = await parcelOf(context, order);
  if (!sent.ok) return sent;
  const made = await layOutWork(git, engine, context.paths, order, paths);
  if (!made.ok) return made;
  const work = workOf(context, slot, made.value);
  if (!work.ok) return work;
  const { places, folder } = work.value;
  const laidOut = layOutFiles(world.files, sent.value.files, places);
  if (!laidOut.ok) return laidOut;
  restateEnvironment(world.files, paths, env.value);
  restateHooks(context, paths, env.value, folder);
  work.value.files.noteAll();
  onWork(work.value);
  if (made.value.isNew) {
    const set = await setUp(context, slot, { ...made.value, folder }, onStop);
    if (!set.ok) return set;
  }
  const limits = limitsOf(wanted, world.processes);
  const { fifo: stdinFifo, transcript: stdoutFile, stderr: stderrFile } = paths;
  const spawn: SpawnOptions = {
    program: claude.value.program,
    args: order.args.map((arg) => fillIn(arg, places)),
    cwd: folder,
    env: env.value,
    ...{ stdinFifo, stdoutFile, stderrFile, syncsStdout: true as const },
    keeper: paths.subreaper,
    contained: order.attemptId,
    ...defined({ limits }),
  };
  return ok(spawn);
}

function layOutFiles(files: Files, all: readonly ParcelFile[], places: Places): Result<void> {
  const [inWorktree, others] = [true, false].map((isIn) =>
    all.filter((file) => !isSent(file) && file.path.startsWith('worktree/') === isIn),
  ) as [ParcelFile[], ParcelFile[]];
  removeOtherConversations(files, { files: others }, places);
  const laidOut = layOut(files, { files: others }, places);
  if (!laidOut.ok) return laidOut;
  // Those that git ignores: what lies there is the session's own already.
  const included = layOut(files, { files: inWorktree }, places, { keep: true });
  return included.ok ? layOut(files, { files: takeSent(all) }, places) : included;
}

/** What beats a project's settings states the environment of the machine on which it was written. */
function restateEnvironment(
  files: Files,
  { workerSettings: path }: SessionPaths,
  env: Readonly<Record<string, string>>,
) {
  const settings = JSON.parse(files.readText(path) ?? '{}') as JsonObject;
  // Empty ones only say that it was off there.
  const telemetry = Object.entries(telemetryOf(settings)).filter(([, value]) => value !== '');
  const restated = { ...settings, env: workerSettings(env, { base: { env: Object.fromEntries(telemetry) } }).env };
  files.writeAtomic(path, `${JSON.stringify(restated, null, 2)}\n`);
}

/** Its runner does not know how this program is started here. */
function restateHooks(
  { world: { files }, hook }: AgentContext,
  { config }: SessionPaths,
  env: Readonly<Record<string, string>>,
  folder: string,
) {
  const path = join(config, 'settings.json');
  const text = files.readText(path);
  if (text === null) return;
  const settings = JSON.parse(text) as JsonObject;
  const restated = withHooksHere(settings, (args) =>
    inCleanEnvironment({ ...hook, args: [...hook.args, ...args] }, env, folder),
  );
  files.writeAtomic(path, `${JSON.stringify(restated, null, 2)}\n`);
}

async function parcelOf({ engine }: AgentContext, order: Order) {
  const bytes = await engine.getBlob(order.files);
  if (!bytes.ok) return bytes;
  try {
    return ok(parcel.parse(JSON.parse(Buffer.from(bytes.value).toString())));
  } catch {
    return fail('usage', 'The files of the order cannot be read.', 'Upgrade the older of the two programs.');
  }
}

/** Fails with `project-missing` when the folder that the order names is none of the worktree. */
function workOf(context: AgentContext, { paths, order }: Slot, worktree: RemoteWorktree): Result<AttemptWork> {
  const { files } = context.world;
  const session = files.realPath(paths.folder) ?? paths.folder;
  const wanted = join(session, order.cwd);
  const folder = files.realPath(wanted);
  const top = join(session, 'worktree');
  if (folder === null || (folder !== top && !folder.startsWith(`${top}/`)) || files.info(folder)?.kind !== 'folder') {
    const next = 'Commit that folder, or run the session on this machine.';
    return fail('project-missing', `The folder ${order.cwd} of the session is not in its worktree.`, next);
  }
  const slug = projectSlug(folder);
  const places = { session, package: context.packageRoot, bun: context.bun, slug };
  const { head, snapshot } = order.work;
  return ok({ places, worktree, folder, files: new SessionFiles(files, places), told: { head, snapshot } });
}

/** After the agent was started anew: the attempt is there, and what of it was told last is not known any more. */
export function recallWork(context: AgentContext, slot: Slot): Result<AttemptWork> {
  const { repository } = slot.order.work;
  const path = join(context.paths.repositories, `${repository}-${slot.order.groupId}`);
  return workOf(context, slot, { repository: path, path: slot.paths.worktree, isNew: false });
}

async function setUp(
  context: AgentContext,
  { paths, order }: Slot,
  worktree: RemoteWorktree & { readonly folder: string },
  onStop: PrepareOptions['onStop'],
): Promise<Result<void>> {
  const { world, git, env } = context;
  if (order.setup !== undefined) {
    const { command, timeoutMs } = order.setup;
    world.files.makeFolder(dirname(paths.setupLog));
    const running = runShellCommand(world, {
      command,
      cwd: worktree.folder,
      env: commandEnvironment(env, undefined),
      logFile: paths.setupLog,
      timeoutMs,
      mark: order.attemptId,
      keeper: paths.subreaper,
    });
    onStop(running.stop);
    const end = await running.ended;
    onStop(() => {});
    if (!end.ok) {
      const message = commandFailure('The set-up command of the worktree', command, end, timeoutMs);
      return fail('setup-failed', message, 'Its output is in setup.log of the session. Correct it, then retry.');
    }
  }
  noteSetUp(git, paths, worktree);
  return ok(undefined);
}
