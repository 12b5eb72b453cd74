/**
 * Promises: the JSON Schemas of workflows and run states agree with the program: both accept the same workflows, and
 * every state that the program writes is valid.
 */
import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Ajv from 'ajv';
import {
  beginSession,
  endSession,
  finishPhase,
  newState,
  noteCompaction,
  phasesDefault,
  recordLoads,
} from '../../../../src/context/faber/state.ts';
import { loadState } from '../../../../src/context/faber/state-file.ts';
import { parseWorkflowConfig, shippedFaber } from '../../../../src/context/faber/workflow-config.ts';
import { FaberGround, files, runId, runStartMs, statePathOf } from '../../../support/context/faber/rig.ts';
import { fc } from '../../../support/property.ts';

const schemaOf = (name: string) => JSON.parse(readFileSync(join(shippedFaber, name), 'utf8'));
const ajv = new Ajv({
  allErrors: true,
  strict: true,
  allowUnionTypes: true,
  strictRequired: false,
  strictTypes: false,
});
const isWorkflow = ajv.compile(schemaOf('workflow.schema.json'));
const isState = ajv.compile(schemaOf('state.schema.json'));

/** What FABER's own schema requires of a state.json (github.com/fractary/faber, April 2026), as plain facts. */
const type = (name: string, more: object = {}) => ({ type: name, ...more });
const properties = (fields: object, required: readonly string[] = []) =>
  type('object', { properties: fields, required });
const [text, count, phaseName] = [type('string'), type('integer'), { enum: phasesDefault }];
const time = type('string', { pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?Z$' });
const environment = properties({ hostname: text, platform: text, cwd: text, git_commit: text });
const record = properties(
  {
    ...{ session_id: text, started_at: time, ended_at: time, environment },
    ...{ phases_completed: type('array', { items: phaseName }), artifacts_loaded: type('array', { items: text }) },
  },
  ['session_id', 'started_at'],
);
const phaseState = properties({
  status: { enum: ['pending', 'in_progress', 'completed', 'failed', 'skipped'] },
  ...{ started_at: time, completed_at: time },
});
const load = properties(
  {
    ...{ artifact_id: text, loaded_at: time, source: text, size_bytes: count },
    load_trigger: { enum: ['session_start', 'phase_transition', 'manual', 'compaction_detected'] },
  },
  ['artifact_id', 'loaded_at', 'load_trigger'],
);
const sessions = properties({
  ...{ current_session_id: text, total_sessions: count, session_history: type('array', { items: record }) },
});
const metadata = properties({
  ...{ last_artifact_reload: time, reload_count: count, artifacts_in_context: type('array', { items: load }) },
});
const isStateOfFaber = ajv.compile(
  properties(
    {
      ...{ target: text, work_id: { type: ['string', 'null'] }, workflow_version: text },
      status: { enum: ['in_progress', 'paused', 'completed', 'failed', 'cancelled'] },
      current_phase: { enum: [...phasesDefault, 'none'] },
      ...{ started_at: time, updated_at: time, completed_at: time },
      phases: properties(Object.fromEntries(phasesDefault.map((name) => [name, phaseState]))),
      ...{ artifacts: properties({ branch: text, spec_path: text }), sessions, context_metadata: metadata },
      worktree: properties(
        {
          ...{ path: text, branch: text, created_at: time, auto_cleanup: type('boolean') },
          created_by: { enum: ['fractary-faber', 'manual', 'unknown'] },
        },
        ['path'],
      ),
    },
    ['target', 'workflow_version', 'status', 'started_at'],
  ),
);

const artifact = {
  id: 'a',
  type: 'markdown',
  path: 'x',
  description: 'D',
  required: true,
  reload_triggers: ['manual'],
};
const withArtifact = (more: object) => ({ critical_artifacts: { always_load: [{ ...artifact, ...more }] } });
const frame = (more: object) => ({ phases: { frame: more } });

test.each<[boolean, unknown[]]>([
  [
    true,
    [
      ...[{}, frame({ pre_steps: [{ id: 's', prompt: '/x' }] }), { phases: ['frame', { id: 'b' }, { name: 'c' }] }],
      ...[{}, { type: 'skill' }, { type: 'git_info', path: undefined }, { path: undefined, command: '/x' }].map(
        withArtifact,
      ),
      ...[{ condition: null }, { condition: 'state.a != null' }].map(withArtifact),
    ],
  ],
  [
    false,
    [
      ...[[], { phases: 'x' }, { phases: {} }, { phases: { 'a b': {} } }, { phases: [{}] }, frame({ pre_steps: {} })],
      ...[frame({ pre_steps: [{ id: 's' }] }), { critical_artifacts: 7 }, { critical_artifacts: { always_load: {} } }],
      ...[{ critical_artifacts: { conditional_load: [7] } }],
      ...[{ id: '-x' }, { id: 'x'.repeat(65) }, { type: 'text' }, { description: '' }, { required: 1 }].map(
        withArtifact,
      ),
      ...[{ reload_triggers: [] }, { reload_triggers: ['phase_transition:a'] }, { condition: 7 }].map(withArtifact),
      ...[{ path: 7 }, { path: undefined }, { command: '/x' }].map(withArtifact),
    ],
  ],
])('the schema of a workflow accepts exactly what the program accepts: %p', (isFine, documents) => {
  for (const document of documents.map((one) => JSON.parse(JSON.stringify(one)))) {
    const parsed = parseWorkflowConfig(JSON.stringify(document), 'w.json');
    const hasNoFault = parsed.ok && parsed.value.problems.length === 0;
    expect({ document, schema: isWorkflow(document), hasNoFault }).toEqual({
      document,
      schema: isFine,
      hasNoFault: isFine,
    });
  }
});

test('the shipped workflows match the schema', () => {
  for (const name of ['core', 'default']) {
    expect(isWorkflow(schemaOf(`workflows/${name}.json`))).toBe(true);
  }
});

const who = (sessionId: string, host: string, minutes: number) => {
  const where = { host, cwd: '/p', platform: 'linux', gitCommit: 'a'.repeat(40) };
  return { sessionId, ...where, nowMs: runStartMs + minutes * 60_000 };
};
const happening = fc.record({
  id: fc.constantFrom('s1', 's2'),
  host: fc.constantFrom('laptop', 'desktop'),
  kind: fc.constantFrom('begin', 'load', 'phase', 'note', 'compact', 'end'),
  phase: fc.constantFrom(...phasesDefault),
});

test('every state that the program writes matches both schemas and can be read', () => {
  const ground = new FaberGround();
  try {
    fc.assert(
      fc.property(fc.array(happening, { maxLength: 25 }), (happenings) => {
        const run = { runId, workId: '258', workflowId: 'fractary-faber:default', phases: phasesDefault };
        let state = newState({ ...run, nowMs: runStartMs, place: { path: '/p', branch: 'main' } });
        for (const [index, { id, host, kind, phase: name }] of happenings.entries()) {
          const me = who(id, host, index);
          const load = {
            trigger: name === 'frame' ? 'phase_transition:frame->architect' : 'manual',
            sessionId: id,
            nowMs: me.nowMs,
          };
          if (kind === 'begin') state = beginSession(state, me).state;
          if (kind === 'load') state = recordLoads(state, [{ id: 'a', source: 'a.md', sizeBytes: 3 }], load);
          if (kind === 'phase') state = finishPhase(state, name, phasesDefault, me);
          if (kind === 'note') state = noteCompaction(state, me);
          if (kind === 'compact') state = beginSession(state, me, { isCompacted: true }).state;
          if (kind === 'end') state = endSession(state, me, { atMs: me.nowMs, reason: 'normal' }).state;
        }
        const document = JSON.parse(JSON.stringify(state));
        isState(document);
        expect(isState.errors ?? []).toEqual([]);
        isStateOfFaber(document);
        expect(isStateOfFaber.errors ?? []).toEqual([]);
        ground.write(statePathOf(runId), JSON.stringify(document));
        expect(loadState(files, ground.project, runId)).toMatchObject({ ok: true });
      }),
    );
  } finally {
    ground.remove();
  }
});

test('the schema refuses every state that the program cannot read', () => {
  const ground = new FaberGround();
  try {
    for (const document of [[], null, 7, { sessions: [] }, { artifacts: 'x' }, { context_metadata: 1 }]) {
      ground.write(statePathOf(runId), JSON.stringify(document));
      expect(loadState(files, ground.project, runId).ok).toBe(false);
      expect(isState(document)).toBe(false);
    }
  } finally {
    ground.remove();
  }
});
