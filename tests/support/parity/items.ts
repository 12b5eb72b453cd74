/** What one run of claude received, did and printed, as texts by name, so that two runs can be compared. */
import { blocksOf, type MessagesBody } from '../../../src/rehearsal/script.ts';

export interface RunOfClaude {
  readonly requests: readonly MessagesBody[];
  /** claude's stream-json. */
  readonly stdout: string;
  readonly stderr: string;
  /** Records of hooks, commands and servers. */
  readonly ran: string;
  /** Paths and words that differ between any two runs, and their placeholders; the longest first. */
  readonly names: readonly (readonly [text: string, name: string])[];
}

export type Items = ReadonlyMap<string, string>;

export function itemsOf(run: RunOfClaude): Items {
  const items = new Map<string, string>();
  const put = (name: string, text = ''): void => {
    const key = plain(name, run);
    const known = items.get(key);
    // claude repeats some reminders at will.
    if (known?.includes(plain(text, run)) !== true) items.set(key, `${known ?? ''}${plain(text, run)}`);
  };
  const [first] = run.requests;
  const last = run.requests.at(-1);
  for (const tool of (first?.tools ?? []) as readonly { readonly name: string }[]) {
    put(`tool ${tool.name}`, JSON.stringify(tool));
  }
  for (const { text = '' } of (first?.system ?? []) as readonly { readonly text?: string }[]) {
    if (!text.startsWith('x-anthropic-billing-header')) putSections(put, 'system', text);
  }
  putMessages(put, last?.messages ?? []);
  putInit(put, run.stdout);
  for (const line of run.stderr.split('\n')) if (line.trim() !== '') put(`stderr: ${line}`);
  const ran = run.ran.split('\n').filter((line) => line !== '');
  for (const line of new Set(ran)) put(`ran ${line}`, `${ran.filter((one) => one === line).length} times`);
  return items;
}

const refusals = /requires approval|you haven't granted it|can't be checked before it runs/;

type Put = (name: string, text?: string) => void;

/** Calls of one kind are distinguished by their input. */
function putMessages(put: Put, messages: NonNullable<MessagesBody['messages']>): void {
  const calls = new Map<string, string>();
  for (const message of messages) {
    for (const block of blocksOf(message) as unknown as readonly Readonly<Record<string, unknown>>[]) {
      if (block.type === 'tool_use') calls.set(String(block.id), `${block.name} ${JSON.stringify(block.input)}`);
      if (block.type === 'tool_result') {
        const call = calls.get(String(block.tool_use_id)) ?? '';
        const { content } = block;
        const texts =
          typeof content === 'string' ? [content] : (content as { text?: string }[]).map((one) => one.text ?? '');
        const isRefused = block.is_error === true && refusals.test(texts.join('\n'));
        put(`${isRefused ? 'refused' : 'result of'} ${call}`, texts.join('\n'));
      }
      if (block.type === 'text' && message.role !== 'assistant') putSections(put, 'message', String(block.text));
    }
  }
}

/** A text in parts, each with a heading, a file or a hook as its first line. */
function putSections(put: Put, where: string, text: string): void {
  for (const part of text.split(beginOfPart)) {
    const [heading = '', ...rest] = part
      .replaceAll(/<\/?system-reminder>/g, '')
      .trim()
      .split('\n');
    const isList = /^(?:The following (?:deferred tools|skills)|Available agent types) /.test(heading);
    // It depends on how busy the machine is.
    if (heading.startsWith('The following MCP servers are still connecting')) continue;
    if (heading !== '') put(`${where}: ${heading}`, isList ? '' : rest.join('\n').trim());
    if (isList) for (const line of rest) if (line !== '') put(`listed ${line}`);
  }
}

const words = ['Contents of ', 'As you answer ', 'This is ambient ', 'The following ', 'Available agent types '];
const beginOfPart = new RegExp(`^(?=#{1,2} |<system-reminder>$|[A-Z]\\w+(?::\\w+)? hook |${words.join('|')})`, 'm');

/** Names without information about the session's behaviour. */
const unrelated = new Set(['type', 'subtype', 'cwd', 'session_id', 'uuid', 'messaging_socket_path', 'original_cwd']);

function putInit(put: Put, stdout: string): void {
  const lines = stdout.split('\n').filter((line) => line.includes('"subtype":"init"'));
  const init = JSON.parse(lines[0] ?? '{}') as Readonly<Record<string, unknown>>;
  for (const [key, value] of Object.entries(init)) {
    if (unrelated.has(key)) continue;
    if (!Array.isArray(value)) put(`init.${key}`, JSON.stringify(value));
    else for (const one of value) putEntry(put, `init.${key}`, one);
  }
}

function putEntry(put: Put, key: string, entry: unknown): void {
  if (typeof entry !== 'object' || entry === null) {
    put(`${key} ${entry}`);
    return;
  }
  const { name, ...rest } = entry as Readonly<Record<string, unknown>>;
  put(`${key} ${name}`, JSON.stringify(rest));
}

function plain(text: string, { names }: RunOfClaude): string {
  const named = names.reduce((said, [from, to]) => (from === '' ? said : said.replaceAll(from, to)), text);
  return named
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'UUID')
    .replaceAll(/\b[0-9a-f]{7,40}\b/g, 'HASH')
    .replaceAll(/\d+(\.\d+)?m?s\b/g, 'TIME')
    .replaceAll(/\n+/g, '\n');
}

/** `+`: in the second only; `-`: in the first only; `~`: in both, with another text. */
export function differences(plainly: Items, grouped: Items): Map<string, string> {
  const found = new Map<string, string>();
  for (const [name, text] of plainly) {
    const other = grouped.get(name);
    if (other === undefined) found.set(`- ${name}`, text);
    else if (other !== text) found.set(`~ ${name}`, `${text}\n  in a group:\n${other}`);
  }
  for (const [name, text] of grouped) if (!plainly.has(name)) found.set(`+ ${name}`, text);
  return found;
}
