/**
 * Promises: a program that meets what a newer one has written says so in one sentence and changes nothing, and goes on
 * with everything else; so did the one whose users upgrade to ours, with whatever ours writes.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { budgetActions, contextNames, isolationModes, limitActions, noUsage } from '../../src/core/group.ts';
import { judgeEvent } from '../../src/store/event-shape.ts';
import { takeGroup } from '../../src/store/group-writer.ts';
import { groupPaths } from '../../src/store/paths.ts';
import { type RequestAnswer, type RequestBody, takeRequests } from '../../src/store/requests.ts';
import { createRealWorld } from '../../src/system/real-world.ts';
import { randomLogs } from '../report/random-log.ts';
import { packageRoot } from '../support/cli.ts';
import { processIdentity, sid } from '../support/core-events.ts';
import { eventfulEvents } from '../support/eventful-group.ts';
import { type Rig, startRig } from '../support/fake-claude-rig.ts';
import { makeGroup } from '../support/group-fixture.ts';
import { type Finished, type LoadedProgram, runInProcess } from '../support/in-process.ts';
import { fc } from '../support/property.ts';
import { Heir } from './heir.ts';
import { firstKept as commit, extract, isReachable, load, needs } from './old-program.ts';

const world = createRealWorld();
const canLoad = isReachable(commit);
let folder: string;
let old: LoadedProgram | undefined;
let rig: Rig;
let user: Heir;
beforeAll(async () => {
  rig = await startRig();
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'cca old ')));
  if (!canLoad) return;
  extract(commit, folder);
  old = await load(folder);
});
afterAll(() => {
  rig.stop();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => {
  user = new Heir(rig);
});
afterEach(() => user.remove());

/** Sets what is the matter with a log. */
type Change = (path: string) => void;

const lastSeq = (path: string) => readFileSync(path, 'utf8').trimEnd().split('\n').length - 1;

function event(fields: object): Change {
  return (path) => {
    const { groupId } = JSON.parse(readFileSync(path, 'utf8').split('\n')[0] as string) as { groupId: string };
    const line = { seq: lastSeq(path) + 1, at: '2030-01-01T00:00:00.000Z', groupId, ...fields };
    appendFileSync(path, `${JSON.stringify(line)}\n`);
  };
}

const header: Change = (path) => {
  writeFileSync(path, readFileSync(path, 'utf8').replace('"version":1', '"version":9'));
};
const unknownEvent = event({ type: 'group_sold', to: 'somebody' });
/** An earlier program took such a line for torn; see the test of what this program may write. */
const unknownValue = event({ type: 'group_pausing', reason: 'user', mode: 'softly' });

/** Every file below the data and the projects, with what is in it. */
function everything(): Map<string, string> {
  const files = ['data', 'projects'].flatMap((name) =>
    readdirSync(join(user.folder, name), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name)),
  );
  return new Map(files.map((path) => [path, readFileSync(path, 'latin1')]));
}

const sentence =
  /^claude-code-agent: Line \d+ of .* Use the newer version of claude-code-agent that wrote this group\.\n$/;

/** What a user may try. */
const tried = (id: string): string[][] => [
  ...['show', 'watch', 'pause', 'budget', 'why', 'graph', 'report', 'plan', 'diff', 'merge', 'archive'].map((word) => [
    'group',
    word,
    id,
  ]),
  ...['run', 'resume'].map((word) => ['group', word, id, '--output', 'text']),
  ['group', 'run', id, '--rehearse'],
  ['group', 'budget', id, '--raise-to', '9'],
  ['session', 'list', id],
  ['session', 'add', id, '--project', '.', '--prompt', 'Do it.'],
  ...['show', 'logs', 'diff', 'pause', 'resume', 'retry', 'remove'].map((word) => ['session', word, `${id}/api`]),
  ['session', 'say', `${id}/api`, 'Hello.'],
];

function saysOneSentence(programOf: () => LoadedProgram | undefined, change: Change) {
  const run = (...args: string[]): Promise<Finished> =>
    runInProcess({ args, cwd: user.folder, env: user.env }, programOf());
  return async (): Promise<void> => {
    const bad = ['paused', 'finished'].map((slug) => user.inherit({ commit, slug }).groupId);
    for (const id of bad) change(join(user.data, 'session-groups', id, 'events.jsonl'));
    const before = everything();
    for (const id of bad) {
      for (const args of tried(id)) {
        const said = await run(...args);
        expect({ args, ...said }).toEqual({ args, code: 1, stdout: '', stderr: expect.stringMatching(sentence) });
      }
    }
    expect(everything()).toEqual(before);
    for (const id of bad) {
      const { code, stderr } = await run('group', 'delete', id);
      expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('group of a newer version') });
    }
    expect(everything()).toEqual(before);
    const good = user.inherit({ commit, slug: 'limit' }).groupId;
    const { code, stdout } = await run('group', 'list');
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`^${good} +interrupted `, 'm'));
    for (const id of bad) expect(stdout).toContain(id);
    const stopped = await run('stop', '--all');
    expect(stopped.code).toBe(1);
    expect(stopped.stdout).toContain(`Paused ${good}.`);
    expect(stopped.stderr.trim().split('\n')).toHaveLength(bad.length);
    const doctor = await run('doctor');
    for (const id of bad) expect(doctor.stdout).toMatch(new RegExp(`group +${id} was written by a newer version`));
    for (const [path, text] of before) expect({ path, text: readFileSync(path, 'latin1') }).toEqual({ path, text });
  };
}

const changes = { 'an unknown event': unknownEvent, 'a newer header': header };

describe(`the program of ${commit}`, () => {
  const oldTest = (name: string, act: () => Promise<void>) => test.if(canLoad)(`${name} ${needs(commit)}`, act);

  for (const [what, change] of Object.entries(changes)) {
    oldTest(
      `says in one sentence that there is ${what}, and changes nothing`,
      saysOneSentence(() => old, change),
    );
  }

  oldTest('says it of a group whose costs this program has put right', async () => {
    const { groupId } = user.inherit({ commit, slug: 'doubled' });
    await user.ok('group', 'budget', groupId, '--raise-to', '9');
    const before = everything();
    for (const args of [
      ['group', 'show', groupId],
      ['group', 'resume', groupId, '--output', 'text'],
    ]) {
      const said = await runInProcess({ args, cwd: user.folder, env: user.env }, old);
      expect({ args, ...said }).toEqual({ args, code: 1, stdout: '', stderr: expect.stringMatching(sentence) });
    }
    expect(everything()).toEqual(before);
  });

  const guards: Readonly<Record<string, (id: string) => string[]>> = {
    'that was added': (id) => ['session', 'add', id, '--project', '.', '--prompt', 'Do it.', '--untrusted'],
    'that was edited': (id) => ['session', 'edit', `${id}/api`, '--untrusted'],
  };

  for (const [what, words] of Object.entries(guards)) {
    oldTest(`says it of a session ${what} and is guarded by what it does not know`, async () => {
      const { groupId } = user.inherit({ commit, slug: 'created' });
      await user.ok(...words(groupId));
      const before = everything();
      const args = ['group', 'run', groupId, '--output', 'text'];
      const said = await runInProcess({ args, cwd: user.folder, env: user.env }, old);
      expect({ args, ...said }).toEqual({ args, code: 1, stdout: '', stderr: expect.stringMatching(sentence) });
      expect(everything()).toEqual(before);
    });
  }

  oldTest('runs one to which nothing was added that it does not know', async () => {
    const { groupId } = user.inherit({ commit, slug: 'created' });
    await user.ok('session', 'add', groupId, '--project', '.', '--prompt', 'Do it.');
    const args = ['group', 'plan', groupId];
    expect(await runInProcess({ args, cwd: user.folder, env: user.env }, old)).toMatchObject({ code: 0 });
  });

  oldTest('that watches ends with a sentence when something unknown is logged', async () => {
    const { groupId } = user.inherit({ commit, slug: 'limit' });
    const held = await takeGroup(world, user.data, groupId, 'runner');
    if (!held.ok) throw new Error(held.failure.message);
    const words = [join(folder, 'bin', 'claude-code-agent'), 'group', 'watch', groupId, '--output', 'text'];
    const watching = Bun.spawn(words, { cwd: user.folder, env: user.env, stdout: 'pipe', stderr: 'pipe' });
    // It has told what was there, and follows.
    await watching.stdout.getReader().read();
    unknownEvent(held.value.paths.events);
    const [code, stderr] = await Promise.all([watching.exited, new Response(watching.stderr).text()]);
    held.value.close();
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(sentence) });
  });

  // What it takes for torn it cuts off: an event of ours must be good for it, or of a type that it does not know.
  oldTest('takes nothing that we write for torn', async () => {
    const { judgeEvent: judgedThen } = await import(join(folder, 'src', 'store', 'event-shape.ts'));
    const known = fc.sample(randomLogs, 200).flatMap(({ events }) => events);
    const written = [...known, ...eventfulEvents()].filter((logged) => judgeEvent(logged) === 'good');
    expect(written.length).toBeGreaterThan(1_000);
    // A field that it does not know it passes over: what it must not pass over takes an event of a new type.
    for (const logged of written) expect(judgedThen({ ...logged, another: true })).toBe(judgedThen(logged));
    const torn = written.filter((logged) => judgedThen(logged) === 'bad');
    expect(torn).toEqual([]);
  });

  oldTest('knows every word that we write in an event that it knows', async () => {
    const then = await import(join(folder, 'src', 'core', 'group.ts'));
    for (const [name, words] of Object.entries({ budgetActions, limitActions, isolationModes, contextNames })) {
      expect({ name, more: words.filter((word) => !then[name].includes(word)) }).toEqual({ name, more: [] });
    }
    const shape = join('src', 'store', 'event-shape.ts');
    const lists = (root: string) =>
      readFileSync(join(root, shape), 'utf8')
        .match(/oneOf\(\[[^\]]*\]\)/g)
        ?.flatMap((list) => list.match(/'[^']+'/g) ?? []);
    expect(lists(packageRoot)?.filter((word) => !lists(folder)?.includes(word))).toEqual([]);
  });
});

describe('this program', () => {
  for (const [what, change] of Object.entries({ ...changes, 'an unknown value': unknownValue })) {
    test(
      `says in one sentence that there is ${what}, and changes nothing`,
      saysOneSentence(() => undefined, change),
    );
  }

  test('asks nothing of a newer one that runs the group', async () => {
    const { groupId } = user.inherit({ commit, slug: 'limit' });
    const held = await takeGroup(world, user.data, groupId, 'runner');
    if (!held.ok) throw new Error(held.failure.message);
    unknownEvent(held.value.paths.events);
    const asking = [
      ['group', 'pause'],
      ['group', 'pause', '--freeze'],
      ['group', 'resume'],
    ];
    for (const words of asking) {
      const said = await user.run(...words, groupId);
      expect({ words, ...said }).toEqual({ words, code: 1, stdout: '', stderr: expect.stringMatching(sentence) });
    }
    expect(readdirSync(held.value.paths.requests)).toEqual([]);
    held.value.close();
  });

  test('that runs a group answers in a sentence what it does not know', async () => {
    const running = makeGroup([{ name: 'api' }]);
    const run = running.run(rig.env);
    const api = await rig.nextFor(running.claudeId('api'));
    await api.prompt();
    const { done, message } = (await run.ask({ kind: 'dance' } as never)) as RequestAnswer;
    expect({ done, message }).toEqual({ done: false, message: expect.stringContaining('another version') });
    await api.init();
    await api.succeed(0.01);
    expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
    running.remove();
  });

  /** As an earlier one that is still open in some terminal writes them. */
  const written: Readonly<Record<RequestBody['kind'], object>> = {
    'add-session': {
      session: {
        description: '',
        projectPath: '/p',
        prompt: 'Do it.',
        name: 'more',
        dependsOn: [sid(1)],
        context: ['cpm', 'faber', 'handover'],
        isolate: 'worktree',
        accept: 'true',
        createdAt: '2026-11-24T18:00:00.000Z',
      },
    },
    'edit-session': { sessionId: sid(1), changes: { prompt: 'Do that.', model: null, dependsOn: [] } },
    'allow-tools': { sessionId: sid(1), rules: ['Edit', 'Bash(npm test:*)'] },
    'edit-group': {
      config: { maxBudgetUsd: 9, model: null },
      group: { name: 'Other' },
      add: [
        {
          id: sid(7),
          description: '',
          projectPath: '/p',
          prompt: 'Do it.',
          dependsOn: [sid(1)],
          createdAt: '2026-11-24T18:00:00.000Z',
        },
      ],
      edit: [{ sessionId: sid(1), changes: { prompt: 'Do that.', timeoutMs: null } }],
    },
    'remove-session': { sessionId: sid(1) },
    pause: { mode: 'drain' },
    thaw: {},
    'pause-session': { sessionId: sid(1) },
    'resume-session': { sessionId: sid(1), maxBudgetUsd: 2 },
    'retry-session': { sessionId: sid(1), prompt: 'Once more.' },
    say: { sessionId: sid(1), text: 'Hello.' },
    'attach-session': { sessionId: sid(1), attachmentId: 'person', process: processIdentity },
    'open-attached': { sessionId: sid(1), attachmentId: 'person' },
    'detach-session': { sessionId: sid(1), attachmentId: 'person', usage: noUsage, claudeSessionIds: [], spoken: true },
    'settle-cost': { sessionId: sid(1), isSpent: true },
    'raise-budget': { maxBudgetUsd: 9 },
  };

  test('is asked by an earlier one', () => {
    const { groupId } = user.inherit({ commit, slug: 'created' });
    const paths = groupPaths(user.data, groupId);
    const at = '2026-11-24T18:00:00.000Z';
    const requests = Object.entries(written).map(([kind, body]) => ({ id: kind, runId: 'run', at, kind, ...body }));
    for (const request of requests) writeFileSync(join(paths.requests, `${request.id}.json`), JSON.stringify(request));
    const refused: string[] = [];
    const taken = takeRequests(world, paths, 'run', (id) => refused.push(id));
    expect(refused).toEqual([]);
    expect(taken.map(({ request }) => request.id).toSorted()).toEqual(Object.keys(written).toSorted());
  });
});
