/** What the hooks of the benchmark find: a project with state of every context system, and the folder of a worker. */
import { mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { attemptMark } from '../../src/claude/launch/attempt-mark.ts';
import type { JsonObject } from '../../src/context/faber/json-text.ts';
import { activeRunPath, statePath } from '../../src/context/faber/project.ts';
import * as faberState from '../../src/context/faber/state.ts';
import { shippedFaber } from '../../src/context/faber/workflow-config.ts';
import { planningFolder, projectsFolder, resumeFileName } from '../../src/context/handover/projects.ts';
import { newResumeFile, recordSession } from '../../src/context/handover/resume-file.ts';
import { type BenchFolder, startMs } from './group-on-disk.ts';

export interface HookFixture {
  readonly env: Readonly<Record<string, string>>;
  /** Why claude calls the hook. */
  readonly source: string;
  /** What its output must look like. */
  readonly said: RegExp;
  /** Puts back what the hook before has changed; not part of what is measured. */
  readonly prepare?: () => void;
  /** Whether the hook has written what it must. */
  readonly isRecorded?: () => boolean;
}

export type HookName = 'cpm' | 'faber' | 'handover' | 'task';

export const hookFixtures: Readonly<Record<HookName, (folder: BenchFolder) => HookFixture>> = {
  cpm,
  faber,
  handover,
  task,
};

/** Of the session that starts. */
export const sessionId = '00000001-0000-4000-8000-000000000000';
const hourMs = 3_600_000;

const inProject = ({ env, project }: BenchFolder) => ({ ...env, CLAUDE_PROJECT_DIR: project });

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** A document as people write them. */
function prose(title: string, paragraphs: number): string {
  const paragraph = (_: unknown, index: number) =>
    `## Part ${index + 1}\n\n${'Some words on the matter. '.repeat(8)}\n`;
  return `# ${title}\n\n${Array.from({ length: paragraphs }, paragraph).join('\n')}`;
}

/** A project without state of any system: what most projects are to most hooks. */
export function idle(folder: BenchFolder): HookFixture {
  const project = join(folder.project, 'idle');
  mkdirSync(join(project, '.git'), { recursive: true });
  return {
    env: { ...folder.env, CLAUDE_PROJECT_DIR: project },
    source: 'startup',
    said: /^(?:CPM_SESSION_ID: .*\n)?$/,
  };
}

/** Four fresh progress files and a stale one, of the size that skills write. */
function cpm(folder: BenchFolder): HookFixture {
  for (const number of [1, 2, 3, 4, 5]) {
    const name = `.cpm-progress-0000000${number}-0000-4000-8000-000000000000.md`;
    const path = join(folder.project, 'docs', 'plans', name);
    const header = `# CPM Session State\n\n**Skill**: cpm:do\n**Phase**: ${number} of 6 — Work\n`;
    write(path, `${header}\n${prose('Completed Phases', 6)}\n## Next Action\nGo on.\n`);
    if (number === 5) utimesSync(path, 0, 0);
  }
  const said = /^CPM_SESSION_ID: .*(?:--- CPM SESSION STATE .*--- END ---.*){4}STALE: /s;
  return { env: inProject(folder), source: 'startup', said };
}

/** A run of the shipped workflow with two finished phases, four sessions behind it and five artifacts. */
function faber(folder: BenchFolder): HookFixture {
  const runId = 'fractary-faber-258-20260102-030405-a1b2c3';
  const ref = 'refs/heads/main';
  write(join(folder.project, '.git', 'HEAD'), `ref: ${ref}\n`);
  write(join(folder.project, '.git', ref), `${'0123456789'.repeat(4)}\n`);
  write(join(folder.project, activeRunPath), `${runId}\n`);
  const artifacts = { work_item_path: 'specs/WORK-258-item.md', spec_path: 'specs/WORK-258.md' };
  write(join(folder.project, artifacts.work_item_path), prose('What is wanted', 2));
  write(join(folder.project, artifacts.spec_path), prose('How it is built', 5));
  const path = join(folder.project, statePath(runId));
  const before = `${JSON.stringify({ ...stateOfRun(runId, folder.project), artifacts }, null, 2)}\n`;
  write(path, before);
  return {
    // Ours knows by itself where its shipped workflows are.
    env: { ...inProject(folder), FABER_ROOT: shippedFaber },
    source: 'startup',
    said: /^FABER run \S+ .*in_progress.*Go on with the phase build.*(?:--- FABER ARTIFACT .*--- END ---\s*){5}$/s,
    prepare: () => writeFileSync(path, before),
    isRecorded() {
      const { sessions, context_metadata } = JSON.parse(readFileSync(path, 'utf8'));
      const ids = context_metadata.artifacts_in_context.map((entry: { session_id: string }) => entry.session_id);
      const { total_sessions, current_session, session_history } = sessions;
      const isNew = total_sessions === 5 && session_history.length === 4 && current_session.session_id === sessionId;
      return isNew && ids.join() === Array(5).fill(sessionId).join();
    },
  };
}

function stateOfRun(runId: string, cwd: string): JsonObject {
  const phases = faberState.phasesDefault;
  let state = faberState.newState({
    runId,
    workId: '258',
    workflowId: 'fractary-faber:default',
    phases,
    nowMs: startMs,
  });
  const loaded = ['workflow-state', 'orchestration-protocol', 'git-position', 'work-item', 'specification'];
  for (const [index, phase] of ['frame', 'frame', 'architect', 'architect'].entries()) {
    const id = `0000000${index + 2}-0000-4000-8000-000000000000`;
    const who = { sessionId: id, host: 'laptop', platform: 'linux', cwd, nowMs: startMs + index * hourMs };
    const load = { trigger: 'session_start', ...who };
    state = faberState.beginSession(state, who).state;
    state = faberState.recordLoads(
      state,
      loaded.map((name) => ({ id: name, source: name, sizeBytes: 1_000 })),
      load,
    );
    state = faberState.finishPhase(state, phase, phases, who);
    state = faberState.endSession(state, who, { atMs: who.nowMs + hourMs, reason: 'other' }).state;
  }
  return state;
}

/** Five projects; the session belongs to the fourth, which wants five files loaded. */
function handover(folder: BenchFolder): HookFixture {
  for (const number of [1, 2, 3, 4, 5]) {
    const projectId = `0${number}-part`;
    const planning = join(folder.project, projectsFolder, projectId, planningFolder);
    for (const name of ['01-overview', '02-discovery', '03-plan', '04-steps']) {
      write(join(planning, `${name}.md`), prose(name, 4));
    }
    const timestamp = new Date(startMs + number * hourMs).toISOString();
    const earlier = [6, 7, 8].map((digit) => `${number}000000${digit}-0000-4000-8000-000000000000`);
    const ids = number === 4 ? [...earlier, sessionId] : earlier;
    const resume = ids.reduce(
      (text, id) => recordSession(text, id, timestamp) ?? text,
      newResumeFile({ projectId, projectName: `Part ${number}`, timestamp }),
    );
    write(join(planning, resumeFileName), resume);
  }
  const said =
    /^HANDOVER: project 04-part "Part 4".*Next action: plan-project.*(?:--- HANDOVER FILE .*--- END ---\s*){5}$/s;
  return { env: inProject(folder), source: 'startup', said };
}

/** A worker whose conversation was compacted: the one time at which the whole task is said again. */
function task(folder: BenchFolder): HookFixture {
  const session = join(folder.path, 'session');
  write(join(session, 'prompt.md'), prose('The task', 12));
  const env = { ...inProject(folder), [attemptMark]: '1', CLAUDE_CONFIG_DIR: join(session, 'claude') };
  return { env, source: 'compact', said: new RegExp(`${sessionId}.*was compacted.*# The task.*## Part 12`, 's') };
}
