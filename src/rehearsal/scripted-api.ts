/**
 * rehearsal/: the scripted Messages API and its scripts. This file: an HTTP server on loopback that plays the model of
 * a rehearsal. It keeps no state of a conversation (see findPlace), only how often a step has failed, so it may be
 * restarted at any time.
 */
import { object, text } from '../claude/lenient.ts';
import { estimateCost, type PricedTokens } from '../claude/pricing.ts';
import { addTokens, noTokens, type Tokens } from '../core/group.ts';
import { isObject, type JsonObject } from '../store/json.ts';
import { createClock } from '../system/clock.ts';
import {
  blocksOf,
  fillScript,
  findPlace,
  isInvisible,
  isSummaryRequest,
  type MessagesBody,
  progressMark,
  projectOf,
  type RehearsalScript,
  requestProblems,
  type ScriptPosition,
  type Step,
  scriptFaults,
  stepsFor,
  toolCalls,
  toolUseId,
} from './script.ts';

export interface CapturedRequest {
  readonly number: number;
  readonly session: string;
  readonly name: string | undefined;
  readonly agentId: string | undefined;
  /** `step` follows the script; `summary` is a compaction; `side` is a request outside the conversation. */
  readonly kind: 'step' | 'summary' | 'side';
  /** Index of the answering step, from 0; the number of steps at the end of the script. */
  readonly step: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Without `capture` an empty object, so that a long rehearsal does not fill the memory. */
  readonly body: MessagesBody;
}

/** Completely served replies. A reply whose client had gone costs nothing here, as in claude's totals. */
export interface Served {
  readonly costUsd: number;
  readonly tokens: Tokens;
  readonly replies: number;
}

export interface ScriptedApiOptions {
  readonly script: RehearsalScript;
  /** The name of a session in the script; undefined = the script of `*` answers. `path` is the request's. */
  nameOf(claudeSessionId: string, path: string): string | undefined;
  readonly port?: number;
  /** Called for every request. */
  onCall?(method: string, path: string): void;
  onRequest?(request: CapturedRequest): void;
  /** Called after a reply with a cost. */
  onServed?(request: CapturedRequest, served: Served): void;
  /** Delays the reply until the promise settles: tests step the model with it. */
  gate?(request: CapturedRequest): Promise<void> | undefined;
  /** Keep the requests with their bodies (default true). */
  readonly capture?: boolean;
}

export interface ScriptedApi {
  readonly url: string;
  readonly port: number;
  /** Requests to /v1/messages in order; empty without `capture`. */
  readonly requests: readonly CapturedRequest[];
  readonly served: { readonly total: Served; readonly sessions: ReadonlyMap<string, Served> };
  /** What the real API would have refused, each with the number of the request. */
  readonly problems: readonly string[];
  stop(): Promise<void>;
}

/** 1000 in and 200 out: exactly one cent on opus. */
const defaultTokens: Tokens = { ...noTokens, input: 1000, output: 200 };
const nothing: Served = { costUsd: 0, tokens: noTokens, replies: 0 };
const endText = 'The script of this rehearsal has ended; there is nothing left to do.';

class Server implements ScriptedApi {
  readonly requests: CapturedRequest[] = [];
  readonly problems: string[] = [];
  readonly served = { total: nothing, sessions: new Map<string, Served>() };
  private count = 0;
  /** How often a step has failed or hung, by session, agent and step: the only state that a restart loses. */
  private readonly faults = new Map<string, number>();
  /** Resets of usage limits, ms since 1970, by window and length. */
  private readonly limits = new Map<string, number>();
  private readonly clock = createClock();
  private readonly stopping = new AbortController();
  private readonly options: ScriptedApiOptions;
  private readonly server: ReturnType<typeof Bun.serve>;
  /** Kept here because a stopped server forgets its port. */
  readonly port: number;
  readonly url: string;

  constructor(options: ScriptedApiOptions) {
    this.options = options;
    this.server = Bun.serve({
      hostname: '127.0.0.1',
      port: options.port ?? 0,
      // The server must not disconnect a slow or hanging reply.
      idleTimeout: 0,
      maxRequestBodySize: 64 * 1024 * 1024,
      fetch: (request) => this.answer(request),
    });
    this.port = this.server.port ?? 0;
    this.url = `http://127.0.0.1:${this.port}`;
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.server.stop(true);
  }

  private async answer(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    this.options.onCall?.(request.method, pathname);
    if (request.method === 'HEAD') return new Response(null);
    const isMessages = pathname.endsWith('/v1/messages') || pathname.endsWith('/count_tokens');
    if (request.method !== 'POST' || !isMessages) return refusal(404, `no ${pathname} here`);
    if (pathname.endsWith('/count_tokens')) return Response.json({ input_tokens: defaultTokens.input });
    const body = await readBody(request);
    if (body === null) return refusal(400, 'the body is not a JSON object');
    return this.answerMessages(request, body, pathname);
  }

  private async answerMessages(request: Request, body: MessagesBody, path: string): Promise<Response> {
    const headers = Object.fromEntries(request.headers);
    const { captured, steps, place } = this.capture(body, headers, path);
    for (const problem of requestProblems(body, headers)) {
      this.problems.push(`request ${captured.number}: ${problem}`);
    }
    this.options.onRequest?.(captured);
    const gate = this.options.gate?.(captured);
    if (gate !== undefined) await Promise.race([gate, this.wait(request.signal)]);

    const step: Step = (captured.kind === 'step' ? steps[place.step] : undefined) ?? {};
    if (step.delayMs !== undefined) await this.wait(request.signal, step.delayMs);
    const wait = (ms?: number) => this.wait(request.signal, ms);
    const content = replyContent(captured.kind, step, place, body);
    const delivery = { eventDelayMs: step.eventDelayMs ?? 0, wait };
    const key = faultKey(captured.session, captured.agentId, place.step);
    const isFaulty = scriptFaults(step).length > 0;
    const isPassed = this.hasPassed(key, step, body);
    const isCounted = isFaulty || (step.thinking !== undefined && isInvisible(step));
    if (!isPassed && isCounted) this.faults.set(key, (this.faults.get(key) ?? 0) + 1);
    if (!isPassed && isFaulty) return this.answerFault(step, content, body, delivery);
    if (!request.signal.aborted && !this.stopping.signal.aborted) this.book(captured, content);
    return messageResponse(content, body.stream === true, delivery);
  }

  private async answerFault(
    step: Step,
    content: ReplyContent,
    body: MessagesBody,
    delivery: Delivery,
  ): Promise<Response> {
    const { afterEvents = 0 } = step;
    const error = step.limit === undefined ? errorOf(step) : limitError(step.limit, this.limitReset(step.limit));
    const ends = step.hang ? 'hang' : step.cut ? 'cut' : error;
    if (afterEvents > 0 || ends === 'cut')
      return messageResponse(content, body.stream === true, { ...delivery, fault: { afterEvents, ends } });
    // A hanging request ends only with its client or with the server, so its response is never read.
    if (ends === 'hang') await delivery.wait();
    return errorResponse(error);
  }

  /** A limit begins with the first request that it refuses, for all sessions. */
  private limitReset({ window, lastsMs }: Limit): number {
    const key = `${window}/${lastsMs}`;
    const known = this.limits.get(key) ?? Math.ceil((this.clock.now() + lastsMs) / 1000) * 1000;
    this.limits.set(key, known);
    return known;
  }

  private capture(body: MessagesBody, headers: Readonly<Record<string, string>>, path: string) {
    const keep = this.options.capture !== false;
    const session = headers['x-claude-code-session-id'] ?? '';
    const agentId = headers['x-claude-code-agent-id'];
    const name = this.options.nameOf(session, path);
    const script = stepsFor(this.options.script, name, agentId !== undefined);
    const filled = fillScript(script, { session: name ?? session, project: projectOf(body) });
    const steps = agentId === undefined ? withStructuredAnswer(filled, body.tools) : filled;
    const messages = body.messages ?? [];
    const place = findPlace(messages, steps, (index) => {
      return this.hasPassed(faultKey(session, agentId, index), steps[index] as Step, body);
    });
    const captured: CapturedRequest = {
      number: ++this.count,
      session,
      name,
      agentId,
      // A request without tools cannot be the conversation's when the script wants to call some.
      kind: isSummaryRequest(messages) ? 'summary' : place.tools.length > 0 && !body.tools?.length ? 'side' : 'step',
      step: place.step,
      headers: keep ? headers : {},
      body: keep ? body : {},
    };
    if (keep) this.requests.push(captured);
    return { captured, steps, place };
  }

  private hasPassed(key: string, step: Step, { model = '' }: MessagesBody): boolean {
    const { times = scriptFaults(step).length > 0 ? Number.POSITIVE_INFINITY : 1, models, limit } = step;
    if ((this.faults.get(key) ?? 0) >= times || models?.some((part) => model.includes(part)) === false) return true;
    return limit !== undefined && this.clock.now() >= this.limitReset(limit);
  }

  private book(captured: CapturedRequest, { model, tokens }: ReplyContent): void {
    const { hourly: _, ...counted } = tokens;
    const one: Served = { costUsd: estimateCost(model, tokens), tokens: counted, replies: 1 };
    this.served.total = addServed(this.served.total, one);
    const before = this.served.sessions.get(captured.session) ?? nothing;
    this.served.sessions.set(captured.session, addServed(before, one));
    this.options.onServed?.(captured, one);
  }

  private wait(client: AbortSignal, ms?: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = ms === undefined ? undefined : setTimeout(end, ms);
      const signals = [client, this.stopping.signal];
      function end() {
        clearTimeout(timer);
        for (const signal of signals) signal.removeEventListener('abort', end);
        resolve();
      }
      for (const signal of signals) {
        signal.addEventListener('abort', end);
        if (signal.aborted) end();
      }
    });
  }
}

/** Starts the server; it listens when this returns. Throws the system's error when the port is taken. */
export function startScriptedApi(options: ScriptedApiOptions): ScriptedApi {
  return new Server(options);
}

type Limit = NonNullable<Step['limit']>;

function refusal(status: number, message: string): Response {
  return errorResponse({ status, type: errorTypeOf(status), message, headers: {} });
}

function errorOf({ status = 503, errorType, message, headers = {}, body }: Step): ApiError {
  const words = message ?? `The rehearsal script answers ${status} here.`;
  return { status, type: errorType ?? errorTypeOf(status), message: words, headers, body };
}

/** As the API refuses a subscription; `claude` reads the window and the reset from these headers. */
function limitError({ window }: Limit, resetMs: number): ApiError {
  const headers = {
    'anthropic-ratelimit-unified-status': 'rejected',
    'anthropic-ratelimit-unified-reset': String(resetMs / 1000),
    'anthropic-ratelimit-unified-representative-claim': window,
  };
  return { status: 429, type: errorTypeOf(429), message: 'The usage limit of the script is reached.', headers };
}

function faultKey(session: string, agentId: string | undefined, step: number): string {
  return `${session}/${agentId ?? ''}/${step}`;
}

function addServed(a: Served, b: Served): Served {
  return { costUsd: a.costUsd + b.costUsd, tokens: addTokens(a.tokens, b.tokens), replies: a.replies + b.replies };
}

async function readBody(request: Request): Promise<MessagesBody | null> {
  try {
    const body: unknown = await request.json();
    return isObject(body) ? body : null;
  } catch {
    return null;
  }
}

function replyContent(
  kind: CapturedRequest['kind'],
  step: Step,
  place: ScriptPosition,
  body: MessagesBody,
): ReplyContent {
  const unique = crypto.randomUUID().replaceAll('-', '').slice(0, 16);
  const calls = toolCalls(step);
  const tools = (kind === 'step' ? place.tools : []).map((index) => ({
    id: toolUseId(place.step, index, unique),
    name: calls[index]?.tool ?? '',
    input: calls[index]?.input ?? {},
  }));
  const summary = `<summary>\nA rehearsal is under way. ${progressMark(place.step)}\n</summary>`;
  const isEmpty = tools.length === 0 && step.thinking === undefined;
  const text = kind === 'summary' ? summary : (step.text ?? (isEmpty ? endText : undefined));
  const stopReason = step.stopReason ?? (tools.length > 0 ? 'tool_use' : 'end_turn');
  const counted = tokensOf(step);
  const tokens = wantsAnHour(body) ? { ...counted, hourly: counted.cacheCreation } : counted;
  const thinking = kind === 'step' ? step.thinking : undefined;
  const { model = 'unknown' } = body;
  return { id: `msg_${unique}`, model, text, thinking, tools, stopReason, tokens };
}

/** With a subscription claude requests a one-hour prompt cache, which costs more. */
function wantsAnHour({ system, messages = [] }: MessagesBody): boolean {
  const blocks: readonly unknown[] = [...(Array.isArray(system) ? system : []), ...messages.flatMap(blocksOf)];
  return blocks.some((block) => text(object(object(block).cache_control).ttl) === '1h');
}

function tokensOf({ usage }: Step): Tokens {
  return {
    input: usage?.input ?? defaultTokens.input,
    output: usage?.output ?? defaultTokens.output,
    cacheRead: usage?.cacheRead ?? 0,
    cacheCreation: usage?.cacheCreation ?? 0,
  };
}

// Replies in the shapes of the Messages API: a stream of server-sent events, one JSON message, or an error.

interface ReplyContent {
  readonly id: string;
  readonly model: string;
  readonly text: string | undefined;
  readonly thinking?: string | undefined;
  readonly tools: readonly { readonly id: string; readonly name: string; readonly input: unknown }[];
  readonly stopReason: string;
  readonly tokens: PricedTokens;
}

/** How an answer is sent. */
interface Delivery {
  readonly eventDelayMs: number;
  /** Resolves after this time, or when the client or the server is gone; without a time only then. */
  wait(ms?: number): Promise<void>;
  /** Ends it early: with an error in the stream, with silence, or with a closed connection. */
  readonly fault?: { readonly afterEvents: number; readonly ends: ApiError | 'hang' | 'cut' };
}

interface ApiError {
  readonly status: number;
  readonly type: string;
  readonly message: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Replaces the API's usual body. */
  readonly body?: string | undefined;
}

function messageResponse(content: ReplyContent, stream: boolean, delivery: Delivery): Response {
  const headers = { 'request-id': content.id.replace(/^msg_/, 'req_') };
  const { fault } = delivery;
  if (stream) {
    const sent = readable(delivered(eventsOf(content), delivery));
    return new Response(sent, { headers: { ...headers, 'content-type': 'text/event-stream' } });
  }
  if (fault === undefined) return Response.json(wholeMessage(content), { headers });
  // Without a stream there is no middle.
  if (typeof fault.ends === 'object') return errorResponse(fault.ends);
  return new Response(readable(delivered([], delivery)), {
    headers: { ...headers, 'content-type': 'application/json' },
  });
}

/** An error in the API's words; claude decides by status, type and message what to do next. */
function errorResponse({ status, type, message, headers, body }: ApiError): Response {
  if (body !== undefined) return new Response(body, { status, headers: { 'content-type': 'text/html', ...headers } });
  return Response.json({ type: 'error', error: { type, message } }, { status, headers });
}

async function* delivered(
  events: readonly string[],
  { eventDelayMs, wait, fault }: Delivery,
): AsyncGenerator<string, 'whole' | 'cut'> {
  for (const event of events.slice(0, fault?.afterEvents)) {
    if (eventDelayMs > 0) await wait(eventDelayMs);
    yield event;
  }
  if (fault?.ends === 'cut') return 'cut';
  if (fault?.ends === 'hang') await wait();
  else if (fault !== undefined)
    yield eventText('error', { error: { type: fault.ends.type, message: fault.ends.message } });
  return 'whole';
}

function readable(parts: AsyncGenerator<string, 'whole' | 'cut'>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await parts.next();
      // Without a reason Bun closes the connection and prints nothing about it.
      if (value === 'cut') controller.error(null);
      else if (done) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    async cancel() {
      await parts.return('whole');
    },
  });
}

function errorTypeOf(status: number): string {
  const types: Readonly<Record<number, string>> = {
    400: 'invalid_request_error',
    401: 'authentication_error',
    403: 'permission_error',
    404: 'not_found_error',
    413: 'request_too_large',
    429: 'rate_limit_error',
    529: 'overloaded_error',
  };
  return types[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');
}

function usageOf(tokens: PricedTokens, output: number) {
  const hourly = tokens.hourly ?? 0;
  return {
    input_tokens: tokens.input,
    output_tokens: output,
    cache_creation_input_tokens: tokens.cacheCreation,
    cache_read_input_tokens: tokens.cacheRead,
    cache_creation: {
      ephemeral_5m_input_tokens: tokens.cacheCreation - hourly,
      ephemeral_1h_input_tokens: hourly,
    },
  };
}

function head(content: ReplyContent) {
  return { id: content.id, type: 'message', role: 'assistant', model: content.model };
}

function wholeMessage(content: ReplyContent) {
  const blocks = [
    ...(content.thinking === undefined ? [] : [{ type: 'thinking', thinking: content.thinking, signature }]),
    ...(content.text === undefined ? [] : [{ type: 'text', text: content.text }]),
    ...content.tools.map((tool) => ({ type: 'tool_use', ...tool })),
  ];
  const usage = usageOf(content.tokens, content.tokens.output);
  return { ...head(content), content: blocks, stop_reason: content.stopReason, stop_sequence: null, usage };
}

/** The real one proves to the API that the thoughts are its own; claude only returns it. */
const signature = 'cmVoZWFyc2Fs';

function eventText(type: string, data: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;
}

/** `message_start` has one output token, as in the real API; `message_delta` has the true figure. */
function eventsOf(content: ReplyContent): string[] {
  const usage = usageOf(content.tokens, Math.min(1, content.tokens.output));
  const message = { ...head(content), content: [], stop_reason: null, stop_sequence: null, usage };
  const parts = [eventText('message_start', { message })];
  let index = 0;
  const block = (start: object, ...deltas: object[]) => {
    parts.push(eventText('content_block_start', { index, content_block: start }));
    for (const delta of deltas) parts.push(eventText('content_block_delta', { index, delta }));
    parts.push(eventText('content_block_stop', { index }));
    index += 1;
  };
  if (content.thinking !== undefined) {
    const { thinking } = content;
    const start = { type: 'thinking', thinking: '', signature: '' };
    block(start, { type: 'thinking_delta', thinking }, { type: 'signature_delta', signature });
  }
  if (content.text !== undefined) block({ type: 'text', text: '' }, { type: 'text_delta', text: content.text });
  for (const { id, name, input } of content.tools) {
    const delta = { type: 'input_json_delta', partial_json: JSON.stringify(input) };
    block({ type: 'tool_use', id, name, input: {} }, delta);
  }
  const delta = { stop_reason: content.stopReason, stop_sequence: null };
  parts.push(eventText('message_delta', { delta, usage: { output_tokens: content.tokens.output } }));
  parts.push(eventText('message_stop', {}));
  return parts;
}

// Sessions with an output schema: claude offers the model a tool for the answer, and without a call of it the
// session fails. A script that says nothing of it gets one with an answer made from the schema.

const structuredTool = 'StructuredOutput';
/** A schema may refer to itself. */
const depthMax = 12;

/** The steps with the structured answer at their end, when the request asks for one and no step gives it. */
function withStructuredAnswer(steps: readonly Step[], tools: readonly unknown[] = []): readonly Step[] {
  const tool = tools.map(object).find(({ name }) => name === structuredTool);
  if (tool === undefined || steps.some((step) => toolCalls(step).some((call) => call.tool === structuredTool)))
    return steps;
  const last = steps.at(-1);
  const answer = { tool: structuredTool, input: object(sampleOf(tool.input_schema)) };
  const isPlain = last?.text !== undefined && toolCalls(last).length === 0;
  return isPlain ? [...steps.slice(0, -1), { ...last, ...answer }] : [...steps, answer];
}

/** A value that fits the schema, as far as its common keywords are supported. */
function sampleOf(schema: unknown, depth = 0): unknown {
  const form = object(schema);
  if (depth > depthMax) return null;
  if ('const' in form) return form.const;
  if (Array.isArray(form.enum)) return form.enum[0];
  if ('default' in form) return form.default;
  for (const word of ['anyOf', 'oneOf', 'allOf']) {
    const options = form[word];
    if (Array.isArray(options) && options.length > 0) return sampleOf(options[0], depth + 1);
  }
  const type = Array.isArray(form.type) ? form.type[0] : form.type;
  switch (type ?? (form.properties === undefined ? 'string' : 'object')) {
    case 'object': {
      const properties = object(form.properties);
      const required = Array.isArray(form.required) ? form.required.map(String) : [];
      const keys = new Set([...Object.keys(properties), ...required]);
      return Object.fromEntries([...keys].map((key) => [key, sampleOf(properties[key], depth + 1)]));
    }
    case 'array': {
      const count = Math.max(1, typeof form.minItems === 'number' ? Math.min(form.minItems, 20) : 1);
      return Array.from({ length: count }, () => sampleOf(form.items, depth + 1));
    }
    case 'integer':
    case 'number':
      return typeof form.minimum === 'number' ? form.minimum : 1;
    case 'boolean':
      return true;
    case 'null':
      return null;
    default:
      return sampleText(form);
  }
}

function sampleText({ minLength, maxLength }: JsonObject): string {
  const text = 'made up by the rehearsal'.padEnd(typeof minLength === 'number' ? Math.min(minLength, 1_000) : 0, '.');
  return typeof maxLength === 'number' ? text.slice(0, maxLength) : text;
}
