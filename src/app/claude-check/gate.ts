/**
 * Decides whether a run may use the claude that is there: what was tried before is remembered, what is new is tried.
 * The file that a run begins with is the one it goes on with, whatever a link to it says later.
 */
import { basename, isAbsolute, join } from 'node:path';
import { attemptMark } from '../../claude/launch/attempt-mark.ts';
import { chooseLogin } from '../../claude/launch/login.ts';
import {
  checkSupported,
  findClaude,
  isSameFile,
  isWholeProgram,
  type ProgramFile,
  programFile,
  versionOf,
} from '../../claude/launch/program.ts';
import { describeFailure, fail, ok, type Result } from '../../core/failure.ts';
import { systemFailure } from '../../store/system-failure.ts';
import { delay } from '../../system/clock.ts';
import type { Lock, World } from '../../system/world.ts';
import { isConclusive, judgeTrial, refuseUntried } from './judge.ts';
import { attemptsFolder, launchDigest } from './launch.ts';
import { readTried, recall, rememberTried, type Tried } from './remembered.ts';
import type { tryClaude } from './trial.ts';

export interface GateOptions {
  /** Data root. */
  readonly root: string;
  readonly caller: Readonly<Record<string, string | undefined>>;
  /** Root folder of this package. */
  readonly packageRoot: string;
  /** Told what is being done and what was found; whole sentences. */
  readonly say: (line: string) => void;
  /** Ends a trial that is under way. */
  readonly stop: AbortSignal;
  /** Default: `tryClaude`. */
  readonly trial?: typeof tryClaude;
}

/** A program with the version it says it is. */
interface Candidate {
  readonly program: string;
  readonly file: ProgramFile;
  readonly version: string;
  readonly byName?: true;
}

/** A program, and what its trial has shown; null when it was let through without one. */
export interface Admitted extends Candidate {
  readonly tried: Tried | null;
}

/** Where no project chooses a version. */
const anywhere = '/';
const forAll = '';

/** The same version whatever folder it is started in. */
function isForAll({ file, byName }: Candidate): boolean {
  return isWholeProgram(file) && !byName;
}

/** Another runner needs as long as we would; a machine under load needs a multiple of that. */
const othersMsMax = 180_000;
const lookMs = 100;
const lockName = 'lock';
/** Begins the name of the folder of a trial; the rest is random. */
const ownPrefix = 'claude-code-agent-trial-';
/** For so long the answer of a program that starts another one is good. */
const freshMs = 1_000;
/** A program that is replaced again and again while it is tried. */
const changesMax = 3;

export class TrialGate {
  readonly #world: World;
  readonly #options: GateOptions;
  /** By the folder in which it was asked; what is the same in every folder stands under `forAll`. */
  readonly #admitted = new Map<string, Admitted>();
  /** When a program was last asked for its version, by folder. */
  readonly #askedAtMs = new Map<string, number>();
  readonly #underWay = new Map<string, Promise<Result<Admitted>>>();

  constructor(world: World, options: GateOptions) {
    this.#world = world;
    this.#options = options;
  }

  /**
   * The program to be used for a session that works in `project`. Fails with `claude-missing`, or with
   * `claude-unproven` when money or safety would depend on what it does not do, or when that could not be found out,
   * and `accepted` is not its version.
   */
  async admit(accepted: string | undefined, project = anywhere): Promise<Result<Admitted>> {
    const folder = this.#folderOr(project);
    const key = this.#admitted.has(forAll) ? forAll : folder;
    const before = this.#admitted.get(key) ?? null;
    const underWay = this.#underWay.get(key);
    if (underWay === undefined && before !== null && this.#isThere(before) && this.#isKnown(before, folder))
      return ok(before);
    // Attempts that are prepared together wait for one answer, and for one trial.
    const next = underWay ?? this.#admitNext(accepted, before, folder).finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, next);
    return next;
  }

  /** What is said of a project that is gone says somebody else. */
  #folderOr(project: string): string {
    try {
      return this.#world.files.info(project)?.kind === 'folder' ? project : anywhere;
    } catch {
      return anywhere;
    }
  }

  /** Whether the file is the one that was admitted, and its name, where that matters, still leads to it. */
  #isThere({ program, file }: Admitted): boolean {
    const now = programFile(this.#world, program);
    return now !== null && isSameFile(now, file);
  }

  /** What only starts another program may start a newer one by now, and is asked, but not by each of many at once. */
  #isKnown(program: Admitted, folder: string): boolean {
    const age = this.#world.clock.now() - (this.#askedAtMs.get(folder) ?? 0);
    return isForAll(program) || (age >= 0 && age < freshMs);
  }

  /** Null when it is another one by now. Fails when it could not be asked, which says nothing about it. */
  async #still(before: Admitted, folder: string): Promise<Result<Admitted> | null> {
    if (!this.#isThere(before)) return null;
    const version = await this.#ask(before.program, folder);
    if (version.ok) return version.value === before.version ? ok(before) : null;
    return version.failure.reason === 'claude-missing' ? null : version;
  }

  async #ask(program: string, folder: string): Promise<Result<string>> {
    const version = await versionOf(this.#world, program, this.#options.caller, folder);
    if (version.ok) this.#askedAtMs.set(folder, this.#world.clock.now());
    return version;
  }

  /** Of the program that would be tried now. Fails with `claude-missing`. */
  async version(project = anywhere): Promise<Result<string>> {
    const candidate = await this.#candidate(this.#folderOr(project));
    return candidate.ok ? ok(candidate.value.version) : candidate;
  }

  /** Resolves when no trial is under way. */
  async idle(): Promise<void> {
    await Promise.all(this.#underWay.values());
  }

  async #admitNext(accepted: string | undefined, before: Admitted | null, folder: string): Promise<Result<Admitted>> {
    const still = before === null ? null : await this.#still(before, folder);
    if (still !== null) return still;
    const admitted = await this.#admitNow(accepted, folder);
    const lost =
      before === null ? '' : `The file of claude ${before.version}, which was in use, was replaced or is gone`;
    if (admitted.ok) {
      this.#admitted.delete(forAll);
      this.#admitted.set(isForAll(admitted.value) ? forAll : folder, admitted.value);
      if (lost !== '') this.#options.say(`${lost}; from now on the new one, ${admitted.value.version}, is used.`);
      return admitted;
    }
    const { failure } = admitted;
    return lost === '' ? admitted : { ok: false, failure: { ...failure, message: `${lost}. ${failure.message}` } };
  }

  async #admitNow(accepted: string | undefined, folder: string): Promise<Result<Admitted>> {
    const { caller, say } = this.#options;
    for (let tries = 1; ; tries += 1) {
      const candidate = await this.#candidate(folder);
      if (!candidate.ok) return candidate;
      const { version, file } = candidate.value;
      const supported = checkSupported(version);
      if (!supported.ok) return supported;
      const known = this.#known(candidate.value);
      const tried = known ? ok(known) : await this.#tryIt(candidate.value);
      const now = programFile(this.#world, file.path);
      if ((now === null || !isSameFile(now, file)) && tries < changesMax) continue;
      if (!tried.ok) {
        if (accepted !== version || this.#options.stop.aborted) return refuseUntried(version, tried.failure);
        say(`claude ${version} could not be tried, and is used all the same: ${tried.failure.message}`);
        return ok({ ...candidate.value, tried: null });
      }
      const judged = judgeTrial(tried.value, chooseLogin(caller).kind, accepted);
      if (!judged.ok) return judged;
      for (const warning of judged.value) say(warning);
      return ok({ ...candidate.value, tried: tried.value });
    }
  }

  /** Tries the claude that is there now, whatever is remembered of it. */
  async again(): Promise<Result<{ readonly program: string; readonly tried: Tried }>> {
    const candidate = await this.#candidate(anywhere);
    if (!candidate.ok) return candidate;
    const supported = checkSupported(candidate.value.version);
    if (!supported.ok) return supported;
    const tried = await this.#tryIt(candidate.value, 'in any case');
    return tried.ok ? ok({ program: candidate.value.program, tried: tried.value }) : tried;
  }

  /** Asks the program for its version only when its file does not tell. */
  async #candidate(folder: string): Promise<Result<Candidate>> {
    const world = this.#world;
    const { caller, packageRoot, root } = this.#options;
    const found = findClaude(world, caller, { packageRoot });
    if (!found.ok) return found;
    const { program } = found.value;
    const file = programFile(world, program);
    if (file === null) return fail('claude-missing', `The program ${program} is gone.`, 'Install Claude Code again.');
    const known = recall(readTried(world, root), file);
    if (known !== undefined && !known.byName && isWholeProgram(file)) {
      return ok({ file, version: known.version, program: file.path });
    }
    const version = await this.#ask(file.path, folder);
    if (version.ok) return ok({ program: file.path, file, version: version.value });
    // What a version manager puts there starts claude only under that name.
    const named = file.path === program ? version : await this.#ask(program, folder);
    if (named.ok) return ok({ program, file, version: named.value, byName: true });
    return version;
  }

  #known({ file, version }: Candidate): Tried | undefined {
    const known = recall(readTried(this.#world, this.#options.root), file);
    return known?.version === version ? known : undefined;
  }

  /** One trial at a time on a machine; who waited for another one takes over what it has shown. */
  async #tryIt(candidate: Candidate, when?: 'in any case'): Promise<Result<Tried>> {
    const world = this.#world;
    const { root, say } = this.#options;
    const folder = join(root, 'trials');
    try {
      world.files.makeFolder(folder);
      const lock = await this.#lock(join(folder, lockName));
      if (lock === null) return fail('busy', 'Another trial has not ended for minutes.', '');
      try {
        const known = when === undefined ? this.#known(candidate) : undefined;
        if (known !== undefined) return ok(known);
        clearTrials(world, folder);
        const same = await this.#isSameElsewhere(candidate);
        if (!same.ok) return same;
        say(`claude ${candidate.version} is new here: trying it at no cost (a few seconds) ...`);
        return await this.#run(candidate, folder);
      } finally {
        lock.release();
      }
    } catch (error) {
      return { ok: false, failure: systemFailure(folder, error) };
    }
  }

  /** It is tried outside of every project. Fails when another version would be started there. */
  async #isSameElsewhere(candidate: Candidate): Promise<Result<void>> {
    if (isForAll(candidate)) return ok(undefined);
    const version = await versionOf(this.#world, candidate.program, this.#options.caller);
    if (version.ok && version.value === candidate.version) return ok(undefined);
    const other = version.ok ? `starts ${version.value}` : 'starts no claude';
    const message = `Outside of the project, where it would be tried, ${candidate.program} ${other}.`;
    return fail('claude-missing', message, 'Set CLAUDE_CODE_AGENT_CLAUDE to the path of the version itself.');
  }

  async #run(candidate: Candidate, folder: string): Promise<Result<Tried>> {
    const world = this.#world;
    const { root, caller, say, stop } = this.#options;
    const { program, file, version, byName } = candidate;
    const begin = world.clock.now();
    const id = world.random.uuid();
    // Nothing of the user's lies above it, no instructions and no repository; and its name has plain letters only.
    const { TMPDIR = '' } = caller;
    const own = join(isAbsolute(TMPDIR) ? TMPDIR : '/tmp', `${ownPrefix}${id}`);
    const note = join(folder, id);
    world.files.writeAtomic(note, own);
    // Most runs find everything remembered.
    const trial = this.#options.trial ?? (await import('./trial.ts')).tryClaude;
    const seen = await trial(world, { folder: own, program, caller, stop });
    world.files.remove(note);
    if (stop.aborted) return fail('usage', 'The trial was interrupted.', '');
    if (!seen.ok) return seen;
    const tried: Tried = {
      file,
      version,
      ...(byName ? { byName } : {}),
      launch: launchDigest(),
      at: new Date(begin).toISOString(),
      durationMs: Math.max(0, world.clock.now() - begin),
      seen: seen.value,
    };
    const now = programFile(world, file.path);
    const isSame = now !== null && isSameFile(now, file);
    const kept = isSame && isConclusive(seen.value) ? rememberTried(world, root, tried) : ok(undefined);
    // What was seen stands; the next run sees it again.
    if (!kept.ok) say(`What the trial has shown could not be remembered: ${describeFailure(kept.failure)}`);
    return ok(tried);
  }

  /** Null when somebody else has held it for minutes. */
  async #lock(path: string): Promise<Lock | null> {
    const world = this.#world;
    const holder = { identity: world.machine.self, runId: world.random.uuid() };
    for (let waited = 0; ; waited += lookMs) {
      const lock = world.locks.tryLock(path, holder);
      if (lock !== null) return lock;
      if (waited >= othersMsMax || this.#options.stop.aborted) return null;
      await delay(world.clock, lookMs);
    }
  }
}

/** Ends and removes what trials left that were killed; `folder` has a note for each. Nobody else tries meanwhile. */
function clearTrials({ files, processes }: World, folder: string): void {
  for (const name of files.list(folder).filter((other) => other !== lockName)) {
    const note = join(folder, name);
    const own = files.readText(note) ?? '';
    if (basename(own) === `${ownPrefix}${name}`) {
      for (const id of files.list(join(own, attemptsFolder))) {
        for (const left of processes.findMarked(attemptMark, id)) processes.signal(left, 'SIGKILL');
      }
      files.remove(own);
    }
    files.remove(note);
  }
}
