/**
 * Promises: `group why`, the dashboard, the report, progress.json and the JSON stream give the same reason code for
 * every session that is not running, at every moment of a group.
 */
import { expect, test } from 'bun:test';
import { Command } from '@commander-js/extra-typings';
import { loadWithRunner } from '../../../src/app/resolve.ts';
import { readStanding } from '../../../src/app/watch/live-view.ts';
import { defineGroupShow as defineShow, defineWhy } from '../../../src/cli/commands/group/show.ts';

import type { CommandResult, Context } from '../../../src/cli/context.ts';
import { FileSource } from '../../../src/cli/dashboard/source.ts';
import { createOutput } from '../../../src/cli/output.ts';
import { ok } from '../../../src/core/failure.ts';
import type { SessionId } from '../../../src/core/group.ts';
import type { GroupState } from '../../../src/core/state.ts';
import { readLog } from '../../../src/store/event-log.ts';
import type { Files, World } from '../../../src/system/world.ts';
import { plainRow, unicodeGlyphs } from '../../../src/tui/dashboard/cells.ts';
import { frameOf } from '../../../src/tui/dashboard/frame.ts';
import { firstUi } from '../../../src/tui/dashboard/ui.ts';
import { reportModel } from '../../../src/view/html/model.ts';
import { createJsonReporter } from '../../../src/view/json-reporter.ts';
import { reportMarkdown } from '../../../src/view/markdown.ts';
import { isLongRun } from '../../support/long.ts';
import { simulatedGroup } from '../../support/sim/group-setup.ts';
import { scenarioOf } from '../../support/sim/scenario-of-seed.ts';
import { simulate } from '../../support/sim/simulation.ts';
import { VirtualFiles } from '../../support/sim/virtual-files.ts';
import type { VirtualRunner } from '../../support/sim/virtual-runner.ts';
import { rowsOf } from '../../support/tui/dashboard/scene.ts';

const group = simulatedGroup();
const seeds = isLongRun ? 150 : 60;
/** The lowest number of moments at which sessions must wait for different reasons. */
const statesMin = isLongRun ? 50 : 20;
/** Seeds of a long run reach these, so that every kind of wait is tested. */
const reasonsMin = [
  ...['waiting', 'blocked', 'slot', 'cache', 'backoff', 'limit', 'memory', 'disk', 'budget', 'money', 'held'],
  ...['pausing', 'frozen', 'needs-person', 'error-threshold', 'not-asked-for', 'user', 'transient'],
];

type Codes = Readonly<Record<SessionId, string>>;
type Faces = Readonly<Record<string, Codes>>;

/** The real file layer is an object of functions, so an override spreads it. */
function plainFiles(files: VirtualFiles): Files {
  const names = Object.getOwnPropertyNames(VirtualFiles.prototype).filter((name) => name !== 'constructor');
  return Object.fromEntries(names.map((name) => [name, Reflect.get(files, name).bind(files)])) as unknown as Files;
}

/** What other processes see of the machine during a run. They only read, so that no scenario changes. */
function readingWorld({ machine, process, world }: VirtualRunner): World {
  const { disk, timeline, watchers, trouble } = machine;
  const files = new VirtualFiles({ disk, timeline, watchers, trouble, owner: process });
  const clock = { now: () => timeline.wall(), after: () => () => {} };
  const nothing = (): never => {
    throw new Error('readers change nothing');
  };
  const isAlive = (identity: Parameters<World['processes']['isAlive']>[0]) => machine.table.find(identity) !== null;
  return {
    ...world,
    clock: { ...world.clock, ...clock },
    files: { ...plainFiles(files), writeAtomic: nothing, watch: () => () => {} },
    processes: { ...world.processes, isAlive },
  };
}

/** The output of a command that finishes within one step of a scenario. */
function printed(world: World, define: (command: Command, context: Context) => void, ...options: string[]): string {
  let text = '';
  const write = (said: string | Uint8Array): void => {
    text += said;
  };
  const stdout = createOutput({ write, on() {} }, {});
  const run = (work: () => CommandResult | Promise<CommandResult>): Promise<void> => {
    void work();
    return Promise.resolve();
  };
  const place = { world, env: {}, cwd: '/', packageRoot: '/', root: () => ok(group.root), notes: stdout };
  const command = new Command();
  define(command, { ...place, stdout, stderr: stdout, stdinIsTerminal: false, run, code: 0 });
  command.parse(['bun', 'cca', group.groupId, ...options]);
  return text;
}

/** The sessions of a JSON list that are not running. */
function codesIn(sessions: readonly { id: string; status: string; reason?: string }[]): Codes {
  const resting = sessions.filter(({ status }) => status !== 'running' && status !== 'completed');
  return Object.fromEntries(resting.map(({ id, reason = 'none' }) => [id, reason]));
}

/** By session number, in the text of a table or of a dashboard pane. */
function codesOf(state: GroupState, codeOf: (number: string, id: SessionId) => string | undefined): Codes {
  const resting = [...state.sessions].filter(
    ([
      ,
      {
        state: { status },
      },
    ]) => status !== 'running' && status !== 'completed',
  );
  return Object.fromEntries(resting.map(([id]) => [id, codeOf(id.slice(0, 3), id) ?? 'none']));
}

/** What each of them reports at this moment; `stream`: the latest codes of the JSON stream. */
function facesAt(world: World, stream: ReadonlyMap<SessionId, string>): { state: GroupState; faces: Faces } {
  const loaded = loadWithRunner(world, group);
  const events = readLog(world, group.paths.events);
  if (!loaded.ok || !events.ok) throw new Error('the group cannot be read');
  const { state } = loaded.value;
  const source = new FileSource(world, loaded.value, { onChange() {}, onLost() {}, onTrouble() {} });
  const { seen, runner } = source;
  source.close();
  const pane = (selected: SessionId): string => {
    const view = { state, ...seen, nowMs: world.clock.now(), runner };
    const ui = { ...firstUi, selected, home: selected, pane: 'full', tab: 'now' } as const;
    const shown = frameOf(view, ui, { columns: 200, rows: 50, glyphs: unicodeGlyphs });
    return rowsOf(shown).map(plainRow).join('\n');
  };
  const { isInterrupted, verdicts } = readStanding(world, loaded.value);
  const model = reportModel(state, events.value, world.clock.now(), { hasRunner: !isInterrupted, verdicts });
  const markdown = reportMarkdown(state, model).replaceAll('\\', '');
  const table = printed(world, defineShow);
  return {
    state,
    faces: {
      'group why': codesIn(JSON.parse(printed(world, defineWhy, '--json')).sessions),
      dashboard: codesOf(state, (_, id) => /\n (?:pending|paused|failed) \(([\w-]+)\)/.exec(pane(id))?.[1]),
      'report as JSON': codesIn(model.sessions),
      'report as Markdown': codesOf(
        state,
        (number) => new RegExp(`^\\| ${number} \\| \\w+ \\(([\\w-]+)\\)`, 'm').exec(markdown)?.[1],
      ),
      'report as text': codesOf(
        state,
        (number) => new RegExp(`^${number}  +\\S+  +\\w+  +([\\w-]+)`, 'm').exec(table)?.[1],
      ),
      'progress.json': codesIn(JSON.parse(world.files.readText(group.paths.progress) ?? '{}').sessions),
      'JSON stream': codesOf(state, (_, id) => stream.get(id)),
    },
  };
}

interface Moments {
  /** The reason codes that occurred, each once. */
  readonly states: Set<string>;
  readonly reasons: Set<string>;
  /** How often each was checked, by the codes in progress.json. */
  readonly asked: Map<string, number>;
  /** The first moment at which they disagreed. */
  differing: Faces | null;
  readonly errors: unknown[];
}

/** How often the same codes are checked in a short run. */
const asksMax = 1;

/** The codes of all sessions in progress.json, in short. */
function codesOfProgress(text: string): string {
  const { sessions } = JSON.parse(text) as { readonly sessions: readonly { status: string; reason?: string }[] };
  return sessions.map(({ status, reason = '' }) => `${status} ${reason}`).join();
}

/** Checks all of them whenever the runner of a scenario writes its progress, which `change` may alter. */
function askAlong(seed: number, moments: Moments, change: (progress: string) => string = (text) => text): void {
  const streams = new Map<VirtualRunner, Map<SessionId, string>>();
  const look = (runner: VirtualRunner): void => {
    if (moments.differing !== null || !runner.alive) return;
    const { state, faces } = facesAt(readingWorld(runner), streams.get(runner) ?? new Map());
    const [first = {}, ...others] = Object.values(faces);
    moments.states.add(`${state.status} ${JSON.stringify(Object.values(first))}`);
    for (const reason of Object.values(first)) moments.reasons.add(reason);
    if (others.some((other) => !Bun.deepEquals(first, other))) moments.differing = faces;
  };
  const { violation } = simulate(scenarioOf(seed), {
    wrap: (world, runner) => {
      const writeAtomic: World['files']['writeAtomic'] = (path, text, options) => {
        const isProgress = path === group.paths.progress;
        world.files.writeAtomic(path, isProgress ? change(text) : text, options);
        if (!isProgress) return;
        const asked = moments.asked.get(codesOfProgress(text)) ?? 0;
        moments.asked.set(codesOfProgress(text), asked + 1);
        if (!isLongRun && asked >= asksMax) return;
        // An exception here would be swallowed by the caller, so failures are recorded instead.
        try {
          look(runner);
        } catch (error) {
          moments.errors.push(error);
        }
      };
      return { ...world, files: { ...world.files, writeAtomic } };
    },
    listen: (runner) => {
      const codes = new Map<SessionId, string>();
      streams.set(runner, codes);
      const write = (line: string): void => {
        const { type, sessionId, reason } = JSON.parse(line);
        if (/^session_(?:progress|paused|failed)$/.test(type) && reason !== undefined) codes.set(sessionId, reason);
      };
      return createJsonReporter({ write, groupId: group.groupId, clock: readingWorld(runner).clock });
    },
  });
  expect({ seed, violation, errors: moments.errors }).toEqual({ seed, violation: null, errors: [] });
}

const nothing = (): Moments => ({
  states: new Set(),
  reasons: new Set(),
  asked: new Map(),
  differing: null,
  errors: [],
});

test(`all of them agree in at least ${statesMin} states`, () => {
  const moments = nothing();
  for (let seed = 0; seed < seeds; seed += 1) {
    askAlong(seed, moments);
    expect({ seed, differing: moments.differing }).toEqual({ seed, differing: null });
  }
  expect(moments.states.size).toBeGreaterThanOrEqual(statesMin);
  if (isLongRun) expect([...moments.reasons].sort()).toEqual(expect.arrayContaining([...reasonsMin].sort()));
});

test('a disagreement is detected', () => {
  const moments = nothing();
  const change = (text: string) => text.replaceAll('"reason":"waiting"', '"reason":"slot"');
  for (let seed = 0; moments.differing === null && seed < 20; seed += 1) askAlong(seed, moments, change);
  const { 'JSON stream': stream = {}, 'progress.json': file = {} } = moments.differing ?? {};
  const others = Object.keys(stream).filter((id) => stream[id] !== file[id]);
  expect(others.map((id) => [stream[id], file[id]])).toContainEqual(['waiting', 'slot']);
});
