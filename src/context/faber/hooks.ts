/**
 * context/faber/: FABER runs and their sessions. This file: its hooks. A session of a project with an active run gets
 * the run's critical artifacts at every start, resume, clear and compaction, and its end is recorded in the run's
 * state.
 */

import { commandText } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import { ok } from '../../core/failure.ts';
import { foreignText } from '../../core/text.ts';
import type { JsonObject } from '../../store/json.ts';
import {
  type ContextSystem,
  charactersMax,
  type HookAnswer,
  type HookCall,
  harmlessLine,
  isEarlierId,
} from '../hook-call.ts';
import { primeContext, runLines } from './prime.ts';
import { type FaberProject, findProject, readGitHead } from './project.ts';
import { type Actor, currentSession, endSession, noteCompaction, phasesDefault, sessionIds } from './state.ts';
import { activeRun, type Running, runInProgress, updateState } from './state-file.ts';
import { loadWorkflowConfig, workflowName } from './workflow-config.ts';

export const faber = { name: 'faber', answer } satisfies ContextSystem;

type Run = Running & { readonly ok: true };

function answer(call: HookCall): HookAnswer {
  const project = findProject(call.files, call.projectFolder);
  // The last phase completes the run before its session ends, and that end must be recorded too.
  const run = call.event === 'session-end' ? activeRun(call.files, project) : runInProgress(call.files, project);
  if (!run.ok) {
    const tells = run.isBroken === true && call.event === 'session-start';
    const text = tells ? `FABER: the run that is active here cannot be read. ${harmlessLine(run.why)}` : '';
    return { text, notes: { run: null, why: run.why } };
  }
  if (call.event === 'session-start') return sessionStart(call, project, run);
  return call.event === 'pre-compact' ? preCompact(call, project, run) : sessionEnd(call, project, run);
}

/**
 * Whether the session belongs to the run: it is recorded there, FABER was chosen for it, or it continues a recorded
 * conversation. A user's resumed or compacted session counts as well, as FABER's specification has it.
 */
function takesPart(call: HookCall, state: JsonObject): boolean {
  const { sessionId, source, isWorker, isChosen } = call;
  const ids = sessionIds(state);
  if (isChosen === true || sessionId === undefined || ids.includes(sessionId)) return true;
  const isNewId = source === 'clear' || source === 'fork';
  if (!isWorker) return source !== 'startup' && (!isNewId || currentSession(state).record?.end_reason === source);
  return ids.some((id) => isEarlierId(call, id));
}

/** A line that the session cannot mistake for its task. */
function otherwiseLine(runId: string, { work_id }: JsonObject): string {
  const work = work_id === undefined ? '' : ` for the work item ${harmlessLine(foreignText(work_id))}`;
  return (
    `FABER: the run ${runId}${work} is in progress here. Leave it alone unless your task is part of it; ` +
    `then load it with: ${commandText(['faber', 'prime-context'])}`
  );
}

function sessionStart(call: HookCall, project: FaberProject, { runId, state }: Run): HookAnswer {
  if (!takesPart(call, state)) return { text: otherwiseLine(runId, state), notes: { run: runId, takesPart: false } };
  const primed = primeContext(call.files, {
    project,
    runId,
    who: whoOf(call, project),
    trigger: 'session_start',
    force: false,
    dryRun: false,
    isCompacted: call.source === 'compact',
    charactersMax,
  });
  if (!primed.ok) {
    const { message } = primed.failure;
    // A session that knows of its run can read for itself.
    const why = harmlessLine(message);
    const text = `FABER run ${runId} is in progress here, but its context could not be loaded: ${why}`;
    return { text, notes: { run: runId, trouble: message } };
  }
  const { text, sessionId, isNewSession, artifacts, missing, trouble } = primed.value;
  const loaded = artifacts.filter(({ content }) => content?.kind === 'text').map(({ artifact }) => artifact.id);
  return { text, notes: { run: runId, sessionId, isNewSession, loaded, missing, trouble } };
}

/** Everything is saved and the end recorded, although a compaction may still fail. */
function preCompact(call: HookCall, project: FaberProject, { runId, state }: Run): HookAnswer {
  if (!takesPart(call, state)) return { text: '', notes: { run: runId, takesPart: false } };
  const who = whoOf(call, project);
  const saved = updateState(call.files, project, runId, (now) => ok(noteCompaction(now, who)));
  const config = loadWorkflowConfig(call.files, project, workflowName(state.workflow_id));
  const text = [
    ...runLines(project, { runId, state }, config.ok ? config.value.phases : phasesDefault),
    'Keep in the summary: this run id, the current phase and what of it is done, decisions, open questions, files ' +
      'that were changed and the next step. The artifacts of the run are loaded again afterwards; do not repeat them.',
  ].join('\n');
  return { text, notes: { run: runId, ...(saved.ok ? {} : { trouble: saved.failure.message }) } };
}

function sessionEnd(call: HookCall, project: FaberProject, { runId }: Run): HookAnswer {
  let ended: string | null = null;
  const saved = updateState(call.files, project, runId, (state) => {
    const end = endSession(state, whoOf(call, project), {
      atMs: call.nowMs,
      reason: harmlessLine(call.source ?? 'normal'),
    });
    ended = end.ended;
    return ok(end.state);
  });
  return { text: '', notes: { run: runId, ended, ...(saved.ok ? {} : { trouble: saved.failure.message }) } };
}

function whoOf(call: HookCall, project: FaberProject): Actor {
  const commit = readGitHead(call.files, project.top)?.commit;
  return {
    ...defined({ sessionId: call.sessionId, platform: call.platform, gitCommit: commit }),
    host: call.host,
    cwd: call.projectFolder,
    nowMs: call.nowMs,
  };
}
