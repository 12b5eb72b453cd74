/** Loads a run's critical artifacts into a session, for `faber prime-context` and the hook. */

import { defined } from '../../core/defined.ts';
import { ok, type Result } from '../../core/failure.ts';
import { foreignText } from '../../core/text.ts';
import type { JsonObject } from '../../store/json.ts';
import { type ContextFiles, fitted, harmlessLine } from '../hook-call.ts';
import {
  type ArtifactContent,
  type Content,
  type Due,
  dueNow,
  loadArtifact,
  type RunContext,
  renderArtifacts,
} from './artifacts.ts';
import { type FaberProject, statePath } from './project.ts';
import {
  type Actor,
  type Begun,
  beginSession,
  currentSession,
  isoTime,
  nextPhase,
  objectOf,
  partOf,
  phasesCompleted,
  recordLoads,
} from './state.ts';
import { loadState, updateState } from './state-file.ts';
import { type ContextArtifact, loadWorkflowConfig, type WorkflowConfig, workflowName } from './workflow-config.ts';

export interface PrimeOptions {
  readonly project: FaberProject;
  readonly runId: string;
  readonly who: Actor;
  /** `session_start`, `manual` or `phase_transition:a->b`. */
  readonly trigger: string;
  readonly only?: readonly string[];
  readonly force: boolean;
  readonly dryRun: boolean;
  /** The conversation was just compacted: a new record begins. */
  readonly isCompacted: boolean;
  readonly charactersMax: number;
}

export interface PrimedArtifact {
  readonly artifact: ContextArtifact;
  readonly due: Due;
  readonly content?: Content;
}

export interface Primed {
  /** For the model: the run, then the artifacts. */
  readonly text: string;
  readonly config: WorkflowConfig;
  readonly sessionId: string;
  readonly isNewSession: boolean;
  readonly artifacts: readonly PrimedArtifact[];
  /** Missing required artifacts. */
  readonly missing: readonly string[];
  /** Why the state could not be written; the text is valid anyway. */
  readonly trouble?: string;
}

/**
 * Reads everything, records the loads in state.json, and returns the text. Fails as loadState and loadWorkflowConfig
 * do; nothing is written then.
 */
export function primeContext(files: ContextFiles, options: PrimeOptions): Result<Primed> {
  const { project, runId, who } = options;
  const state = loadState(files, project, runId);
  if (!state.ok) return state;
  const config = loadWorkflowConfig(files, project, workflowName(state.value.workflow_id));
  if (!config.ok) return config;
  const begun = beginSession(state.value, who, options);
  const ground: RunContext = { files, project, runId, state: state.value };
  const artifacts = config.value.artifacts.map((artifact): PrimedArtifact => {
    const due = dueNow(artifact, state.value, {
      trigger: options.trigger,
      ...defined({ only: options.only }),
      force: options.force,
      nowMs: who.nowMs,
      sessionId: begun.sessionId,
      isNew: begun.isNew,
    });
    return due.action === 'load' ? { artifact, due, content: loadArtifact(artifact, ground) } : { artifact, due };
  });
  const missing = artifacts
    .filter(({ artifact, content }) => artifact.required && content?.kind === 'missing')
    .map(({ artifact }) => artifact.id);
  const written = options.dryRun ? ok(state.value) : record(files, options, artifacts);
  const trouble = written.ok ? {} : { trouble: written.failure.message };
  const shown = artifacts.flatMap(({ artifact, content }) => (content === undefined ? [] : [{ artifact, content }]));
  const text = textOf(begun, { options, config: config.value, shown, ...trouble });
  const { sessionId, isNew } = begun;
  return ok({ text, config: config.value, sessionId, isNewSession: isNew, artifacts, missing, ...trouble });
}

/** The state is read again under its lock, because another process may have changed it. */
function record(files: ContextFiles, options: PrimeOptions, artifacts: readonly PrimedArtifact[]): Result<JsonObject> {
  const { project, runId, who, trigger } = options;
  const loaded = artifacts.flatMap(({ artifact, content }) =>
    content?.kind === 'text' ? [{ id: artifact.id, source: content.source, sizeBytes: content.sizeBytes }] : [],
  );
  return updateState(files, project, runId, (state) => {
    const { state: begun, sessionId } = beginSession(state, who, options);
    return ok(loaded.length === 0 ? begun : recordLoads(begun, loaded, { trigger, sessionId, nowMs: who.nowMs }));
  });
}

interface TextParts {
  readonly options: PrimeOptions;
  readonly config: WorkflowConfig;
  readonly shown: readonly ArtifactContent[];
  readonly trouble?: string;
}

/** The urgent part first; one line changes every time, because claude drops a repeated text. */
function textOf({ state, sessionId, isNew }: Begun, { options, config, shown, trouble }: TextParts): string {
  const head = runLines(options.project, { runId: options.runId, state }, config.phases);
  const sessions = objectOf(state.sessions);
  const part = partOf(currentSession(state).record);
  const how = part > 1 ? `, part ${part} of its conversation` : isNew ? '' : ', going on';
  const which = `session ${harmlessLine(foreignText(sessions.total_sessions))} of the run${how}`;
  head.push(`Loaded at ${isoTime(options.who.nowMs)} (${options.trigger}) for ${harmlessLine(sessionId)}, ${which}.`);
  if (config.problems.length > 0) {
    head.push(`Problems in its configuration: ${harmlessLine(config.problems.slice(0, 3).join('; '))}`);
  }
  if (trouble !== undefined) head.push(`This could not be recorded: ${harmlessLine(trouble)}`);
  const text = head.join('\n');
  const rest = renderArtifacts(shown, options.charactersMax - text.length - 1);
  return fitted(
    rest === '' ? text : `${text}\n${rest}`,
    statePath(options.project, options.runId),
    options.charactersMax,
  );
}

export function runLines(
  project: FaberProject,
  { runId, state }: { readonly runId: string; readonly state: JsonObject },
  phases: readonly string[],
): string[] {
  const done = phasesCompleted(state).map((name) => harmlessLine(name));
  const next = nextPhase(state, phases);
  const work = state.work_id === undefined ? '' : `, work item ${harmlessLine(foreignText(state.work_id))}`;
  const goOn = next === undefined ? 'All phases are finished.' : `Continue with the phase ${harmlessLine(next)}.`;
  const workflow = harmlessLine(workflowName(state.workflow_id));
  return [
    `FABER run ${runId} (${workflow}${work}): ${harmlessLine(foreignText(state.status))}.`,
    `Finished phases: ${done.length === 0 ? 'none' : done.join(', ')}. ${goOn}`,
    `State: ${statePath(project, runId)}. Record a finished phase with: claude-code-agent faber phase <name>`,
  ];
}
