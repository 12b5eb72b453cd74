/** Lends the terminal of the dashboard to tools of the user and to claude. */
import { join } from 'node:path';
import { attachSession } from '../../app/attach/attach-session.ts';
import { noTemplate } from '../../app/create/named-template.ts';
import { editSession } from '../../app/create/new-session.ts';
import { type GroupReference, type LoadedSession, loadWithRunner, sessionOf, sessionPaths } from '../../app/resolve.ts';
import { loadReport } from '../../app/watch/live-view.ts';
import { commandText } from '../../core/advice.ts';
import { editProblem } from '../../core/edit.ts';
import { describeFailure, type Failure, fail, ok, type Result } from '../../core/failure.ts';
import type { SessionId } from '../../core/group.ts';
import { ownCommand } from '../../system/own-program.ts';
import { type ForegroundOptions, type ForegroundProcess, runInForeground } from '../../system/terminal.ts';
import type { KeyCommand, OpenTarget } from '../../tui/dashboard/actions.ts';
import type { Notice } from '../../tui/dashboard/view.ts';
import { wholeLine } from '../../view/transcript/markdown.ts';
import { settingWords, titleOf } from '../../view/wording.ts';
import { attachedText, spendLimitText } from '../commands/session/attach.ts';
import { type Context, exitCode } from '../context.ts';
import { readPrompt } from '../options/prompt-source.ts';
import { grant } from './ask-group.ts';
import type { Screen } from './screen.ts';
import { type Source, wholeLog } from './source.ts';

/** The exit code of a shell for a missing program. */
const notFound = 127;

export type TerminalHandoffCommand = Extract<KeyCommand, { do: 'open' | 'attach' | 'edit' | 'review' }>;

export interface TerminalHandoffOptions {
  readonly context: Context;
  readonly group: GroupReference;
  readonly source: Source;
  readonly lend: Screen['lend'];
  tell(notice: Notice): void;
}

export class TerminalHandoff {
  readonly #options: TerminalHandoffOptions;
  readonly #place: Context;
  #guest: ForegroundProcess | undefined;
  #work: Promise<unknown> | undefined;
  #isClosed = false;

  constructor(options: TerminalHandoffOptions) {
    this.#options = options;
    const line = (text: string): void => options.tell({ text, tone: 'warn' });
    this.#place = Object.create(options.context, { notes: { value: { line, passing: () => {} } } }) as Context;
  }

  get isNow(): boolean {
    return this.#guest !== undefined;
  }

  /** Makes the program that has the terminal give it back. */
  recall(): void {
    this.#guest?.hangUp();
  }

  /** The result; null = no notice. */
  async begin(command: TerminalHandoffCommand): Promise<Notice | null> {
    if (this.#work !== undefined) return { text: 'Another program is open. Close it first.', tone: 'warn' };
    const work = this.#carryOut(command);
    this.#work = work;
    try {
      return await work;
    } finally {
      this.#work = undefined;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#work?.catch(() => {});
  }

  #carryOut(command: TerminalHandoffCommand): Promise<Notice | null> {
    switch (command.do) {
      case 'open':
        return this.#open(command);
      case 'attach':
        return this.#attach(command.sessionId);
      case 'edit':
        return this.#edit(command.sessionId);
      case 'review':
        return this.#review();
    }
  }

  async #open({ thing, sessionId }: Extract<KeyCommand, { do: 'open' }>): Promise<Notice | null> {
    const opening = await openingOf(this.#options, thing, sessionId);
    if (!opening.ok) return { text: describeFailure(opening.failure), tone: 'warn' };
    try {
      return this.#missing(opening.value, await this.#inTool(opening.value));
    } finally {
      opening.value.tidy();
    }
  }

  async #attach(sessionId: SessionId): Promise<Notice> {
    const session = this.#load(sessionId);
    if (!session.ok) return refused(session.failure);
    const { stdout } = this.#options.context;
    this.#options.tell({ text: `Attaching to ${titleOf(session.value.state, sessionId)}…` });
    let spendableUsd: number | undefined;
    const attached = await attachSession(this.#place, session.value, {
      opening: (reservedUsd) => {
        spendableUsd = reservedUsd;
      },
      lend: (use) =>
        this.#lend(async () => {
          stdout.line(spendLimitText(spendableUsd));
          await stdout.flush();
          await use();
        }),
      began: (guest) => {
        this.#guest = guest;
      },
    });
    if (!attached.ok) return refused(attached.failure);
    const { isSpent, autoResumes } = attached.value;
    return { text: attachedText(attached.value, sessionId), tone: autoResumes && !isSpent ? 'good' : 'warn' };
  }

  /** The command, which may take minutes to check what is safe, and runs what was sent back. */
  async #review(): Promise<Notice | null> {
    const { context, group } = this.#options;
    const { program, args } = ownCommand('main', context.packageRoot);
    const words = [program, ...args, 'review', group.groupId];
    const code = await this.#inTool({ words, cwd: context.cwd, env: context.env });
    if (code === null || code === 0 || code === exitCode.paused) return null;
    const again = commandText(['review', group.groupId]);
    return { text: `The review ended with exit code ${code}. In a shell, this shows why: ${again}`, tone: 'warn' };
  }

  /** The task in the editor; what it is then is logged, and the session tries that. */
  async #edit(sessionId: SessionId): Promise<Notice | null> {
    const session = this.#load(sessionId);
    if (!session.ok) return refused(session.failure);
    const { state, record } = session.value;
    const { definition } = record;
    const problem = editProblem(state, record, { ...definition, prompt: `${definition.prompt}\n` });
    if (problem?.ok === false) return refused(problem.failure);
    const opening = taskOpening(this.#options.context, record.definition.prompt);
    try {
      const code = await this.#inTool(opening);
      const missing = this.#missing(opening, code);
      if (missing !== null) return missing;
      const title = titleOf(state, sessionId);
      if (code !== 0) return { text: `The editor failed; the task of ${title} was not changed.`, tone: 'warn' };
      const text = this.#typed(opening.file, record.definition.prompt);
      if (!text.ok) return refused(text.failure);
      return await this.#changeTask(sessionId, text.value);
    } finally {
      opening.tidy();
    }
  }

  /** The text as the user left it, without the line end that editors add. */
  #typed(file: string, before: string): Result<string> {
    const read = readPrompt(this.#options.context, file, 'The task', 'Edit it once more.');
    return read.ok && !before.endsWith('\n') ? ok(read.value.replace(/\r?\n$/, '')) : read;
  }

  async #changeTask(sessionId: SessionId, text: string): Promise<Notice> {
    const { context, group, tell } = this.#options;
    // Much may have happened while it was edited.
    const session = this.#load(sessionId);
    if (!session.ok) return refused(session.failure);
    const { state, record } = session.value;
    const title = titleOf(state, sessionId);
    // What stood in the editor is all of the task: what a template has made of it is in it already.
    const template = record.definition.template === undefined ? {} : { template: noTemplate };
    const prompt = async (): Promise<Result<string>> => ok(text);
    const edited = await editSession(this.#place, session.value, { prompt, ...template });
    if (!edited.ok) return refused(edited.failure);
    const { changed } = edited.value;
    if (changed.length === 0) return { text: `The task of ${title} was not changed.`, tone: 'warn' };
    const done = `Changed ${title}: ${settingWords(changed)}.`;
    const { status } = record.state;
    if (status !== 'failed' && (status !== 'paused' || record.queued)) {
      return { text: `${done} Its next attempt uses this.`, tone: 'good' };
    }
    const again = status === 'failed' ? 'retry-session' : 'resume-session';
    const next = await grant(context, group, state, { do: again, sessionIds: [sessionId] }, tell);
    return { ...next, text: `${done} ${next.text}` };
  }

  #load(sessionId: SessionId): Result<LoadedSession> {
    const { context, group } = this.#options;
    const loaded = loadWithRunner(context.world, group);
    return loaded.ok ? sessionOf(loaded.value, sessionId) : loaded;
  }

  #missing({ tool }: Opening, code: number | null): Notice | null {
    if (code !== notFound) return null;
    return { text: `Program ${tool} not found. Set VISUAL, EDITOR or PAGER.`, tone: 'bad' };
  }

  /** Its exit code; null when a signal ended it, or it was not started any more. */
  async #inTool(opening: ForegroundOptions): Promise<number | null> {
    let code: number | null = null;
    await this.#lend(async () => {
      this.#guest = runInForeground(opening);
      code = await this.#guest.exited;
    });
    return code;
  }

  async #lend(use: () => Promise<void>): Promise<void> {
    if (this.#isClosed) return;
    try {
      await this.#options.lend(use);
    } finally {
      this.#guest = undefined;
    }
  }
}

function refused(failure: Failure): Notice {
  return { text: describeFailure(failure), tone: 'bad' };
}

export interface Opening extends ForegroundOptions {
  /** The name of the tool, as the user set it. */
  readonly tool: string;
  tidy(): void;
}

interface Around {
  readonly context: Context;
  readonly group: GroupReference;
  readonly source: Source;
}

export async function openingOf(around: Around, thing: OpenTarget, sessionId: SessionId): Promise<Result<Opening>> {
  if (thing === 'worktree') return worktree(around, sessionId);
  if (thing === 'log') return log(around, sessionId);
  return await report(around);
}

function worktree({ context, source }: Around, sessionId: SessionId): Result<Opening> {
  const record = source.state.sessions.get(sessionId);
  const path = record?.workspace?.path ?? record?.definition.projectPath ?? '';
  if (context.world.files.info(path)?.kind !== 'folder') {
    return fail('not-found', `The folder of ${titleOf(source.state, sessionId)} does not exist: ${path}.`, '');
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
    return fail('not-found', `${titleOf(source.state, sessionId)} has not printed anything yet.`, '');
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
  // As git does: colours are shown unless LESS is set.
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
