/**
 * Promises: a program started by way of a subreaper has its own arguments, environment and signals, and ends as it
 * would alone; what it starts and loses stays below what was started, however that is done: by the image in memory, or
 * by Bun where there can be none. A keeper waits for what is lost.
 */
import { afterAll, expect, test } from 'bun:test';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { isolatedBunFlags } from '../../../src/system/own-program.ts';
import { keeperEnvironment } from '../../../src/system/processes/keeper.ts';
import { createProcTable } from '../../../src/system/processes/proc-system.ts';
import { createProcesses } from '../../../src/system/processes/processes.ts';
import {
  becomeManner,
  installSubreaper,
  releaseManner,
  subreaperImage,
} from '../../../src/system/processes/subreaper-image.ts';
import { basePath, exitOf, makeTempFolder, until, unwrap } from '../../support/system/rig.ts';

const script = join(import.meta.dir, '../../../src/system/subreaper-exec.ts');
const byBun = [process.execPath, ...isolatedBunFlags, script];
const temp = makeTempFolder();
const image = join(temp.path, 'subreaper');
const hasImage = installSubreaper(image);
const imageName = 'the image';
const ways: [string, readonly string[]][] = [
  ['Bun', [...byBun, 'become']],
  ...(hasImage ? [[imageName, [image, becomeManner]] as [string, string[]]] : []),
];
const releases: [string, readonly string[]][] = [
  ['Bun', [...byBun, 'release']],
  ...(hasImage ? [[imageName, [image, releaseManner]] as [string, string[]]] : []),
];

const processes = createProcesses(createProcTable());

afterAll(() => temp.remove());

const run = (way: readonly string[], ...command: string[]) =>
  Bun.spawnSync([...way, ...command], { env: { PATH: basePath, MARK: 'a b' }, stdin: 'ignore', stderr: 'pipe' });

test('there is an image on every machine that claude runs on', () => {
  expect(hasImage).toBe(process.platform === 'linux' && ['x64', 'arm64'].includes(process.arch));
  expect(subreaperImage('s390x')).toBeNull();
});

test('the images of both machines end with what they say when they cannot execute', () => {
  for (const arch of ['x64', 'arm64']) {
    const bytes = Buffer.from(subreaperImage(arch) ?? []);
    expect(bytes.subarray(0, 4).toString('latin1')).toBe('\x7fELF');
    expect(bytes.readBigUInt64LE(96)).toBe(BigInt(bytes.length));
    expect(bytes.toString('latin1')).toEndWith('cannot execute the program\n');
  }
});

test.each(ways)('by %s: arguments, environment and exit code are those of the program', (_, way) => {
  const echo = 'printf "<%s>" "$0" "$@" "$MARK" "$(env | grep -c .)"; exit 7';
  const { exitCode, stdout } = run(way, '/bin/sh', '-c', echo, 'name', '', 'two words', '*');
  // PATH, MARK, and PWD and _ that the shell adds or not, whoever starts it.
  const plain = run([], '/bin/sh', '-c', echo, 'name', '', 'two words', '*');
  expect(stdout.toString()).toBe(plain.stdout.toString());
  expect(stdout.toString()).toStartWith('<name><><two words><*><a b>');
  expect(exitCode).toBe(7);
});

test.each(ways)('by %s: no signal is ignored or blocked', (_, way) => {
  const { stdout } = run(way, '/bin/sh', '-c', "grep -E '^Sig(Blk|Ign)' /proc/self/status");
  expect(stdout.toString()).toBe('SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n');
});

test.each(ways)('by %s: what cannot be executed is said', (_, way) => {
  const program = join(temp.path, 'program');
  writeFileSync(program, '#!/nonexistent/interpreter\n', { mode: 0o755 });
  const { exitCode, stderr } = run(way, program);
  expect(stderr.toString()).toStartWith('cannot execute ');
  expect(exitCode).toBe(127);
});

test.each(ways)('by %s: a daemon without a mark stays below the process', async (_, way) => {
  const daemon = "setsid env -i /bin/sh -c 'sleep 600 >/dev/null & echo $!'; read -r line";
  const program = Bun.spawn([...way, '/bin/sh', '-c', daemon], { env: { PATH: basePath }, stdin: 'pipe' });
  const { value } = await program.stdout.getReader().read();
  const pid = Number(new TextDecoder().decode(value));
  const isBelow = () => readFileSync(`/proc/${pid}/status`, 'utf8').includes(`\nPPid:\t${program.pid}\n`);
  try {
    await until(isBelow);
    const worker = processes.identify(program.pid);
    const lost = worker && processes.findBranches(worker)?.at(-1);
    expect(lost?.map((process) => process.pid)).toEqual([pid]);
  } finally {
    process.kill(pid, 'SIGKILL');
    program.kill('SIGKILL');
    await program.exited;
  }
});

test.each(releases)('by %s: a program is released into a session and an environment of its own', (_, way) => {
  const env = { PATH: basePath, ...keeperEnvironment('n', { PATH: basePath, 'A.b=': 'x=y', EMPTY: '' }), OTHER: 'o' };
  const list = "tr '\\0' '\\n' </proc/$$/environ; ps -o sid= -p $$ | tr -d ' '; echo $$";
  const { stdout } = Bun.spawnSync([...way, '/bin/sh', '-c', list], { env });
  const [path, odd, empty, session, pid] = stdout.toString().trimEnd().split('\n');
  expect([path, odd, empty]).toEqual([`PATH=${basePath}`, 'A.b==x=y', 'EMPTY=']);
  expect(session).toBe(pid);
});

test.each([
  ['keep', { KEPT_A: 'x y', CLAUDE_CODE_AGENT_KEEPER: 'n' }, [String(process.pid), '']],
  ['supervise', { A: 'x y' }, []],
])('a runner of an earlier version that says %s gets a keeper', async (manner, env, words) => {
  const script = 'setsid env -i sleep 600 & echo "$A$CLAUDE_CODE_AGENT_KEEPER $!"; exit 3';
  const command = [...byBun, manner, ...words, '/bin/sh', '-c', script];
  const keeper = Bun.spawn(command, { env: { PATH: basePath, ...env }, stdin: 'ignore' });
  const [text, pid] = (await new Response(keeper.stdout).text()).trim().split(/ (?=\d+$)/);
  expect([text, await keeper.exited]).toEqual(['x y', 3]);
  expect(existsSync(`/proc/${pid}`)).toBe(false);
});

test.each<[NodeJS.Signals, string]>([
  ['SIGTERM', 'exec sleep 600'],
  ['SIGINT', 'exec sleep 600'],
  ['SIGHUP', 'exec sleep 600'],
  ['SIGKILL', 'exec sleep 600'],
  ['SIGTERM', 'while :; do sleep 0.01; done'],
])('by either way: %s ends `%s` as it would alone', async (signal, script) => {
  for (const way of [[], ...ways.map(([, command]) => command)]) {
    const isTrapped = script.startsWith('while');
    const command = [...way, '/bin/sh', '-c', `${isTrapped ? "trap 'exit 143' TERM; " : ''}echo begun; ${script}`];
    const program = Bun.spawn(command, { env: { PATH: basePath } });
    await program.stdout.getReader().read();
    program.kill(signal);
    await program.exited;
    expect([program.exitCode, program.signalCode]).toEqual(isTrapped ? [143, null] : [null, signal]);
  }
});

/** Other tests in this process may have children that nobody here knows. */
const orphans = () => processes.findOrphans()?.map(({ pid }) => pid) ?? [];

/** Of an earlier version, which had no children of this name told to it that it could wait for. */
const withoutKeeper = createProcesses({ ...createProcTable(), children: () => null });

test.skipIf(!hasImage)(
  'where there can be no keeper, what a worker leaves behind comes to its starter, and is waited for',
  async () => {
    const daemon = 'setsid env -i sleep 600 & echo $!; exec sleep 600';
    const streams = { stdoutFile: join(temp.path, 'daemon'), stderrFile: join(temp.path, 'err') };
    const own = { program: '/bin/sh', args: ['-c', daemon], cwd: temp.path, env: { PATH: basePath }, ...streams };
    const worker = unwrap(withoutKeeper.spawn({ ...own, keeper: image }));
    const printed = () => readFileSync(streams.stdoutFile, 'utf8');
    await until(() => printed().endsWith('\n'));
    const sleeper = processes.identify(Number(printed()));
    if (sleeper === null) throw new Error('nothing is below the worker');
    // Whoever inherits has begun to when it has started its first.
    await exitOf(unwrap(processes.spawn({ ...own, args: ['-c', 'true'], keeper: image })));
    expect(orphans()).not.toContain(sleeper.pid);

    processes.signal(worker.identity, 'SIGKILL');
    await exitOf(worker);
    await until(() => orphans().includes(sleeper.pid));
    processes.signal(sleeper, 'SIGKILL');
    await until(() => {
      orphans();
      return !existsSync(`/proc/${sleeper.pid}`);
    });
  },
);

test('an orphan that has ended is gone while the program lives, and one that lives is told apart from it', async () => {
  const stdoutFile = join(temp.path, 'lost');
  const lose = '(sleep 600 & echo $!) | { read -r pid; kill -9 $pid; echo $pid; }; (setsid sleep 601 &); sleep 602; :';
  const streams = { stdoutFile, stderrFile: join(temp.path, 'err') };
  const own = { program: '/bin/sh', args: ['-c', lose], cwd: temp.path, env: { PATH: basePath }, ...streams };
  const worker = unwrap(processes.spawn({ ...own, keeper: image }));
  await until(() => existsSync(stdoutFile) && readFileSync(stdoutFile, 'utf8').endsWith('\n'));
  await until(() => !existsSync(`/proc/${Number(readFileSync(stdoutFile, 'utf8'))}`));
  await until(() => processes.findBranches(worker.identity)?.length === 2);
  const branches = processes.findBranches(worker.identity) ?? [];
  expect(branches.map((branch) => branch.length)).toEqual([1, 1]);
  expect(branches.flat().map(({ pid }) => pid)).not.toContain(worker.identity.pid);
  processes.signal(worker.identity, 'SIGKILL');
  expect(await exitOf(worker)).toEqual({ kind: 'signalled', signal: 'SIGKILL' });
  for (const process of branches.flat()) expect(processes.isAlive(process)).toBe(false);
});

test.skipIf(!hasImage)('what ends while the inherited are read has left its children to us', async () => {
  // First it is asked whether there can be a keeper.
  const lists = [null, [11], [11, 12], [11, 12]];
  const entry = (pid: number) => ({ pid, parent: process.pid, session: pid, startTime: '1', isSingle: true });
  const made = createProcesses({
    all: () => [],
    find: (pids) => pids.map((pid) => ({ ...entry(pid), zombie: pid === 11 })),
    children: () => lists.shift() ?? null,
    marked: () => [],
    keep: () => () => {},
    forget: () => {},
    bootId: () => 'boot',
  });
  const streams = { stdoutFile: join(temp.path, 'out'), stderrFile: join(temp.path, 'err') };
  const env = { PATH: basePath };
  const own = { program: '/bin/sh', args: ['-c', 'true'], cwd: temp.path, env, ...streams, keeper: image };
  expect(made.findOrphans()).toBeNull();
  await exitOf(unwrap(made.spawn(own)));
  expect(made.findOrphans()?.map(({ pid }) => pid)).toEqual([12]);
  expect(made.findOrphans()).toBeNull();
});

test.skipIf(!hasImage)('the end of a child that Bun has started is left to Bun', async () => {
  const child = Bun.spawn(['/bin/sh', '-c', 'exit 3'], { env: { PATH: basePath } });
  const isZombie = () => readFileSync(`/proc/${child.pid}/stat`, 'latin1').includes(') Z ');
  while (!isZombie()) Bun.sleepSync(1);
  expect(orphans()).not.toContain(child.pid);
  expect(await child.exited).toBe(3);
});

const good = Buffer.from(subreaperImage(process.arch) ?? []);

test.skipIf(!hasImage).each<[string, (path: string) => void]>([
  ['nothing', () => {}],
  ['a torn copy', (path) => writeFileSync(path, good.subarray(0, 100), { mode: 0o700 })],
  ['another program', (path) => writeFileSync(path, '#!/bin/sh\nexit 127\n', { mode: 0o700 })],
  ['a copy that is not executable', (path) => writeFileSync(path, good, { mode: 0o600 })],
  [
    'a copy that others may write',
    (path) => {
      writeFileSync(path, good);
      chmodSync(path, 0o777);
    },
  ],
  ['a link to a program', (path) => symlinkSync('/bin/sh', path)],
])('where %s is, the image is put as a whole', (name, spoil) => {
  const folder = join(temp.path, name);
  const path = join(folder, 'subreaper');
  mkdirSync(folder);
  spoil(path);
  expect(installSubreaper(path)).toBe(true);
  expect(readdirSync(folder)).toEqual(['subreaper']);
  expect(readFileSync(path).equals(good)).toBe(true);
  expect(lstatSync(path).mode & 0o777).toBe(0o700);
});

test('where nothing can be put, there is none', () => {
  const folder = join(temp.path, 'taken', 'subreaper');
  mkdirSync(join(folder, 'x'), { recursive: true });
  expect(installSubreaper(folder)).toBe(false);
  expect(readdirSync(join(temp.path, 'taken'))).toEqual(['subreaper']);
  expect(installSubreaper(join(temp.path, 'nowhere', 'subreaper'))).toBe(false);
});

test('a program that was removed meanwhile does not keep workers from starting', async () => {
  const path = join(temp.path, 'subreaper-of-a-run');
  const out = join(temp.path, 'out');
  for (let count = 1; count <= 2; count += 1) {
    const files = { stdoutFile: out, stderrFile: join(temp.path, 'err') };
    const command = { program: '/bin/echo', args: ['worked'], cwd: temp.path, env: {}, keeper: path, ...files };
    expect(await exitOf(unwrap(processes.spawn(command)))).toEqual({ kind: 'exited', code: 0 });
    expect(existsSync(path)).toBe(hasImage);
    rmSync(path, { force: true });
  }
  expect(readFileSync(out, 'utf8')).toBe('worked\nworked\n');
});
