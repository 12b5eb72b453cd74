/**
 * Where a trial happens: a folder with an empty home, a scripted model, a server that nobody is to ask, and the claudes
 * that were started there. Nothing of the user's is read but what a program needs to start.
 */
import { join } from 'node:path';
import { totalsBefore } from '../../claude/conversation.ts';
import { attemptMark } from '../../claude/launch/attempt-mark.ts';
import { chooseLogin } from '../../claude/launch/login.ts';
import type { Environment } from '../../claude/launch/variables.ts';
import { loaderVariables } from '../../claude/launch/variables.ts';
import type { JsonObject } from '../../claude/lenient.ts';
import { type Claim, noClaim } from '../../claude/spending.ts';
import { defined } from '../../core/defined.ts';
import type { ProcessIdentity } from '../../core/event.ts';
import { addTokens, noTokens, type Tokens } from '../../core/group.ts';
import type { RehearsalScript } from '../../rehearsal/script.ts';
import { type CapturedRequest, type ScriptedApi, startScriptedApi } from '../../rehearsal/scripted-api.ts';
import { groupPathsIn, type SessionPaths, sessionPaths } from '../../store/paths.ts';
import { hasKeychain } from '../../system/keychain.ts';
import type { World } from '../../system/world.ts';
import { attemptsFolder, type Launch } from './launch.ts';
import { Probe } from './probe.ts';

/** What a program needs to start, to print and to find others; no address, no proxy, no login. */
const keptNames = ['PATH', 'LANG', 'LC_ALL', 'LC_CTYPE', 'TERM', 'TZ', 'IS_SANDBOX', 'NIX_LD', 'NIX_LD_LIBRARY_PATH'];

const madeUp = { key: 'made-up-key', token: 'made-up-token', access: 'made-up-access' };
const hourMs = 3_600_000;

export type LoginKind = 'key' | 'token' | 'store';

export interface GroundOptions {
  /** Absolute path of a folder that is ours alone. */
  readonly folder: string;
  /** Path of the program. */
  readonly program: string;
  readonly caller: Readonly<Record<string, string | undefined>>;
  readonly launch: Launch;
  readonly script: RehearsalScript;
  /** Ends every wait. */
  readonly stop: AbortSignal;
}

export interface AttemptOptions {
  /** The session of an earlier attempt, to go on with. */
  readonly session?: Session;
  /** As a conversation of its own. */
  readonly fork?: true;
  readonly login?: LoginKind;
  /** Settings of the project. */
  readonly project?: JsonObject;
  /** Settings of the session. */
  readonly settings?: JsonObject;
  readonly deny?: readonly string[];
  readonly reservedUsd?: number;
}

export interface Session {
  readonly claudeSessionId: string;
  readonly paths: SessionPaths;
  /** Folder it works in. */
  readonly project: string;
}

/** One claude of the trial; `name` stands in the address it asks, so requests are known whatever it calls itself. */
export interface TrialAttempt extends Session {
  readonly name: string;
  readonly id: string;
  /** What its hook and its CLAUDE.md say. */
  readonly hookWord: string;
  readonly instructionWord: string;
  readonly env: Environment;
  readonly probe: Probe;
}

export class Ground {
  readonly world: World;
  readonly launch: Launch;
  readonly stop: AbortSignal;
  readonly folder: string;
  /** What was asked of a server that nobody was told of but hostile projects. */
  readonly robberies: string[] = [];
  readonly #options: GroundOptions;
  readonly #home: string;
  readonly #api: ScriptedApi;
  readonly #thief: ScriptedApi;
  readonly #served = new Map<string, Tokens>();
  readonly #attempts: { readonly id: string; readonly probe: Probe }[] = [];

  /** Throws the system's error when the folder cannot be written or there is no port. */
  constructor(world: World, options: GroundOptions) {
    const { folder, script } = options;
    this.world = world;
    this.#options = options;
    this.launch = options.launch;
    this.stop = options.stop;
    this.folder = folder;
    this.#home = join(folder, 'home');
    const expiresAt = world.clock.now() + 24 * hourMs;
    const scopes = ['user:inference', 'user:profile'];
    const tokens = { accessToken: madeUp.access, refreshToken: 'made-up-refresh', expiresAt };
    world.files.makeFolder(join(this.#home, '.claude'));
    world.files.writeAtomic(
      join(this.#home, '.claude', '.credentials.json'),
      JSON.stringify({ claudeAiOauth: { ...tokens, scopes, subscriptionType: 'max' } }),
    );
    this.#api = startScriptedApi({
      script,
      nameOf: (_session, path) => path.split('/')[1],
      onServed: ({ name = '' }, { tokens: served }) => {
        this.#served.set(name, addTokens(this.servedTo(name), served));
      },
    });
    this.#thief = startScriptedApi({
      script,
      nameOf: () => undefined,
      onCall: (method, path) => this.robberies.push(`${method} ${path}`),
    });
  }

  /** Address that only hostile projects name. */
  get thiefUrl(): string {
    return this.#thief.url;
  }

  /** Requests of one attempt, in their order. */
  asked(name: string): CapturedRequest[] {
    return this.#api.requests.filter((request) => request.name === name);
  }

  /** Tokens that the model has counted for one attempt. */
  servedTo(name: string): Tokens {
    return this.#served.get(name) ?? noTokens;
  }

  /** The credential that requests with this login carry. */
  credentialOf(login: LoginKind): Readonly<Record<string, string>> {
    if (login === 'key') return { 'x-api-key': madeUp.key };
    return { authorization: `Bearer ${login === 'token' ? madeUp.token : madeUp.access}` };
  }

  /** Starts a claude as a worker is started. Throws `TrialTrouble` when it cannot be. */
  start(name: string, options: AttemptOptions = {}): TrialAttempt {
    if (this.stop.aborted) throw new TrialTrouble('The trial was stopped.');
    const { world, launch } = this;
    const session = options.session ?? this.#newSession(name);
    const { paths, project, claudeSessionId } = session;
    const id = world.random.uuid();
    const env = this.#environment(name, id, paths, options);
    const [hookWord, instructionWord] = [`state-of-${name}`, `instructions-of-${name}`];
    for (const path of [join(this.folder, attemptsFolder, id), paths.tmp, paths.config]) world.files.makeFolder(path);
    if (options.project !== undefined) this.#writeSettings(project, options.project);
    const prepared = launch.prepare(world, {
      paths,
      isNew: options.session === undefined,
      env,
      instructions: {
        group: { name: 'Trial', description: '' },
        session: { name, description: '', projectPath: project, task: 'Follow the script.' },
        dependencies: [],
        shared: [instructionWord],
        rules: [],
        own: true,
        git: null,
      },
      settings: {
        base: options.settings ?? {},
        hooks: [
          { event: 'SessionStart', program: { program: '/bin/echo', args: [`Claude Code session ${hookWord}`] } },
        ],
        deny: options.deny ?? [],
      },
      files: [],
      mcp: null,
    });
    if (!prepared.ok) throw new TrialTrouble(prepared.failure.message);
    const args = launch.args({
      conversation: { kind: options.session === undefined ? 'new' : 'resume', claudeSessionId },
      name: `trial/${name}`,
      permissionMode: 'acceptEdits',
      settingsFile: paths.workerSettings,
      systemPromptFile: paths.systemPrompt,
      allowedTools: ['Bash'],
      ...defined({ reservedUsd: options.reservedUsd }),
      rehearsal: false,
    });
    const whole = [...args, ...(options.fork ? ['--fork-session'] : [])];
    const probe = this.#spawn(whole, env, session, options.session !== undefined);
    this.#attempts.push({ id, probe });
    return { ...session, name, id, hookWord, instructionWord, env, probe };
  }

  #spawn(args: readonly string[], env: Environment, session: Session, goesOn: boolean): Probe {
    const { world, launch, stop } = this;
    const { paths, project: cwd, claudeSessionId } = session;
    world.files.remove(paths.transcript);
    world.fifos.create(paths.fifo);
    const { fifo: stdinFifo, transcript: stdoutFile, stderr: stderrFile } = paths;
    const { program } = this.#options;
    const startedAtMs = world.clock.now();
    const spawned = world.processes.spawn({ program, args, cwd, env, stdinFifo, stdoutFile, stderrFile });
    if (!spawned.ok) throw new TrialTrouble(spawned.failure.message);
    const fifo = world.fifos.openWriter(paths.fifo);
    const findBase = (): Claim => totalsBefore(world, paths.config, [claudeSessionId], startedAtMs) ?? noClaim;
    const more = goesOn ? { earlier: { findBase } } : {};
    return new Probe(world, { process: spawned.value, fifo, paths, launch, stop, ...more });
  }

  #newSession(name: string): Session {
    const claudeSessionId = this.world.random.uuid();
    const project = join(this.folder, 'projects', name);
    this.world.files.makeFolder(project);
    const paths = sessionPaths(groupPathsIn(join(this.folder, 'group')), `001-${claudeSessionId}`);
    return { claudeSessionId, project, paths };
  }

  #environment(name: string, attemptId: string, paths: SessionPaths, options: AttemptOptions): Environment {
    const { login } = options;
    const caller: Record<string, string> = { HOME: this.#home, ANTHROPIC_BASE_URL: `${this.#api.url}/${name}` };
    for (const kept of [...keptNames, ...loaderVariables]) {
      const value = this.#options.caller[kept];
      if (value !== undefined) caller[kept] = value;
    }
    // The user's own entry goes by the name of the default folder; one for another folder is not there.
    if (hasKeychain) caller.CLAUDE_SECURESTORAGE_CONFIG_DIR = join(this.#home, '.claude');
    if (login === 'token') caller.CLAUDE_CODE_OAUTH_TOKEN = madeUp.token;
    else if (login !== 'store') caller.ANTHROPIC_API_KEY = madeUp.key;
    const { config: configDir, tmp: tmpDir } = paths;
    return this.launch.environment({ caller, attemptId, configDir, tmpDir, login: chooseLogin(caller) });
  }

  /** Settings of the project; parts for which a session would be refused are left out, for they are never met. */
  #writeSettings(project: string, settings: JsonObject): void {
    this.world.files.makeFolder(join(project, '.claude'));
    this.world.files.writeAtomic(join(project, '.claude', 'settings.json'), JSON.stringify(settings));
  }

  /** Those of the project's settings with which the runner would start a session at all. */
  met(attacks: Readonly<Record<string, JsonObject>>): JsonObject[] {
    const probe = join(this.folder, 'projects', 'looked-at');
    const env = this.#environment('looked-at', '', this.#newSession('looked-at').paths, {});
    return Object.values(attacks).filter((attack) => {
      this.#writeSettings(probe, attack);
      return this.launch.checkProject(this.world, probe, env).ok;
    });
  }

  /** Living processes that carry the mark of an attempt, its claude left out. */
  leftBy({ id, probe }: Pick<TrialAttempt, 'id' | 'probe'>): ProcessIdentity[] {
    const own = probe.process.identity.pid;
    return this.world.processes.findMarked(attemptMark, id).filter(({ pid }) => pid !== own);
  }

  /** Ends all that is left and frees the ports. The folder is the caller's. */
  async close(): Promise<void> {
    for (const attempt of this.#attempts) {
      attempt.probe.kill();
      for (const left of this.leftBy(attempt)) this.world.processes.signal(left, 'SIGKILL');
    }
    await Promise.all(this.#attempts.map(({ probe }) => probe.gone));
    await Promise.all([this.#api.stop(), this.#thief.stop()]);
  }
}

/** A trial that cannot be carried out says nothing about the program. */
export class TrialTrouble extends Error {}
