/**
 * Promises, over a real sshd: one command turns another home into a host of the fleet, with agent, guard, login and
 * this program, and one command undoes it. Each missing requirement is named in one sentence, and no login appears in a
 * command line or message. Not covered: other systems, systemd.
 */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { roundUsd } from '../../../src/core/group.ts';
import { fleetPaths } from '../../../src/fleet/fleet-files.ts';
import { startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { modelOfKnownPrice } from '../../support/claude/rig.ts';
import { claudeBinary } from '../../support/claude-binary.ts';
import { User } from '../../support/cli/user.ts';
import { until } from '../../support/cli.ts';
import { hasRedis, type RedisServer, startRedis } from '../../support/redis-server.ts';
import { sentThrough } from '../../support/sent-through-redis.ts';
import { hasSshd, type SshServer, startSshd } from '../../support/ssh-server.ts';
import { noteTried } from '../../support/tried.ts';

setDefaultTimeout(120_000);

const { locks, processes } = createRealWorld();
const secret = 'test-key-of-team-a';
/** The programs of any system, without Bun and claude. */
const tools = [
  'sh',
  'bash',
  'cat',
  'chmod',
  'env',
  'gzip',
  'ln',
  'mkdir',
  'mv',
  'readlink',
  'rm',
  'tar',
  'uname',
  'nproc',
];

let user: User;
let server: RedisServer;

beforeEach(async () => {
  user = new User({ ANTHROPIC_API_KEY: secret });
  server = await startRedis(user.folder, ['appendonly yes']);
});
afterEach(async () => {
  for (const lock of [user.data, machineRoot(), join(user.folder, 'there', 'data')].flatMap(locksOf)) {
    for (let holder = locks.holder(lock); holder !== null; holder = locks.holder(lock)) {
      processes.signal(holder.identity, 'SIGKILL');
      await Bun.sleep(10);
    }
  }
  await server.kill();
  user.remove();
});

const machineRoot = () => join(user.folder, 'there', '.local', 'claude-code-agent');
const locksOf = (root: string) => [fleetPaths(root).agentLock, fleetPaths(root).guardLock];

/** Hosts of these tests do not retry it. */
function triedEverywhere(program: string): void {
  for (const root of [user.data, machineRoot()]) noteTried(fleetPaths(root).folder, program);
}

/** A folder of programs that is the whole PATH. */
function pathWith(...more: string[]): string {
  const bin = join(user.folder, `bin-${more.join('-') || 'bare'}`);
  mkdirSync(bin, { recursive: true });
  for (const tool of [...tools, ...more.filter((name) => name !== 'claude')]) {
    const found = tool === 'bun' ? process.execPath : Bun.which(tool);
    if (found !== null && !existsSync(join(bin, tool))) symlinkSync(found, join(bin, tool));
  }
  if (more.includes('claude')) {
    writeFileSync(join(bin, 'claude'), '#!/bin/sh\necho "2.1.331 (Claude Code)"\n', { mode: 0o755 });
    triedEverywhere(join(bin, 'claude'));
  }
  return bin;
}

describe.skipIf(!hasRedis || !hasSshd)('with redis-server and sshd', () => {
  let there: SshServer;

  async function open(path: string): Promise<void> {
    there = await startSshd(user.folder, { PATH: path });
    user.env.PATH = `${there.bin}:${user.env.PATH}`;
    await user.ok('fleet', 'init', '--redis', server.url, '--lease', '8');
  }
  afterEach(() => there.stop());

  const add = (...more: string[]) => user.run('host', 'add', 'one', '--ssh', there.destination, ...more);

  test('host add installs and starts all that a host needs, and host forget undoes it', async () => {
    await open(pathWith('git', 'claude'));
    const added = await add('--slots', '2', '--label', 'gpu', '--login', 'team-a');
    // One line per step, without details in the output.
    expect(added.stderr.split('\n').filter((step) => step.endsWith(' ...'))).toEqual([
      `Connecting to ${there.destination} ...`,
      expect.stringMatching(/^Found Linux \w+, git version \S.* and claude\. Packing the program \.\.\.$/),
      expect.stringMatching(/^Sending the program, [\d.]+ MB \.\.\.$/),
      'Testing the program there ...',
      'Sending the login team-a ...',
      'Starting the agent ...',
      'Waiting for the agent to register ...',
    ]);
    expect(added.stdout).not.toContain(' ...');
    expect(added.stdout).toContain('This host joined the fleet at redis://127.0.0.1');
    expect([added.code, added.stdout.includes(secret), added.stderr.includes(secret)]).toEqual([0, false, false]);

    const { hosts } = await user.json<{ hosts: object[] }>('host', 'list');
    expect(hosts).toMatchObject([{ name: 'one', slots: 2, labels: ['gpu'], state: 'ready', login: 'team-a' }]);
    // The destination and the other options are known by now.
    expect((await user.run('host', 'add', 'one', '--slots', '3')).code).toBe(0);
    const changed = await user.json<{ hosts: object[] }>('host', 'list');
    expect(changed.hosts).toMatchObject([{ name: 'one', slots: 3, labels: ['gpu'], login: 'team-a' }]);
    // The claude of this test has no login, which doctor reports; a worktree can be created.
    const doctor = async () => (await user.run('doctor', '--hosts')).stdout;
    while (!/one: its login cannot be used\. /.test(await doctor())) await Bun.sleep(100);
    expect(await doctor()).toContain('Send one with: claude-code-agent host add one --login team-a\n');
    const login = join(fleetPaths(machineRoot()).logins, 'team-a.env');
    expect(readFileSync(login, 'utf8')).toBe(`ANTHROPIC_API_KEY=${secret}\n`);
    for (const path of [login, fleetPaths(machineRoot()).host]) expect(statSync(path).mode & 0o777).toBe(0o600);
    const holders = locksOf(machineRoot()).map((lock) => locks.holder(lock)?.identity);
    for (const holder of holders) expect(holder && processes.isAlive(holder)).toBe(true);
    const [agent] = holders;
    const seen = ['cmdline', 'environ'].map((name) => readFileSync(`/proc/${agent?.pid}/${name}`, 'utf8')).join();
    expect(seen).toContain('.local/share/claude-code-agent/host');
    expect(seen).not.toContain(secret);
    expect(seen).not.toContain('cca-join');

    const question = await user.run('host', 'forget', 'one');
    expect(question.stderr).toContain(`and remove what was installed at ${there.destination}?`);
    expect(await user.ok('host', 'forget', 'one', '--yes')).toBe('Removed one from the fleet.');
    expect(await user.json('host', 'list')).toEqual({ hosts: [] });
    for (const holder of holders) expect(holder && processes.isAlive(holder)).toBe(false);
    const left = readdirSync(there.home, { recursive: true, encoding: 'utf8' });
    const files = left.filter((name) => statSync(join(there.home, name)).isFile());
    expect(files).toEqual([]);
    expect((await user.run('host', 'forget', 'one', '--yes')).stderr).toContain('There is no host "one"');
  });

  test.if(claudeBinary !== undefined)(
    'a group runs on an added host with the login that was sent to it once and goes nowhere else',
    async () => {
      const write = { file_path: '{{project}}/made.md', content: 'Made by a session.\n' };
      const steps = [{ tool: 'Write', input: write }, { text: 'Done.' }];
      const api = startScriptedApi({ script: { version: 1, sessions: { '*': { steps } } }, nameOf: () => 'api' });
      try {
        const bin = pathWith('git', 'bun');
        symlinkSync(claudeBinary ?? '', join(bin, 'claude'));
        triedEverywhere(claudeBinary ?? '');
        await open(bin);
        user.env.ANTHROPIC_BASE_URL = api.url;
        expect((await add('--slots', '2', '--label', 'gpu', '--login', 'team-a')).code).toBe(0);
        const login = readFileSync(join(fleetPaths(machineRoot()).logins, 'team-a.env'), 'utf8');
        expect(login).toBe(`ANTHROPIC_API_KEY=${secret}\nANTHROPIC_BASE_URL=${api.url}\n`);
        user.env.CLAUDE_CODE_AGENT_CLAUDE = claudeBinary ?? '';
        noteTried(user.data, claudeBinary ?? '');
        const project = newProject();
        const group = await user.ok('group', 'create', 'there', '--max-budget-usd', '5', '--where', 'fleet');
        const session = ['--project', project, '--name', 'api', '--isolate', 'worktree', '--requires', 'gpu'];
        await user.ok('session', 'add', group, '--prompt', 'A prompt that nobody reads on its way.', ...session);
        const { code, stderr, stdout } = await user.run('group', 'run', group, '--output', 'text');
        expect([code, stderr, stdout.includes('assigned to one')]).toEqual([0, '', true]);
        expect(await user.json('group', 'show', group)).toMatchObject({
          sessions: [{ host: 'one', status: 'completed' }],
        });
        expect(await user.ok('group', 'diff', group)).toContain('Made by a session.');
        const log = join(server.folder, 'appendonlydir');
        const written = readdirSync(log).map((name) => readFileSync(join(log, name), 'latin1'));
        for (const text of [secret, 'nobody reads', 'Made by', 'made.md']) expect(written.join()).not.toContain(text);
        // Another host of the fleet could read all of it: it finds the prompt and no login.
        const { sealingKey } = JSON.parse(readFileSync(fleetPaths(user.data).config, 'utf8'));
        const sent = sentThrough(server.folder, sealingKey);
        expect(sent).toContain('nobody reads');
        expect(sent).toContain('"say":"checkpoint"');
        expect(sent).not.toContain(secret);
        expect((await user.run('host', 'forget', 'one', '-y')).code).toBe(0);
      } finally {
        await api.stop();
      }
    },
  );

  test.if(claudeBinary !== undefined)(
    'host forget of a busy host waits until its session has finished, and its cost is exact',
    async () => {
      const command = 'touch "$HOME/waits"; until [ -e "$HOME/go" ]; do sleep 0.1; done; echo made >made.md';
      const steps = [{ text: 'Working.', tool: 'Bash', input: { command } }, { text: 'Done.' }];
      const api = startScriptedApi({ script: { version: 1, sessions: { '*': { steps } } }, nameOf: () => 'api' });
      try {
        const bin = pathWith('git', 'bun', 'sleep', 'touch');
        symlinkSync(claudeBinary ?? '', join(bin, 'claude'));
        triedEverywhere(claudeBinary ?? '');
        await open(bin);
        user.env.ANTHROPIC_BASE_URL = api.url;
        user.env.CLAUDE_CODE_AGENT_CLAUDE = claudeBinary ?? '';
        noteTried(user.data, claudeBinary ?? '');
        expect((await add('--slots', '2', '--login', 'team-a')).code).toBe(0);
        const group = await user.ok('group', 'create', 'there', '--max-budget-usd', '5', '--where', 'fleet');
        const session = [
          '--project',
          newProject(),
          '--name',
          'api',
          '--isolate',
          'worktree',
          '--allowed-tools',
          'Bash',
        ];
        await user.ok('session', 'add', group, '--prompt', 'Do it.', '--model', modelOfKnownPrice, ...session);
        const run = user.run('group', 'run', group, '--output', 'text');
        await until(() => existsSync(join(there.home, 'waits')));
        const forgetting = user.run('host', 'forget', 'one', '--yes');
        const state = async () => (await user.json<{ hosts: { state: string }[] }>('host', 'list')).hosts[0]?.state;
        while ((await state()) !== 'draining') await Bun.sleep(100);
        expect(locksOf(machineRoot()).map((lock) => locks.holder(lock) !== null)).toEqual([true, true]);
        writeFileSync(join(there.home, 'go'), '');
        expect(await forgetting).toMatchObject({
          code: 0,
          stdout: 'Removed one from the fleet.\n',
          stderr: expect.stringContaining(
            'one takes no more sessions. Waiting for 1 running session; --now ends them.',
          ),
        });
        const { code, stdout } = await run;
        expect([code, stdout.includes('host forget')]).toEqual([0, false]);
        const shown = await user.json<{ progress: { totalCost: number } }>('group', 'show', group);
        expect(roundUsd(shown.progress.totalCost)).toBe(roundUsd(api.served.total.costUsd));
        expect(await user.ok('group', 'show', group)).not.toContain('held');
        expect(await user.ok('group', 'diff', group)).toContain('made');
      } finally {
        await api.stop();
      }
    },
  );

  function newProject(): string {
    const project = user.project('p');
    const git = (...words: string[]) =>
      Bun.spawnSync(['git', '-c', 'user.name=T', '-c', 'user.email=t@x', ...words], { cwd: project });
    git('init', '--quiet', '-b', 'main');
    writeFileSync(join(project, 'a.txt'), 'a\n');
    git('add', '--all');
    git('commit', '--quiet', '-m', 'first');
    return project;
  }
});

describe.skipIf(!hasRedis)('with redis-server', () => {
  /** An ssh that runs its commands here, as the host would. */
  function play(script: string): void {
    const bin = join(user.folder, 'played');
    mkdirSync(bin);
    writeFileSync(join(bin, 'ssh'), `#!/bin/sh\nfor last; do :; done\n${script}\n`, { mode: 0o755 });
    user.env.PATH = `${bin}:${user.env.PATH}`;
  }
  const runAs = (path: string) => `exec env -i HOME='${user.folder}/there' PATH='${path}' sh -c "$last"`;

  beforeEach(async () => {
    mkdirSync(join(user.folder, 'there'));
    await user.ok('fleet', 'init', '--redis', server.url, '--lease', '8');
  });

  test.each<[string, () => string, string]>([
    [
      'it cannot be reached',
      () => 'echo "ssh: connect to host x port 22: No route to host" >&2; exit 255',
      'No route to host',
    ],
    [
      'the account has no shell',
      () => 'echo "This account is not available." >&2; exit 1',
      'account that can run commands',
    ],
    ['there is no git', () => runAs(pathWith('claude')), 'There is no git on me@there. Install git there.'],
    ['there is no claude', () => runAs(pathWith('git')), 'There is no claude on me@there. Install Claude Code'],
    [
      'it is another system',
      () => `${'last=$(echo "$last" | sed "s/\\$(uname -sm)/Other 7/")'}\n${runAs(pathWith('git', 'claude'))}`,
      'does not run on me@there (Other 7)',
    ],
  ])(
    'host add reports in one sentence that %s',
    async (_, script, said) => {
      play(script());
      const { code, stdout, stderr } = await user.run('host', 'add', 'one', '--ssh', 'me@there');
      expect([code, stdout]).toEqual([2, '']);
      const lines = stderr
        .trim()
        .split('\n')
        .filter((line) => !line.endsWith(' ...'));
      expect(lines).toHaveLength(1);
      expect(lines[0]).toContain(said);
      expect(await user.json('host', 'list')).toEqual({ hosts: [] });
      expect(existsSync(join(user.data, 'fleet', 'added.json'))).toBe(false);
    },
    60_000,
  );

  test.each([
    [['one'], 'The host one was not added from here. Give its ssh destination with --ssh.'],
    [['one', '--ssh', '-oProxyCommand=x'], 'not a destination of ssh'],
    [['o_ne', '--ssh', 'me@there'], 'is not a valid host name'],
    [['one', '--ssh', 'me@there', '--label', 'a+b'], 'is not a valid label'],
    [['one', '--ssh', 'me@there', '--slots', '0'], 'from 1 to 1000'],
    [['one', '--ssh', 'me@there', '--login', '../x'], 'is not a valid login name'],
  ])('host add %j is refused before it connects', async (words, said) => {
    play('echo asked >&2; exit 1');
    const { code, stderr } = await user.run('host', 'add', ...words);
    expect(code).toBe(2);
    expect(stderr).toContain(said);
    expect(stderr).not.toContain('asked\n');
  });

  test('with systemd --user the agent is a unit, which is removed again', async () => {
    const bin = pathWith('claude');
    const unit = join(user.home, '.config', 'systemd', 'user', 'claude-code-agent-host.service');
    // Starts and ends the unit's command, as systemd would.
    const systemctl = `#!/bin/sh
echo "$*" >>"$HOME/calls"
unit="$HOME/.config/systemd/user/claude-code-agent-host.service"
case "$2" in
  enable)
    { sed -n 's/^Environment=/export /p' "$unit"; sed -n 's/^ExecStart=/exec /p' "$unit"; } >"$HOME/started.sh"
    env -i HOME="$HOME" sh "$HOME/started.sh" >"$HOME/journal" 2>&1 &
    echo $! >"$HOME/pid" ;;
  disable) kill "$(cat "$HOME/pid")" ;;
esac
`;
    writeFileSync(join(bin, 'systemctl'), systemctl, { mode: 0o755 });
    writeFileSync(join(bin, 'loginctl'), '#!/bin/sh\necho no\n', { mode: 0o755 });
    user.env.PATH = `${bin}:${user.env.PATH}`;
    user.env.CLAUDE_CODE_AGENT_CLAUDE = join(bin, 'claude');
    const joined = await user.run('host', 'join', await user.ok('fleet', 'join-line'), '--name', 'four');
    expect(joined).toMatchObject({ code: 0, stderr: expect.stringContaining('loginctl enable-linger') });
    const text = readFileSync(unit, 'utf8');
    for (const line of ['Restart=always', 'KillMode=process', 'WantedBy=default.target']) expect(text).toContain(line);
    expect(text).not.toContain(secret);
    expect(await user.ok('host', 'list')).toMatch(/^four +ready /m);
    expect((await user.run('host', 'forget', 'four', '--yes')).code).toBe(0);
    expect(existsSync(unit)).toBe(false);
    const calls = readFileSync(join(user.home, 'calls'), 'utf8').trim().split('\n');
    expect(calls.filter((call) => !call.endsWith('show-environment'))).toEqual([
      '--user daemon-reload',
      '--user enable --now claude-code-agent-host.service',
      '--user disable --now claude-code-agent-host.service',
    ]);
    for (const lock of locksOf(user.data)) expect(locks.holder(lock)).toBeNull();
  }, 60_000);

  test('a host joins by itself, also in the foreground, and leaves again', async () => {
    user.env.CLAUDE_CODE_AGENT_CLAUDE = join(pathWith('claude'), 'claude');
    const machine = join(user.folder, 'there', 'data');
    const line = await user.ok('fleet', 'join-line');
    const env = { CLAUDE_CODE_AGENT_HOME: machine };
    const bad = async (...words: string[]) => (await user.runWith({ env }, 'host', 'join', line, ...words)).stderr;
    expect(await bad('--name', 'a_b')).toContain('is not a valid host name');
    expect(await bad('--label', 'a b')).toContain('is not a valid label');
    expect(await bad('--login', 'none')).toContain('This host has no login "none".');
    expect(existsSync(machine)).toBe(false);
    noteTried(fleetPaths(machine).folder, user.env.CLAUDE_CODE_AGENT_CLAUDE);

    const joined = await user.runWith(
      { env, stdin: `${line}\n` },
      'host',
      'join',
      '-',
      '--name',
      'two',
      '--label',
      'gpu',
    );
    expect(joined).toMatchObject({ code: 0, stdout: expect.stringContaining('This host joined the fleet at') });
    expect(joined.stdout + joined.stderr).not.toContain(line);
    expect(await user.ok('host', 'list')).toMatch(/^two +ready .* gpu$/m);
    // While it lives, another host may not have its name.
    const taken = await user.run('host', 'join', line, '--name', 'two');
    expect([taken.code, taken.stderr.includes('Another host of the fleet is called two')]).toEqual([2, true]);
    expect(existsSync(fleetPaths(user.data).host)).toBe(false);
    const listed = await user.runWith({ env }, 'host', 'list');
    expect(listed).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('This machine is the host two of a fleet'),
    });
    const left = await user.runWith({ env }, 'host', 'forget', 'two', '--yes');
    expect(left).toMatchObject({ code: 0, stdout: 'Removed two from the fleet.\n' });
    expect(await user.json('host', 'list')).toEqual({ hosts: [] });
    expect(readdirSync(join(machine, 'fleet'))).toEqual([]);

    const child = Bun.spawn([user.program, 'host', 'join', line, '--name', 'three', '--foreground'], {
      env: { ...user.env, ...env },
      cwd: user.folder,
      stdin: 'ignore',
      stdout: 'ignore',
      stderr: 'ignore',
    });
    await until(() => locks.holder(fleetPaths(machine).guardLock) !== null);
    child.kill('SIGTERM');
    expect(await child.exited).toBe(0);
    expect((await user.runWith({ env }, 'host', 'forget', 'three', '--yes')).code).toBe(0);
    for (const lock of locksOf(machine)) expect(locks.holder(lock)).toBeNull();
  }, 60_000);
});
