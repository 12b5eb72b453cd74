/** Worktree, log, report and task in the tools of the person: what is started for `o` and `e`, and with which files. */
import { join } from 'node:path';
import { sessionPaths } from '../../app/groups.ts';
import { loadReport } from '../../app/report.ts';
import type { GroupReference } from '../../app/resolve.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { SessionId } from '../../core/group.ts';
import type { ForegroundOptions } from '../../system/foreground.ts';
import type { OpenedThing } from '../../tui/dashboard/keys.ts';
import { wholeLine } from '../../view/transcript/line.ts';
import { titleOf } from '../../view/wording.ts';
import type { Context } from '../context.ts';
import { wholeLog } from './log-tail.ts';
import type { Source } from './source.ts';

export interface Opening extends ForegroundOptions {
  /** What the person calls the tool. */
  readonly tool: string;
  /** Takes away what was made for it. */
  tidy(): void;
}

interface Around {
  readonly context: Context;
  readonly group: GroupReference;
  readonly source: Source;
}

/** Fails when there is nothing to open. */
export async function openingOf(around: Around, thing: OpenedThing, sessionId: SessionId): Promise<Result<Opening>> {
  if (thing === 'worktree') return worktree(around, sessionId);
  if (thing === 'log') return log(around, sessionId);
  return await report(around);
}

function worktree({ context, source }: Around, sessionId: SessionId): Result<Opening> {
  const record = source.state.sessions.get(sessionId);
  const path = record?.workspace?.path ?? record?.definition.projectPath ?? '';
  if (context.world.files.info(path)?.kind !== 'folder') {
    return fail('not-found', `The folder of ${titleOf(source.state, sessionId)} is not there: ${path}.`, '');
  }
  return ok({ ...started(context, editorOf(context), '.', path), tidy: () => {} });
}

function editorOf({ env: { VISUAL, EDITOR } }: Context): string {
  return VISUAL || EDITOR || 'vi';
}

/** The task of a session, to be changed; `file` is where it stands until that is tidied away. */
export function taskOpening(context: Context, task: string): Opening & { readonly file: string } {
  return inTool(context, editorOf(context), 'task.md', task.endsWith('\n') ? task : `${task}\n`);
}

function log({ context, group, source }: Around, sessionId: SessionId): Result<Opening> {
  const { transcript } = sessionPaths(group.paths, sessionId);
  const lines = wholeLog(context.world, transcript, source.notes.marks.listOf(sessionId)).map(wholeLine);
  if (lines.length === 0) {
    return fail('not-found', `${titleOf(source.state, sessionId)} has printed nothing so far.`, '');
  }
  return ok(inPager(context, 'log.txt', `${lines.join('\n')}\n`));
}

async function report({ context, group }: Around): Promise<Result<Opening>> {
  const loaded = await loadReport(context.world, group);
  if (!loaded.ok) return loaded;
  const { reportMarkdown } = await import('../../view/markdown.ts');
  return ok(inPager(context, 'report.md', reportMarkdown(loaded.value.state, loaded.value.model)));
}

/** A file of ours, because a pager that reads a pipe cannot go to its end before all of it was read. */
function inPager(context: Context, name: string, text: string): Opening {
  const opening = inTool(context, context.env.PAGER || 'less', name, text);
  // As git does: colours are shown, unless the person has said how it is to be.
  return { ...opening, env: { LESS: 'R', ...opening.env } };
}

function inTool(context: Context, tool: string, name: string, text: string): Opening & { readonly file: string } {
  const { files, random } = context.world;
  const folder = join(context.env.TMPDIR || '/tmp', `claude-code-agent-${random.uuid()}`);
  const file = join(folder, name);
  files.makeFolder(folder);
  files.writeAtomic(file, text);
  return { ...started(context, tool, file, folder), file, tidy: () => files.remove(folder) };
}

/** Tools may have options: as for git, the shell takes them apart. */
function started({ env }: Context, tool: string, path: string, cwd: string) {
  return { tool, words: ['/bin/sh', '-c', `${tool} "$@"`, 'sh', path], cwd, env };
}
