/**
 * Promises, with the real claude, a scripted API and a real Redis: three sessions of a repository run on two hosts. One
 * host is lost in the middle of a tool, and its session continues on the other with the same conversation, branch and
 * uncommitted changes. claude is told what may be missing, and the cost is what the API served.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { roundUsd } from '../../../src/core/group.ts';
import type { GroupProgress } from '../../../src/core/progress.ts';
import { fleetPaths } from '../../../src/fleet/fleet-files.ts';
import type { RehearsalScript } from '../../../src/rehearsal/script.ts';
import { blocksOf, type Message } from '../../../src/rehearsal/script.ts';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { sessionPaths } from '../../../src/store/paths.ts';
import { modelOfKnownPrice } from '../../support/claude/rig.ts';
import { pinnedClaude, until } from '../../support/cli.ts';
import { type FleetGround, openGround } from '../../support/fleet-ground.ts';
import { git } from '../../support/git/repository.ts';
import { hasRedis } from '../../support/redis-server.ts';

const bash = (command: string) => ({ text: 'Working.', tool: 'Bash', input: { command } });
const script: RehearsalScript = {
  version: 1,
  sessions: {
    a: { steps: [bash('echo a > a.txt'), { text: 'a is done' }] },
    b: {
      steps: [
        bash('echo one > one.txt; git add one.txt; git -c user.name=T -c user.email=t@t commit -qm one'),
        bash('echo two > two.txt'),
        // It does not end before the host is lost; on the next host it ends at once.
        bash('if [ -e "$HOME/burns" ]; then touch waits; sleep 600; fi'),
        { text: 'b is done' },
      ],
    },
    c: { steps: [{ text: 'c is done' }] },
  },
};

let api: ScriptedApi;
let ground: FleetGround;
beforeEach(() => {
  api = startScriptedApi({ script, nameOf: (id) => names.get(id) });
});
afterEach(async () => {
  await ground.close();
  await api.stop();
});
const names = new Map<string, string>();

test.if(hasRedis)(
  'a host lost in the middle of a tool',
  async () => {
    const fields = { allowedTools: ['Bash'], model: modelOfKnownPrice };
    const claude = { CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude() };
    ground = await openGround(
      [
        { name: 'a', fields },
        { name: 'b', fields: { ...fields, requires: ['first'] } },
        { name: 'c', after: ['b'], fields },
      ],
      {
        machines: {},
        env: claude,
        leaseMs: 6_000,
        login: { ANTHROPIC_BASE_URL: api.url, ANTHROPIC_API_KEY: 'test-key' },
        config: { where: 'fleet', maxBudgetUsd: 50, maxConcurrentSessions: 5 },
      },
    );
    const { group } = ground;
    for (const name of ['a', 'b', 'c']) names.set(group.claudeId(name), name);
    const one = ground.addMachine('one', { labels: ['first'] });
    writeFileSync(join(one.home, 'burns'), '');
    const run = group.run(claude);
    const branch = () => group.state().sessions.get(group.id('b'))?.workspace;
    const checkpointRef = `refs/claude-code-agent/${group.id('b')}/checkpoint`;
    await run.event('session_identified', group.id('b'));
    const work = join(
      fleetPaths(one.root).work,
      'session-groups',
      group.groupId,
      'sessions',
      group.id('b'),
      'worktree',
    );
    await until(() => existsSync(join(work, 'waits')));
    const kept = () => git(group.project('app'), 'ls-tree', '--name-only', checkpointRef).split('\n');
    await until(() => existsSync(join(group.project('app'), '.git', checkpointRef)) && kept().includes('two.txt'));
    // The cost of an answer that claude has not reported yet would be held.
    const known = () => (JSON.parse(readFileSync(group.paths.progress, 'utf8')) as GroupProgress).totalCost;
    await until(() => roundUsd(known()) === roundUsd(api.served.total.costUsd));
    const attempts = group.events().flatMap((event) => (event.type === 'session_starting' ? [event.attempt.id] : []));
    const before = api.requests.filter(({ name, kind }) => name === 'b' && kind === 'step').at(-1)?.body.messages ?? [];
    // claude writes its output to the file a moment later, and then it is transferred.
    const told = before.flatMap(blocksOf).flatMap((block) => block.tool_use_id ?? []);
    const { config } = sessionPaths(group.paths, group.id('b'));
    await until(() => told.every((id) => conversationsIn(config).includes(`"tool_use_id":"${id}"`)));
    await one.burn(attempts);
    ground.addMachine('two', { labels: ['first'] });
    await run.event('session_host_lost', group.id('b'));
    expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
    expect(api.problems).toEqual([]);
    const resumed = api.requests.filter(({ name, kind }) => name === 'b' && kind === 'step');
    const after = resumed[3]?.body.messages ?? [];
    // The end of each request carries the prompt cache mark.
    expect(withoutMarks(after.slice(0, before.length))).toEqual(withoutMarks(before));
    expect(JSON.stringify(after.slice(before.length))).toContain('The host that ran this session was lost.');
    const { path = '' } = branch() ?? {};
    expect(readFileSync(join(path, 'two.txt'), 'utf8')).toBe('two\n');
    expect(git(path, 'log', '--format=%s')).toContain('one');
    const { costUsd, heldUsd = 0 } = group.state().usage;
    expect(roundUsd(costUsd - heldUsd)).toBe(roundUsd(api.served.total.costUsd));
    expect(heldUsd).toBeGreaterThan(4);
  },
  240_000,
);

/** The text of all conversations in this config dir. */
function conversationsIn(config: string): string {
  const files = [...new Bun.Glob('projects/**/*.jsonl').scanSync({ cwd: config })];
  return files.map((file) => readFileSync(join(config, file), 'utf8')).join('');
}

/** The last message of a request has the prompt cache mark, for which its text is put into a block. */
function withoutMarks(messages: readonly Message[]): unknown {
  const plain = messages.map((message) => ({ role: message.role, content: blocksOf(message) }));
  return JSON.parse(JSON.stringify(plain, (key, inner) => (key === 'cache_control' ? undefined : inner)));
}
