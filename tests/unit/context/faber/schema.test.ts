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
import { artifactTypes, parseWorkflowConfig, shippedFaber } from '../../../../src/context/faber/workflow-config.ts';
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

/** What no schema can say, as it says of itself. */
const beyond =
  /there are two artifacts|condition, character|must be like artifacts\.spec_path|there are two of one name/;

const text = fc.constantFrom('a', 'b.c', 'a b', '', ' ', '-x', 'x'.repeat(65), 'plan.md', '{project_root}/x.md');
const odd = fc.oneof(fc.constant(null), fc.constant(7), fc.constant(true), fc.constant([]), fc.constant({}), text);
/** Mostly what is meant, sometimes anything. */
const mostly = <T>(value: fc.Arbitrary<T>) => fc.oneof({ weight: 29, arbitrary: value }, { weight: 1, arbitrary: odd });
const maybe = <T extends object>(shape: T, required: (keyof T)[]) =>
  fc.record(shape as Record<string, fc.Arbitrary<unknown>>, { requiredKeys: required as string[] });

const trigger = mostly(fc.constantFrom('session_start', 'manual', 'phase_transition:a->b', 'phase_transition:a'));
const artifact = maybe(
  {
    id: mostly(fc.constantFrom('a', 'b', 'c-d', 'e.f')),
    type: mostly(fc.constantFrom(...artifactTypes)),
    path: mostly(fc.constantFrom('x.md', '{project_root}/x.md')),
    path_from_state: mostly(fc.constantFrom('artifacts.spec_path', "$.a['b']")),
    command: mostly(fc.constant('/x')),
    description: mostly(fc.constant('What it is')),
    required: mostly(fc.boolean()),
    condition: mostly(fc.constantFrom('state.a != null', 'state.a ==', null)),
    reload_triggers: mostly(fc.array(trigger, { maxLength: 3 })),
  },
  ['id', 'type', 'description', 'required', 'reload_triggers'],
);
const list = mostly(fc.array(mostly(artifact), { maxLength: 3 }));
const step = mostly(maybe({ id: mostly(fc.constant('s')), prompt: mostly(fc.constant('/prime-context')) }, ['id']));
const phase = mostly(maybe({ pre_steps: mostly(fc.array(step, { maxLength: 2 })), description: odd }, []));
const named = maybe({ id: mostly(text), name: mostly(text), pre_steps: mostly(fc.array(step, { maxLength: 2 })) }, []);
const phases = mostly(
  fc.oneof(
    fc.dictionary(fc.constantFrom('frame', 'build', 'a b', ''), phase, { maxKeys: 3 }),
    fc.array(mostly(fc.oneof(fc.constantFrom('frame', 'build'), named)), { maxLength: 3 }),
  ),
);
const critical = mostly(maybe({ always_load: list, conditional_load: list }, []));
const workflow = maybe({ id: odd, phases, critical_artifacts: critical }, []);

test('S8: property: the schema of a workflow accepts exactly what the program finds no fault with', () => {
  const seen = { accepted: 0, refused: 0 };
  fc.assert(
    fc.property(mostly(workflow), (document) => {
      const parsed = parseWorkflowConfig(JSON.stringify(document), 'w.json');
      const problems = parsed.ok ? parsed.value.problems.filter((problem) => !beyond.test(problem)) : ['no object'];
      const accepts = isWorkflow(document);
      expect({ problems: problems.length === 0, document }).toEqual({ problems: accepts, document });
      seen[accepts ? 'accepted' : 'refused'] += 1;
    }),
    { numRuns: 1_000 },
  );
  expect(Math.min(seen.accepted, seen.refused)).toBeGreaterThan(60);
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
