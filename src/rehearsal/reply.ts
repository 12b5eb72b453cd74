/** Replies in the shapes of the Messages API: a stream of server-sent events, one JSON message, or an error. */
import type { PricedTokens } from '../claude/pricing.ts';
import { type Step, toolCalls } from './script.ts';

export interface ReplyContent {
  readonly id: string;
  readonly model: string;
  readonly text: string | undefined;
  readonly thinking?: string | undefined;
  readonly tools: readonly { readonly id: string; readonly name: string; readonly input: unknown }[];
  readonly stopReason: string;
  readonly tokens: PricedTokens;
}

/** How an answer is sent. */
export interface Delivery {
  readonly eventDelayMs: number;
  /** Resolves after this time, or when the client or the server is gone; without a time only then. */
  wait(ms?: number): Promise<void>;
  /** Ends it early: with an error in the stream, with silence, or with a closed connection. */
  readonly fault?: { readonly afterEvents: number; readonly ends: ApiError | 'hang' | 'cut' };
}

export interface ApiError {
  readonly status: number;
  readonly type: string;
  readonly message: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Replaces the API's usual body. */
  readonly body?: string | undefined;
}

export function messageResponse(content: ReplyContent, stream: boolean, delivery: Delivery): Response {
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
export function errorResponse({ status, type, message, headers, body }: ApiError): Response {
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

export function errorTypeOf(status: number): string {
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

// * Sessions with an output schema: claude offers the model a tool for the answer, and without a call of it the
// session fails. A script that says nothing of it gets one with an answer made from the schema.

const structuredTool = 'StructuredOutput';
/** A schema may refer to itself. */
const depthMax = 12;

/** The steps with the structured answer at their end, when the request asks for one and no step gives it. */
export function withStructuredAnswer(steps: readonly Step[], tools: readonly unknown[] = []): readonly Step[] {
  const tool = tools.map(asObject).find(({ name }) => name === structuredTool);
  if (tool === undefined || steps.some((step) => toolCalls(step).some((call) => call.tool === structuredTool)))
    return steps;
  const last = steps.at(-1);
  const answer = { tool: structuredTool, input: asObject(sampleOf(tool.input_schema)) };
  const isPlain = last?.text !== undefined && toolCalls(last).length === 0;
  return isPlain ? [...steps.slice(0, -1), { ...last, ...answer }] : [...steps, answer];
}

type JsonObject = Readonly<Record<string, unknown>>;

function asObject(value: unknown): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}

/** A value that fits the schema, as far as its common keywords are supported. */
function sampleOf(schema: unknown, depth = 0): unknown {
  const form = asObject(schema);
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
      const properties = asObject(form.properties);
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
