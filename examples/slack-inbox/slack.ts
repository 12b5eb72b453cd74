/**
 * Questions of sessions in Slack. The program opens the connection itself (Socket Mode), so nothing listens on this
 * host. `slack.ts notify` is an `onEvent` command: it posts how many questions wait, without their content.
 * `slack.ts listen` keeps running: it lists and answers questions for the users in SLACK_USERS. See README.md.
 */
import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

const { SLACK_APP_TOKEN = '', SLACK_BOT_TOKEN = '', SLACK_CHANNEL = '', SLACK_USERS = '' } = process.env;
const { SLACK_API = 'https://slack.com/api', CCA = 'claude-code-agent' } = process.env;
const users = SLACK_USERS.split(/[ ,]+/).filter((user) => user !== '');

/** Slack accepts at most 50 blocks in a message, and 75 characters on a button. */
const itemsMax = 20;
const labelMax = 75;
const textMax = 2_500;

interface Item {
  readonly id: string;
  readonly group: string;
  readonly kind: 'permission' | 'question' | 'wave';
  readonly text: string;
  readonly options: readonly string[];
}

/** Of a slash command or a pressed button. */
interface Payload {
  readonly user_id?: string;
  readonly user?: { readonly id: string };
  readonly text?: string;
  readonly actions?: readonly { readonly value: string }[];
  readonly response_url: string;
}

async function call(method: string, token: string, body: object): Promise<{ readonly url?: string }> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json; charset=utf-8' };
  const response = await fetch(`${SLACK_API}/${method}`, { method: 'POST', headers, body: JSON.stringify(body) });
  const answer = (await response.json()) as { ok: boolean; error?: string; url?: string };
  if (!answer.ok) throw new Error(`Slack refused ${method}: ${answer.error}`);
  return answer;
}

/** Without a shell: the words come from Slack. */
function cca(...args: string[]): Promise<string> {
  return new Promise((resolve) => {
    execFile(CCA, args, (error, stdout, stderr) => resolve((stdout + stderr).trim() || String(error ?? '')));
  });
}

function button(text: string, index: number, ...command: string[]): object {
  const label = { type: 'plain_text', text: text.slice(0, labelMax) };
  return { type: 'button', action_id: `cca-${index}`, text: label, value: JSON.stringify(command) };
}

function section(text: string): object {
  // Plain text: what a session asks cannot mention people or hide links.
  return { type: 'section', text: { type: 'plain_text', text: text.slice(0, textMax) } };
}

async function notify(): Promise<void> {
  let text = '';
  for await (const chunk of process.stdin) text += chunk;
  const { type, groupId, waiting } = JSON.parse(text) as { type: string; groupId: string; waiting?: number };
  if (type !== 'item_opened') return;
  const what = `${groupId}: ${waiting === 1 ? '1 question waits' : `${waiting} questions wait`}`;
  const blocks = [section(what), { type: 'actions', elements: [button('List', 0, 'inbox')] }];
  await call('chat.postMessage', SLACK_BOT_TOKEN, { channel: SLACK_CHANNEL, text: what, blocks });
}

function itemBlocks({ id, group, kind, text, options }: Item): object[] {
  const words = kind === 'question' ? options.map((_, index) => ['--option', `${index + 1}`]) : options.map((o) => [o]);
  const elements = options.map((option, index) => button(option, index, 'answer', id, ...(words[index] ?? [])));
  const other = kind === 'question' ? `\n/cca answer ${id} "Your answer"` : '';
  const buttons = elements.length === 0 ? [] : [{ type: 'actions', elements: elements.slice(0, 25) }];
  return [section(`${id}  ${group}  ${kind}\n${text}${other}`), ...buttons];
}

/** `answer 1a2b3c4d deny --note "Not today."` as words. */
function wordsOf(text: string): string[] {
  return [...text.matchAll(/["“”]([^"“”]*)["“”]|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? '');
}

/** The reply. Only this user sees it. */
async function handle({ user_id, user, text = '', actions }: Payload): Promise<object> {
  if (!users.includes(user_id ?? user?.id ?? '')) return { text: 'You may not answer questions here.' };
  const [action] = actions ?? [];
  const command = action === undefined ? wordsOf(text) : (JSON.parse(action.value) as string[]);
  const [verb = 'inbox', ...args] = command;
  if (verb === 'answer') return { text: 'cca answer', blocks: [section(await cca('answer', ...args))] };
  if (verb !== 'inbox') return { text: 'Use: /cca inbox, or /cca answer ITEM ANSWER' };
  const { items } = JSON.parse(await cca('inbox', '--json')) as { items: readonly Item[] };
  if (items.length === 0) return { text: 'The inbox is empty.' };
  return { text: 'cca inbox', blocks: items.slice(0, itemsMax).flatMap(itemBlocks) };
}

async function answer(payload: Payload): Promise<void> {
  const reply = await handle(payload).catch((error) => ({ text: `It failed: ${error}` }));
  const body = JSON.stringify({ response_type: 'ephemeral', replace_original: false, ...reply });
  await fetch(payload.response_url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
}

/** Until Slack closes the connection, which it does every few hours. */
function follow(url: string): Promise<void> {
  return new Promise((resolve) => {
    const socket = new WebSocket(url);
    socket.onclose = () => resolve();
    socket.onmessage = ({ data }) => {
      const envelope = JSON.parse(String(data)) as { type: string; envelope_id?: string; payload: Payload };
      if (envelope.type === 'disconnect') socket.close();
      if (envelope.envelope_id === undefined) return;
      // Within three seconds, or Slack sends it again.
      socket.send(JSON.stringify({ envelope_id: envelope.envelope_id }));
      answer(envelope.payload).catch((error) => console.error(String(error)));
    };
  });
}

async function listen(): Promise<never> {
  for (let pauseMs = 1_000; ; ) {
    try {
      const { url = '' } = await call('apps.connections.open', SLACK_APP_TOKEN, {});
      await follow(url);
      pauseMs = 1_000;
    } catch (error) {
      console.error(String(error));
      pauseMs = Math.min(2 * pauseMs, 60_000);
    }
    await sleep(pauseMs);
  }
}

const [mode] = process.argv.slice(2);
if (mode === 'notify') await notify();
else if (mode === 'listen') await listen();
else throw new Error('Use: slack.ts notify or slack.ts listen');
