/**
 * The program behind the hooks in a worker's settings: `hook-main.ts all session-start`. claude runs it often, so it
 * imports nothing heavy; it always exits with 0, because a hook must never stop a session.
 */
import { dirname, join } from 'node:path';
import { attemptMark } from './claude/variables.ts';
import { parseHookInput, sessionStartText } from './context/session-hook.ts';
import { createFiles } from './world/files.ts';

const [, event] = process.argv.slice(2);
const configDir = process.env.CLAUDE_CONFIG_DIR;
try {
  // Without the mark we were called by a person's own claude, to which this says nothing.
  if (process.env[attemptMark] !== undefined && configDir !== undefined && event === 'session-start') {
    const files = createFiles();
    const sessionFolder = dirname(configDir);
    const promptFile = join(sessionFolder, 'prompt.md');
    const input = parseHookInput(await Bun.stdin.text());
    const output = sessionStartText(input, files.readText(promptFile), promptFile);
    const log = files.openAppend(join(sessionFolder, 'hooks.log'));
    const line = { at: new Date().toISOString(), event, ...input, characters: output.length };
    log.append(`${JSON.stringify(line)}\n`);
    log.close();
    process.stdout.write(`${output}\n`);
  }
} catch (error) {
  process.stderr.write(`claude-code-agent hook: ${error instanceof Error ? error.message : String(error)}\n`);
}
