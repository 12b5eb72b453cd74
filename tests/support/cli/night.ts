/** A user with groups whose sessions are fakes that the test steps; runners are real processes that can be killed. */
import { afterEach, beforeEach } from 'bun:test';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { GroupEvent } from '../../../src/core/event.ts';
import { sessionUuid } from '../../../src/core/id.ts';
import { readLog } from '../../../src/store/event-log.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { type StartedCommand, until } from '../cli.ts';
import type { FakeClaudeHarness, Invocation } from '../fake-claude-rig.ts';
import { rig, withRig } from '../rig-ground.ts';
import { User } from './user.ts';

const world = createRealWorld();

export class Night extends User {
  readonly #rig: FakeClaudeHarness;
  readonly #ids = new Map<string, string>();
  readonly #started: StartedCommand[] = [];

  constructor(rig: FakeClaudeHarness) {
    super(rig.env);
    this.#rig = rig;
  }

  /** A group with these sessions, each of its own options; the group's id. Names are unique for the whole user. */
  async group(slug: string, sessions: Readonly<Record<string, readonly string[]>>, ...options: string[]) {
    const group = await this.ok('group', 'create', slug, ...options);
    for (const [name, more] of Object.entries(sessions)) {
      this.note(name, await this.add(group, name, ...more));
    }
    return group;
  }

  /** From now on the session goes by this name. */
  note(name: string, sessionId: string): void {
    this.#ids.set(name, sessionId);
  }

  /** Starts a command that may still run when the test is over. */
  override start(...args: string[]): StartedCommand {
    const started = super.start(...args);
    this.#started.push(started);
    return started;
  }

  id(name: string): string {
    return this.#ids.get(name) ?? '';
  }

  next(name: string): Promise<Invocation> {
    return this.#rig.nextFor(sessionUuid(this.id(name)));
  }

  /** The session's next fake, when it has its prompt and the runner knows that it works. */
  async begun(group: string, name: string): Promise<Invocation> {
    const fake = await this.next(name);
    await fake.prompt();
    const before = this.events(group).length;
    await fake.init();
    await this.event(group, 'session_identified', (event) => event.seq > before && this.#isOf(event, name));
    return fake;
  }

  /** The session's claude requests a permission for a command. */
  async asks(group: string, name: string, command: string): Promise<Invocation> {
    const fake = await this.begun(group, name);
    const request = { subtype: 'can_use_tool', tool_name: 'Bash', input: { command }, tool_use_id: `tool-${name}` };
    const call = { type: 'tool_use', id: request.tool_use_id, name: 'Bash', input: { command } };
    await fake.print({ type: 'assistant', message: { id: `m-${name}`, content: [call] } });
    await fake.print({ type: 'control_request', request_id: `ask-${name}`, request });
    await this.event(group, 'item_opened', (event) => 'text' in event && event.text === `Bash: ${command}`);
    return fake;
  }

  #isOf(event: GroupEvent, name: string): boolean {
    return 'sessionId' in event && event.sessionId === this.id(name);
  }

  events(group: string): GroupEvent[] {
    const log = readLog(world, join(this.data, 'session-groups', group, 'events.jsonl'));
    if (!log.ok) throw new Error(log.failure.message);
    return log.value;
  }

  /** Waits until such an event is in the log. */
  async event(group: string, type: GroupEvent['type'], matches: (event: GroupEvent) => boolean = () => true) {
    await until(() => this.events(group).some((event) => event.type === type && matches(event)));
  }

  /** Waits until something was asked of the group's runner, which does not answer. */
  async asked(group: string): Promise<void> {
    const requests = join(this.data, 'session-groups', group, 'requests');
    await until(() => readdirSync(requests).some((name) => name.endsWith('.json')));
  }

  /** Starts a run and kills its runner with SIGKILL once these sessions work; their workers go on. */
  async abandoned(group: string, ...names: string[]): Promise<Invocation[]> {
    const run = this.start('group', 'run', group, '--output', 'quiet');
    const fakes = await Promise.all(names.map((name) => this.begun(group, name)));
    run.kill('SIGKILL');
    await run.finished;
    return fakes;
  }

  /** Kills what is left; to be called when the test is over. */
  override remove(): void {
    for (const started of this.#started) started.kill('SIGKILL');
    super.remove();
  }
}

export let nightUser: Night;

/** Once in each file of tests: a rig of fakes, and a new user for each test. */
export function withNight(): void {
  withRig();
  beforeEach(() => {
    nightUser = new Night(rig);
  });
  afterEach(() => nightUser.remove());
}

/** True while that fake's process lives. */
export function lives(fake: Invocation): boolean {
  return world.processes.identify(fake.hello.pid) !== null;
}

/** claude says what its process has cost so far, as it does when asked by `get_usage`. */
export async function sayCost(fake: Invocation, costUsd: number): Promise<void> {
  const model = { inputTokens: 100, outputTokens: 20, cacheReadInputTokens: 3, cacheCreationInputTokens: 4 };
  const session = { total_cost_usd: costUsd, model_usage: { 'claude-opus-4-8': { ...model, costUSD: costUsd } } };
  const response = { subtype: 'success', request_id: 'usage:1', response: { session } };
  await fake.print({ type: 'control_response', response });
}
