/** A machine with one oddity: its data root, its environment, or the way commands are started on it. */
import { expect } from 'bun:test';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRealWorld } from '../../../src/system/real-world.ts';
import type { StartedCommand } from '../cli.ts';
import { launcher } from '../cli.ts';
import { answerAll, startCommand } from '../crash-rig.ts';
import type { FakeClaudeHarness } from '../fake-claude-rig.ts';
import type { ProgramResult } from '../in-process.ts';
import { noteTried } from '../tried.ts';

const { processes } = createRealWorld();

export interface Oddity {
  /** Name of the data root below the machine's folder; may have several parts. */
  readonly data?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly without?: readonly string[];
  /** Prefix of the program on the command line. */
  readonly prefix?: readonly string[];
  readonly program?: readonly string[];
}

/** `sh` runs `script`, in which `"$@"` is the command. */
export const shell = (script: string): string[] => ['sh', '-c', script, 'sh'];

export class OddMachine {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'cca odd ')));
  readonly data: string;
  readonly env: Record<string, string>;
  readonly #rig: FakeClaudeHarness;
  readonly #oddity: Oddity;

  constructor(rig: FakeClaudeHarness, oddity: Oddity = {}) {
    this.#rig = rig;
    this.#oddity = oddity;
    this.data = join(this.folder, oddity.data ?? 'data');
    const home = join(this.folder, 'home');
    mkdirSync(home);
    this.env = { HOME: home, CLAUDE_CODE_AGENT_HOME: this.data, ...rig.env, ...oddity.env };
    for (const name of oddity.without ?? []) delete this.env[name];
  }

  start(...args: string[]): StartedCommand {
    const { prefix = [], program = [launcher] } = this.#oddity;
    return startCommand([...prefix, ...program, ...args], this.env);
  }

  run(...args: string[]): Promise<ProgramResult> {
    return this.start(...args).finished;
  }

  /** Runs a command that must succeed with an empty stderr; returns its trimmed stdout. */
  async ok(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(...args);
    expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' });
    return stdout.trim();
  }

  /** Runs a command that must end with `code`, an empty stdout and one line on stderr; returns that line. */
  async refused(code: number, ...args: string[]): Promise<string> {
    const finished = await this.run(...args);
    expect({ args, ...finished, stderr: '' }).toEqual({ args, code, stdout: '', stderr: '' });
    expect(finished.stderr).toMatch(/^claude-code-agent: [^\n]+[.!]\n$/);
    return finished.stderr.trimEnd();
  }

  project(name: string): string {
    const path = join(this.folder, 'projects', name);
    mkdirSync(path, { recursive: true });
    return path;
  }

  /** Adds a session; its claude session id. */
  async add(group: string, name: string, ...more: string[]): Promise<string> {
    const common = ['--project', this.project(name), '--prompt', `do ${name}`, '--name', name];
    return (await this.ok('session', 'add', group, ...common, ...more)).slice('001-'.length);
  }

  /** Its claude needs no check; `root` is where this process finds the data root. */
  knowClaude(root = this.#root()): void {
    noteTried(root, this.#rig.program);
  }

  #root(): string {
    const { CLAUDE_CODE_AGENT_HOME: chosen, HOME = '' } = this.env;
    return chosen ?? join(HOME, '.local', 'claude-code-agent');
  }

  /** A group of a chain of two sessions whose workers answer by themselves. */
  async makeGroup(): Promise<string> {
    if (!existsSync(join(this.#root(), 'tried-claudes.json'))) this.knowClaude();
    const group = await this.ok('group', 'create', 'odd');
    const one = await this.add(group, 'one');
    const two = await this.add(group, 'two', '--depends-on', 'one');
    answerAll(this.#rig, [one, two]);
    return group;
  }

  /** Creates a group and runs it to its end; its id. */
  async completeGroup(): Promise<string> {
    const group = await this.makeGroup();
    const said = await this.ok('group', 'run', group, '--output', 'text');
    expect(said).toContain('2 of 2 sessions completed');
    // Colours were not requested, and no stream here is a terminal.
    expect(said).not.toContain('\u001b');
    await this.expectCompleted(group);
    return group;
  }

  async expectCompleted(group: string): Promise<void> {
    const { status, cost } = JSON.parse(await this.ok('group', 'show', group, '--json'));
    expect({ status, cost }).toEqual({ status: 'completed', cost: 0.02 });
  }

  /** Everything in the data root, as `mode path`. */
  modes(): string[] {
    const below = readdirSync(this.data, { recursive: true }).map((name) => join(this.data, String(name)));
    return [this.data, ...below].map((path) => `${(statSync(path).mode & 0o7777).toString(8)} ${path}`);
  }

  alive(pid: number): boolean {
    return processes.identify(pid) !== null;
  }

  remove(): void {
    // Under some umasks Bun removes its own access to folders that it creates.
    Bun.spawnSync(['chmod', '-R', 'u+rwX', this.folder]);
    rmSync(this.folder, { recursive: true, force: true });
  }
}
