/**
 * Plays claude in a rehearsal where none is installed: asks the scripted API as claude does, does what that asks for,
 * prints what claude prints, keeps the conversation where claude keeps it, runs the hooks that it was given. Of tools
 * it has those of stand-in-tools.ts, and it knows no permission rules: what the script says is done.
 */
import { join } from 'node:path';
import { isObject, type JsonObject, list, object, objects, text, usd } from '../claude/lenient.ts';
import { estimateCost, shippedPrices } from '../claude/pricing.ts';
import { defined } from '../core/defined.ts';
import { addTokens, noTokens, type Tokens } from '../core/group.ts';
import type { World } from '../system/world.ts';
import { type Block, blocksOf, type Message } from './conversation.ts';
import { structuredTool } from './reply.ts';
import { callTool, type ToolPlace } from './stand-in-tools.ts';

/** The version it gives itself, for those who read transcripts. */
export const standInVersion = 'stand-in';

export interface StandInOptions {
  readonly world: World;
  /** As claude gets them. */
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Resolves when the line was handed to the system. */
  print(line: string): Promise<void>;
}

/** A request that was not answered, in claude's words. */
interface ApiTrouble {
  readonly status: number | null;
  readonly message: string;
}

type Ending = { readonly kind: 'done'; readonly text: string } | ({ readonly kind: 'trouble' } & ApiTrouble);

const interruptedText = '[Request interrupted by user for tool use]';
const retryFirstMs = 500;
const retryLongestMs = 32_000;
/** As claude's own, where the environment says nothing. */
const retriesUsual = 10;
const hookSecondsUsual = 60;

export class StandIn {
  readonly #options: StandInOptions;
  readonly #sessionId: string;
  readonly #model: string;
  readonly #capUsd: number;
  readonly #schema: JsonObject | undefined;
  readonly #place: ToolPlace;
  readonly #messages: Message[] = [];
  /** What was said and no turn has begun with. */
  readonly #waiting: JsonObject[] = [];
  readonly #end = Promise.withResolvers<number>();
  #turn: AbortController | null = null;
  #isInterrupted = false;
  #turns = 0;
  #usd = 0;
  #tokens: Tokens = noTokens;
  #structured: unknown;
  #isUp = false;
  #isInputOver = false;
  #forgetIdle = () => {};

  constructor(options: StandInOptions) {
    this.#options = options;
    const { args, env, cwd } = options;
    const wordAfter = (name: string) =>
      args.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1) ??
      (args.includes(name) ? args[args.indexOf(name) + 1] : undefined);
    this.#sessionId = wordAfter('--resume') ?? wordAfter('--session-id') ?? options.world.random.uuid();
    this.#model = wholeName(wordAfter('--model') ?? 'opus');
    this.#capUsd = Number(wordAfter('--max-budget-usd') ?? Number.POSITIVE_INFINITY);
    const schema = wordAfter('--json-schema');
    this.#schema = schema === undefined ? undefined : object(parse(schema));
    const set = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
    const tmp = env.CLAUDE_CODE_TMPDIR ?? join(this.#config, 'tmp');
    this.#place = { cwd, env: Object.fromEntries(set), tmp };
  }

  get #config(): string {
    return this.#options.env.CLAUDE_CONFIG_DIR ?? join(this.#options.env.HOME ?? '/', '.claude');
  }

  /** Where claude would keep the conversation; the folder is named after the project. */
  get #conversation(): string {
    return join(this.#config, 'projects', this.#options.cwd.replace(/[^A-Za-z0-9]/g, '-'), `${this.#sessionId}.jsonl`);
  }

  /** Resolves with the exit code. Lines of the input go to `take`. */
  async run(): Promise<number> {
    const resumes = this.#options.args.includes('--resume');
    if (resumes && !this.#remember()) {
      await this.#print(this.#result('error_during_execution', { errors: ['No conversation found with session ID'] }));
      return 1;
    }
    await this.#runHooks('SessionStart', resumes ? 'resume' : 'startup');
    this.#isUp = true;
    this.#next();
    return this.#end.promise;
  }

  /** SIGTERM: ends what is under way, then itself. */
  async stop(code: number): Promise<void> {
    this.#isInterrupted = true;
    this.#turn?.abort();
    await this.#runHooks('SessionEnd', 'other');
    this.#end.resolve(code);
  }

  /** The input is at its end: what was said is still done. */
  endInput(): void {
    this.#isInputOver = true;
    if (this.#isUp) this.#next();
  }

  /** A line of the input. */
  async take(line: string): Promise<void> {
    const message = object(parse(line));
    if (message.type === 'user') {
      this.#waiting.push(message);
      if (this.#isUp) this.#next();
      return;
    }
    const id = text(message.request_id) ?? '';
    const request = object(message.request);
    switch (request.subtype) {
      case 'get_usage':
        return this.#answer(id, {
          session: { total_cost_usd: this.#usd, model_usage: this.#modelUsage() },
        });
      case 'interrupt':
        this.#isInterrupted = this.#turn !== null;
        await this.#answer(id);
        this.#turn?.abort();
        return;
      case 'cancel_async_message': {
        const index = this.#waiting.findIndex(({ uuid }) => uuid === request.message_uuid);
        if (index >= 0) this.#waiting.splice(index, 1);
        return this.#answer(id, { cancelled: index >= 0 });
      }
    }
  }

  /** Begins a turn when there is something to begin one with, else waits for it as long as claude does. */
  #next(): void {
    if (this.#turn !== null) return;
    this.#forgetIdle();
    const said = this.#waiting.shift();
    if (said === undefined && this.#isInputOver) {
      void this.stop(0);
      return;
    }
    if (said === undefined) {
      const idleMs = Number(this.#options.env.CLAUDE_CODE_EXIT_AFTER_STOP_DELAY ?? 60_000);
      this.#forgetIdle = this.#options.world.clock.after(idleMs, () => void this.stop(0));
      return;
    }
    this.#turn = new AbortController();
    this.#isInterrupted = false;
    this.#take(said)
      .catch((error: unknown) => {
        const message = error instanceof Error ? error.message : String(error);
        return this.#print(this.#result('error_during_execution', { errors: [message] }));
      })
      .finally(async () => {
        this.#turn = null;
        if (this.#waiting.length === 0) {
          await this.#print({ type: 'system', subtype: 'session_state_changed', state: 'idle' });
        }
        this.#next();
      });
  }

  /** One turn, from what was said to its result. */
  async #take(said: JsonObject): Promise<void> {
    const { cwd } = this.#options;
    const tools = ['Bash', 'Read', 'Edit', 'Write', 'Agent'];
    const init = { subtype: 'init', cwd, model: this.#model, tools, claude_code_version: standInVersion };
    await this.#print({ type: 'system', ...init });
    this.#turns = 0;
    this.#structured = undefined;
    this.#keep({ role: 'user', content: contentOf(said) });
    const end = await this.#converse(this.#messages);
    if (this.#isInterrupted) {
      await this.#print(this.#result('error_during_execution', { terminal_reason: 'aborted_tools' }));
    } else if (this.#usd >= this.#capUsd) {
      await this.#print(this.#result('error_max_budget_usd'));
      await this.stop(1);
    } else if (end.kind === 'trouble') {
      const words = `API Error: ${end.status ?? ''} ${end.message}`;
      const report = { id: 'stand-in', model: '<synthetic>', content: [{ type: 'text', text: words }] };
      await this.#print({ type: 'assistant', error: 'unknown', message: report });
      const status = end.status === null ? {} : { api_error_status: end.status };
      await this.#print({ ...this.#result('success', { result: words, ...status }), is_error: true });
    } else {
      const structured = defined({ structured_output: this.#structured });
      await this.#print({ ...this.#result('success', { result: end.text, ...structured }), is_error: false });
    }
  }

  /**
   * Asks until an answer calls no tool. `agent` is set for a sub-agent: its conversation is its own, and its messages
   * name the call that it works for.
   */
  async #converse(messages: Message[], agent?: { readonly id: string; readonly call: string }): Promise<Ending> {
    const within = agent === undefined ? {} : { parent_tool_use_id: agent.call };
    for (;;) {
      const reply = await this.#ask(messages, agent?.id);
      if (this.#isInterrupted) return { kind: 'done', text: '' };
      if (!('content' in reply)) return { kind: 'trouble', ...(reply as ApiTrouble) };
      const content = objects(reply.content) as unknown as Block[];
      this.#count(object(reply.usage));
      if (agent === undefined) this.#turns += 1;
      await this.#print({ type: 'assistant', message: reply, ...within });
      this.#append(messages, { role: 'assistant', content }, reply, agent !== undefined);
      const calls = content.filter(({ type }) => type === 'tool_use');
      const said = content.find(({ type }) => type === 'text')?.text ?? '';
      if (this.#usd >= this.#capUsd || calls.length === 0) return { kind: 'done', text: said };
      const results: Block[] = [];
      for (const call of calls) {
        const { text: content, isError } = await this.#callTool(call);
        const result = { type: 'tool_result', tool_use_id: call.id ?? '', is_error: isError, content };
        results.push(this.#isInterrupted ? { ...result, is_error: true, content: interruptedText } : result);
      }
      // What was said meanwhile is handed over with the results.
      const heard = agent !== undefined || this.#isInterrupted ? [] : this.#waiting.splice(0).flatMap(blocksOfSaid);
      const answer: Message = { role: 'user', content: [...results, ...heard] };
      this.#append(messages, answer, undefined, agent !== undefined);
      await this.#print({ type: 'user', message: { role: 'user', content: results }, ...within });
      if (this.#isInterrupted || this.#structured !== undefined) return { kind: 'done', text: said };
    }
  }

  async #callTool({ name = '', id = '', input }: Block): Promise<{ text: string; isError: boolean }> {
    const given = object(input);
    if (name === structuredTool) {
      this.#structured = given;
      return { text: 'The answer was handed in.', isError: false };
    }
    if (name === 'Agent' || name === 'Task') {
      const agent = { id: this.#options.world.random.uuid(), call: id };
      const end = await this.#converse([{ role: 'user', content: text(given.prompt) ?? 'Go.' }], agent);
      return { text: end.kind === 'done' ? end.text : end.message, isError: end.kind === 'trouble' };
    }
    return callTool(this.#options.world, name, given, this.#place, this.#signal);
  }

  get #signal(): AbortSignal {
    return this.#turn?.signal ?? AbortSignal.abort();
  }

  /** The answer of the API, asked again as often as claude asks, or what it said last instead. */
  async #ask(messages: readonly Message[], agentId: string | undefined): Promise<JsonObject | ApiTrouble> {
    const { env, world } = this.#options;
    const retries = Number(env.CLAUDE_CODE_MAX_RETRIES ?? retriesUsual);
    for (let attempt = 1; ; attempt += 1) {
      const reply = await this.#askOnce(messages, agentId);
      if ('content' in reply || this.#isInterrupted) return reply;
      const trouble = reply as ApiTrouble;
      const passes = trouble.status === null || trouble.status === 429 || trouble.status >= 500;
      if (!passes || attempt > retries) return trouble;
      const told = { attempt, max_retries: retries, error: trouble.message, error_status: trouble.status };
      await this.#print({ type: 'system', subtype: 'api_retry', ...told });
      const pauseMs = Math.min(retryLongestMs, retryFirstMs * 2 ** (attempt - 1));
      await new Promise<void>((resolve) => {
        const cancel = world.clock.after(pauseMs, resolve);
        this.#signal.addEventListener('abort', () => {
          cancel();
          resolve();
        });
      });
    }
  }

  async #askOnce(messages: readonly Message[], agentId: string | undefined): Promise<JsonObject | ApiTrouble> {
    const { env, cwd } = this.#options;
    const tool = (name: string, schema: object) => ({ name, input_schema: schema });
    const own = ['Bash', 'Read', 'Edit', 'Write', 'Agent'].map((name) => tool(name, { type: 'object' }));
    const tools = this.#schema === undefined ? own : [...own, tool(structuredTool, this.#schema)];
    const system = `Primary working directory: ${cwd}`;
    try {
      const response = await fetch(`${env.ANTHROPIC_BASE_URL}/v1/messages`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-api-key': env.ANTHROPIC_API_KEY ?? '',
          'x-claude-code-session-id': this.#sessionId,
          ...(agentId === undefined ? {} : { 'x-claude-code-agent-id': agentId }),
        },
        body: JSON.stringify({ model: this.#model, max_tokens: 32_000, system, tools, messages }),
        signal: this.#signal,
      });
      const answer = object(parse(await response.text()));
      if (response.ok && Array.isArray(answer.content)) return answer;
      return { status: response.status, message: text(object(answer.error).message) ?? 'no answer' };
    } catch {
      return { status: null, message: 'Connection error.' };
    }
  }

  #count(usage: JsonObject): void {
    const figure = (name: string) => usd(usage[name]);
    const tokens: Tokens = {
      input: figure('input_tokens'),
      output: figure('output_tokens'),
      cacheRead: figure('cache_read_input_tokens'),
      cacheCreation: figure('cache_creation_input_tokens'),
    };
    this.#tokens = addTokens(this.#tokens, tokens);
    this.#usd += estimateCost(this.#model, tokens);
  }

  #modelUsage(): object {
    const { input, output, cacheRead, cacheCreation } = this.#tokens;
    const tokens = { inputTokens: input, outputTokens: output, cacheReadInputTokens: cacheRead };
    return { [this.#model]: { ...tokens, cacheCreationInputTokens: cacheCreation, costUSD: this.#usd } };
  }

  #result(subtype: string, more: object = {}): object {
    const totals = { total_cost_usd: this.#usd, modelUsage: this.#modelUsage(), permission_denials: [] };
    return { type: 'result', subtype, is_error: true, num_turns: Math.max(1, this.#turns), ...totals, ...more };
  }

  #answer(requestId: string, response?: object): Promise<void> {
    const answered = { subtype: 'success', request_id: requestId, ...defined({ response }) };
    return this.#print({ type: 'control_response', response: answered });
  }

  #print(line: object): Promise<void> {
    return this.#options.print(JSON.stringify({ ...line, session_id: this.#sessionId }));
  }

  #append(messages: Message[], message: Message, reply: object | undefined, isAgents: boolean): void {
    if (isAgents) messages.push(message);
    else this.#keep(message, reply);
  }

  /** On the disk before the model is asked anything more. */
  #keep(message: Message, reply: object = message): void {
    const { world } = this.#options;
    this.#messages.push(message);
    const timestamp = new Date(world.clock.now()).toISOString();
    world.files.makeFolder(join(this.#conversation, '..'));
    const file = world.files.openAppend(this.#conversation);
    file.append(`${JSON.stringify({ parentUuid: null, type: message.role, message: reply, timestamp })}\n`);
    file.close();
  }

  /** False when there is no conversation. A call that never got its answer gets the one that an interrupt gives it. */
  #remember(): boolean {
    for (const line of (this.#options.world.files.readText(this.#conversation) ?? '').split('\n')) {
      const { role, content } = object(object(parse(line)).message);
      const isWhole =
        (role === 'user' || role === 'assistant') && (typeof content === 'string' || list(content).length);
      if (isWhole) this.#messages.push({ role, content: content as Message['content'] });
    }
    const last = this.#messages.at(-1);
    const open = last?.role === 'assistant' ? blocksOf(last).filter(({ type }) => type === 'tool_use') : [];
    const answer = { type: 'tool_result', is_error: true, content: interruptedText };
    if (open.length > 0)
      this.#keep({ role: 'user', content: open.map(({ id = '' }) => ({ ...answer, tool_use_id: id })) });
    return last !== undefined;
  }

  /** Those of settings.json in its config dir. */
  async #runHooks(event: 'SessionStart' | 'SessionEnd', source: string): Promise<void> {
    const { world, cwd } = this.#options;
    const settings = object(parse(world.files.readText(join(this.#config, 'settings.json')) ?? ''));
    const hooks = objects(object(settings.hooks)[event]).flatMap((entry) => objects(entry.hooks));
    const told = { session_id: this.#sessionId, transcript_path: this.#conversation, cwd, hook_event_name: event };
    const input = JSON.stringify(event === 'SessionStart' ? { ...told, source } : { ...told, reason: source });
    const env = { ...this.#place.env, CLAUDE_PROJECT_DIR: cwd };
    const name = { hook_event: event, hook_name: `${event}:${source}` };
    await Promise.all(
      hooks.map(async ({ command, args, timeout }) => {
        const hook_id = world.random.uuid();
        await this.#print({ type: 'system', subtype: 'hook_started', hook_id, ...name });
        const words = list(args).map(String);
        const called = args === undefined ? ['/bin/sh', '-c', String(command)] : [String(command), ...words];
        const ran = await world.processes.run({
          program: '/bin/sh',
          args: ['-c', 'input=$1; shift; printf %s "$input" | "$@"', 'sh', input, ...called],
          cwd,
          env,
          timeoutMs: (typeof timeout === 'number' ? timeout : hookSecondsUsual) * 1000,
        });
        const { exitCode, stdout } = ran.ok ? ran.value : { exitCode: null, stdout: '' };
        const outcome = exitCode === 0 ? 'success' : 'error';
        const response = { hook_id, ...name, stdout, exit_code: exitCode, outcome };
        await this.#print({ type: 'system', subtype: 'hook_response', ...response });
      }),
    );
  }
}

/** claude is given short names, and says the whole one. */
function wholeName(model: string): string {
  const known = Object.keys(shippedPrices).find((id) => id.startsWith(`${model}-`));
  return known === undefined ? model : `claude-${known}`;
}

function contentOf(said: JsonObject): Message['content'] {
  const { content } = object(said.message);
  return typeof content === 'string' ? content : (objects(content) as unknown as Block[]);
}

function blocksOfSaid(said: JsonObject): readonly Block[] {
  return blocksOf({ role: 'user', content: contentOf(said) });
}

function parse(line: string): unknown {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}
