/**
 * Promises: the quoted rows of the FABER acceptance checklist hold over real files, a finished run is left alone, and
 * truncated output keeps the important parts.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isFaberRunning } from '../../../../src/context/faber/state-file.ts';
import { charactersMax } from '../../../../src/context/hook-call.ts';
import {
  FaberGround,
  files,
  fresh,
  minute,
  runId,
  runStartMs,
  statePathOf,
} from '../../../support/context/faber/rig.ts';

let ground: FaberGround;
beforeEach(() => {
  ground = new FaberGround();
});
afterEach(() => ground.remove());

const specification = { artifacts: { spec_path: '{project_root}/specs/WORK-00258.md' } };

describe('acceptance', () => {
  test('"PreCompact hook saves session before compaction"', () => {
    ground.begin({ phases: { frame: { status: 'completed' }, architect: { status: 'completed' }, build: {} } });
    ground.call('session-start', { source: 'startup', isChosen: true });
    const { text } = ground.call('pre-compact', { source: 'auto', nowMs: runStartMs + minute });
    expect(ground.state.sessions).toMatchObject({
      session_history: [
        {
          session_id: 's1',
          ended_at: '2026-01-05T14:31:22Z',
          end_reason: 'compaction',
          phases_completed: ['frame', 'architect'],
        },
      ],
    } as never);
    expect(text).toContain(`FABER run ${runId}`);
    expect(text).toContain('Finished phases: frame, architect. Continue with the phase build.');
  });

  test('"SessionStart hook restores context after compaction"', () => {
    ground.write('specs/WORK-00258.md', '# The specification\nUse the queue.\n');
    ground.begin(specification);
    ground.call('session-start', { source: 'startup', isChosen: true });
    ground.call('pre-compact', { source: 'auto', nowMs: runStartMs + minute });
    const { text } = ground.call('session-start', { source: 'compact', nowMs: runStartMs + 2 * minute });
    // A load within five minutes counts only for its own conversation, which is gone.
    for (const part of [runId, 'Use the queue.', 'How a FABER run is worked through', '"status": "in_progress"']) {
      expect(text).toContain(part);
    }
    expect(ground.sessions).toMatchObject({
      total_sessions: 2,
      session_history: [{ session_id: 's1', ended_at: '2026-01-05T14:31:22Z', end_reason: 'compaction' }],
      current_session: { session_id: 's1', part: 2, resumed_from: 's1' },
    } as never);
    expect(ground.state.context_metadata).toMatchObject({
      reload_count: 2,
      artifacts_in_context: [
        { artifact_id: 'workflow-state', load_trigger: 'session_start', source: statePathOf(runId) },
        { artifact_id: 'orchestration-protocol' },
        { artifact_id: 'specification', source: 'specs/WORK-00258.md', size_bytes: 35 },
      ],
    } as never);
  });

  test('"SessionEnd hook saves final session state", also of the session that completed the run', () => {
    ground.begin();
    ground.call('session-start', { source: 'startup', isChosen: true });
    expect(ground.call('session-end', { source: 'other', nowMs: runStartMs + minute })).toMatchObject({ text: '' });
    const ended = { session_id: 's1', started_at: '2026-01-05T14:30:22Z', ended_at: '2026-01-05T14:31:22Z' };
    expect(ground.sessions.session_history).toMatchObject([{ ...ended, end_reason: 'other' }]);
    expect(ground.sessions.session_history[0]?.artifacts_loaded).toEqual(['workflow-state', 'orchestration-protocol']);
    ground.call('session-start', { source: 'resume', nowMs: runStartMs + 2 * minute });
    ground.write(statePathOf(runId), JSON.stringify({ ...ground.state, status: 'completed' }));
    ground.call('session-end', { source: 'other', nowMs: runStartMs + 3 * minute });
    expect(ground.sessions.session_history).toMatchObject([{ ...ended, ended_at: '2026-01-05T14:33:22Z' }]);
  });

  test('"Session history tracked across environments"', () => {
    ground.write('.git/HEAD', 'ref: refs/heads/main\n');
    ground.write('.git/refs/heads/main', `${'a1b2c3d4'.repeat(5)}\n`);
    ground.begin();
    ground.call('session-start', { source: 'startup', isChosen: true, host: 'laptop' });
    ground.call('session-end', { source: 'other', host: 'laptop', nowMs: runStartMs + minute });
    ground.call('session-start', { source: 'resume', host: 'desktop', nowMs: runStartMs + 2 * minute });
    ground.call('session-end', { source: 'other', host: 'desktop', nowMs: runStartMs + 3 * minute });
    const environment = { platform: 'linux', cwd: ground.root, git_commit: 'a1b2c3d4'.repeat(5) };
    expect(ground.sessions).toMatchObject({
      total_sessions: 2,
      session_history: [
        { session_id: 's1', environment: { ...environment, hostname: 'laptop' } },
        { session_id: 's1', environment: { ...environment, hostname: 'desktop' } },
      ],
    });
  });

  test('"Portable paths resolve correctly"', () => {
    const path = (text: string) => ({ artifacts: { spec_path: text } });
    ground.write('specs/258 x.md', 'the right one');
    ground.begin();
    for (const text of ['{project_root}/specs/258 x.md', 'specs/258 x.md', join(ground.root, 'specs/258 x.md')]) {
      ground.begin(path(text));
      expect(ground.call('session-start').text).toContain('[specs/258 x.md] ---\nthe right one\n--- END ---');
    }
    ground.write(`plans/p7/${runId}-258.md`, 'the plan');
    ground.begin({ ...path('plans/{plan_id}/{run_id}-{work_id}.md'), plan_id: 'p7' });
    expect(ground.call('session-start').text).toContain('the plan');
    const bad: [string, string][] = [
      ['plans/{plan_id}/x.md', 'holds {plan_id}, which nothing gives a value'],
      ['{home}/x.md', 'holds {home}, which nothing gives a value'],
      ['../x.md', 'leads out of the project'],
      ['{faber_root}/docs/workflow-orchestration-protocol.md', 'leads out of the project'],
      ['specs/nothing.md', 'does not exist'],
    ];
    for (const [text, trouble] of bad) {
      ground.begin(path(text));
      expect(ground.call('session-start').text).toContain(`specification is missing: `);
      expect(ground.call('session-start').text).toContain(trouble);
    }
  });

  test('"Backward compatible with existing workflows": without sessions, metadata, artifacts or a workflow', () => {
    ground.write('.fractary/faber/.active-run-id', runId);
    ground.write(
      statePathOf(runId),
      JSON.stringify({ status: 'in_progress', phases: [{ id: 'frame', status: 'done' }], x: 1 }),
    );
    const { text } = ground.call('session-start', { source: 'startup', isChosen: true });
    expect(text).toContain('Finished phases: frame. Continue with the phase architect.');
    expect(ground.sessions).toMatchObject({ current_session_id: 's1', total_sessions: 1 });
    expect(ground.state).toMatchObject({ x: 1, phases: [{ id: 'frame', status: 'done' }] } as never);
  });

  test('"Workflow schema supports critical_artifacts configuration": the project’s own workflow, all types', () => {
    const always = { required: true, reload_triggers: ['session_start'], description: 'It is needed' };
    const artifacts = [
      { ...always, id: 'list', type: 'directory', path: 'docs' },
      { ...always, id: 'git', type: 'git_info' },
      { ...always, id: 'skill', type: 'skill', path: 'planner' },
      { ...always, id: 'issue', type: 'work_plugin', command: '/work:issue-fetch {work_id}' },
      { ...always, id: 'manual-only', type: 'markdown', path: 'docs/a.md', reload_triggers: ['manual'] },
      { ...always, id: 'off', type: 'markdown', path: 'docs/a.md', condition: 'state.artifacts.x != null' },
      { ...always, id: 'gone', type: 'json', path: 'docs/gone.json' },
    ];
    const config = { id: 'mine', phases: { plan: {}, make: {} }, critical_artifacts: { always_load: artifacts } };
    ground.write('.fractary/faber/workflows/mine.json', JSON.stringify(config));
    ground.write('docs/a.md', 'A');
    mkdirSync(join(ground.root, 'docs/sub'));
    ground.write('.git/HEAD', `${'0'.repeat(40)}\n`);
    ground.begin({ workflow_id: 'team:mine', phases: {} });
    const { text, notes } = ground.call('session-start');
    expect(text).toContain('(mine, work item 258)');
    expect(text).toContain('Continue with the phase plan.');
    expect(text).toContain('- To load skill (It is needed): use the skill planner.');
    expect(text).toContain('- To load issue (It is needed): run the slash command /work:issue-fetch 258.');
    expect(text).toContain('- gone is MISSING, and the work cannot go on without it: docs/gone.json does not exist.');
    expect(text).toContain('--- FABER ARTIFACT list (directory) [docs] ---\na.md\nsub/\n--- END ---');
    expect(text).toContain(`commit: ${'0'.repeat(40)}`);
    expect(notes).toMatchObject({ loaded: ['list', 'git'], missing: ['gone'] });
  });
});

describe('run selection', () => {
  test('without a run, or with a finished or unusable one, the hook prints and writes nothing', () => {
    expect(ground.call('session-start')).toMatchObject({ text: '', notes: { run: null, why: 'none is active' } });
    ground.begin({ status: 'completed' });
    expect(isFaberRunning(files, ground.root)).toBe(false);
    for (const event of ['session-start', 'pre-compact', 'session-end'] as const) {
      expect(ground.call(event).text).toBe('');
      expect(ground.state).toEqual(fresh({ status: 'completed' }) as never);
    }
    for (const id of ['../../etc', 'a/b', 'x'.repeat(300), '.hidden', 'nowhere', '']) {
      ground.write('.fractary/faber/.active-run-id', id);
      expect(ground.call('session-start').text).toBe('');
    }
  });

  test('the run is found from a subfolder, up to the top of the worktree', () => {
    ground.begin();
    const sub = join(ground.root, 'packages', 'a');
    mkdirSync(sub, { recursive: true });
    expect(isFaberRunning(files, sub)).toBe(true);
    mkdirSync(join(sub, '.git'));
    expect(isFaberRunning(files, sub)).toBe(false);
  });

  test('FABER hooks handle a clear, another session and the same one again', () => {
    ground.begin();
    ground.call('session-start', { source: 'startup', isChosen: true });
    ground.call('session-end', { source: 'clear' });
    ground.call('session-start', { source: 'clear', sessionId: 's2' });
    ground.call('session-start', { source: 'resume', sessionId: 's2' });
    expect(ground.sessions).toMatchObject({ total_sessions: 2, current_session_id: 's2' });
    expect(ground.call('session-start', { sessionId: '' }).text).toContain('for s2');
  });
});

describe('a session without part in the run', () => {
  const line =
    `FABER: the run ${runId} for the work item 258 is in progress here. Leave it alone unless your task is part ` +
    'of it; then load it with: claude-code-agent faber prime-context';

  test('a session without part in the run gets one line at its start and is not recorded', () => {
    ground.begin();
    expect(ground.call('session-start', { source: 'startup' }).text).toBe(line);
    // Group sessions without FABER get nothing of the run later either.
    for (const source of ['startup', 'resume', 'compact', 'clear', 'fork']) {
      expect(ground.call('session-start', { source, isWorker: true }).text).toBe(line);
    }
    expect(ground.call('pre-compact', { source: 'auto', isWorker: true }).text).toBe('');
    ground.call('session-end', { source: 'other', isWorker: true });
    expect(ground.state).toEqual(fresh() as never);
  });

  test('a session that continues a session of the run gets the whole run', () => {
    ground.begin();
    const whole = 'Finished phases: none. Continue with the phase frame.';
    // A session that a user resumes or compacts in a worktree with a run belongs to it, as specified.
    expect(ground.call('session-start', { source: 'compact' }).text).toContain(whole);
    for (const isWorker of [false, true]) {
      expect(ground.call('session-start', { source: 'startup', isWorker }).text).toContain(whole);
    }
    const transcriptPath = ground.write('conversations/s2.jsonl', '');
    const other = { isWorker: true, sessionId: 's2', transcriptPath };
    expect(ground.call('session-start', { ...other, source: 'fork' }).text).toBe(line);
    ground.write('conversations/s1.jsonl', '');
    expect(ground.call('session-start', { ...other, source: 'startup' }).text).toBe(line);
    expect(ground.call('session-start', { ...other, source: 'fork' }).text).toContain(whole);
    expect(ground.sessions.current_session_id).toBe('s2');
  });
});

describe('size limit', () => {
  test('large artifacts share the space, and truncated ones are named by path', () => {
    ground.write('specs/WORK-00258.md', `# Spec\n${'word '.repeat(50_000)}`);
    const history = Array.from({ length: 300 }, (_, index) => ({ session_id: `old-${index}`, ended_at: '2026-01-01' }));
    ground.begin({ ...specification, sessions: { session_history: history }, note: 'kept in front' });
    const { text } = ground.call('session-start', { source: 'compact' });
    expect(text.length).toBeLessThanOrEqual(charactersMax);
    expect(text.length).toBeGreaterThan(charactersMax - 200);
    expect(text.startsWith(`FABER run ${runId}`)).toBe(true);
    expect(text).toContain('the rest is in specs/WORK-00258.md)');
    expect(text).toContain(`the rest is in ${statePathOf(runId)})`);
    expect(text).toContain('kept in front');
    expect(text).toContain('A required artifact that is missing stops the work');
    expect(ground.sessions.session_history).toHaveLength(300);
  });
});

describe('other writers', () => {
  test('changes by another tool between two hooks are kept', () => {
    ground.begin();
    ground.call('session-start');
    const path = join(ground.root, statePathOf(runId));
    writeFileSync(path, JSON.stringify({ ...ground.state, theirs: { deep: [1] }, plan_id: 'p1' }));
    ground.call('pre-compact');
    ground.call('session-start', { source: 'compact' });
    ground.call('session-end');
    expect(ground.state).toMatchObject({ theirs: { deep: [1] }, plan_id: 'p1' } as never);
  });

  test('an unreadable state is left unchanged and reported to the session', () => {
    ground.begin();
    const path = ground.write(statePathOf(runId), '{"status": "in_progress", ');
    expect(ground.call('session-start').notes?.why).toContain(`${statePathOf(runId)}:1:27: is not JSON`);
    expect(readFileSync(path, 'utf8')).toBe('{"status": "in_progress", ');
    expect(ground.call('session-start').text).toContain(`cannot be read. ${statePathOf(runId)}:1:27`);
    expect(ground.call('session-end').text).toBe('');
    ground.write(statePathOf(runId), '{"status": "in_progress", "sessions": []}');
    expect(ground.call('session-start').notes?.why).toContain(':1:39: sessions is not an object');
  });

  test('a session keeps its run when the workflow is unreadable', () => {
    ground.begin();
    ground.write('.fractary/faber/workflows/default.json', '{"critical_artifacts": oops}');
    const { text } = ground.call('session-start');
    expect(text).toContain(`FABER run ${runId} is in progress here, but its context could not be loaded`);
    expect(text).toContain('default.json:1:24');
    ground.write('.fractary/faber/workflows/default.json', '{"critical_artifacts": {"always_load": [{"id": "a"}]}}');
    expect(ground.call('session-start').text).toContain('Problems in its configuration: .fractary/faber');
  });
});
