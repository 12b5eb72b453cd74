/**
 * Promises: the quoted rows of the FABER acceptance checklist hold through the real launcher and hook program, and
 * bad input changes nothing. The model's use of them is not tested.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { phasesCompleted } from '../../../src/context/faber/state.ts';
import { FaberUser } from '../../support/cli/faber-ground.ts';
import { checkoutRoot } from '../../support/cli.ts';
import { git } from '../../support/git/repository.ts';

let user: FaberUser;
beforeEach(() => {
  user = new FaberUser();
});
afterEach(() => user.remove());

const doneOf = (run: string): string[] => phasesCompleted(user.stateOf(run));

const hook = (event: string, input: object) => user.hook(event, input);

describe('acceptance', () => {
  test('"workflow-run command writes .fractary/faber/.active-run-id"', async () => {
    const run = await user.begin();
    expect(run).toMatch(/^fractary-faber-258-\d{8}-\d{6}-[0-9a-f]{6}$/);
    expect(user.activeRun()).toBe(`${run}\n`);
    expect(readdirSync(join(user.shop, '.fractary/faber'))).toEqual(['.active-run-id']);
  });

  test('"State schema tracks sessions and context_metadata"', async () => {
    const run = await user.begin();
    expect(user.stateOf(run)).toMatchObject({
      run_id: run,
      workflow_id: 'fractary-faber:default',
      work_id: '258',
      status: 'in_progress',
      target: '258',
      worktree: { path: user.shop, branch: 'main' },
      sessions: { total_sessions: 0, session_history: [] },
      context_metadata: { reload_count: 0, artifacts_in_context: [] },
    });
    await user.asSession('s1', 'prime-context');
    expect(user.stateOf(run)).toMatchObject({
      sessions: { current_session_id: 's1', total_sessions: 1, current_session: { environment: { cwd: user.shop } } },
      context_metadata: { reload_count: 1, artifacts_in_context: [{ artifact_id: 'workflow-state' }, {}, {}] },
    });
  });

  test('"Default workflows declare critical artifacts" and "Auto-reload only on Frame phase (not all phases)"', () => {
    for (const name of ['default', 'core']) {
      const config = JSON.parse(readFileSync(join(checkoutRoot, `templates/faber/workflows/${name}.json`), 'utf8'));
      const ids = config.critical_artifacts.always_load.map(({ id }: { id: string }) => id);
      expect(ids).toEqual(expect.arrayContaining(['workflow-state', 'orchestration-protocol']));
      const phases = Object.entries<{ pre_steps?: unknown[] }>(config.phases);
      expect(phases.map(([phase]) => phase)).toEqual(['frame', 'architect', 'build', 'evaluate', 'release']);
      expect(phases.filter(([, { pre_steps }]) => pre_steps !== undefined).map(([phase]) => phase)).toEqual(['frame']);
    }
    const workflow = readFileSync(join(checkoutRoot, 'templates/workflows/faber.yaml'), 'utf8');
    const [frame = '', ...others] = workflow.split(/\n {2}(?:frame|architect|build|evaluate|release):\n/).slice(1);
    expect(others).toHaveLength(4);
    expect(frame).toContain('faber prime-context');
    for (const other of others) expect(other).not.toContain('prime-context');
  });

  test('"prime-context command works with --run-id and --trigger parameters"', async () => {
    const first = await user.begin();
    await user.begin('259', '--take-over');
    const primed = await user.asSession('s1', 'prime-context', '--run-id', first, '--trigger', 'session_start');
    expect(primed).toMatchObject({ code: 0 });
    expect(primed.stdout).toContain(`FABER run ${first}`);
    expect(user.stateOf(first).context_metadata.artifacts_in_context[0].load_trigger).toBe('session_start');
  });

  test('"session-end command saves session metadata"', async () => {
    const run = await user.begin();
    await user.asSession('s1', 'prime-context');
    await user.faber('phase', 'frame');
    const ended = await user.asSession('s1', 'session-end', '--reason', 'compaction');
    expect(ended).toMatchObject({ code: 0, stdout: `Recorded the end of session s1 in run ${run}\n` });
    expect(user.stateOf(run).sessions.session_history).toMatchObject([
      {
        session_id: 's1',
        end_reason: 'compaction',
        phases_completed: ['frame'],
        artifacts_loaded: ['workflow-state', 'orchestration-protocol', 'git-position'],
        environment: { git_commit: git(user.shop, 'rev-parse', 'HEAD') },
      },
    ]);
  });

  test('"workflow-run command detects and warns about workflow conflicts", and its choices', async () => {
    const first = await user.begin();
    const refused = await user.faber('start', '--work-id', '259');
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    for (const part of [
      'WARNING: Another workflow is active',
      `Active: ${first}`,
      '--worktree',
      '--take-over',
      '../shop-issue-259',
    ]) {
      expect(refused.stderr).toContain(part);
    }
    expect(user.activeRun()).toBe(`${first}\n`);
    expect(readdirSync(join(user.shop, '.fractary/runs'))).toEqual([first]);
    expect((await user.faber('start', '--work-id', '258')).stderr).toContain(`faber resume ${first}`);
    const second = await user.begin('259', '--take-over');
    expect(user.activeRun()).toBe(`${second}\n`);
    expect(user.stateOf(first).status).toBe('in_progress');
    expect(await user.faber('resume', first)).toMatchObject({ code: 1 });
    expect(await user.faber('resume', first, '--take-over')).toMatchObject({ code: 0 });
    expect(user.activeRun()).toBe(`${first}\n`);
  });

  test('faber --work-id keeps a phase out of the run of another work item', async () => {
    const run = await user.begin('258');
    const refused = await user.faber('phase', 'frame', '--work-id', '259');
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain(`The run ${run} has the work item 258, not 259.`);
    expect(await user.faber('status', '--work-id', '259')).toMatchObject({ code: 1, stdout: '' });
    expect(doneOf(run)).toEqual([]);
    expect(await user.faber('status', '--work-id', '258')).toMatchObject({ code: 0 });
    expect(await user.faber('phase', 'frame', '--work-id', '#258')).toMatchObject({ code: 0 });
    expect(doneOf(run)).toEqual(['frame']);
  });

  test('a finished run is no conflict, although .active-run-id still names it', async () => {
    const first = await user.begin();
    for (const phase of ['frame', 'architect', 'build', 'evaluate']) await user.faber('phase', phase);
    expect((await user.faber('phase', 'release')).stdout).toContain('The run is completed.');
    expect(user.stateOf(first)).toMatchObject({ status: 'completed', current_phase: 'none' });
    expect(user.activeRun()).toBe(`${first}\n`);
    expect(await user.faber('phase', 'release')).toMatchObject({ code: 1 });
    expect(await user.faber('resume', first)).toMatchObject({ code: 1 });
    expect(await user.begin('259')).toContain('-259-');
  });

  test('"PreCompact…", "SessionStart…" and "SessionEnd hook…": the real hook program', async () => {
    const run = await user.begin();
    await hook('session-start', { session_id: 's1', source: 'resume' });
    await user.faber('phase', 'frame');
    expect(await hook('pre-compact', { session_id: 's1', trigger: 'auto' })).toContain(
      'Continue with the phase architect',
    );
    expect(user.stateOf(run).sessions.session_history).toMatchObject([
      { session_id: 's1', end_reason: 'compaction', phases_completed: ['frame'] },
    ]);
    const restored = await hook('session-start', { session_id: 's1', source: 'compact' });
    expect(restored).toContain(`FABER run ${run}`);
    expect(restored).toContain('FABER ARTIFACT workflow-state');
    await hook('session-end', { session_id: 's1', reason: 'other' });
    expect(user.stateOf(run).sessions).toMatchObject({
      total_sessions: 2,
      session_history: [
        { session_id: 's1', end_reason: 'compaction' },
        { session_id: 's1', part: 2, resumed_from: 's1', end_reason: 'other' },
      ],
    });
    // The two parts are distinguished.
    const { stdout } = await user.faber('status');
    expect(stdout).toMatch(/^ +s1 on .*, from \S+ to \S+ \(compaction\)$/m);
    expect(stdout).toMatch(/^ +s1 part 2, after a compaction, on .*, from \S+ to \S+ \(other\)$/m);
    expect(stdout).toMatch(/^Current +s1 part 2, after a compaction, ended$/m);
  });

  test('git ignores .active-run-id, and faber warns when git tracks it or ignores the run’s state', async () => {
    await user.begin();
    expect(git(user.shop, 'status', '--porcelain', '--untracked-files=all')).not.toContain('.active-run-id');
    expect(git(user.shop, 'status', '--porcelain', '--untracked-files=all')).toContain('state.json');
    git(user.shop, 'add', '--force', '.fractary');
    const tracked = await user.faber('status');
    const cure = `git -C '${user.shop}' rm --cached .fractary/faber/.active-run-id`;
    expect(tracked.stderr).toContain(`WARNING: git tracks .fractary/faber/.active-run-id`);
    expect(tracked.stderr).toEndWith(`${cure}\n`);
    expect(Bun.spawnSync(['sh', '-c', cure]).exitCode).toBe(0);
    expect((await user.faber('status')).stderr).toBe('');
    user.repository.commit({ '.gitignore': '.fractary/\n', '.fractary': null });
    const run = await user.faber('start', '--work-id', '2');
    expect(run.stderr).toContain('WARNING: git ignores .fractary/runs/');
  });

  test('a run is active only on its own branch or in its own worktree', async () => {
    const run = await user.begin();
    git(user.shop, 'add', '--force', '.fractary');
    git(user.shop, 'commit', '-q', '-m', 'with the active run');
    const beside = join(user.folder, 'beside');
    git(user.shop, 'worktree', 'add', '-q', '-b', 'other', beside);
    expect(user.activeRun(beside)).toBe(`${run}\n`);
    const there = (...args: string[]) => user.runWith({ cwd: beside }, 'faber', ...args);
    const said = `${run} belongs to the branch main, the work tree ${user.shop}, not to this work tree.`;
    expect((await there('phase', 'frame')).stderr).toContain(said);
    expect((await there('session-end')).stderr).toContain(said);
    expect(await user.hook('session-start', { session_id: 's1', source: 'resume' }, beside)).toBe('');
    // There is no conflict either; in the worktree of the run, on any branch, there still is.
    expect(await there('start', '--work-id', '259')).toMatchObject({ code: 0 });
    git(user.shop, 'switch', '-q', '-c', 'feature/258');
    expect((await user.faber('start', '--work-id', '260')).stderr).toContain('Another workflow is active');
    expect(await user.faber('phase', 'frame')).toMatchObject({ code: 0 });
    // A resume with --take-over moves the run there.
    expect(await there('resume', run, '--take-over')).toMatchObject({ code: 0 });
    expect(user.stateOf(run, beside).worktree).toMatchObject({ path: beside, branch: 'other' });
    expect(await user.hook('session-start', { session_id: 's1', source: 'resume' }, beside)).toContain(run);
  });

  test('runs are stored where FABER has them since 2026 if the project uses that', async () => {
    user.write('.fractary/config.yaml', 'version: "2.0"\n');
    const run = await user.begin();
    const folder = join(user.shop, '.fractary/faber/runs');
    expect(readFileSync(join(folder, '.active-run-id'), 'utf8')).toBe(`${run}\n`);
    const state = () => JSON.parse(readFileSync(join(folder, run, 'state.json'), 'utf8'));
    expect(await user.faber('phase', 'frame')).toMatchObject({ code: 0 });
    expect(state()).toMatchObject({ target: '258', phases: { frame: { status: 'completed' } } });
    const text = await user.hook('session-start', { session_id: 's1', source: 'resume' });
    // The shipped workflow names the state where the specification has it.
    expect(text).toContain(`FABER ARTIFACT workflow-state (json) [.fractary/faber/runs/${run}/state.json]`);
    expect(existsSync(join(user.shop, '.fractary/runs'))).toBe(false);
    // A run that FABER itself began, which names no branch or worktree.
    user.write('.fractary/faber/runs/acme-shop-9-run-x/state.json', '{"status":"in_progress","work_id":"9"}');
    user.write('.fractary/faber/runs/.active-run-id', 'acme-shop-9-run-x');
    expect((await user.faber('status')).stdout).toContain('acme-shop-9-run-x');
    expect(await user.faber('phase', 'frame')).toMatchObject({ code: 0 });
  });

  test('"Backward compatible with existing workflows": a state of another tool, without hooks', async () => {
    user.write('.fractary/runs/old-1/state.json', '{"status":"in_progress","x":{"y":1}}');
    expect((await user.faber('prime-context')).stdout).toContain('FABER run old-1 (default): in_progress.');
    expect(user.stateOf('old-1')).toMatchObject({ x: { y: 1 }, sessions: { total_sessions: 1 } });
  });
});

describe('prime-context', () => {
  test('prime-context repeats nothing within five minutes unless forced, triggered or in a new session', async () => {
    const run = await user.begin();
    expect((await user.asSession('s1', 'prime-context')).stdout).toContain('FABER ARTIFACT workflow-state');
    const again = await user.asSession('s1', 'prime-context');
    expect(again.stdout).not.toContain('FABER ARTIFACT');
    expect(again.stderr).toContain('workflow-state was loaded');
    for (const more of [['--force'], ['--trigger', 'session_start']]) {
      expect((await user.asSession('s1', 'prime-context', ...more)).stdout).toContain('FABER ARTIFACT workflow-state');
    }
    expect((await user.asSession('s2', 'prime-context')).stdout).toContain('FABER ARTIFACT workflow-state');
    const old = user.stateOf(run);
    for (const entry of old.context_metadata.artifacts_in_context) entry.loaded_at = '2020-01-01T00:00:00Z';
    writeFileSync(user.stateFile(run), JSON.stringify(old));
    expect((await user.asSession('s2', 'prime-context')).stdout).toContain('FABER ARTIFACT workflow-state');
  });

  test('prime-context has --artifacts, --dry-run and --json', async () => {
    const run = await user.begin();
    user.write('specs/a.md', '# Spec');
    await user.faber(
      'phase',
      'architect',
      '--artifact',
      'spec_path=specs/a.md',
      '--artifact',
      'pr_url=https://example.org/1',
    );
    expect(user.stateOf(run).artifacts).toEqual({
      spec_path: '{project_root}/specs/a.md',
      pr_url: 'https://example.org/1',
    });
    const before = readFileSync(user.stateFile(run), 'utf8');
    const dry = await user.faber('prime-context', '--dry-run', '--artifacts', 'specification,workflow-state');
    expect(dry.stdout).toContain('  specification (markdown) specs/a.md (6 bytes)');
    expect(dry.stdout).toContain('  git-position (git_info) skip: was not requested');
    expect(readFileSync(user.stateFile(run), 'utf8')).toBe(before);
    const { stdout } = await user.asSession('s1', 'prime-context', '--artifacts', 'specification', '--json');
    const shown = JSON.parse(stdout);
    expect(shown).toMatchObject({ run_id: run, session_id: 's1', is_new_session: true, trigger: 'manual' });
    expect(shown.artifacts.filter(({ action }: { action: string }) => action === 'load')).toEqual([
      { id: 'specification', type: 'markdown', required: false, action: 'load', source: 'specs/a.md', size_bytes: 6 },
    ]);
    expect(user.stateOf(run).sessions.current_session.artifacts_loaded).toEqual(['specification']);
  });

  test('prime-context reports a missing required artifact and prints the rest', async () => {
    await user.begin();
    const config = {
      critical_artifacts: {
        always_load: [
          {
            id: 'plan',
            type: 'markdown',
            path: 'plan.md',
            description: 'P',
            required: true,
            reload_triggers: ['manual'],
          },
        ],
      },
    };
    user.write('.fractary/faber/workflows/default.json', JSON.stringify(config));
    const { code, stdout, stderr } = await user.faber('prime-context');
    expect(code).toBe(1);
    expect(stdout).toContain('plan is MISSING');
    expect(stderr).toContain('Required artifacts are missing: plan.');
    user.write('.fractary/faber/workflows/default.json', '{"critical_artifacts": {"always_load": [{}]}}');
    expect((await user.faber('prime-context')).stderr).toContain('.fractary/faber/workflows/default.json:1:41:');
  });
});

test('without a run hooks and session-end succeed silently, and other commands name the next step', async () => {
  const trigger = ['prime-context', '--trigger', 'session_start'];
  expect(await user.faber(...trigger)).toMatchObject({
    code: 0,
    stdout: 'No active workflow found, skipping prime-context\n',
  });
  expect(await user.faber('session-end')).toMatchObject({
    code: 0,
    stdout: 'No active workflow found, skipping session-end\n',
  });
  expect(await user.faber('status')).toMatchObject({ code: 0, stdout: 'No FABER run is active in this project.\n' });
  for (const command of [['prime-context'], ['phase', 'frame']]) {
    const { code, stderr } = await user.faber(...command);
    expect(code).toBe(2);
    expect(stderr).toContain('faber start --work-id');
  }
  expect(existsSync(join(user.shop, '.fractary'))).toBe(false);
});

describe('bad input', () => {
  test.each([
    [['start'], 2, '--work-id'],
    [['start', '--work-id', '../x'], 2, 'It must have letters'],
    [['start', '--work-id', '-x'], 2, ''],
    [['start', '--work-id', 'a..b'], 2, 'It must have letters'],
    [['start', '--work-id', 'x.lock'], 2, 'It must have letters'],
    [['start', '--work-id', ''], 2, 'It must have letters'],
    [['start', '--work-id', '1', '--workflow', 'nothing'], 2, 'There is no FABER workflow nothing'],
    [['start', '--work-id', '1', '--workflow', '../x'], 2, 'is not a workflow name'],
    [['start', '--work-id', '1', '--project', 'nowhere'], 2, 'does not exist'],
    [['resume', 'nothing'], 2, 'There is no run nothing'],
    [['resume', '../..'], 2, 'There is no run ../..'],
    [['phase', 'biuld'], 2, 'Did you mean build?'],
    [['phase', 'build', '--artifact', 'x'], 2, 'It must be a name and a value'],
    [['phase', 'build', '--artifact', 'spec_path=nowhere.md'], 2, 'does not exist'],
    [['phase', 'build', '--artifact', 'spec_path=/etc/hostname'], 2, 'is not in the project'],
    [['prime-context', '--trigger', 'sometimes'], 2, 'It must be session_start'],
    [['prime-context', '--artifacts', 'specificaton'], 2, 'did you mean specification?'],
    [['prime-context', '--artifacts', ','], 2, 'It must be a list'],
    [['session-end', '--reason', 'A b'], 2, 'It must be a lower-case word'],
    [['session-end', '--run-id', 'x'], 2, 'There is no run x'],
  ])('faber %j is refused and changes nothing', async (args, code, said) => {
    const run = await user.begin();
    const before = readFileSync(user.stateFile(run), 'utf8');
    const finished = await user.faber(...args);
    expect(finished).toMatchObject({ code, stdout: '' });
    expect(finished.stderr).toContain(said);
    expect(finished.stderr).not.toContain('    at ');
    expect(readFileSync(user.stateFile(run), 'utf8')).toBe(before);
    expect(readdirSync(join(user.shop, '.fractary/runs'))).toEqual([run]);
  });

  test('faber reports an unreadable state and an unreadable active run', async () => {
    const run = await user.begin();
    writeFileSync(user.stateFile(run), '{"status":');
    for (const command of [['phase', 'frame'], ['prime-context'], ['session-end'], ['resume', run], ['status']]) {
      const { code, stderr } = await user.faber(...command);
      expect(code).toBe(1);
      expect(stderr).toContain('state.json:1:11: is not JSON: a value is expected');
    }
    expect(await user.faber('start', '--work-id', '2')).toMatchObject({ code: 1 });
    writeFileSync(user.activeFile(), '../../x');
    expect((await user.faber('start', '--work-id', '2')).stderr).toContain('.active-run-id contains no run id');
    expect(readFileSync(user.activeFile(), 'utf8')).toBe('../../x');
  });
});

test('concurrent hooks and commands lose no data', async () => {
  const run = await user.begin();
  const ids = Array.from({ length: 8 }, (_, index) => `s${index}`);
  await Promise.all([
    ...ids.map((id) => hook('session-start', { session_id: id, source: 'resume' })),
    user.faber('phase', 'frame'),
    user.faber('phase', 'architect'),
  ]);
  const { sessions, phases } = user.stateOf(run);
  expect(sessions.total_sessions).toBe(8);
  const known = [...sessions.session_history, sessions.current_session].map(({ session_id }) => session_id);
  expect(known.sort()).toEqual(ids);
  expect([phases.frame.status, phases.architect.status]).toEqual(['completed', 'completed']);
  expect(readdirSync(join(user.shop, '.fractary/runs', run))).toEqual(['state.json']);
}, 30_000);

test('"Documentation complete (including hook setup guide)": what it names is there', async () => {
  for (const name of ['prime-context', 'session-end']) {
    const text = readFileSync(join(checkoutRoot, 'templates/configs/faber/commands', `${name}.md`), 'utf8');
    expect(text).toContain(`claude-code-agent faber ${name}`);
  }
  const folder = join(checkoutRoot, 'templates/faber/docs');
  const texts = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
  const guide = texts.find((text) => text.includes('# Hooks for FABER')) ?? '';
  for (const event of ['SessionStart', 'PreCompact', 'SessionEnd']) expect(guide).toContain(`\`${event}\``);
  const named = texts.flatMap((text) =>
    [...text.matchAll(/claude-code-agent ((?:faber|hook) [a-z-]+)/g)].map(([, c]) => c),
  );
  for (const command of new Set(named)) {
    expect(await user.run(...(command ?? '').split(' '), '--help')).toMatchObject({ code: 0 });
  }
  for (const path of ['templates/workflows/faber.yaml', 'templates/configs/faber']) {
    expect(await user.run('template', 'validate', join(checkoutRoot, path))).toMatchObject({ code: 0 });
  }
});
