/** An MCP server over standard input with one tool, `ask`, which asks the user and prints the answer. */
import { createInterface } from 'node:readline';

interface Message {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: { readonly protocolVersion?: string };
  readonly result?: unknown;
  readonly error?: unknown;
}

const send = (message: object) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
let call: Message['id'];

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line) as Message;
  const { id } = message;
  if (message.method === 'initialize') {
    const { protocolVersion } = message.params ?? {};
    send({ id, result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'asker', version: '1' } } });
  } else if (message.method === 'tools/list') {
    const tool = { name: 'ask', description: 'Asks the person.', inputSchema: { type: 'object', properties: {} } };
    send({ id, result: { tools: [tool] } });
  } else if (message.method === 'tools/call') {
    call = id;
    const requestedSchema = { type: 'object', properties: { colour: { type: 'string' } }, required: ['colour'] };
    send({ id: 'question', method: 'elicitation/create', params: { message: 'Which colour?', requestedSchema } });
  } else if (id === 'question') {
    const text = `answered: ${JSON.stringify(message.result ?? message.error)}`;
    send({ id: call, result: { content: [{ type: 'text', text }] } });
  } else if (id !== undefined && message.method !== undefined) send({ id, result: {} });
}
