/**
 * Decides whether a run may use the installed claude, and checks a claude that is new on this machine. A run keeps the
 * file that it started with. If that file is replaced or removed, the run continues with the claude installed then.
 */
import { isAbsolute, join } from 'node:path';
import type { Login } from '../../claude/launch/login.ts';
import {
  checkSupported,
  findClaude,
  isSameFile,
  isWholeProgram,
  type ProgramFile,
  programFile,
  versionOf,
  wrapperAdvice,
} from '../../claude/launch/program.ts';
import { loginOf } from '../../claude/launch/user-claude.ts';
import { managedHooks, managedVersions } from '../../claude/managed.ts';
import { defined } from '../../core/defined.ts';
import { describeFailure, fail, ok, type Result } from '../../core/failure.ts';
import { programName } from '../../core/program-name.ts';
import { parseOwn } from '../../store/json.ts';
import { systemFailure } from '../../store/system-failure.ts';
import { delay } from '../../system/clock.ts';
import type { Lock, World } from '../../system/world.ts';
import { safeLine } from '../../view/terminal-text.ts';
import type { ClaudeGate } from '../../worker/attempt/attempt-setup.ts';
import type { AppContext } from '../app-context.ts';
import type { checkClaude } from './check-claude.ts';
import { type CheckResult, checkAccepted, isConclusive, judgeCheck, refuseUncheckedVersion } from './checks.ts';

export interface ClaudeCheckOptions {
  readonly root: string;
  readonly isQuiet?: boolean;
  readonly stop?: AbortSignal | undefined;
  readonly check?: typeof checkClaude | undefined;
}

interface FoundClaude {
  readonly program: string;
  readonly file: ProgramFile;
  readonly version: string;
}

/** How long another process may take for a check on a busy machine. */
const othersMsMax = 180_000;
const lookMs = 100;
const columnsMax = 600;

export class CheckGate implements ClaudeGate {
  readonly #context: Pick<AppContext, 'world' | 'env' | 'packageRoot' | 'notes'>;
  readonly #options: ClaudeCheckOptions;
  readonly #interruption = new AbortController();
  readonly #stop: AbortSignal;
  #isQuiet: boolean;
  #admitted: FoundClaude | null = null;
  #underWay: Promise<Result<FoundClaude>> | null = null;

  constructor(context: Pick<AppContext, 'world' | 'env' | 'packageRoot' | 'notes'>, options: ClaudeCheckOptions) {
    const { signal } = this.#interruption;
    this.#context = context;
    this.#options = options;
    this.#isQuiet = options.isQuiet === true;
    this.#stop = options.stop === undefined ? signal : AbortSignal.any([options.stop, signal]);
  }

  hush(): void {
    this.#isQuiet = true;
  }

  interrupt(): void {
    this.#interruption.abort();
  }

  get isInterrupted(): boolean {
    return this.#stop.aborted;
  }

  async close(): Promise<void> {
    this.interrupt();
    await this.#underWay;
  }

  #say(line: string): void {
    if (!this.#isQuiet) this.#context.notes.line(safeLine(line, columnsMax));
  }

  /** Fails with `claude-missing` or `claude-unproven`. `accepted`: the version to use even if a check fails. */
  async choose(accepted: string | undefined): Promise<Result<FoundClaude>> {
    const admitted = this.#admitted;
    const now = admitted === null ? null : programFile(this.#context.world, admitted.program);
    if (admitted !== null && now !== null && isSameFile(now, admitted.file)) return ok(admitted);
    // Sessions that start together share one check.
    this.#underWay ??= this.#admitNext(accepted).finally(() => {
      this.#underWay = null;
    });
    return this.#underWay;
  }

  async version(): Promise<Result<string>> {
    const found = await this.#find();
    return found.ok ? ok(found.value.version) : found;
  }

  async checkNamed(accepted: string | undefined): Promise<Result<void>> {
    const version = accepted === undefined ? undefined : await this.version();
    return version?.ok ? checkAccepted(version.value, accepted) : ok(undefined);
  }

  async again(): Promise<Result<CheckedClaude>> {
    const found = await this.#find();
    if (!found.ok) return found;
    const supported = checkSupported(found.value.version);
    return supported.ok ? this.#checkAlone(found.value, 'always') : supported;
  }

  async #admitNext(accepted: string | undefined): Promise<Result<FoundClaude>> {
    const before = this.#admitted;
    const admitted = await this.#admitNow(accepted);
    if (admitted.ok) this.#admitted = admitted.value;
    if (before === null) return admitted;
    const lost = `The file of claude ${before.version}, which this run used, was replaced or removed`;
    if (!admitted.ok) {
      const { failure } = admitted;
      return { ok: false, failure: { ...failure, message: `${lost}. ${failure.message}` } };
    }
    this.#say(`${lost}; from now on the run uses claude ${admitted.value.version}.`);
    return admitted;
  }

  async #admitNow(accepted: string | undefined): Promise<Result<FoundClaude>> {
    const found = await this.#find();
    if (!found.ok) return found;
    const { version } = found.value;
    const supported = checkSupported(version);
    if (!supported.ok) return supported;
    const checked = await this.#checkAlone(found.value);
    if (!checked.ok) {
      if (accepted !== version || this.isInterrupted) return refuseUncheckedVersion(version, checked.failure);
      this.#say(`claude ${version} could not be checked, and is used anyway: ${checked.failure.message}`);
      return found;
    }
    const judged = judgeCheck(checked.value, accepted);
    if (!judged.ok) return judged;
    for (const warning of judged.value) this.#say(warning);
    return found;
  }

  /** Runs `claude --version`, unless the file is already known. */
  async #find(): Promise<Result<FoundClaude>> {
    const { world, env, packageRoot } = this.#context;
    const claude = findClaude(world, env, { packageRoot });
    if (!claude.ok) return claude;
    const { program } = claude.value;
    const file = programFile(world, program);
    if (file === null) return fail('claude-missing', `The program ${program} is gone.`, 'Install Claude Code again.');
    const known = readChecked(world, this.#options.root).find((one) => isSameFile(one.file, file) && isFixed(one));
    if (known !== undefined) return ok({ program: file.path, file, version: known.version });
    const version = await versionOf(world, file.path, env);
    if (version.ok) return ok({ program: file.path, file, version: version.value });
    // The shim of a version manager works only under the name of its link.
    const named = file.path === program ? version : await versionOf(world, program, env);
    return named.ok ? ok({ program, file, version: named.value }) : version;
  }

  #known({ file, version }: FoundClaude): CheckedClaude | undefined {
    const known = recall(this.#context, this.#options.root, file);
    return known?.version === version ? known : undefined;
  }

  /** One check at a time per machine; uses the result of another process. */
  async #checkAlone(found: FoundClaude, when?: 'always'): Promise<Result<CheckedClaude>> {
    const { root } = this.#options;
    const known = () => (when === 'always' ? undefined : this.#known(found));
    const before = known();
    if (before !== undefined) return ok(before);
    try {
      this.#context.world.files.makeFolder(root);
      const lock = await this.#lock(join(root, 'tried-claudes.lock'));
      if (lock === null) return fail('busy', 'Another check has been running for minutes.', '');
      try {
        const now = known();
        if (now !== undefined) return ok(now);
        this.#say(`claude ${found.version} is new here: checking it at no cost (a few seconds) ...`);
        return await this.#check(found);
      } finally {
        lock.release();
      }
    } catch (error) {
      return { ok: false, failure: systemFailure(root, error) };
    }
  }

  async #check(found: FoundClaude): Promise<Result<CheckedClaude>> {
    const { world, env: caller } = this.#context;
    const { root } = this.#options;
    const begin = world.clock.now();
    const login = loginOf(world, caller).login.kind;
    // The same mark for a data root, so that a check cleans up after a killed one. The folder is temporary, so that no
    // instructions or repositories of the user are above it.
    const mark = `check-${new Bun.CryptoHasher('sha256').update(root).digest('hex').slice(0, 16)}`;
    const { TMPDIR = '' } = caller;
    const folder = join(isAbsolute(TMPDIR) ? TMPDIR : '/tmp', `${programName}-${mark}`);
    // Loaded on demand, because most runs use a remembered result.
    const check = this.#options.check ?? (await import('./check-claude.ts')).checkClaude;
    const results = await check(world, { folder, mark, program: found.program, caller, login, stop: this.#stop });
    if (this.isInterrupted) return fail('usage', 'The check was interrupted.', '');
    if (!results.ok) return results;
    const [at, durationMs] = [new Date(begin).toISOString(), Math.max(0, world.clock.now() - begin)];
    // A wrapper script that sets a login overrides the login of checks and sessions.
    const cures = defined({
      login:
        wrapperAdvice(world, found.file) ?? mended(managedVersions(world), 'Use a version of claude that they allow'),
      hooks: mended(managedHooks(world), 'Ask your administrator to allow hooks; sessions also work without them'),
    });
    const withCure = (one: CheckResult): CheckResult => {
      const cure = one.id === 'login' || one.id === 'hooks' ? cures[one.id] : undefined;
      return cure !== undefined && one.verdict !== 'holds' && one.detail !== '' ? { ...one, cure } : one;
    };
    const checked: CheckedClaude = { ...found, login, at, durationMs, results: results.value.map(withCure) };
    const kept = isConclusive(results.value) ? remember(world, root, checked) : ok(undefined);
    if (!kept.ok) this.#say(`The check could not be remembered: ${describeFailure(kept.failure)}`);
    return ok(checked);
  }

  /** Null if another process has held the lock for minutes. */
  async #lock(path: string): Promise<Lock | null> {
    const { world } = this.#context;
    const holder = { identity: world.machine.self, runId: world.random.uuid() };
    for (let waited = 0; ; waited += lookMs) {
      const lock = world.locks.tryLock(path, holder);
      if (lock !== null || waited >= othersMsMax || this.isInterrupted) return lock;
      await delay(world.clock, lookMs);
    }
  }
}

function mended(why: string | undefined, cure: string): string | undefined {
  return why === undefined ? undefined : `${why}. ${cure}.`;
}

// `tried-claudes.json`: check results by claude file and kind of login.

export interface CheckedClaude extends FoundClaude {
  readonly login: Login['kind'];
  readonly at: string;
  readonly durationMs: number;
  readonly results: readonly CheckResult[];
}

/** Increased when checks or the start of workers change, so that every claude is checked again. */
const formatVersion = '2';
/** Enough for daily updates and several programs. */
const keptMax = 16;

const fileIn = (root: string): string => join(root, 'tried-claudes.json');

/** Newest first. Empty if the file is unreadable, because a check costs nothing. */
export function readChecked({ files }: World, root: string): readonly CheckedClaude[] {
  try {
    const kept = parseOwn<{ version: string; checked: readonly CheckedClaude[] }>(files.readText(fileIn(root)));
    return kept?.version === formatVersion ? kept.checked : [];
  } catch {
    return [];
  }
}

/** Replaces the result of the same program and login. */
export function remember(world: World, root: string, checked: CheckedClaude): Result<void> {
  const isOther = ({ file, login }: CheckedClaude) => file.path !== checked.file.path || login !== checked.login;
  const all = [checked, ...readChecked(world, root).filter(isOther)].slice(0, keptMax);
  try {
    world.files.makeFolder(root);
    world.files.writeAtomic(fileIn(root), `${JSON.stringify({ version: formatVersion, checked: all }, null, 2)}\n`);
    return ok(undefined);
  } catch (error) {
    return { ok: false, failure: systemFailure(fileIn(root), error) };
  }
}

type Checking = Pick<AppContext, 'world' | 'env'>;

function recall({ world, env }: Checking, root: string, file: ProgramFile): CheckedClaude | undefined {
  const login = loginOf(world, env).login.kind;
  return readChecked(world, root).find((one) => isSameFile(one.file, file) && one.login === login);
}

/** The file determines the version: it is not a script or shim that starts another program. */
function isFixed({ file, program }: CheckedClaude): boolean {
  return isWholeProgram(file) && program === file.path;
}

/** The last check of this program; undefined if it has to be checked. */
export async function lastCheckOf(
  context: Checking,
  root: string,
  program: string,
): Promise<CheckedClaude | undefined> {
  const { world, env } = context;
  const file = programFile(world, program);
  const known = file === null ? undefined : recall(context, root, file);
  if (known === undefined || isFixed(known)) return known;
  const version = await versionOf(world, known.program, env);
  return version.ok && version.value === known.version ? known : undefined;
}
