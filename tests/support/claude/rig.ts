/**
 * Runs the real claude against the scripted API in an emptied environment, as a worker runs: stdin is a FIFO that never
 * ends, stdout and stderr are files. For tests of what we rely on.
 */
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { workerArgs } from '../../../src/claude/launch/argv.ts';
import { noteDecisions, prepareConfigDir } from '../../../src/claude/launch/config-dir.ts';
import { attemptMark, workerEnvironment } from '../../../src/claude/launch/environment.ts';
import type { HookProgram } from '../../../src/claude/launch/settings.ts';
import { loginOf } from '../../../src/claude/launch/user-claude.ts';
import type { Environment } from '../../../src/claude/launch/variables.ts';
import { type ClaudeMessage, parseLine } from '../../../src/claude/messages.ts';
import type { Step } from '../../../src/rehearsal/script.ts';
import { startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { groupPathsIn, type SessionPaths, sessionPaths } from '../../../src/store/paths.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { claudeBinary } from '../claude-binary.ts';

export { claudeBinary };

/**
 * The model of tests that count money or tokens: versions of claude differ in their default, but not in this one's
 * price. 1,000 tokens in and 200 out, a step of the scripted API, cost one cent.
 */
export const modelOfKnownPrice = 'claude-opus-4-8';

/** The mark of our workers; another run of the tests on this machine has another one. */
export const attemptOfThisTest = `attempt-of-test-${process.pid}`;

/** How long a step may take on a busy machine before a test counts as hung, milliseconds. */
export const stepLimitMs = 60_000;

export interface Rig {
  readonly folder: string;
  readonly home: string;
  readonly configDir: string;
  readonly project: string;
  readonly api: ReturnType<typeof startScriptedApi>;
  /** The minimum a claude needs to talk to the scripted API and nothing else. */
  readonly env: Readonly<Record<string, string>>;
  /** Ends with the rig, whatever the test's outcome. */
  readonly children: { kill(signal: 'SIGKILL'): void }[];
  /** Writes a file below the rig's folder, with its folders; text or JSON. */
  write(path: string, content: unknown): string;
  close(): Promise<void>;
}

/** `agents`: the steps of each of its sub-agents. */
export function openRig(steps: readonly Step[], agents?: readonly Step[]): Rig {
  const folder = mkdtempSync(join(tmpdir(), 'cca-claude-'));
  const paths = { home: join(folder, 'home'), configDir: join(folder, 'config'), project: join(folder, 'project') };
  for (const path of Object.values(paths)) mkdirSync(path);
  const api = startScriptedApi({
    script: { version: 1, sessions: { '*': { steps: [...steps], ...(agents && { agents: [...agents] }) } } },
    nameOf: () => undefined,
  });
  return {
    folder,
    ...paths,
    api,
    env: {
      PATH: process.env.PATH ?? '/usr/bin:/bin',
      HOME: paths.home,
      CLAUDE_CONFIG_DIR: paths.configDir,
      ANTHROPIC_BASE_URL: api.url,
      ANTHROPIC_API_KEY: 'test-key',
      DISABLE_AUTOUPDATER: '1',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      CLAUDE_CODE_MAX_RETRIES: '0',
    },
    write(path, content) {
      const full = join(folder, path);
      mkdirSync(dirname(full), { recursive: true });
      writeFileSync(full, typeof content === 'string' ? content : JSON.stringify(content));
      return full;
    },
    children: [],
    async close() {
      for (const child of this.children) child.kill('SIGKILL');
      // Tools of a killed claude would continue, and be mistaken for those of the next test.
      const { processes } = createRealWorld();
      for (const left of processes.findMarked(attemptMark, attemptOfThisTest)) processes.signal(left, 'SIGKILL');
      await api.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export interface Probe {
  readonly pid: number;
  readonly exited: Promise<number>;
  send(line: string): void;
  /** All lines printed so far. */
  messages(): ClaudeMessage[];
  text(): string;
  stderr(): string;
  /** The first message for which `wanted` holds; rejects when the process ends without it. */
  until(wanted: (message: ClaudeMessage) => boolean): Promise<ClaudeMessage>;
  /** Ends the process and waits for it. */
  end(): Promise<number>;
}

export function startClaude(rig: Rig, args: readonly string[], env: Readonly<Record<string, string>>): Probe {
  if (claudeBinary === undefined) throw new Error('claude is not installed');
  const id = crypto.randomUUID();
  const [fifo, out, err] = ['fifo', 'out', 'err'].map((name) => join(rig.folder, `${id}.${name}`)) as [
    string,
    string,
    string,
  ];
  if (Bun.spawnSync(['mkfifo', '-m', '600', fifo]).exitCode !== 0) throw new Error(`mkfifo ${fifo} failed`);
  // Read-write: opening does not wait, and the reader never reads an end.
  const input = openSync(fifo, 'r+');
  const output = openSync(out, 'a', 0o600);
  const errors = openSync(err, 'a', 0o600);
  const child = Bun.spawn([claudeBinary, ...args], {
    cwd: rig.project,
    env,
    stdin: input,
    stdout: output,
    stderr: errors,
  });
  rig.children.push(child);
  for (const fd of [output, errors]) closeSync(fd);
  const text = () => readFileSync(out, 'utf8');
  const messages = () => text().split('\n').slice(0, -1).map(parseLine);
  const exited = child.exited.finally(() => closeSync(input));
  return {
    pid: child.pid,
    exited,
    send: (line) => writeFileSync(input, `${line}\n`),
    messages,
    text,
    stderr: () => readFileSync(err, 'utf8'),
    async until(wanted) {
      for (;;) {
        const over = child.exitCode !== null || child.signalCode !== null;
        const found = messages().find(wanted);
        if (found !== undefined) return found;
        if (over) throw new Error(`claude ended (${child.exitCode}) first:\n${text()}\n${readFileSync(err, 'utf8')}`);
        await Bun.sleep(20);
      }
    },
    async end() {
      child.kill('SIGTERM');
      return exited;
    },
  };
}

export interface Session {
  readonly args: string[];
  readonly env: Environment;
  readonly paths: SessionPaths;
  readonly claudeSessionId: string;
}

export interface SessionOptions {
  /** The environment of the command that starts the worker, beside the rig's PATH and HOME. */
  readonly caller?: Readonly<Record<string, string>>;
  readonly allowedTools?: readonly string[];
  readonly dependencyResult?: string;
  /** claude's own default when it is not given. */
  readonly model?: string;
  readonly untrusted?: boolean;
  /** The user has trusted the project in plain claude. */
  readonly trust?: boolean;
  readonly memoryBytes?: number;
  /** What it is told about Git; claude's own words when it is not given. */
  readonly git?: string;
  /** Instead of one that prints CONTEXT of the session. */
  readonly hook?: HookProgram;
}

/** Everything a worker is started with, made by the same functions that the runner uses. */
/** What stands in for our own hook where its words do not matter. */
const sayContext = { program: '/bin/sh', args: ['-c', 'echo "CONTEXT of the session"'] };

export function prepareSession(rig: Rig, options: SessionOptions = {}): Session {
  const claudeSessionId = crypto.randomUUID();
  const paths = sessionPaths(groupPathsIn(join(rig.folder, 'group')), `001-${claudeSessionId}`);
  const { PATH, HOME, ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL } = rig.env;
  const caller = { PATH, HOME, ...(options.caller ?? { ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL }) };
  const { login, caller: merged } = loginOf(createRealWorld(), caller);
  const env = workerEnvironment({
    caller: merged,
    attemptId: attemptOfThisTest,
    configDir: paths.config,
    tmpDir: paths.tmp,
    login,
    untrusted: options.untrusted,
    memoryBytes: options.memoryBytes,
  });
  mkdirSync(paths.config, { recursive: true });
  const prepared = prepareConfigDir(createRealWorld(), {
    paths,
    env,
    helpers: login.helpers,
    instructions: {
      group: { name: 'Upgrade', description: 'Bring all services to version 2.' },
      session: { name: 'api', description: '', projectPath: rig.project, task: 'Upgrade the API.' },
      dependencies:
        options.dependencyResult === undefined
          ? []
          : [{ name: 'lib', status: 'completed', projectPath: '/lib', result: options.dependencyResult }],
      shared: [],
      rules: [],
      own: true,
      git: options.git ?? null,
    },
    settings: { hooks: [{ event: 'SessionStart', program: options.hook ?? sayContext }] },
    files: [],
    mcp: null,
  });
  if (!prepared.ok) throw new Error(prepared.failure.message);
  if (options.trust === true) {
    const decided = { hasTrustDialogAccepted: true, hasClaudeMdExternalIncludesApproved: true };
    noteDecisions(createRealWorld(), paths.config, rig.project, decided);
  }
  const args = workerArgs({
    conversation: { kind: 'new', claudeSessionId },
    name: '--api of the upgrade',
    permissionMode: 'acceptEdits',
    settingsFile: paths.workerSettings,
    systemPromptFile: paths.systemPrompt,
    allowedTools: options.allowedTools ?? ['Bash'],
    ...(options.model === undefined ? {} : { model: options.model }),
  });
  return { args, env, paths, claudeSessionId };
}
