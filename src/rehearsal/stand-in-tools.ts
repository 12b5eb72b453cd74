/** The tools of the stand-in: the few that the scripts of rehearsals are made of. They really do what they say. */
import { dirname, isAbsolute, join } from 'node:path';
import { type JsonObject, number, text } from '../claude/lenient.ts';
import type { RunningProcess, World } from '../system/world.ts';

export interface ToolPlace {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** A folder of the session for what commands print. */
  readonly tmp: string;
}

export interface ToolResult {
  readonly text: string;
  readonly isError: boolean;
}

const done = (text: string): ToolResult => ({ text, isError: false });
const failed = (text: string): ToolResult => ({ text, isError: true });

/** As claude's own for Bash. */
const commandMsMax = 120_000;
/** As much as claude hands to the model. */
const outputChars = 30_000;

/** Ends early, with whatever came until then, when `stop` is aborted. What the system refuses is a failed call. */
export async function callTool(
  world: World,
  name: string,
  input: JsonObject,
  place: ToolPlace,
  stop: AbortSignal,
): Promise<ToolResult> {
  try {
    switch (name) {
      case 'Bash':
        return await runCommand(world, input, place, stop);
      case 'Read':
        return readFile(world, pathOf(input, place));
      case 'Write':
        writeFile(world, pathOf(input, place), text(input.content) ?? '');
        return done('The file was written.');
      case 'Edit':
        return editFile(world, pathOf(input, place), input);
      default:
        return failed(`The stand-in for claude has no tool ${name}; the real claude may have it.`);
    }
  } catch (error) {
    return failed(error instanceof Error ? error.message : String(error));
  }
}

function pathOf(input: JsonObject, { cwd }: ToolPlace): string {
  const path = text(input.file_path) ?? '';
  return isAbsolute(path) ? path : join(cwd, path);
}

function readFile(world: World, path: string): ToolResult {
  const content = world.files.readText(path);
  return content === null ? failed(`File does not exist: ${path}`) : done(content.slice(0, outputChars));
}

function writeFile(world: World, path: string, content: string): void {
  world.files.makeFolder(dirname(path), 'project');
  world.files.writeAtomic(path, content, { access: 'project' });
}

function editFile(world: World, path: string, input: JsonObject): ToolResult {
  const [old, replacement] = [text(input.old_string) ?? '', text(input.new_string) ?? ''];
  const content = world.files.readText(path);
  if (content === null) return failed(`File does not exist: ${path}`);
  const parts = content.split(old);
  if (old === '' || parts.length === 1) return failed(`String to replace not found in ${path}`);
  if (parts.length > 2 && input.replace_all !== true) return failed(`More than one match in ${path}`);
  writeFile(world, path, parts.join(replacement));
  return done('The file was changed.');
}

async function runCommand(world: World, input: JsonObject, place: ToolPlace, stop: AbortSignal): Promise<ToolResult> {
  const output = join(place.tmp, `command-${world.random.uuid()}`);
  world.files.makeFolder(place.tmp);
  const started = world.processes.spawn({
    program: '/bin/sh',
    args: ['-c', text(input.command) ?? ''],
    cwd: place.cwd,
    env: place.env,
    stdoutFile: output,
    stderrFile: output,
  });
  if (!started.ok) return failed(started.failure.message);
  const kill = () => endAll(world, started.value);
  const cancel = world.clock.after(Math.min(number(input.timeout) ?? commandMsMax, commandMsMax), kill);
  stop.addEventListener('abort', kill, { once: true });
  if (stop.aborted) kill();
  const code = await new Promise<number | null>((resolve) => {
    started.value.onExit((status) => resolve(status.kind === 'exited' ? status.code : null));
  });
  cancel();
  stop.removeEventListener('abort', kill);
  const printed = (world.files.readText(output) ?? '').slice(0, outputChars);
  world.files.remove(output);
  return code === 0 ? done(printed) : failed(`Exit code ${code ?? 'unknown: it was ended'}\n${printed}`);
}

/** The command and what it has started. */
function endAll({ processes }: World, { identity }: RunningProcess): void {
  for (const one of [...processes.findDescendants([identity]), identity]) processes.signal(one, 'SIGKILL');
}
