/**
 * The sandbox for checks: an empty home, made-up logins and a scripted model. Starts claude and reads its output with
 * the functions that the runner uses for workers.
 */
import { join } from 'node:path';
import { openingLines } from '../../claude/control.ts';
import { totalsBefore } from '../../claude/conversation.ts';
import { workerArgs } from '../../claude/launch/argv.ts';
import { attemptMark } from '../../claude/launch/attempt-mark.ts';
import { prepareConfigDir } from '../../claude/launch/config-dir.ts';
import { workerEnvironment } from '../../claude/launch/environment.ts';
import { chooseLogin, type Login } from '../../claude/launch/login.ts';
import { type Environment, loaderVariables } from '../../claude/launch/variables.ts';
import { type ClaudeMessage, parseLine } from '../../claude/messages.ts';
import { noTotals } from '../../claude/spending.ts';
import { type AttemptStream, emptyStream, foldMessage } from '../../claude/stream.ts';
import { defined } from '../../core/defined.ts';
import { addTokens, noTokens, type Tokens } from '../../core/group.ts';
import type { RehearsalScript } from '../../rehearsal/script.ts';
import { type CapturedRequest, type ScriptedApi, startScriptedApi } from '../../rehearsal/scripted-api.ts';
import { groupPathsIn, type SessionPaths, sessionPaths } from '../../store/paths.ts';
import { delay } from '../../system/clock.ts';
import { hasKeychain } from '../../system/machine.ts';
import type { ExitStatus, FifoWriter, RunningProcess, World } from '../../system/world.ts';

/** Variables that programs need to start; no address, proxy or login. */
const keptNames = ['PATH', 'LANG', 'LC_ALL', 'LC_CTYPE', 'TERM', 'TZ', 'IS_SANDBOX', 'NIX_LD', 'NIX_LD_LIBRARY_PATH'];
const madeUp = { key: 'made-up-key', token: 'made-up-token', access: 'made-up-access' };
const dayMs = 86_400_000;

export interface SandboxOptions {
  readonly folder: string;
  /** In the environment of every process, so that orphans of a killed check can be found. */
  readonly mark: string;
  readonly program: string;
  readonly caller: Readonly<Record<string, string | undefined>>;
  readonly login: Login['kind'];
  readonly script: RehearsalScript;
  readonly stop: AbortSignal;
}

export interface CheckSession {
  readonly claudeSessionId: string;
  readonly paths: SessionPaths;
  readonly project: string;
}

export interface CheckStartOptions {
  readonly isResumed?: boolean;
  readonly deny?: readonly string[];
  readonly reservedUsd?: number;
}

export class Sandbox {
  readonly world: World;
  readonly #options: SandboxOptions;
  readonly #home: string;
  readonly #api: ScriptedApi;
  readonly #served = new Map<string, Tokens>();
  readonly #started: CheckedProcess[] = [];

  /** Throws the system error if the folder cannot be written or no port is free. */
  constructor(world: World, options: SandboxOptions) {
    this.world = world;
    this.#options = options;
    this.#home = join(options.folder, 'home');
    this.#killMarked();
    const tokens = { accessToken: madeUp.access, refreshToken: 'made-up', expiresAt: world.clock.now() + dayMs };
    const claudeAiOauth = { ...tokens, scopes: ['user:inference', 'user:profile'], subscriptionType: 'max' };
    world.files.makeFolder(join(this.#home, '.claude'));
    world.files.writeAtomic(join(this.#home, '.claude', '.credentials.json'), JSON.stringify({ claudeAiOauth }));
    this.#api = startScriptedApi({
      script: options.script,
      // Each process has its own URL, so that requests can be assigned to it.
      nameOf: (_session, path) => path.split('/')[1],
      onServed: ({ name = '' }, { tokens: served }) => {
        this.#served.set(name, addTokens(this.servedTo(name), served));
      },
    });
  }

  requestsOf(name: string): CapturedRequest[] {
    return this.#api.requests.filter((request) => request.name === name);
  }

  servedTo(name: string): Tokens {
    return this.#served.get(name) ?? noTokens;
  }

  get credential(): readonly [name: string, value: string] {
    const { login } = this.#options;
    if (login === 'oauth-token') return ['authorization', `Bearer ${madeUp.token}`];
    if (login === 'store') return ['authorization', `Bearer ${madeUp.access}`];
    return ['x-api-key', madeUp.key];
  }

  newSession(name: string): CheckSession {
    const claudeSessionId = this.world.random.uuid();
    const project = join(this.#options.folder, 'projects', name);
    const paths = sessionPaths(groupPathsIn(join(this.#options.folder, 'group')), `001-${claudeSessionId}`);
    for (const path of [project, paths.tmp, paths.config]) this.world.files.makeFolder(path);
    return { claudeSessionId, project, paths };
  }

  /** Starts claude as a worker and sends it the task; `name` selects its script. Throws `SandboxError`. */
  start(name: string, session: CheckSession, options: CheckStartOptions = {}): CheckedProcess {
    const { world } = this;
    const { program, stop } = this.#options;
    if (stop.aborted) throw new SandboxError('The check was stopped.');
    const { paths, project: cwd, claudeSessionId } = session;
    const env = this.#environment(name, paths);
    const args = this.#prepare(name, session, options, env);
    world.files.remove(paths.transcript);
    world.fifos.create(paths.fifo);
    const { fifo: stdinFifo, transcript: stdoutFile, stderr: stderrFile } = paths;
    const startedAtMs = world.clock.now();
    const spawned = world.processes.spawn({ program, args, cwd, env, stdinFifo, stdoutFile, stderrFile });
    if (!spawned.ok) throw new SandboxError(spawned.failure.message);
    const findBase = () => totalsBefore(world, paths.config, [claudeSessionId], startedAtMs) ?? noTotals;
    const stream = emptyStream({}, options.isResumed === true ? { findBase } : undefined);
    const fifo = world.fifos.openWriter(paths.fifo);
    const claude = new CheckedProcess(world, { process: spawned.value, fifo, paths, stream, stop });
    this.#started.push(claude);
    claude.send(openingLines(taskFor(name)).join('\n'));
    return claude;
  }

  #prepare(name: string, session: CheckSession, options: CheckStartOptions, env: Environment): string[] {
    const { paths, project: projectPath, claudeSessionId } = session;
    const { isResumed = false, deny = [], reservedUsd } = options;
    const echo = { program: '/bin/echo', args: [`Claude Code session ${hookTextFor(name)}`] };
    const prepared = prepareConfigDir(this.world, {
      paths,
      env,
      instructions: {
        group: { name: 'Check', description: '' },
        session: { name, description: '', projectPath, task: 'Follow the script.' },
        ...{ dependencies: [], shared: [], rules: [], own: true, git: null },
      },
      settings: { base: {}, hooks: [{ event: 'SessionStart', program: echo }], deny },
      files: [],
      mcp: null,
    });
    if (!prepared.ok) throw new SandboxError(prepared.failure.message);
    return workerArgs({
      conversation: { kind: isResumed ? 'resume' : 'new', claudeSessionId },
      name: `check/${name}`,
      permissionMode: 'acceptEdits',
      settingsFile: paths.workerSettings,
      systemPromptFile: paths.systemPrompt,
      allowedTools: ['Bash'],
      ...defined({ reservedUsd }),
    });
  }

  #environment(name: string, { config: configDir, tmp: tmpDir }: SessionPaths): Environment {
    const { login, mark, caller: given } = this.#options;
    const caller: Record<string, string> = { HOME: this.#home, ANTHROPIC_BASE_URL: `${this.#api.url}/${name}` };
    for (const kept of [...keptNames, ...loaderVariables]) {
      const value = given[kept];
      if (value !== undefined) caller[kept] = value;
    }
    // The keychain has no entry for this folder, so the user's own login cannot be used.
    if (hasKeychain) caller.CLAUDE_SECURESTORAGE_CONFIG_DIR = join(this.#home, '.claude');
    if (login === 'oauth-token') caller.CLAUDE_CODE_OAUTH_TOKEN = madeUp.token;
    else if (login !== 'store') caller.ANTHROPIC_API_KEY = madeUp.key;
    return workerEnvironment({ caller, attemptId: mark, configDir, tmpDir, login: chooseLogin(caller) });
  }

  async close(): Promise<void> {
    for (const claude of this.#started) claude.kill();
    this.#killMarked();
    await Promise.all(this.#started.map(({ ended }) => ended));
    await this.#api.stop();
  }

  #killMarked(): void {
    const { processes } = this.world;
    for (const left of processes.findMarked(attemptMark, this.#options.mark)) processes.signal(left, 'SIGKILL');
  }
}

export const taskFor = (name: string): string => `Follow the script ${name}.`;
export const hookTextFor = (name: string): string => `state-of-${name}`;

/** The check could not be made, which says nothing about claude. */
export class SandboxError extends Error {}

const lookMs = 20;
/** An idle claude ends within a second and a half after SIGTERM. */
const endMs = 10_000;

interface CheckedProcessOptions {
  readonly process: RunningProcess;
  readonly fifo: FifoWriter | null;
  readonly paths: SessionPaths;
  readonly stream: AttemptStream;
  readonly stop: AbortSignal;
}

type MessageOf<Kind extends ClaudeMessage['kind']> = Extract<ClaudeMessage, { readonly kind: Kind }>;

export class CheckedProcess {
  readonly messages: ClaudeMessage[] = [];
  readonly stream: AttemptStream;
  readonly ended: Promise<void>;
  readonly #world: World;
  readonly #options: CheckedProcessOptions;
  #exit: ExitStatus | null = null;

  constructor(world: World, options: CheckedProcessOptions) {
    this.#world = world;
    this.#options = options;
    this.stream = options.stream;
    this.ended = new Promise((resolve) => {
      options.process.onExit((status) => {
        this.#exit = status;
        resolve();
      });
    });
  }

  send(lines: string): void {
    this.#options.fifo?.writeLine(lines);
  }

  /** True if `condition` holds within `ms` and before the process ends. */
  async wait(condition: () => boolean, ms: number): Promise<boolean> {
    for (let waited = 0; ; waited += lookMs) {
      // Read the output once more after the end.
      const isOver = this.#exit !== null;
      this.#read();
      if (condition()) return true;
      if (isOver || waited >= ms || this.#options.stop.aborted) return false;
      await delay(this.#world.clock, lookMs);
    }
  }

  message<Kind extends ClaudeMessage['kind']>(kind: Kind): MessageOf<Kind> | undefined {
    return this.messages.find((one): one is MessageOf<Kind> => one.kind === kind);
  }

  async end(): Promise<void> {
    this.#world.processes.signal(this.#options.process.identity, 'SIGTERM');
    await this.wait(() => this.#exit !== null, endMs);
    this.kill();
    await this.ended;
    this.#read();
  }

  kill(): void {
    this.#options.fifo?.close();
    if (this.#exit === null) this.#world.processes.signal(this.#options.process.identity, 'SIGKILL');
  }

  describe(): string {
    const error = (this.#world.files.readText(this.#options.paths.stderr) ?? '').trim().split('\n').at(-1) ?? '';
    const result = this.message('result');
    const text = error === '' ? (result?.result ?? result?.subtype ?? '') : error;
    const tail = text === '' ? '' : `: ${text.slice(0, 200)}`;
    if (this.#exit?.kind === 'exited') return `claude ended with exit code ${this.#exit.code}${tail}`;
    return `claude was ended${this.#exit?.kind === 'signalled' ? ` by ${this.#exit.signal}` : ''}${tail}`;
  }

  #read(): void {
    const lines = (this.#world.files.readText(this.#options.paths.transcript) ?? '').split('\n').slice(0, -1);
    for (const line of lines.slice(this.messages.length)) {
      const message = parseLine(line);
      this.messages.push(message);
      foldMessage(this.stream, message);
    }
  }
}
