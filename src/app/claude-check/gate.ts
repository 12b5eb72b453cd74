/**
 * Decides whether a run may use the installed claude. A claude that is new here is checked first. A run keeps the file
 * it started with, also when a link points to another one later. After that file was replaced or removed, the claude
 * that is installed then is used, and checked if it is new.
 */
import { isAbsolute, join } from 'node:path';
import { chooseLogin } from '../../claude/launch/login.ts';
import {
  checkSupported,
  findClaude,
  isSameFile,
  type ProgramFile,
  programFile,
  versionOf,
} from '../../claude/launch/program.ts';
import { describeFailure, fail, ok, type Result } from '../../core/failure.ts';
import { programName } from '../../core/program-name.ts';
import { systemFailure } from '../../store/system-failure.ts';
import { delay } from '../../system/clock.ts';
import type { Lock, World } from '../../system/world.ts';
import type { checkClaude } from './check-claude.ts';
import { isConclusive, judge, refuseUnchecked } from './checks.ts';
import { type CheckedClaude, isFixed, readChecked, recall, remember } from './remembered.ts';

export interface GateOptions {
  /** Data root. */
  readonly root: string;
  readonly caller: Readonly<Record<string, string | undefined>>;
  /** Root folder of this package. */
  readonly packageRoot: string;
  /** Prints whole sentences for people. */
  readonly say: (line: string) => void;
  /** Ends a check that is under way. */
  readonly stop: AbortSignal;
  /** Default: `checkClaude`. */
  readonly check?: typeof checkClaude;
}

/** A program and the version it reports. */
export interface FoundClaude {
  readonly program: string;
  readonly file: ProgramFile;
  readonly version: string;
}

/** Another process needs as long as we would; a busy machine needs a multiple of that. */
const othersMsMax = 180_000;
const lookMs = 100;

export class CheckGate {
  readonly #world: World;
  readonly #options: GateOptions;
  #admitted: FoundClaude | null = null;
  #underWay: Promise<Result<FoundClaude>> | null = null;

  constructor(world: World, options: GateOptions) {
    this.#world = world;
    this.#options = options;
  }

  /**
   * The program that the next session is started with. Fails with `claude-missing`, and with `claude-unproven` when it
   * is too old, or when a required check failed or could not be made and `accepted` is not its version.
   */
  async admit(accepted: string | undefined): Promise<Result<FoundClaude>> {
    const admitted = this.#admitted;
    const now = admitted === null ? null : programFile(this.#world, admitted.program);
    if (admitted !== null && now !== null && isSameFile(now, admitted.file)) return ok(admitted);
    // Sessions that are prepared together wait for one check.
    this.#underWay ??= this.#admitNext(accepted).finally(() => {
      this.#underWay = null;
    });
    return this.#underWay;
  }

  /** The version that would be used now. Fails with `claude-missing`. */
  async version(): Promise<Result<string>> {
    const found = await this.#find();
    return found.ok ? ok(found.value.version) : found;
  }

  /** Resolves when no check is under way. */
  async idle(): Promise<void> {
    await this.#underWay;
  }

  /** Checks the installed claude now, also when it was checked before. */
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
    this.#options.say(`${lost}; from now on the run uses claude ${admitted.value.version}.`);
    return admitted;
  }

  async #admitNow(accepted: string | undefined): Promise<Result<FoundClaude>> {
    const { say, stop } = this.#options;
    const found = await this.#find();
    if (!found.ok) return found;
    const { version } = found.value;
    const supported = checkSupported(version);
    if (!supported.ok) return supported;
    const known = this.#known(found.value);
    const checked = known === undefined ? await this.#checkAlone(found.value) : ok(known);
    if (!checked.ok) {
      if (accepted !== version || stop.aborted) return refuseUnchecked(version, checked.failure);
      say(`claude ${version} could not be checked, and is used anyway: ${checked.failure.message}`);
      return found;
    }
    const judged = judge(checked.value, accepted);
    if (!judged.ok) return judged;
    for (const warning of judged.value) say(warning);
    return found;
  }

  /** Asks the program for its version unless its file is known to be a certain one. */
  async #find(): Promise<Result<FoundClaude>> {
    const world = this.#world;
    const { caller, packageRoot, root } = this.#options;
    const claude = findClaude(world, caller, { packageRoot });
    if (!claude.ok) return claude;
    const { program } = claude.value;
    const file = programFile(world, program);
    if (file === null) return fail('claude-missing', `The program ${program} is gone.`, 'Install Claude Code again.');
    const known = readChecked(world, root).find((one) => isSameFile(one.file, file) && isFixed(one));
    if (known !== undefined) return ok({ program: file.path, file, version: known.version });
    const version = await versionOf(world, file.path, caller);
    if (version.ok) return ok({ program: file.path, file, version: version.value });
    // A version manager's shim starts claude only under the name of its link.
    const named = file.path === program ? version : await versionOf(world, program, caller);
    return named.ok ? ok({ program, file, version: named.value }) : version;
  }

  #known({ file, version }: FoundClaude): CheckedClaude | undefined {
    const { root, caller } = this.#options;
    const known = recall(this.#world, root, file, chooseLogin(caller).kind);
    return known?.version === version ? known : undefined;
  }

  /** One check at a time on a machine; what another run has found meanwhile is taken over. */
  async #checkAlone(found: FoundClaude, when?: 'always'): Promise<Result<CheckedClaude>> {
    const { root, say } = this.#options;
    try {
      this.#world.files.makeFolder(root);
      const lock = await this.#lock(join(root, 'tried-claudes.lock'));
      if (lock === null) return fail('busy', 'Another check has not ended for minutes.', '');
      try {
        const known = when === 'always' ? undefined : this.#known(found);
        if (known !== undefined) return ok(known);
        say(`claude ${found.version} is new here: checking it at no cost (a few seconds) ...`);
        return await this.#check(found);
      } finally {
        lock.release();
      }
    } catch (error) {
      return { ok: false, failure: systemFailure(root, error) };
    }
  }

  async #check(found: FoundClaude): Promise<Result<CheckedClaude>> {
    const world = this.#world;
    const { root, caller, say, stop } = this.#options;
    const begin = world.clock.now();
    const login = chooseLogin(caller).kind;
    // Always the same for a data root, so that a check ends and removes what a killed one left. No instructions and no
    // repository of the user are above a temporary folder.
    const mark = `check-${new Bun.CryptoHasher('sha256').update(root).digest('hex').slice(0, 16)}`;
    const { TMPDIR = '' } = caller;
    const folder = join(isAbsolute(TMPDIR) ? TMPDIR : '/tmp', `${programName}-${mark}`);
    // Loaded only here, because most runs find everything remembered.
    const check = this.#options.check ?? (await import('./check-claude.ts')).checkClaude;
    const results = await check(world, { folder, mark, program: found.program, caller, login, stop });
    if (stop.aborted) return fail('usage', 'The check was interrupted.', '');
    if (!results.ok) return results;
    const [at, durationMs] = [new Date(begin).toISOString(), Math.max(0, world.clock.now() - begin)];
    const checked: CheckedClaude = { ...found, login, at, durationMs, results: results.value };
    const kept = isConclusive(results.value) ? remember(world, root, checked) : ok(undefined);
    if (!kept.ok) say(`The check could not be remembered: ${describeFailure(kept.failure)}`);
    return ok(checked);
  }

  /** Null when another process has held it for minutes. */
  async #lock(path: string): Promise<Lock | null> {
    const world = this.#world;
    const holder = { identity: world.machine.self, runId: world.random.uuid() };
    for (let waited = 0; ; waited += lookMs) {
      const lock = world.locks.tryLock(path, holder);
      if (lock !== null || waited >= othersMsMax || this.#options.stop.aborted) return lock;
      await delay(world.clock, lookMs);
    }
  }
}
