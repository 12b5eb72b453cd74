/** Promises: a short program returns its output and exit code; a hanging one is ended with all its helpers. */
import { expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createProcTable } from '../../../src/system/processes/proc-table.ts';
import { createProcesses } from '../../../src/system/processes/processes.ts';
import type { CommandOptions } from '../../../src/system/world.ts';
import { basePath, expectOk } from '../../support/system/rig.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const processes = createProcesses(createProcTable());
const temp = withTempFolder();

const run = (script: string, options: Partial<CommandOptions> = {}): ReturnType<typeof processes.run> =>
  processes.run({
    program: 'sh',
    args: ['-c', script],
    cwd: temp.path,
    env: { PATH: basePath },
    timeoutMs: 60_000,
    ...options,
  });

test('output of both streams and the exit code are returned', async () => {
  expect(expectOk(await run('printf "ü\\n"; pwd; echo bad >&2; cat; exit 4'))).toEqual({
    exitCode: 4,
    stdout: `ü\n${temp.path}\n`,
    stderr: 'bad\n',
  });
});

test('large output on both streams is neither lost nor a deadlock', async () => {
  const { stdout, stderr } = expectOk(await run('head -c 3000000 /dev/zero; head -c 2000000 /dev/zero >&2'));
  expect([stdout.length, stderr.length]).toEqual([3_000_000, 2_000_000]);
});

test('the timeout ends the program and its helpers, and keeps the printed output', async () => {
  const mark = crypto.randomUUID();
  const env = { PATH: basePath, CCA_TEST_RUN: mark };
  const output = expectOk(await run('echo begun; sleep 600 & sleep 600', { env, timeoutMs: 2_000 }));
  expect(output.exitCode).toBeNull();
  expect(output.stdout).toBe('begun\n');
  expect(processes.findMarked('CCA_TEST_RUN', mark)).toEqual([]);
});

test('a background process that holds the output open is not waited for', async () => {
  const { stdout } = expectOk(await run('setsid sleep 600 & echo $!'));
  expect(processes.signal(processes.identify(Number(stdout))!, 'SIGKILL')).toBe(true);
});

test('a missing program is named', async () => {
  const reasons = await Promise.all([
    run('', { program: 'no-such-program' }),
    run('', { program: '/etc/passwd' }),
    run('', { cwd: `${temp.path}/none` }),
  ]);
  expect(reasons.map((result) => !result.ok && result.failure.reason)).toEqual([
    'not-found',
    'not-found',
    'project-missing',
  ]);
});

test('each complete line of standard error is reported while the program runs', async () => {
  const lines: string[] = [];
  // It continues only when its first line was received.
  const go = join(temp.path, 'go');
  const onStderrLine = (line: string): void => {
    lines.push(line);
    writeFileSync(go, '');
  };
  const script =
    'printf "fir" >&2; printf "st ü\\nsec" >&2; until [ -e go ]; do sleep 0.01; done; echo ond >&2; printf rest >&2';
  expect(expectOk(await run(script, { onStderrLine })).stderr).toBe('first ü\nsecond\nrest');
  expect(lines).toEqual(['first ü', 'second']);
});
