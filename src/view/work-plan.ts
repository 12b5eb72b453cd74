/** Where sessions work and how their work is checked, in words: for plans and for the view of one session. */
import { basename, dirname } from 'node:path';
import {
  defaultAcceptRetries,
  defaultCommandTimeoutMs,
  type IsolationMode,
  type SessionDefinition,
  type SessionId,
} from '../core/group.ts';
import { buildsInPlace, isolationOf } from '../core/plan/isolation.ts';
import type { GroupState } from '../core/state.ts';
import { formatDuration, plural, type Style } from './format.ts';
import { safeLine } from './terminal-text.ts';
import { listTitles } from './wording.ts';

const commandColumnsMax = 200;
/** Different commands or reasons; nobody reads more at once. */
const linesMax = 30;

export interface Isolation {
  readonly mode: IsolationMode;
  /** Completes "because …"; no full stop. */
  readonly why: string;
}

/** Where the session works, or would work if it were started now, and why. */
export function isolationWhy(state: GroupState, id: SessionId): Isolation {
  const mode = isolationOf(state, id);
  const record = state.sessions.get(id);
  const { isolate, repository } = record?.definition ?? {};
  if (isolate === mode) return { mode, why: 'that was asked for' };
  if (record?.isolated !== undefined) return { mode, why: 'its first attempt began there' };
  if (repository === undefined) return { mode, why: 'the project is in no git repository' };
  if (mode === 'worktree') return { mode, why: 'sessions may meet in a repository, or one asked for it' };
  return buildsInPlace(state, id)
    ? { mode, why: `it builds on work that lies in the checkout of ${repositoryName(repository)} itself` }
    : { mode, why: 'no two sessions of the group may meet in a repository' };
}

/** What people call a repository: the folder with `.git`, or that of a bare one. */
export function repositoryName(repository: string): string {
  const folder = basename(repository) === '.git' ? dirname(repository) : repository;
  return safeLine(basename(folder) || folder, 40);
}

/** `a worktree of its own` or `the project folder itself`. */
export function placeText(mode: IsolationMode): string {
  return mode === 'worktree' ? 'a worktree of its own' : 'the project folder itself';
}

/** The accept command with its limits; undefined when there is none. */
export function acceptText(definition: SessionDefinition): string | undefined {
  const { accept, acceptRetries = defaultAcceptRetries, acceptTimeoutMs = defaultCommandTimeoutMs } = definition;
  if (accept === undefined) return undefined;
  const retries = acceptRetries === 1 ? '1 retry' : `${acceptRetries} retries`;
  return `${commandText(accept)} (${retries}, at most ${formatDuration(acceptTimeoutMs)})`;
}

/** The setup command with its limit; undefined when there is none. */
export function setupText({ setup, setupTimeoutMs = defaultCommandTimeoutMs }: SessionDefinition): string | undefined {
  if (setup === undefined) return undefined;
  return `${commandText(setup)} (at most ${formatDuration(setupTimeoutMs)})`;
}

/** What an untrusted project means; undefined when it is trusted. */
export function trustText({ untrusted }: SessionDefinition): string | undefined {
  return untrusted ? 'its hooks do not run, and of its variables only harmless ones count' : undefined;
}

/** The limit on what its commands may take; undefined when there is none. */
export function memoryText({ memoryBytes }: SessionDefinition): string | undefined {
  if (memoryBytes === undefined) return undefined;
  const megabytes = Math.round(memoryBytes / 1_000_000).toLocaleString('en-US');
  return `${megabytes} MB for its commands and those of others that run at once`;
}

/** The limit on its processes; undefined when there is none. */
export function processesText({ maxProcesses }: SessionDefinition): string | undefined {
  if (maxProcesses === undefined) return undefined;
  return `at most ${maxProcesses.toLocaleString('en-US')} processes and threads at once, claude’s own included`;
}

/** On which machines it works; undefined when any will do. */
export function machineText({ requires = [], host }: SessionDefinition): string | undefined {
  const having = requires.length === 0 ? '' : `one that has ${requires.map((label) => safeLine(label, 63)).join(', ')}`;
  return host === undefined ? having || undefined : safeLine(host, 63);
}

/** A script of several lines is shown as what it is. */
function commandText(command: string): string {
  return safeLine(command.includes('\n') ? JSON.stringify(command) : command, commandColumnsMax);
}

/** Which of these sessions get worktrees and why, and the commands that will be run; empty when there are none. */
export function workPlanLines(state: GroupState, ids: readonly SessionId[], style: Style): string[] {
  const places = collect(ids, (id) => {
    if (definitionOf(state, id)?.repository === undefined) return [];
    const { mode, why } = isolationWhy(state, id);
    return [`${placeText(mode)}, because ${why}`];
  });
  const commands = collect(ids, (id) => {
    const definition = definitionOf(state, id);
    if (definition === undefined) return [];
    const accept = acceptText(definition);
    const setup = isSetUp(state, id) ? setupText(definition) : undefined;
    return [...(setup === undefined ? [] : [`setup ${setup}`]), ...(accept === undefined ? [] : [`accept ${accept}`])];
  });
  const idle = collect(ids, (id) => {
    const setup = definitionOf(state, id)?.setup;
    return setup === undefined || isSetUp(state, id) ? [] : [`setup ${commandText(setup)}`];
  });
  const bounds = (text: (definition: SessionDefinition) => string | undefined) =>
    collect(ids, (id) => [definitionOf(state, id)].flatMap((one) => (one === undefined ? [] : (text(one) ?? []))));
  return [
    ...section(state, 'Works in', places, style),
    ...section(state, 'Untrusted projects', bounds(trustText), style),
    ...section(state, 'Memory', bounds(memoryText), style),
    ...section(state, 'Processes', bounds(processesText), style),
    ...section(state, 'Shell commands that are run', commands, style),
    ...section(state, 'Not run, because only a worktree is set up', idle, style),
    ...eventCommandLines(state, style),
  ];
}

function isSetUp(state: GroupState, id: SessionId): boolean {
  return isolationOf(state, id) === 'worktree';
}

function eventCommandLines({ group }: GroupState, style: Style): string[] {
  const { onEvent } = group.config;
  if (onEvent === undefined) return [];
  return ['', style('dim', 'Shell command that is told of the end, of pauses and limits'), `  ${commandText(onEvent)}`];
}

function definitionOf(state: GroupState, id: SessionId): SessionDefinition | undefined {
  return state.sessions.get(id)?.definition;
}

/** Sessions by what is said of them. */
function collect(ids: readonly SessionId[], said: (id: SessionId) => readonly string[]): Map<string, SessionId[]> {
  const found = new Map<string, SessionId[]>();
  for (const id of ids) {
    for (const text of said(id)) {
      const same = found.get(text);
      if (same === undefined) found.set(text, [id]);
      else same.push(id);
    }
  }
  return found;
}

function section(state: GroupState, title: string, lines: ReadonlyMap<string, SessionId[]>, style: Style): string[] {
  if (lines.size === 0) return [];
  const shown = [...lines].map(([text, ids]) => `  ${text}: ${listTitles(state, ids)}`);
  const hidden = shown.length - linesMax;
  if (hidden <= 1) return ['', style('dim', title), ...shown];
  return ['', style('dim', title), ...shown.slice(0, linesMax), `  and ${plural(hidden, 'other')}`];
}
