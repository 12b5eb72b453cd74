/**
 * S8: the JSON Schemas of a workflow and of a run's state say what the program itself says: a workflow that one accepts
 * the other accepts, and every state the program writes is one.
 */
import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Ajv from 'ajv';
import { statePath } from '../../../../src/context/faber/project.ts';
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
import { FaberGround, files, runId, startMs } from '../../../support/context/faber/rig.ts';
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
])('S8: the schema of a workflow accepts exactly what the program finds no fault with: %p', (isFine, documents) => {
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

test('S8: the shipped workflows are what the schema says', () => {
  for (const name of ['core', 'default']) {
    expect(isWorkflow(schemaOf(`workflows/${name}.json`))).toBe(true);
  }
});

const who = (sessionId: string, host: string, minutes: number) => {
  const where = { host, cwd: '/p', platform: 'linux', gitCommit: 'a'.repeat(40) };
  return { sessionId, ...where, nowMs: startMs + minutes * 60_000 };
};
const happening = fc.record({
  id: fc.constantFrom('s1', 's2'),
  host: fc.constantFrom('laptop', 'desktop'),
  kind: fc.constantFrom('begin', 'load', 'phase', 'note', 'compact', 'end'),
  phase: fc.constantFrom(...phasesDefault),
});

test('S8: property: every state that the program writes is what the schema says, and is read', () => {
  const ground = new FaberGround();
  try {
    fc.assert(
      fc.property(fc.array(happening, { maxLength: 25 }), (happenings) => {
        const run = { runId, workId: '258', workflowId: 'fractary-faber:default', phases: phasesDefault };
        let state = newState({ ...run, nowMs: startMs });
        for (const [index, { id, host, kind, phase: name }] of happenings.entries()) {
          const me = who(id, host, index);
          const load = { trigger: 'manual', sessionId: id, nowMs: me.nowMs };
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
        ground.write(statePath(runId), JSON.stringify(document));
        expect(loadState(files, ground.project, runId)).toMatchObject({ ok: true });
      }),
    );
  } finally {
    ground.remove();
  }
});

test('S8: what the program cannot read as a state the schema refuses as well', () => {
  const ground = new FaberGround();
  try {
    for (const document of [[], null, 7, { sessions: [] }, { artifacts: 'x' }, { context_metadata: 1 }]) {
      ground.write(statePath(runId), JSON.stringify(document));
      expect(loadState(files, ground.project, runId).ok).toBe(false);
      expect(isState(document)).toBe(false);
    }
  } finally {
    ground.remove();
  }
});
