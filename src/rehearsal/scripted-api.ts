/**
 * rehearsal/: the scripted Messages API and its scripts. This file: an HTTP server on loopback that plays the model of
 * a rehearsal. It keeps no state of a conversation (see findPlace), only how often a step has failed, so it may be
 * restarted at any time.
 */
import { object, text } from '../claude/lenient.ts';
import { estimateCost } from '../claude/pricing.ts';
import { addTokens, noTokens, type Tokens } from '../core/group.ts';
import { createClock } from '../system/clock.ts';
import {
  blocksOf,
  findPlace,
  isInvisible,
  isSummaryRequest,
  type MessagesBody,
  progressMark,
  projectOf,
  requestProblems,
  type ScriptPosition,
  toolUseId,
} from './conversation.ts';
import {
  type ApiError,
  type Delivery,
  errorResponse,
  errorTypeOf,
  messageResponse,
  type ReplyContent,
  withStructuredAnswer,
} from './reply.ts';
import { fillScript, type RehearsalScript, type Step, scriptFaults, stepsFor, toolCalls } from './script.ts';

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
    return typeof body === 'object' && body !== null ? (body as MessagesBody) : null;
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
