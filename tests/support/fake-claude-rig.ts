/**
 * The test's side of fake-claude.ts: returns one Invocation per started fake, by session, and lets the test step it.
 * Nothing waits for time; everything waits for a message, and a missing message is named after a while.
 */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onLines } from './lines.ts';
import { Mailbox } from './mailbox.ts';

export interface Hello {
  readonly pid: number;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

const seenLinesMax = 3;
const seenCharactersMax = 300;

export class Invocation {
  readonly #inputs = new Mailbox<string>();
  /** The beginnings of the last lines written to its stdin. */
  readonly #seen: string[] = [];
  #hasEnded = false;
  readonly #answers = new Mailbox<Record<string, unknown>>();
  readonly #socket: Socket;
  readonly hello: Hello;
  readonly ended: Promise<void>;

  constructor(socket: Socket, hello: Hello) {
    this.#socket = socket;
    this.hello = hello;
    this.ended = new Promise((resolve) => socket.on('close', () => resolve()));
    void this.ended.then(() => {
      this.#hasEnded = true;
    });
  }

  /** This fake and its last instruction, for messages. */
  describe(): string {
    const { pid } = this.hello;
    const kind = this.resumed ? 'resumed' : 'new';
    const seen = this.#seen.length === 0 ? ' nothing' : this.#seen.map((line) => `\n    ${line}`).join('');
    return `session ${this.claudeSessionId} (${kind}, pid ${pid}, ${this.#hasEnded ? 'ended' : 'open'}), told:${seen}`;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  take(message: Record<string, unknown>): void {
    if (typeof message.input !== 'string') {
      this.#answers.put(message);
      return;
    }
    this.#seen.push(message.input.slice(0, seenCharactersMax));
    if (this.#seen.length > seenLinesMax) this.#seen.shift();
    this.#inputs.put(message.input);
  }

  /** The claude session id it was started with. */
  get claudeSessionId(): string {
    const { args } = this.hello;
    const index = args.findIndex((arg) => arg === '--session-id' || arg === '--resume');
    return args[index + 1] ?? '';
  }

  get resumed(): boolean {
    return this.hello.args.includes('--resume');
  }

  /** The next line written to its stdin, parsed; `wanted` names the expected one in messages. */
  async input(wanted = 'a line'): Promise<Record<string, unknown>> {
    const line = await this.#inputs.next(() => `${wanted} to ${this.describe()}`);
    return JSON.parse(line) as Record<string, unknown>;
  }

  /** Waits for the first user message, skipping control requests; returns the prompt's text. */
  async prompt(): Promise<string> {
    for (;;) {
      const line = await this.input('a prompt');
      if (line.type === 'user') return (line.message as { content: string }).content;
    }
  }

  /** Waits for the next control request of the given subtype; returns its request id. */
  async control(subtype: string): Promise<string> {
    for (;;) {
      const line = await this.input(`a control request ${subtype}`);
      const request = line.request as { subtype?: string } | undefined;
      if (line.type === 'control_request' && request?.subtype === subtype) return line.request_id as string;
    }
  }

  /** Waits for the answer to its request for a permission. */
  async answer(): Promise<unknown> {
    for (;;) {
      const { type, response } = await this.input('an answer');
      if (type === 'control_response') return (response as { response: unknown }).response;
    }
  }

  /** Prints raw text to its stdout; resolves when it was written. */
  async printRaw(text: string): Promise<void> {
    await this.#order({ do: 'print', text });
  }

  /** Prints one stream-json line; after a result also `idle`, as the real one does when no turn follows. */
  async print(message: object): Promise<void> {
    const isResult = 'type' in message && message.type === 'result';
    await this.printAll(isResult ? [message, idleLine] : [message]);
  }

  /** Prints exactly these lines in one write. */
  async printAll(messages: readonly object[]): Promise<void> {
    const lines = messages.map((message) => JSON.stringify({ session_id: this.claudeSessionId, ...message }));
    await this.printRaw(`${lines.join('\n')}\n`);
  }

  /** What claude prints first: a successful SessionStart hook and `init`. */
  async init(model = 'claude-opus-4-8'): Promise<void> {
    const hook = { type: 'system', hook_id: 'h', hook_name: 'SessionStart:startup', hook_event: 'SessionStart' };
    await this.print({ ...hook, subtype: 'hook_started' });
    await this.print({ ...hook, subtype: 'hook_response', stdout: '', exit_code: 0, outcome: 'success' });
    const version = '2.1.332';
    await this.print({ type: 'system', subtype: 'init', cwd: this.hello.cwd, model, claude_code_version: version });
  }

  /** A successful result with a total cost of `costUsd`. */
  async succeed(costUsd = 0.01, result = 'done'): Promise<void> {
    await this.print(resultLine(costUsd, { result }));
  }

  async stderr(text: string): Promise<void> {
    await this.#order({ do: 'stderr', text });
  }

  exit(code: number): void {
    this.#send({ do: 'exit', code });
  }

  die(signal: NodeJS.Signals): void {
    this.#send({ do: 'die', signal });
  }

  /** Makes it ignore the signal. */
  async ignore(signal: NodeJS.Signals): Promise<void> {
    await this.#order({ do: 'ignore', signal });
  }

  /** Closes its stdout and keeps running. */
  async closeOutput(): Promise<void> {
    await this.#order({ do: 'close-output' });
  }

  /** Starts a detached child in its own session; returns its pid. */
  async spawn(command: string[], env: 'kept' | 'wiped' = 'kept'): Promise<number> {
    const { pid } = await this.#order({ do: 'spawn', command, env });
    if (typeof pid !== 'number') throw new Error('the fake ended before it could start a child');
    return pid;
  }

  /** Resolves when the instruction was executed. A fake that it ends may not confirm it. */
  async #order(command: object): Promise<Record<string, unknown>> {
    this.#send(command);
    const describe = () => `its answer to ${JSON.stringify(command).slice(0, seenCharactersMax)} by ${this.describe()}`;
    const gone = this.ended.then(() => ({ done: 'ended' }));
    for (;;) {
      const answer: Record<string, unknown> = await Promise.race([this.#answers.next(describe), gone]);
      if (answer.done !== undefined) return answer;
    }
  }

  #send(command: object): void {
    this.#socket.write(`${JSON.stringify(command)}\n`);
  }
}

export const idleLine = { type: 'system', subtype: 'session_state_changed', state: 'idle' };

/** A `result` line of claude; `fields` replace the defaults. */
export function resultLine(costUsd: number, fields: Record<string, unknown> = {}): Record<string, unknown> {
  const usage = { inputTokens: 1000, outputTokens: 200, cacheReadInputTokens: 30, cacheCreationInputTokens: 4 };
  return {
    type: 'result',
    subtype: 'success',
    is_error: false,
    duration_ms: 10,
    num_turns: 1,
    total_cost_usd: costUsd,
    modelUsage: { 'claude-opus-4-8': { ...usage, costUSD: costUsd } },
    permission_denials: [],
    ...fields,
  };
}

export interface FakeClaudeHarness {
  /** Path of a program to be used as claude. */
  readonly program: string;
  /** Environment that the runner needs so that fakes find the rig. */
  readonly env: Readonly<Record<string, string>>;
  /** Fakes started so far. */
  readonly invocations: readonly Invocation[];
  /** The next fake that connects for this session. */
  nextFor(claudeSessionId: string): Promise<Invocation>;
  /** Lets `answer` step every fake that connects for this session, until the rig stops. */
  answerEach(claudeSessionId: string, answer: (fake: Invocation) => Promise<void>): void;
  stop(): void;
}

/** Starts the rig. Fakes that are still connected when it stops exit. */
export async function startRig(): Promise<FakeClaudeHarness> {
  const folder = mkdtempSync(join(tmpdir(), 'cca-rig-'));
  const socketPath = join(folder, 's');
  const program = join(folder, 'claude');
  const fake = join(import.meta.dir, 'fake-claude.ts');
  const flags = '--no-env-file --config=/dev/null --no-install';
  // Called at each run with a script as claude; a shell answers in a tenth of the time that Bun needs to start.
  const asked = `case $1 in
--version) exec echo '2.1.332 (Fake Claude)' ;;
auth)
  [ -n "$FAKE_CLAUDE_LOGGED_OUT" ] || exec echo '{"loggedIn":true,"authMethod":"api_key"}'
  echo '{"loggedIn":false,"authMethod":"none"}'
  exit 1 ;;
esac`;
  writeFileSync(program, `#!/bin/sh\n${asked}\nexec '${process.execPath}' ${flags} '${fake}' "$@"\n`);
  chmodSync(program, 0o755);
  const invocations: Invocation[] = [];
  const mailboxes = new Map<string, Mailbox<Invocation>>();
  const mailbox = (claudeSessionId: string) => {
    const known = mailboxes.get(claudeSessionId) ?? new Mailbox<Invocation>();
    mailboxes.set(claudeSessionId, known);
    return known;
  };
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => {});
    let invocation: Invocation | null = null;
    onLines(socket, (line) => {
      const message = JSON.parse(line) as Record<string, unknown>;
      if (invocation) return invocation.take(message);
      invocation = new Invocation(socket, message.hello as Hello);
      invocations.push(invocation);
      mailbox(invocation.claudeSessionId).put(invocation);
    });
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  const describeAll = () => {
    const open = invocations.filter(({ hasEnded }) => !hasEnded).map((fake) => `\n  ${fake.describe()}`);
    return `of ${invocations.length} so far these are open:${open.join('') || ' none'}`;
  };
  return {
    program,
    env: { FAKE_CLAUDE_SOCKET: socketPath, CLAUDE_CODE_AGENT_CLAUDE: program, ANTHROPIC_API_KEY: 'test-key' },
    invocations,
    nextFor: (id) => mailbox(id).next(() => `a fake for session ${id}; ${describeAll()}`),
    answerEach: (id, answer) =>
      mailbox(id).forEach((fake) => {
        // A fake that ended takes no more answers. Other errors are thrown; the test decides whether they matter.
        answer(fake).catch((error) => fake.hasEnded || console.error(String(error)));
      }),
    stop: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
