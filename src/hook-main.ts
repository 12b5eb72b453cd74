/**
 * The program behind the hooks: `hook-main.ts <task|cpm|faber|handover|all> <session-start|pre-compact|session-end>`.
 * claude runs it often, so it imports nothing heavy; it always exits with 0, because a hook must never stop a session.
 */
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { attemptMark } from './claude/variables.ts';
import { type HookAnswer, type HookCall, type HookEvent, hookEvents } from './context/hook-call.ts';
import { parseHookInput } from './context/hook-input.ts';
import { sessionStartText } from './context/session-hook.ts';
import { contextSystems } from './context/systems.ts';
import { createFiles } from './world/files.ts';

const files = createFiles();
const { env } = process;
const isWorker = (env[attemptMark] ?? '') !== '';
/** The folder of the session; only workers have one. */
const sessionFolder = isWorker && env.CLAUDE_CONFIG_DIR ? dirname(env.CLAUDE_CONFIG_DIR) : null;

async function main([system = '', event = '', ...options]: readonly string[]): Promise<void> {
  if (!hookEvents.includes(event as HookEvent)) return;
  const input = parseHookInput(process.stdin.isTTY ? '' : await Bun.stdin.text());
  const at = options.indexOf('--source');
  const source = (at < 0 ? undefined : options[at + 1]) ?? input.source;
  const call: HookCall = {
    event: event as HookEvent,
    ...(source === undefined ? {} : { source }),
    ...(input.sessionId === undefined ? {} : { sessionId: input.sessionId }),
    ...(input.transcriptPath === undefined ? {} : { transcriptPath: input.transcriptPath }),
    projectFolder: env.CLAUDE_PROJECT_DIR || input.cwd || process.cwd(),
    isWorker,
    nowMs: Date.now(),
    host: hostname(),
    files,
    env,
  };
  for (const name of system === 'all' ? ['task', ...contextSystems.map((one) => one.name)] : [system])
    answer(name, call);
}

/** State is on disk before anything of it is printed: `answer` of a system writes, then returns. */
function answer(name: string, call: HookCall): void {
  try {
    const found = contextSystems.find((one) => one.name === name);
    const { text, notes } = name === 'task' ? taskAnswer(call) : (found?.answer(call) ?? { text: '' });
    note({ system: name, ...notes }, call, text);
    if (text !== '') process.stdout.write(`${text}\n`);
  } catch (error) {
    const trouble = error instanceof Error ? error.message : String(error);
    note({ system: name, trouble }, call, '');
    process.stderr.write(`claude-code-agent hook: ${trouble}\n`);
  }
}

/** Only workers have a task of ours. */
function taskAnswer(call: HookCall): HookAnswer {
  if (sessionFolder === null || call.event !== 'session-start') return { text: '' };
  const promptFile = join(sessionFolder, 'prompt.md');
  return { text: sessionStartText(call, files.readText(promptFile), promptFile) };
}

function note(notes: Readonly<Record<string, unknown>>, { event, source, sessionId, nowMs }: HookCall, text: string) {
  if (sessionFolder === null) return;
  const log = files.openAppend(join(sessionFolder, 'hooks.log'));
  const line = { at: new Date(nowMs).toISOString(), event, source, sessionId, ...notes, characters: text.length };
  log.append(`${JSON.stringify(line)}\n`);
  log.close();
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`claude-code-agent hook: ${error instanceof Error ? error.message : String(error)}\n`);
}
