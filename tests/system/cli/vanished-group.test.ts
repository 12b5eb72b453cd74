/**
 * F1: one bad group never stops the others. A group's folder that vanishes while a command looks at all groups, before
 * any of the calls by which it does, is as if it had never been there: the others are shown, stopped, deleted.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, spyOn, test } from 'bun:test';
import { cpSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { openGroupWriter } from '../../../src/store/group-writer.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import type { World } from '../../../src/system/world.ts';
import { User } from '../../support/cli/user.ts';
import { pinnedClaude } from '../../support/cli.ts';
import { runInProcess } from '../../support/in-process.ts';

/** Two groups that say they run, without a runner. */
let model: User;
let user: User;
let good: string;
let bad: string;
let session: string;
let groups: string;

beforeAll(async () => {
  model = new User();
  good = await model.makeGroup('good');
  bad = await model.makeGroup('later');
  session = (await model.json<{ id: string }>('session', 'show', `${good}/1`)).id;
  for (const id of [good, bad]) interrupt(id);
});
afterAll(() => model.remove());
beforeEach(() => {
  user = new User({ ANTHROPIC_API_KEY: 'test-key', CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude() });
  groups = join(user.data, 'session-groups');
});
afterEach(() => user.remove());

function interrupt(id: string): void {
  const world = createRealWorld();
  const opened = openGroupWriter(world, model.data, id, 'command-test');
  if (!opened.ok) throw new Error(opened.failure.message);
  const runner = { ...world.machine.self, pid: 4_194_303, startTime: '1' };
  opened.value.record([{ type: 'group_started', run: { id: 'run-1', runner } }]);
  opened.value.close();
}

interface Vanishing {
  readonly world: World;
  /** Whether so many calls were made. */
  hasHappened(): boolean;
}

/** Before the n-th call that names the folder or something in it, the folder is removed. */
function vanishing(folder: string, nth: number): Vanishing {
  const real = createRealWorld();
  let calls = 0;
  const watched = <T extends object>(part: T): T =>
    new Proxy(part, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          if (args.some((arg) => typeof arg === 'string' && arg.startsWith(folder))) calls += 1;
          if (calls === nth) rmSync(folder, { recursive: true, force: true });
          return Reflect.apply(value, target, args);
        };
      },
    });
  const world = { ...real, files: watched(real.files), locks: watched(real.locks) };
  return { world, hasHappened: () => calls >= nth };
}

/** Each command, and what it says of the good group; absent = it ends well, and that is all. */
const commands: Readonly<Record<string, readonly [readonly string[], string?]>> = {
  'group list': [['group', 'list'], 'good'],
  'group list --json': [['group', 'list', '--json'], 'good'],
  'group list --status active': [['group', 'list', '--status', 'active'], 'good'],
  doctor: [['doctor']],
  'doctor --worktrees --fix': [['doctor', '--worktrees', '--fix']],
  'completion of groups': [['complete', '--', 'group', 'show', ''], 'good'],
  'completion of sessions': [['complete', '--', 'session', 'show', ''], 'good'],
  'a look for a session': [['session', 'show', 'SESSION'], 'api'],
  'a look for a group': [['group', 'show', 'good'], 'good'],
  'a plan': [['group', 'plan', 'good'], 'api'],
  'a further group': [['group', 'create', 'more'], 'more'],
  'stop --all': [['stop', '--all'], 'Paused GOOD.'],
};

test.each(Object.keys(commands))(
  'F1: %s: a group that vanishes meanwhile keeps nobody from the others',
  async (name) => {
    const [args, wanted = ''] = commands[name] as (typeof commands)[string];
    const line = args.map((arg) => arg.replace('SESSION', session));
    let nth = 1;
    for (; ; nth += 1) {
      rmSync(groups, { recursive: true, force: true });
      cpSync(join(model.data, 'session-groups'), groups, { recursive: true });
      const { world, hasHappened } = vanishing(join(groups, bad), nth);
      // How the library of completions prints.
      const log = spyOn(console, 'log').mockImplementation(() => {});
      const { code, stdout, stderr } = await runInProcess({ args: line, cwd: user.folder, env: user.env, world });
      const printed = log.mock.calls.flat().join('\n');
      log.mockRestore();
      if (!hasHappened()) break;
      const said = `${nth}: ${stderr}${stdout}${printed}`;
      expect(said).toContain(wanted.replace('GOOD', good));
      expect(said).not.toMatch(/Unexpected trouble|defect|undefined|The system refused|ENOENT|is missing|damaged/);
      // Of what was about to be stopped it is said that it could not be.
      if (name !== 'doctor')
        expect(`${code} ${said}`).toMatch(code === 0 ? /^0/ : new RegExp(`^1 .*${bad}: (There is no|.* was removed)`));
      if (name !== 'stop --all') expect([0, name === 'doctor' ? 1 : 0]).toContain(code as number);
      // Whoever was just writing a snapshot of it may have made its folder again.
      if (name !== 'stop --all') expect(readdirSync(groups)).not.toContain(bad);
    }
    expect(nth).toBeGreaterThan(name === 'a look for a group' || name === 'a further group' ? 0 : 2);
  },
);
