/** `faber status`, `prime-context` and `session-end`. */

import { type Command, InvalidArgumentError } from '@commander-js/extra-typings';
import {
  currentActor,
  currentProject,
  currentRun,
  danglingRun,
  type FoundRun,
  noActiveRun,
  ofWorkItem,
  settleWithGit,
  soundConfig,
} from '../../../app/faber/current-run.ts';
import { bashCharactersMax } from '../../../app/faber/start-run.ts';
import { listOf, nonEmptyText, objectOf } from '../../../context/faber/json-text.ts';
import { type Primed, type PrimedArtifact, primeContext } from '../../../context/faber/prime.ts';
import { type FaberProject, listRuns, readActiveRun } from '../../../context/faber/project.ts';
import {
  currentSession,
  endSession,
  inProgress,
  isCompactionDue,
  isSessionOpen,
  nextPhase,
  partOf,
  phasesCompleted,
} from '../../../context/faber/state.ts';
import { loadState, updateState } from '../../../context/faber/state-file.ts';
import { isTrigger, workflowName } from '../../../context/faber/workflow-config.ts';
import { harmless } from '../../../context/hook-call.ts';
import { defined } from '../../../core/defined.ts';
import { ok } from '../../../core/failure.ts';
import { nearest } from '../../../core/nearest.ts';
import { foreignText } from '../../../core/text.ts';
import type { JsonObject } from '../../../store/json.ts';
import { formatTable } from '../../../view/format.ts';
import { safeLine } from '../../../view/terminal-text.ts';
import { type Context, need, refuse, refuseWith } from '../../context.ts';
import { parseWorkId } from '../../options/options.ts';

interface Shared {
  readonly runId?: string | undefined;
  readonly project?: string | undefined;
  readonly json?: true | undefined;
}

const statusExample = `
Example:
  $ claude-code-agent faber status
  $ claude-code-agent faber status --json | jq .sessions`;

export function defineFaberStatus(command: Command, context: Context): void {
  command
    .description('Show the active FABER run: phases, sessions on all hosts, and their loaded artifacts.')
    .option('--run-id <id>', 'run id (default: the active run)')
    .option('--work-id <id>', 'refuse if the run belongs to another work item', parseWorkId)
    .option('--project <dir>', 'the project (default: the current folder)')
    .option('--json', 'one JSON document: the state of the run, and the other runs')
    .addHelpText('after', statusExample)
    .action((given) => context.run(() => status(context, given)));
}

interface StatusGiven extends Shared {
  readonly workId?: string | undefined;
}

async function status(context: Context, given: StatusGiven): Promise<void> {
  const { stdout, stderr } = context;
  const project = need(currentProject(context, given.project));
  const active = readActiveRun(context.world.files, project);
  const found = currentRun(context, project, given.runId);
  // Several runs without an active one are listed, too.
  if (!found.ok && found.failure.reason !== 'ambiguous') refuseWith(found.failure);
  const run = found.ok && found.value !== null ? need(ofWorkItem(found.value, given.workId)) : null;
  const others = otherRuns(context, project, run?.runId);
  const activeId = active.kind === 'run' ? active.runId : null;
  const dangling = run === null ? danglingRun(context, project) : null;
  if (dangling !== null) stderr.line(`WARNING: ${dangling}`);
  if (given.json) {
    stdout.json({ active_run_id: activeId, run: run?.state ?? null, other_runs: others });
    return;
  }
  if (run === null) stdout.line('No FABER run is active in this project.');
  else stdout.lines(describe(context, project, run, activeId));
  if (others.length > 0) {
    stdout.line('Other runs:');
    const rows = others.map((other) => [`  ${other.run_id}`, other.status]);
    stdout.lines(formatTable([{ title: '  RUN' }, { title: 'STATUS' }], rows, stdout.style));
  }
  if (run !== null && run.runId === activeId) await settleWithGit(context, project, run.runId);
}

function otherRuns(context: Context, project: FaberProject, shown: string | undefined) {
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
  const last = nonEmptyText(metadata.last_artifact_reload);
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
  const ended = nonEmptyText(record.ended_at) === undefined ? 'end not recorded' : `to ${word(record.ended_at)}`;
  const why = nonEmptyText(record.end_reason) === undefined ? '' : ` (${word(record.end_reason)})`;
  const who = `${word(record.session_id)}${partText(record)} on ${word(hostname)}`;
  return `${who}, from ${word(record.started_at)} ${ended}${why}`;
}

/** A conversation has one record per part; each compaction starts a new part. */
function partText(record: JsonObject | null): string {
  const part = partOf(record);
  return part === 1 ? '' : ` part ${part}, after a compaction,`;
}

function word(value: unknown): string {
  return value === undefined || value === null ? '-' : safeLine(foreignText(value), 200);
}

const primeExample = `
Example:
  $ claude-code-agent faber prime-context
  $ claude-code-agent faber prime-context --artifacts workflow-state,specification
  $ claude-code-agent faber prime-context --dry-run`;

export function definePrimeContext(command: Command, context: Context): void {
  command
    .description(
      'Print the critical artifacts of the active FABER run. Skips artifacts that this session loaded ' +
        'within the last five minutes.',
    )
    .option('--run-id <id>', 'the run (default: the active one)')
    .option('--artifacts <ids>', 'only these, separated by commas', parseIds)
    .option('--force', 'load all of them, including recently loaded ones')
    .option('--dry-run', 'show what would be loaded; write nothing')
    .option('--trigger <trigger>', 'session_start, manual or phase_transition:a->b', parseTrigger, 'manual')
    .option('--project <dir>', 'the project (default: the current folder)')
    .option('--json', 'one JSON document: the session and each artifact')
    .addHelpText('after', primeExample)
    .action((given) => context.run(() => prime(context, given)));
}

interface PrimeGiven extends Shared {
  readonly artifacts?: readonly string[] | undefined;
  readonly force?: true | undefined;
  readonly dryRun?: true | undefined;
  readonly trigger: string;
}

function parseIds(text: string): readonly string[] {
  const ids = text
    .split(',')
    .map((id) => id.trim())
    .filter((id) => id !== '');
  if (ids.length > 0) return ids;
  throw new InvalidArgumentError('It must be a list of artifacts such as workflow-state,specification.');
}

function parseTrigger(text: string): string {
  if (isTrigger(text)) return text;
  throw new InvalidArgumentError('It must be session_start, manual or phase_transition:a->b.');
}

function prime(context: Context, given: PrimeGiven): void {
  const project = need(currentProject(context, given.project));
  const run = need(currentRun(context, project, given.runId));
  const isHook = given.trigger === 'session_start';
  // Not an error, because a hook of the user may call this in every session.
  const isOver = isHook && run?.state.status !== inProgress;
  if (run === null || isOver) {
    const none = noActiveRun(context, project);
    if (!isHook) refuseWith(none);
    context.stdout.line('No active workflow found, skipping prime-context');
    if (run === null && danglingRun(context, project) !== null) context.stderr.line(none.message);
    return;
  }
  checkIds(context, project, run, given.artifacts);
  const primed = need(
    primeContext(context.world.files, {
      project,
      runId: run.runId,
      who: currentActor(context, project),
      trigger: given.trigger,
      ...defined({ only: given.artifacts }),
      force: given.force === true,
      dryRun: given.dryRun === true,
      isCompacted: isHook && isCompactionDue(run.state),
      charactersMax: bashCharactersMax,
    }),
  );
  show(context, run.runId, primed, given);
  const { missing, trouble } = primed;
  if (missing.length > 0) {
    const next = 'The work needs them. The lines above show their expected paths.';
    refuse('corrupt-file', `Required artifacts are missing: ${missing.join(', ')}.`, next);
  }
  if (trouble !== undefined) refuse('write-failed', `The context was loaded but not recorded: ${trouble}`, '');
}

/** Refuses a faulty configuration and unknown artifact ids. */
function checkIds(context: Context, project: FaberProject, { state }: FoundRun, ids: readonly string[] = []): void {
  const config = need(soundConfig(context, project, workflowName(state.workflow_id)));
  const known = config.artifacts.map(({ id }) => id);
  const unknown = ids.filter((id) => !known.includes(id));
  if (unknown.length === 0) return;
  const names = unknown.map((id) => {
    const near = nearest(id, known);
    return `${JSON.stringify(id.slice(0, 100))}${near === undefined ? '' : ` (did you mean ${near}?)`}`;
  });
  refuse('usage', `There is no artifact ${names.join(' and no ')}.`, `There are: ${known.join(', ') || 'none'}.`);
}

function show({ stdout, stderr }: Context, runId: string, primed: Primed, { json, dryRun, trigger }: PrimeGiven): void {
  if (json) stdout.json(documentOf(runId, primed, trigger));
  else if (dryRun) {
    stdout.line(safeLine(`Would load for run ${runId} at ${trigger}:`, 400));
    stdout.lines(primed.artifacts.map((one) => `  ${safeLine(wouldLoad(one), 400)}`));
  } else {
    stdout.line(harmless(primed.text));
    for (const { artifact, due } of primed.artifacts) {
      if (due.action === 'cached') stderr.line(safeLine(`${artifact.id} ${due.why}`, 400));
    }
  }
}

function wouldLoad({ artifact, due, content }: PrimedArtifact): string {
  const what = `${artifact.id} (${artifact.type})`;
  if (due.action !== 'load') return `${what} ${due.action}: ${due.why}`;
  if (content?.kind === 'missing') return `${what} missing: ${content.source} ${content.trouble}`;
  return `${what} ${content?.source}${content?.kind === 'text' ? ` (${content.sizeBytes} bytes)` : ''}`;
}

function documentOf(runId: string, primed: Primed, trigger: string): object {
  return {
    run_id: runId,
    trigger,
    session_id: primed.sessionId,
    is_new_session: primed.isNewSession,
    artifacts: primed.artifacts.map(({ artifact, due, content }) => ({
      id: artifact.id,
      type: artifact.type,
      required: artifact.required,
      action: content?.kind === 'missing' ? 'missing' : due.action,
      ...(due.action === 'load' ? {} : { why: due.why }),
      ...(content === undefined ? {} : { source: content.source }),
      ...(content?.kind === 'missing' ? { why: content.trouble } : {}),
      ...(content?.kind === 'text' ? { size_bytes: content.sizeBytes } : {}),
    })),
    text: primed.text,
  };
}

const endExample = `
Example:
  $ claude-code-agent faber session-end
  $ claude-code-agent faber session-end --reason compaction`;

export function defineSessionEnd(command: Command, context: Context): void {
  command
    .description('Record the end of the current session, with its finished phases and loaded artifacts.')
    .option('--run-id <id>', 'the run (default: the active one)')
    .option('--reason <word>', 'reason, such as normal or compaction', parseReason, 'normal')
    .option('--project <dir>', 'the project (default: the current folder)')
    .option('--json', 'one JSON document: the run and the session')
    .addHelpText('after', endExample)
    .action((given) => context.run(() => end(context, given)));
}

interface EndGiven extends Shared {
  readonly reason: string;
}

function parseReason(text: string): string {
  if (/^[a-z][a-z_-]{0,63}$/.test(text)) return text;
  throw new InvalidArgumentError('It must be a lower-case word such as normal or compaction.');
}

function end(context: Context, { reason, json, ...given }: EndGiven): void {
  const { stdout, stderr } = context;
  const project = need(currentProject(context, given.project));
  const run = need(currentRun(context, project, given.runId));
  if (run === null) {
    const dangling = danglingRun(context, project);
    if (dangling !== null) stderr.line(dangling);
    if (json) stdout.json({ run_id: null, session_id: null });
    else stdout.line('No active workflow found, skipping session-end');
    return;
  }
  const { runId } = run;
  const who = currentActor(context, project);
  let ended: string | null = null;
  need(
    updateState(context.world.files, project, runId, (state) => {
      const done = endSession(state, who, { atMs: who.nowMs, reason });
      ended = done.ended;
      return ok(done.state);
    }),
  );
  if (json) stdout.json({ run_id: runId, session_id: ended, reason });
  else if (ended === null) stdout.line(`Run ${runId} has no record of this session; nothing was changed`);
  else stdout.line(`Recorded the end of session ${ended} in run ${runId}`);
}
