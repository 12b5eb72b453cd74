/**
 * The program behind the hooks: `hook-main.ts <task|cpm|faber|handover|all> <session-start|pre-compact|session-end>`.
 * claude runs it often, so it imports nothing heavy; it always exits with 0, because a hook must never stop a session.
 */
import { dirname, join } from 'node:path';
import { attemptMark } from './claude/launch/attempt-mark.ts';
import {
  asksMark,
  type ContextSystem,
  chosenMark,
  type HookAnswer,
  type HookCall,
  type HookEvent,
  hookEvents,
  installedMark,
  parseHookInput,
  sessionStartText,
} from './context/hook-call.ts';
import { defined } from './core/defined.ts';
import { errorText } from './core/failure.ts';
import { createClock } from './system/clock.ts';
import { createFiles } from './system/files.ts';
import { hostName } from './system/machine.ts';

/** Only what is asked for is loaded: a session waits for each of its hooks. */
const systems: Readonly<Record<string, () => Promise<ContextSystem>>> = {
  cpm: async () => (await import('./context/cpm/hooks.ts')).cpm,
  faber: async () => (await import('./context/faber/hooks.ts')).faber,
  handover: async () => (await import('./context/handover/hooks.ts')).handover,
};

/** Of claude's ten seconds for a hook. */
const patienceMs = 2_000;

const marks: readonly string[] = [installedMark, chosenMark, asksMark];

/** Bytes. */
const personsLogMax = 1024 ** 2;

const files = createFiles();
const { env } = process;
const isWorker = (env[attemptMark] ?? '') !== '';
/** The folder of the session; only workers have one. */
const sessionFolder = isWorker && env.CLAUDE_CONFIG_DIR ? dirname(env.CLAUDE_CONFIG_DIR) : null;
const output = Bun.stdout.writer();

async function main([system = '', event = '', ...options]: readonly string[]): Promise<void> {
  if (!hookEvents.includes(event as HookEvent)) {
    return complain(`There is no event ${JSON.stringify(event)}. Give one of ${hookEvents.join(', ')}.`);
  }
  // A worker has hooks of its own; those that a person put into the project's settings would say everything twice.
  if (isWorker && options.includes(installedMark)) return;
  const at = options.indexOf('--source');
  const wrong = options.find((word, index) => index !== at && !marks.includes(word) && (at < 0 || index !== at + 1));
  // The hook does its work all the same: a session without its state is worse than a mistyped option.
  if (wrong !== undefined) complain(`There is no option ${JSON.stringify(wrong)}. Give --source and its value.`);
  const input = parseHookInput(await standardInput());
  const source = (at < 0 ? undefined : options[at + 1]) ?? input.source;
  const call: HookCall = {
    event: event as HookEvent,
    ...defined({ source, sessionId: input.sessionId, transcriptPath: input.transcriptPath }),
    projectFolder: env.CLAUDE_PROJECT_DIR || input.cwd || process.cwd(),
    isWorker,
    isChosen: options.includes(chosenMark),
    asks: options.includes(asksMark),
    ...(sessionFolder === null ? {} : { sessionFolder }),
    nowMs: Date.now(),
    host: hostName(),
    platform: process.platform,
    files,
    env,
  };
  for (const name of system === 'all' ? ['task', ...Object.keys(systems)] : [system]) await answer(name, call);
}

function complain(sentence: string): void {
  process.stderr.write(`claude-code-agent hook: ${sentence}\n`);
}

/** A terminal has no end; and asking `process.stdin` what it is would load ten milliseconds of streams. */
async function standardInput(): Promise<string> {
  try {
    if ((await Bun.stdin.stat()).isCharacterDevice()) return '';
    return await Promise.race([Bun.stdin.text(), afterPatience()]);
  } catch {
    return '';
  }
}

/** claude hands over its words at once; an input that never ends must not cost the session its state. */
function afterPatience(): Promise<string> {
  return new Promise((resolve) => createClock().after(patienceMs, () => resolve('')));
}

/** State is on disk before anything of it is printed: `answer` of a system writes, then returns. */
async function answer(name: string, call: HookCall): Promise<void> {
  try {
    const { text, notes } = name === 'task' ? taskAnswer(call) : await systemAnswer(name, call);
    note({ system: name, ...notes }, call, text);
    if (text !== '') output.write(`${text}\n`);
  } catch (error) {
    const trouble = errorText(error);
    note({ system: name, trouble }, call, '');
    complain(trouble);
  }
}

async function systemAnswer(name: string, call: HookCall): Promise<HookAnswer> {
  const load = Object.hasOwn(systems, name) ? systems[name] : undefined;
  return load === undefined ? { text: '' } : (await load()).answer(call);
}

/** Only workers have a task of ours. */
function taskAnswer(call: HookCall): HookAnswer {
  if (sessionFolder === null || call.event !== 'session-start') return { text: '' };
  const promptFile = join(sessionFolder, 'prompt.md');
  return { text: sessionStartText(call, files.readText(promptFile), promptFile) };
}

/** A full disk, of all things, must not keep the state from the session. */
function note(notes: Readonly<Record<string, unknown>>, call: HookCall, text: string) {
  const { event, source, sessionId, nowMs, projectFolder } = call;
  try {
    const folder = sessionFolder ?? personsFolder();
    const path = folder === null ? null : join(folder, 'hooks.log');
    // A FIFO would hold the session up, a link would lead anywhere.
    if (path === null || (files.entryKind(path) ?? 'file') !== 'file') return;
    const log = files.openAppend(path);
    const where = sessionFolder === null ? { project: projectFolder } : {};
    const at = new Date(nowMs).toISOString();
    const line = { at, event, source, sessionId, ...where, ...notes, characters: text.length };
    log.append(`${JSON.stringify(line)}\n`);
    log.close();
  } catch (error) {
    complain(`hooks.log: ${errorText(error)}`);
  }
}

/** Of all sessions that people start themselves; null without a home. What is older than a mebibyte or two goes. */
function personsFolder(): string | null {
  const { dataRoot } = require('./store/paths.ts') as typeof import('./store/paths.ts');
  const root = dataRoot(env);
  if (!root.ok) return null;
  if (files.info(root.value) === null) files.makeFolder(root.value);
  const log = join(root.value, 'hooks.log');
  if ((files.info(log)?.size ?? 0) > personsLogMax) files.rename(log, `${log}.1`);
  return root.value;
}

try {
  await main(process.argv.slice(2));
  await output.end();
} catch (error) {
  // A closed output or a full disk is no reason to stop a session.
  complain(errorText(error));
}
// An input without an end would hold the process.
process.exit(0);
