/** Checks one program: a session that works, is interrupted and resumed, and a session that reaches its cap. */
import { join } from 'node:path';
import { answersInterrupt, interruptRequest, openingLines, usageRequest } from '../../claude/control.ts';
import { totalsBefore } from '../../claude/conversation.ts';
import { isOverCap } from '../../claude/failure-text.ts';
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
import { fail, ok, type Result } from '../../core/failure.ts';
import { addTokens, noTokens, type Tokens } from '../../core/group.ts';
import type { RehearsalScript, Step } from '../../rehearsal/script.ts';
import { type CapturedRequest, type ScriptedApi, startScriptedApi } from '../../rehearsal/scripted-api.ts';
import { groupPathsIn, type SessionPaths, sessionPaths } from '../../store/paths.ts';
import { systemFailure } from '../../store/system-failure.ts';
import { delay } from '../../system/clock.ts';
import { hasKeychain } from '../../system/machine.ts';
import type { ExitStatus, FifoWriter, RunningProcess, World } from '../../system/world.ts';
import { tryPath } from '../path-argument.ts';
import { broken, type CheckResult, checks, resultOf, unknown } from './checks.ts';

/** Long, because a machine under load may start processes slowly. */
const turnMs = 20_000;
/** Twice as long as the runner waits. */
const interruptMs = 10_000;
const killedMs = 3_000;
const limitMs = 120_000;

const bash = (command: string): Step => ({ tool: 'Bash', input: { command } });
const done: Step = { text: 'The check is done.' };
const work = [bash('rm precious'), bash('[ -s started ] || { echo $$ > started; sleep 60; }'), done];
const spend: Step = { tool: 'Bash', input: { command: 'true' }, usage: { input: 100_000 } };
const deny = ['Bash(rm:*)'];

const script: RehearsalScript = {
  version: 1,
  sessions: {
    '*': { steps: [done] },
    work: { steps: work },
    again: { steps: work },
    cap: { steps: [spend, spend, spend, done] },
  },
};

/** A failure is checked again, because a busy machine can cause one. Fails with `write-failed` or `spawn-failed`. */
export async function checkClaude(world: World, options: CheckOptions): Promise<Result<readonly CheckResult[]>> {
  const limit = new AbortController();
  const cancel = world.clock.after(limitMs, () => limit.abort());
  const limited = { ...options, stop: AbortSignal.any([options.stop, limit.signal]) };
  try {
    const first = await checkOnce(world, limited);
    if (!first.ok || limited.stop.aborted || first.value.every(({ verdict }) => verdict === 'holds')) return first;
    const second = await checkOnce(world, limited);
    if (!second.ok) return second;
    // A forbidden command that ran once is a fault, whatever happens the second time.
    const ran = first.value.find(({ id, verdict }) => id === 'deny' && verdict === 'broken');
    return ok(second.value.map((one) => (one.id === ran?.id ? ran : one)));
  } finally {
    cancel();
  }
}

async function checkOnce(world: World, options: CheckOptions): Promise<Result<readonly CheckResult[]>> {
  let sandbox: Sandbox | null = null;
  try {
    world.files.remove(options.folder);
    world.files.makeFolder(options.folder);
    // A temporary folder may be reached by a link, and claude reports paths without links.
    const folder = world.files.realPath(options.folder) ?? options.folder;
    sandbox = new Sandbox(world, { ...options, folder });
    const both = await Promise.allSettled([checkWork(sandbox), checkCap(sandbox)]);
    const results = both.flatMap((one) => {
      if (one.status === 'rejected') throw one.reason;
      return one.value;
    });
    // An interrupted check looks like a failure.
    const made = options.stop.aborted ? [] : results;
    return ok(checks.map(({ id }) => made.find((one) => one.id === id) ?? unknown(id, '')));
  } catch (error) {
    if (!(error instanceof SandboxError)) return { ok: false, failure: systemFailure(options.folder, error) };
    return fail('spawn-failed', error.message, '');
  } finally {
    await sandbox?.close();
    // A failure does not matter: the folder is in the folder for temporary files.
    tryPath(() => world.files.remove(options.folder));
  }
}

async function checkWork(sandbox: Sandbox): Promise<CheckResult[]> {
  const { files } = sandbox.world;
  const session = sandbox.newSession('work');
  const precious = join(session.project, 'precious');
  files.writeAtomic(precious, 'precious\n');
  const first = sandbox.start('work', session, { deny });
  const interrupt = await checkInterrupt(sandbox, session, first);
  await first.end();
  const requests = sandbox.requestsOf('work');
  const [header, credential] = sandbox.credential;
  const login = resultOf('login', [
    requests.length === 0 && `no request was made; ${first.describe()}`,
    requests.some(({ headers }) => headers[header] !== credential) && 'another credential was used',
  ]);
  if (requests.length === 0) return [login];
  const request = JSON.stringify(requests[0]?.body);
  // The next command has run, so claude has handled the forbidden one.
  const isDecided = files.info(join(session.project, 'started')) !== null;
  return [
    login,
    resultOf('prompt', [!request.includes(taskFor('work')) && 'it is not in the first request']),
    resultOf('hooks', [
      !first.stream.hookSeen && 'no hook was reported',
      !request.includes(hookTextFor('work')) && 'its text is not in the first request',
    ]),
    isDecided
      ? resultOf('deny', [files.info(precious) === null && 'a forbidden command ran'])
      : unknown('deny', 'no command ran'),
    interrupt,
    ...(await checkResume(sandbox, session, first)),
  ];
}

async function checkInterrupt(sandbox: Sandbox, { project }: CheckSession, claude: CheckedProcess) {
  const { processes, files } = sandbox.world;
  const pid = () => Number(files.readText(join(project, 'started')) ?? '');
  const hasResult = () => claude.message('result') !== undefined;
  await claude.wait(() => pid() > 0 || hasResult(), turnMs);
  const shell = pid() > 0 ? processes.identify(pid()) : null;
  if (shell === null) return unknown('interrupt', 'no command ran');
  const command = [shell, ...processes.findDescendants([shell])];
  claude.send(usageRequest('check'));
  claude.send(interruptRequest('check'));
  const isAnswered = () =>
    claude.messages.some((one) => one.kind === 'control-response' && one.ok && answersInterrupt(one.requestId));
  if (!(await claude.wait(isAnswered, interruptMs))) return broken('interrupt', 'it was not answered');
  if (!(await claude.wait(hasResult, interruptMs))) return broken('interrupt', 'the turn did not end');
  const isGone = await claude.wait(() => !command.some((one) => processes.isAlive(one)), killedMs);
  return resultOf('interrupt', [!isGone && 'the command was left running']);
}

async function checkResume(sandbox: Sandbox, session: CheckSession, first: CheckedProcess): Promise<CheckResult[]> {
  const again = sandbox.start('again', session, { isResumed: true, deny });
  const isOver = await again.wait(() => again.message('result') !== undefined, turnMs);
  await again.end();
  const [request] = sandbox.requestsOf('again');
  const resume = resultOf('resume', [
    request === undefined && `no request was made; ${again.describe()}`,
    // The scripted model used this id in the first process.
    !JSON.stringify(request?.body ?? {}).includes('toolu_step0_0') && 'the model did not receive the conversation',
    again.message('init')?.sessionId !== session.claudeSessionId && 'it has another id',
  ]);
  const isComparable = isOver && request !== undefined;
  return [resume, isComparable ? checkCost(sandbox, first, again) : unknown('cost', 'the resumed turn did not end')];
}

/** All requests are of one size. The scripted model counts their tokens; the price of a request is claude's figure. */
function checkCost(sandbox: Sandbox, first: CheckedProcess, again: CheckedProcess): CheckResult {
  const reported = [first, again].map(({ stream }) => tokensIn(stream.tokens));
  const served = ['work', 'again'].map((name) => tokensIn(sandbox.servedTo(name)));
  const before = first.stream.costUsd / sandbox.requestsOf('work').length;
  const after = again.stream.costUsd / sandbox.requestsOf('again').length;
  return resultOf('cost', [
    reported.some((tokens, index) => tokens !== served[index]) &&
      `it reported ${reported.join(' and ')} tokens where ${served.join(' and ')} were used`,
    !(before > 0) && 'no cost was reported',
    Math.abs(before - after) > 1e-9 && `a request cost $${before}, and $${after} after the resume`,
  ]);
}

const tokensIn = ({ input, output, cacheRead, cacheCreation }: Tokens): number =>
  input + output + cacheRead + cacheCreation;

async function checkCap(sandbox: Sandbox): Promise<CheckResult[]> {
  const claude = sandbox.start('cap', sandbox.newSession('cap'), { reservedUsd: 0 });
  await claude.wait(() => claude.message('result') !== undefined, turnMs);
  await claude.end();
  const requests = sandbox.requestsOf('cap').length;
  if (requests === 0) return [unknown('cap', `no request was made; ${claude.describe()}`)];
  const result = claude.message('result');
  return [
    resultOf('cap', [
      requests > 1 && `it made ${requests} requests, and the first one had used up the cap`,
      !(result !== undefined && isOverCap(result)) && 'its result does not name the cap',
    ]),
  ];
}

// The sandbox for checks: an empty home, made-up logins and a scripted model. Starts claude and reads its output
// with the functions that the runner uses for workers.

/** Variables that programs need to start; no address, proxy or login. */
const keptNames = ['PATH', 'LANG', 'LC_ALL', 'LC_CTYPE', 'TERM', 'TZ', 'IS_SANDBOX', 'NIX_LD', 'NIX_LD_LIBRARY_PATH'];
const madeUp = { key: 'made-up-key', token: 'made-up-token', access: 'made-up-access' };
const dayMs = 86_400_000;

export interface CheckOptions {
  readonly folder: string;
  /** In the environment of every process, so that orphans of a killed check can be found. */
  readonly mark: string;
  readonly program: string;
  readonly caller: Readonly<Record<string, string | undefined>>;
  readonly login: Login['kind'];
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
  readonly #options: CheckOptions;
  readonly #home: string;
  readonly #api: ScriptedApi;
  readonly #served = new Map<string, Tokens>();
  readonly #started: CheckedProcess[] = [];

  /** Throws the system error if the folder cannot be written or no port is free. */
  constructor(world: World, options: CheckOptions) {
    this.world = world;
    this.#options = options;
    this.#home = join(options.folder, 'home');
    this.#killMarked();
    const tokens = { accessToken: madeUp.access, refreshToken: 'made-up', expiresAt: world.clock.now() + dayMs };
    const claudeAiOauth = { ...tokens, scopes: ['user:inference', 'user:profile'], subscriptionType: 'max' };
    world.files.makeFolder(join(this.#home, '.claude'));
    world.files.writeAtomic(join(this.#home, '.claude', '.credentials.json'), JSON.stringify({ claudeAiOauth }));
    this.#api = startScriptedApi({
      script,
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
