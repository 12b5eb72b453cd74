/** `doctor`: checks what this machine needs to run groups. */
import { isAbsolute, join } from 'node:path';
import { workerEnvironment } from '../../claude/launch/environment.ts';
import { checkLogin } from '../../claude/launch/login.ts';
import { type ClaudeProgram, checkSupported, findClaude, versionOf } from '../../claude/launch/program.ts';
import { loginOf } from '../../claude/launch/user-claude.ts';
import { type Advice, adviceText, advise, commandText, see, shellWord } from '../../core/advice.ts';
import { ok, type Result } from '../../core/failure.ts';
import type { SessionDefinition } from '../../core/group.ts';
import { programName } from '../../core/program-name.ts';
import { systemFailure } from '../../store/system-failure.ts';
import { isBundled, isCompiled, ownCommand } from '../../system/own-program.ts';
import type { Containment, LimitKind, World } from '../../system/world.ts';
import type { AppContext } from '../app-context.ts';
import { judgeCheck, withResults } from '../claude-check/checks.ts';
import { type CheckedClaude, CheckGate, lastCheckOf } from '../claude-check/gate.ts';
import { readUserConfig } from '../config/user-config.ts';
import { whileBusy } from '../live-runner.ts';
import { onSignal } from '../signals.ts';

const timeoutMs = 20_000;
export const mebibyte = 1024 * 1024;
export const freeBytesLow = 1024 * mebibyte;
export const freeBytesMin = 50 * mebibyte;

export async function checkMachine(context: AppContext, root: Result<string>): Promise<Finding[]> {
  const { world, env, packageRoot } = context;
  const claude = findClaude(world, env, { packageRoot });
  const data = root.ok ? checkDataRoot(world, root.value) : [failed('data', root)];
  return [
    fine('bun', `Bun ${Bun.version} (${ownCommand('main').program}), ${ownForm(packageRoot)}`),
    await checkClaude(context, claude),
    ...(claude.ok ? [await checkClaudeLogin(context, claude.value)] : []),
    await checkGit(context),
    fine('cgroup', containmentText(world.processes.containment())),
    fine('limits', limitText(world.processes.limits())),
    ...(await checkUserConfig(context)),
    ...data,
  ];
}

function containmentText(containment: Containment): string {
  const texts: Readonly<Record<Containment, string>> = {
    cgroup: 'each session has its own control group (cgroup v2), which the kernel can kill as a whole',
    tree:
      'the runner inherits the orphans of a session and ends them. ' +
      `Control groups are not available; start with "systemd-run --user --scope ${programName} ..." ` +
      'to get one for each session',
    mark: 'orphans of a session are found by parent, session or environment, and ended',
  };
  return texts[containment];
}

export function limitText(limits: ReadonlySet<LimitKind>): string {
  const memory = limits.has('memory')
    ? 'memory: limited for whole sessions (--memory)'
    : 'memory: --memory limits only the commands of sessions, if claude can create a control group';
  const processes = limits.has('processes')
    ? 'processes: limited by --max-processes'
    : 'processes: no limit (--max-processes is refused); start with "systemd-run --user --scope -p Delegate=yes ' +
      `${programName} ..." to enable it`;
  return `${memory}; ${processes}`;
}

function ownForm(packageRoot: string): string {
  if (isCompiled) return 'compiled';
  if (isBundled) return 'published package';
  return `from source; "npm run build" in ${packageRoot} makes it start faster`;
}

function failed(check: string, result: Result<unknown>): Finding {
  if (result.ok) throw new Error('Internal error: a success is no finding');
  return finding(check, 'broken', result.failure.message, result.failure.next);
}

async function checkClaude(context: AppContext, claude: Result<ClaudeProgram>): Promise<Finding> {
  if (!claude.ok) return failed('claude', claude);
  const { program, origin } = claude.value;
  const version = await versionOf(context.world, program, context.env);
  if (!version.ok) return failed('claude', version);
  const supported = checkSupported(version.value);
  if (!supported.ok) return failed('claude', supported);
  return fine('claude', `${version.value} (Claude Code) (${program}, from ${origin})`);
}

async function checkUserConfig(context: AppContext): Promise<Finding[]> {
  const config = await readUserConfig(context);
  return config.ok ? [] : [failed('config', config)];
}

async function checkGit(context: AppContext): Promise<Finding> {
  const { world, env, cwd } = context;
  const path = { PATH: env.PATH ?? '', HOME: env.HOME ?? '' };
  const ran = await world.processes.run({ program: 'git', args: ['--version'], cwd, env: path, timeoutMs });
  const [line = ''] = ran.ok && ran.value.exitCode === 0 ? ran.value.stdout.trim().split('\n') : [];
  if (line !== '') return fine('git', line);
  const next = 'Install git: claude uses it in projects that are repositories.';
  return finding('git', 'warning', 'git cannot be run.', next);
}

export async function checkClaudeLogin(context: AppContext, { program }: ClaudeProgram): Promise<Finding> {
  const probed = await probeLogin(context, program);
  if (probed.ok) return fine('login', `logged in (${probed.value.source}, ${probed.value.method})`);
  if (probed.failure.reason !== 'write-failed') return failed('login', probed);
  const next = 'Check that folder and its permissions, or set TMPDIR to another one.';
  return finding('login', 'warning', `The login was not checked: ${probed.failure.message}`, next);
}

function checkDataRoot(world: World, root: string): Finding[] {
  const probe = join(root, `.doctor-${world.random.uuid()}`);
  try {
    world.files.makeFolder(root);
    world.files.writeAtomic(probe, 'probe\n', { durable: true });
    world.files.remove(probe);
  } catch (error) {
    return [failed('data', { ok: false, failure: systemFailure(root, error) })];
  }
  const free = world.files.freeBytes(root);
  const amount = `${Math.floor(free / mebibyte)} MiB`;
  const level = free >= freeBytesMin ? 'warning' : 'broken';
  const message = `Only ${amount} are free on the disk that holds ${root}.`;
  const next = advise('Free some space, for example with', ['group', 'prune', '--older-than', '30d']);
  const space = free >= freeBytesLow ? fine('disk', `${amount} free`) : finding('disk', level, message, next);
  return [checkRights(world, root), space];
}

/** Files in the data folder are trusted, such as requests to runners, which may contain shell commands. */
function checkRights({ files }: World, root: string): Finding {
  if (files.info(root)?.isOpenToAll !== true) return fine('data', root);
  const next = `Remove that permission with: chmod go-w ${shellWord(root)}`;
  return finding('data', 'warning', `Every user of this machine can write to ${root}.`, next);
}

// The result of a check of `doctor`.

/** `warning`: works with a limitation. `broken`: groups cannot run, or something was left behind. */
export type FindingLevel = 'ok' | 'warning' | 'broken';

export interface Finding {
  readonly check: string;
  readonly level: FindingLevel;
  readonly message: string;
  /** The suggestion; empty if nothing is wrong. */
  readonly next: string;
}

export function finding(check: string, level: FindingLevel, message: string, next: string | Advice): Finding {
  return { check, level, message, next: typeof next === 'string' ? next : adviceText(next) };
}

export function fine(check: string, message: string): Finding {
  return { check, level: 'ok', message, next: '' };
}

// `doctor`: checks the installed claude now, and reports what its last check found.

export async function checkClaudeNow(
  context: AppContext,
  root: string,
): Promise<Result<CheckedClaude | 'interrupted'>> {
  const gate = new CheckGate(context, { root, isQuiet: true });
  const unsubscribe = onSignal(context.world.clock, () => gate.interrupt());
  const checked = await whileBusy(context, 'Checking claude at no cost', () => gate.again()).finally(unsubscribe);
  return gate.isInterrupted ? ok('interrupted') : checked;
}

export async function rememberedCheck(context: AppContext, root: string): Promise<Finding[]> {
  const { world, env, packageRoot } = context;
  const found = findClaude(world, env, { packageRoot });
  if (!found.ok) return [];
  const name = 'compat';
  const checked = await lastCheckOf(context, root, found.value.program);
  if (checked === undefined) {
    const now = commandText(['doctor', '--claude']);
    return [fine(name, `not checked yet. The next run checks it at no cost. Check it now with: ${now}`)];
  }
  const { version, at } = checked;
  const results = withResults(checked.results);
  const failed = results.filter(({ verdict }) => verdict !== 'holds');
  const passed = `${results.length - failed.length} of ${results.length} checks passed`;
  const message = `claude ${version}: ${passed} on ${at.slice(0, 10)}`;
  if (failed.length === 0) return [fine(name, message)];
  const names = failed.map(({ id, verdict }) => `${id} is ${verdict}`).join(', ');
  const level = judgeCheck(checked, undefined).ok ? 'warning' : 'broken';
  return [finding(name, level, `${message}; ${names}`, see('doctor', '--claude'))];
}

/** Checks the login as a worker would, outside the data folder, which may be read-only. */
export async function probeLogin(
  { world, env }: Pick<AppContext, 'world' | 'env'>,
  program: string,
  session?: Pick<SessionDefinition, 'projectPath' | 'untrusted'>,
): Promise<Result<{ readonly source: string; readonly method: string }>> {
  const { login, caller } = loginOf(world, env);
  // claude assumes that a helper works; only a request shows whether it does.
  if (login.kind === 'helper') return ok({ source: login.source, method: 'api_key_helper' });
  const { TMPDIR = '' } = env;
  const folder = join(isAbsolute(TMPDIR) ? TMPDIR : '/tmp', `claude-code-agent-${world.random.uuid()}`);
  const [configDir, tmpDir] = [join(folder, 'claude-config'), join(folder, 'tmp')];
  try {
    world.files.makeFolder(configDir);
    world.files.makeFolder(tmpDir);
    const { projectPath = folder, untrusted } = session ?? {};
    const launch = { attemptId: 'login-check', configDir, tmpDir, untrusted };
    const environment = workerEnvironment({ caller, ...launch, login });
    const checked = await checkLogin(world, program, environment, projectPath);
    return checked.ok ? ok({ source: login.source, method: checked.value.method }) : checked;
  } catch (error) {
    return { ok: false, failure: systemFailure(folder, error) };
  } finally {
    world.files.remove(folder);
  }
}
