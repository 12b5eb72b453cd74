/**
 * Text for the logs of GitHub Actions: like everywhere else, with the details of each session's end folded away, and
 * annotations for what failed. What sessions say must not become a command to the machine that runs the workflow.
 */
import { adviceText } from '../core/advice.ts';
import type { GroupEvent } from '../core/event.ts';
import { eventAdvice } from '../core/plan/advice.ts';
import type { GroupState } from '../core/state.ts';
import { plural } from './format.ts';
import type { Reporter } from './reporter.ts';
import { safeLine, safeText } from './terminal-text.ts';
import { createTextReporter, type TextReporterOptions } from './text-reporter.ts';
import { titleOf, withAdvice } from './wording.ts';
import { withoutCommands } from './workflow-commands.ts';

const linesMax = 100;
const lineColumnsMax = 400;
const sentenceColumnsMax = 1_000;

export function createGithubReporter(options: TextReporterOptions): Reporter {
  const text = createTextReporter({ ...options, write: (said) => options.write(withoutCommands(said)) });
  return {
    event(event, state, live) {
      text.event(event, state, live);
      for (const line of [...detailLines(event, state), ...annotations(event, state)]) options.write(`${line}\n`);
    },
    progress: (...what) => text.progress(...what),
    waiting: (...what) => text.waiting(...what),
    warning: (message, state) => {
      text.warning?.(message, state);
      options.write(`${annotation('warning', `Group ${state.group.name}`, message)}\n`);
    },
    summarize: (...what) => text.summarize(...what),
  };
}

/** What there is to say about the end of a session, to be unfolded by who wants to read it. */
function detailLines(event: GroupEvent, state: GroupState): string[] {
  switch (event.type) {
    case 'session_completed': {
      const { work } = event;
      const changes =
        work === undefined ? [] : [`${plural(work.files, 'file')}, +${work.insertions} -${work.deletions}`];
      return folded(`${titleOf(state, event.sessionId)}: result`, [...changes, ...linesOf(event.result)]);
    }
    case 'session_failed': {
      const said = [event.message, adviceText(eventAdvice(event, state))].filter((sentence) => sentence !== '');
      return folded(`${titleOf(state, event.sessionId)}: failed (${event.reason})`, [
        ...said.map((sentence) => safeLine(sentence, sentenceColumnsMax)),
        ...linesOf(event.output ?? ''),
      ]);
    }
    case 'session_paused':
      return folded(`${titleOf(state, event.sessionId)}: paused (${event.reason})`, [
        ...linesOf(event.message),
        ...linesOf(event.output ?? ''),
      ]);
    default:
      return [];
  }
}

function linesOf(text: string): string[] {
  const clean = safeText(text).trim();
  if (clean === '') return [];
  const lines = clean.split('\n');
  const shown = lines.slice(0, linesMax).map(shownLine);
  const hidden = lines.length - linesMax;
  return hidden > 0 ? [...shown, `and ${plural(hidden, 'more line')}`] : shown;
}

function shownLine(line: string): string {
  const [indent = ''] = /^ {0,40}/.exec(line) ?? [];
  return indent + safeLine(line, lineColumnsMax);
}

/** Each line begins with a mark, so that none of them is a command. */
function folded(title: string, lines: readonly string[]): string[] {
  if (lines.length === 0) return [];
  return [
    `::group::${escapeData(withoutCommands(title))}`,
    ...lines.map((line) => withoutCommands(`| ${line}`.trimEnd())),
    '::endgroup::',
  ];
}

function annotations(event: GroupEvent, state: GroupState): string[] {
  const said = 'message' in event ? withAdvice(event.message, eventAdvice(event, state)) : '';
  switch (event.type) {
    case 'session_failed': {
      const title = `Session ${titleOf(state, event.sessionId)} failed (${event.reason})`;
      return [annotation('error', title, said)];
    }
    case 'session_warning':
      return [annotation('warning', `Session ${titleOf(state, event.sessionId)}`, event.warning.message)];
    case 'group_failed':
      return [annotation('error', `Group ${state.group.name} failed (${event.reason})`, said)];
    case 'group_paused':
      return [annotation('warning', `Group ${state.group.name} is paused (${event.reason})`, said)];
    default:
      return [];
  }
}

function annotation(level: 'error' | 'warning', title: string, message: string): string {
  const said = escapeData(withoutCommands(safeText(message).trim()));
  return `::${level} title=${escapeProperty(withoutCommands(safeLine(title, lineColumnsMax)))}::${said}`;
}

/** As GitHub's own toolkit does it. */
export function escapeData(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

export function escapeProperty(text: string): string {
  return escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
}
