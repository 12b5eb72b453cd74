/**
 * Where a session works and how its work is checked: the nearest of session, group and project wins. Values of
 * variables are never inserted into a shell command, because the shell would run them.
 */

import { defined } from '../../core/defined.ts';
import { type IsolationMode, type ValuesOf, workSettings } from '../../core/definitions.ts';
import { quoted } from '../../core/id.ts';
import { commandProblem, storedSettings } from '../../core/setting-values.ts';
import { parsePieces } from '../render.ts';

/** The settings of one source. An absent key sets nothing; `false` for a command: none, whatever others set. */
export type GivenWork = {
  readonly [Name in keyof WorkSettings]?:
    | WorkSettings[Name]
    | (Name extends 'accept' | 'setup' ? false : never)
    | undefined;
};

type WorkSettings = ValuesOf<typeof workSettings>;
export const workNames = Object.keys(workSettings) as readonly (keyof WorkSettings)[];

export interface ResolvedWork extends WorkSettings {
  readonly repository?: string;
}

/** The session's git repository; null: none; undefined: unknown. */
export type SessionRepository = string | null | undefined;

/** `given`: the session's own, then those of others, nearest first. Settings without an effect are left out. */
export function resolveWork(given: readonly GivenWork[], repository: SessionRepository): ResolvedWork {
  const values: GivenWork = Object.assign({}, ...given.map(defined).toReversed());
  const mayHaveWorktree = values.isolate !== 'none' && repository !== null;
  const pointless: ReadonlySet<string> = new Set([
    ...(values.accept ? [] : ['accept', 'acceptRetries', 'acceptTimeoutMs', 'acceptIn', 'guard', 'prove']),
    ...(values.setup && mayHaveWorktree ? [] : ['setup', 'setupTimeoutMs']),
    ...(mayHaveWorktree && values.commit === false ? [] : ['commit']),
  ]);
  const useful = Object.entries(storedSettings(workSettings, values)).filter(([name]) => !pointless.has(name));
  return { ...(typeof repository === 'string' ? { repository } : {}), ...Object.fromEntries(useful) };
}

export interface WorkFault {
  readonly key: keyof GivenWork;
  readonly problem: string;
}

/** A session's own settings that are impossible, or would have no effect. */
export function workFaults(own: GivenWork, settings: ResolvedWork, repository: SessionRepository): WorkFault[] {
  const faults: WorkFault[] = [];
  const refuse = (key: keyof GivenWork, problem: string) => faults.push({ key, problem });
  if (own.isolate === 'none' || repository === null) {
    const why = own.isolate === 'none' ? 'the session gets none' : 'the project is not in a git repository';
    if (typeof own.setup === 'string') refuse('setup', `applies only to a new worktree, and ${why}`);
    if (own.commit === false) refuse('commit', `applies only to worktrees, and ${why}`);
  }
  if (own.expectChanges === true && repository === null) {
    refuse('expectChanges', 'needs a git repository, and the project is not in one');
  }
  if (settings.accept === undefined) {
    const why = 'has no effect without an accept command';
    if (own.acceptRetries !== undefined) refuse('acceptRetries', why);
    for (const key of ['acceptTimeoutMs', 'acceptIn', 'guard'] as const) if (own[key] !== undefined) refuse(key, why);
    if (own.prove === true) refuse('prove', why);
  }
  if (settings.setup === undefined && own.setupTimeoutMs !== undefined && typeof own.setup !== 'string') {
    refuse('setupTimeoutMs', 'has no effect without a setup command');
  }
  return faults;
}

/** Why a session certainly has no branch and no diff; null when it may have them. No full stop. */
export function noBranchFault(session: string, isolate: IsolationMode | undefined): string | null {
  if (isolate !== 'none') return null;
  const why = 'works in the project folder itself (isolate: none)';
  return `${quoted(session)} ${why}, so it has no branch and no diff of its own; use .result`;
}

export type ResolvedCommand =
  | { readonly ok: true; readonly command: string }
  | { readonly ok: false; readonly problem: string };

const refuse = (problem: string): ResolvedCommand => ({ ok: false, problem });

/** The command for the shell: `\{{name}}` becomes `{{name}}`, for programs with the same syntax. */
export function shellCommand(text: string): ResolvedCommand {
  const pieces = parsePieces(text);
  const variable = pieces.find((piece) => piece.kind === 'variable');
  if (variable !== undefined) {
    const why = 'the shell would run its value';
    return refuse(
      `{{${variable.name}}} cannot be used in a shell command: ${why}; \\{{${variable.name}}} is literal text`,
    );
  }
  return checkedCommand(pieces.map((piece) => (piece.kind === 'text' ? piece.text : piece.source)).join(''));
}

/** A whole command from outside, such as the value of a variable: nothing in it is interpreted. */
export function checkedCommand(command: string): ResolvedCommand {
  const problem = commandProblem(command);
  return problem === null ? { ok: true, command: command.trim() } : refuse(`the command ${problem}`);
}

/** The name of the variable that is the whole text, as in `accept: "{{check}}"`. */
export function wholeVariable(text: string): string | undefined {
  const [piece, ...others] = parsePieces(text.trim());
  return piece?.kind === 'variable' && others.length === 0 ? piece.name : undefined;
}
