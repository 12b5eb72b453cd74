/**
 * Promises: a program started by way of a subreaper is that program and nothing else (process, arguments, environment,
 * signals), and what it starts and loses stays below it, however it got there: by the image in memory, or by Bun where
 * there can be none.
 */
import { expect, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isolatedBunFlags } from '../../src/world/own-program.ts';
import { openSubreaperImage, subreaperImage } from '../../src/world/subreaper-image.ts';
import { basePath, makeTempFolder, until } from './rig.ts';

const script = join(import.meta.dir, '..', '..', 'src', 'world', 'subreaper-exec.ts');
const ways: [string, readonly string[]][] = [['Bun', [process.execPath, ...isolatedBunFlags, script, 'become']]];
const image = openSubreaperImage();
if (image !== null) ways.push(['the image', [image]]);

const run = (way: readonly string[], ...command: string[]) =>
  Bun.spawnSync([...way, ...command], { env: { PATH: basePath, MARK: 'a b' }, stdin: 'ignore', stderr: 'pipe' });

test('there is an image on every machine that claude runs on', () => {
  const known = process.platform === 'linux' && ['x64', 'arm64'].includes(process.arch);
  expect(image !== null).toBe(known);
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
  const temp = makeTempFolder();
  try {
    const program = join(temp.path, 'program');
    writeFileSync(program, '#!/nonexistent/interpreter\n', { mode: 0o755 });
    const { exitCode, stderr } = run(way, program);
    expect(stderr.toString()).toStartWith('cannot execute ');
    expect(exitCode).toBe(127);
  } finally {
    temp.remove();
  }
});

test.each(ways)('by %s: a daemon without a mark stays below the process', async (_, way) => {
  const daemon = "setsid env -i /bin/sh -c 'sleep 600 >/dev/null & echo $!'; read -r line";
  const program = Bun.spawn([...way, '/bin/sh', '-c', daemon], { env: { PATH: basePath }, stdin: 'pipe' });
  const { value } = await program.stdout.getReader().read();
  const pid = Number(new TextDecoder().decode(value));
  const isBelow = () => readFileSync(`/proc/${pid}/status`, 'utf8').includes(`\nPPid:\t${program.pid}\n`);
  try {
    await until(() => (isBelow() ? true : undefined));
  } finally {
    process.kill(pid, 'SIGKILL');
    program.kill('SIGKILL');
    await program.exited;
  }
});
