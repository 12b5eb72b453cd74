/**
 * What is written into a worker's stdin: messages and control requests, one JSON line each (the caller adds the line
 * end). The answer to a control request repeats its id, so the id says what was asked.
 */

const interruptPrefix = 'interrupt:';
const usagePrefix = 'usage:';

/**
 * A message to the model. The text must not be blank (claude prints nothing for it); the caller sees to that.
 * claude takes a leading `/word` for a command of its own and then never calls the model; a line end before it is
 * harmless and prevents that.
 */
export function userMessage(text: string): string {
  const content = text.startsWith('/') ? `\n${text}` : text;
  return JSON.stringify({ type: 'user', message: { role: 'user', content } });
}

/** Stops the turn: the running tool is killed and a `result` with the cost follows. `id` is any text. */
export function interruptRequest(id: string): string {
  return controlRequest(`${interruptPrefix}${id}`, 'interrupt');
}

/** Asks for the exact cost of the process so far. */
export function usageRequest(id: string): string {
  return controlRequest(`${usagePrefix}${id}`, 'get_usage');
}

/** True for the request id of an answer to `interruptRequest`. */
export function answersInterrupt(requestId: string): boolean {
  return requestId.startsWith(interruptPrefix);
}

function controlRequest(id: string, subtype: string): string {
  return JSON.stringify({ type: 'control_request', request_id: id, request: { subtype } });
}
