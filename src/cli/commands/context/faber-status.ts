/** `faber status`: the active run of this work tree, its phases and sessions, and which other runs there are. */
import type { Command } from '@commander-js/extra-typings';
import {
  danglingRun,
  type FoundRun,
  ofWorkItem,
  projectHere,
  runHere,
  soundConfig,
  warnOfIgnored,
} from '../../../app/faber/here.ts';
import { type JsonObject, listOf, objectOf, textOf } from '../../../context/faber/json-text.ts';
import { type FaberProject, listRuns, readActiveRun } from '../../../context/faber/project.ts';
import { currentSession, isSessionOpen, nextPhase, partOf, phasesCompleted } from '../../../context/faber/state.ts';
import { loadState } from '../../../context/faber/state-file.ts';
import { workflowName } from '../../../context/faber/workflow-config.ts';
import { ok } from '../../../core/failure.ts';
import { foreignText } from '../../../core/text.ts';
import { formatTable } from '../../../view/format.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { parseWorkId } from '../../options/option-values.ts';

const example = `
Example:
  $ claude-code-agent faber status
  $ claude-code-agent faber status --json | jq .sessions`;

export function define(command: Command, context: Context): void {
  command
    .description('Shows the active FABER run: phases, sessions on all machines, and what was loaded into them.')
    .option('--run-id <id>', 'another run than the active one')
    .option('--work-id <id>', 'refuse when the run is of another work item than this one', parseWorkId)
    .option('--project <dir>', 'the project (default: the current folder)')
    .option('--json', 'one JSON document: the state of the run, and the other runs')
    .addHelpText('after', example)
    .action((given) => context.run(() => status(context, given)));
}

interface Given {
  readonly runId?: string | undefined;
  readonly workId?: string | undefined;
  readonly project?: string | undefined;
  readonly json?: true | undefined;
}

interface OtherRun {
  readonly run_id: string;
  readonly status: string;
}

async function status(context: Context, given: Given): Promise<Work> {
  const project = projectHere(context, given.project);
  if (!project.ok) return project;
  const active = readActiveRun(context.world.files, project.value);
  const found = runHere(context, project.value, given.runId);
  // Several runs and none of them active is a state to show, too.
  if (!found.ok && found.failure.reason !== 'ambiguous') return found;
  const run = found.ok ? found.value : null;
  const meant = run === null ? ok(null) : ofWorkItem(run, given.workId);
  if (!meant.ok) return meant;
  const others = otherRuns(context, project.value, run?.runId);
  const activeId = active.kind === 'run' ? active.runId : null;
  const dangling = run === null ? danglingRun(context, project.value) : null;
  if (dangling !== null) context.stderr.line(`WARNING: ${dangling}`);
  if (given.json === true) {
    context.stdout.line(safeJson({ active_run_id: activeId, run: run?.state ?? null, other_runs: others }, 2));
    return ok(exitCode.done);
  }
  if (run === null) context.stdout.line('No FABER run is active in this project.');
  else for (const line of describe(context, project.value, run, activeId)) context.stdout.line(line);
  if (others.length > 0) {
    context.stdout.line('Other runs:');
    const rows = others.map((other) => [`  ${other.run_id}`, other.status]);
    for (const line of formatTable([{ title: '  RUN' }, { title: 'STATUS' }], rows, context.stdout.style)) {
      context.stdout.line(line);
    }
  }
  if (run !== null && run.runId === activeId) await warnOfIgnored(context, project.value, run.runId);
  return ok(exitCode.done);
}

function otherRuns(context: Context, project: FaberProject, shown: string | undefined): OtherRun[] {
  return listRuns(context.world.files, project)
    .filter((runId) => runId !== shown)
    .map((runId) => {
      const state = loadState(context.world.files, project, runId);
      return { run_id: runId, status: state.ok ? word(state.value.status) : 'its state cannot be read' };
    });
}

function describe(context: Context, project: FaberProject, { runId, state }: FoundRun, activeId: string | null) {
  const config = soundConfig(context, project, workflowName(state.workflow_id));
  const done = phasesCompleted(state);
  const next = config.ok ? nextPhase(state, config.value.phases) : undefined;
  const sessions = objectOf(state.sessions);
  const current = currentSession(state);
  const open = isSessionOpen(state) ? 'open' : 'ended';
  const metadata = objectOf(state.context_metadata);
  const loaded = listOf(metadata.artifacts_in_context).map((one) => word(objectOf(one).artifact_id));
  const history = listOf(sessions.session_history).map(objectOf);
  const last = textOf(metadata.last_artifact_reload);
  const rows: readonly (readonly [string, string])[] = [
    ['Run', `${runId}${runId === activeId ? '' : ' (not the active one)'}`],
    ['Work item', word(state.work_id)],
    ['Workflow', word(state.workflow_id)],
    ['Status', word(state.status)],
    ['Finished', done.join(', ') || 'no phase'],
    ...(next === undefined ? [] : [['Next', next] as const]),
    ['Sessions', word(sessions.total_sessions ?? 0)],
    ...history.map((record) => ['', describeSession(record)] as const),
    ...(current.id === undefined
      ? []
      : [['Current', `${current.id}${partText(current.record) || ','} ${open}`] as const]),
    ['Loaded', `${loaded.join(', ') || 'nothing'}${last === undefined ? '' : `, last at ${last}`}`],
    ...(config.ok ? [] : [['Trouble', config.failure.message] as const]),
  ];
  return rows.map(([title, text]) => `${title.padEnd(10)}${safeLine(text, 400)}`);
}

function describeSession(record: JsonObject): string {
  const { hostname } = objectOf(record.environment);
  const ended = textOf(record.ended_at) === undefined ? 'end not recorded' : `to ${word(record.ended_at)}`;
  const why = textOf(record.end_reason) === undefined ? '' : ` (${word(record.end_reason)})`;
  const who = `${word(record.session_id)}${partText(record)} on ${word(hostname)}`;
  return `${who}, from ${word(record.started_at)} ${ended}${why}`;
}

/** One conversation has a record before and after each compaction. */
function partText(record: JsonObject | null): string {
  const part = partOf(record);
  return part === 1 ? '' : ` part ${part}, after a compaction,`;
}

function word(value: unknown): string {
  return value === undefined || value === null ? '-' : safeLine(foreignText(value), 200);
}
