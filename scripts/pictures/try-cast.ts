/**
 * `cca try` as moving pictures. Each is taken where the group stays until a gate is opened, which stands before the
 * `node` that the sessions call: so a picture shows the same state however fast the machine is.
 */
import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { key, TestTerminal } from '../../tests/support/terminal.ts';
import { castSvg, type ScreenFrame, type ScreenSize } from './screen-svg.ts';

const size: ScreenSize = { columns: 112, rows: 24 };
const settleMs = 5_000;

export async function tryCast(program: string, work: string, env: Readonly<Record<string, string>>): Promise<string> {
  const gate = (project: string) => join(work, `go-${project}`);
  const [bin, tmp] = [join(work, 'bin'), join(work, 'tmp')];
  for (const folder of [bin, tmp]) mkdirSync(folder);
  const node = Bun.which('node', { PATH: env.PATH ?? '' });
  if (node === null) throw new Error('node is not installed');
  const waiting = `while [ ! -e '${gate('')}'"\${PWD##*/}" ]; do sleep 0.1; done`;
  writeFileSync(join(bin, 'node'), `#!/bin/sh\n${waiting}\nexec '${node}' "$@"\n`);
  chmodSync(join(bin, 'node'), 0o755);
  const terminal = new TestTerminal([program, 'try'], {
    ...size,
    cwd: work,
    env: { ...env, PATH: `${bin}:${env.PATH}`, TMPDIR: tmp },
  });
  const frames: ScreenFrame[] = [];
  const take = async (seconds: number, ...rows: readonly RegExp[]): Promise<void> => {
    // What is marked as an estimate becomes a figure of claude's after some seconds.
    await terminal.until((text) => rows.every((row) => row.test(text)) && !text.includes('~$'));
    // Figures follow what the sessions do after a moment.
    await Bun.sleep(settleMs);
    frames.push({ bytes: terminal.raw, seconds });
  };
  const press = (keys: string, seconds: number, ...rows: readonly RegExp[]): Promise<void> => {
    terminal.type(keys);
    return take(seconds, ...rows);
  };
  const typed = (text: string) => `\u001b[32m$\u001b[39m \u001b[1m${text}\u001b[22m\u2588`;
  frames.push({ bytes: typed('cca t'), seconds: 0.5 }, { bytes: typed('cca try'), seconds: 1 });
  try {
    await terminal.shows('[now]', 'q quit');
    // The list alone, with what each session does.
    await press(key.enter, 3, /001 auth-module .*Bash/, /002 shared-library .*Bash/);
    await press(`${key.enter}2`, 4, /\[log\]/, /> Bash node --test/);
    writeFileSync(gate('project-a'), '');
    await take(3, /✓ {2}001 auth-module/, /›\S {2}002 shared-library/, /1\/4 done/);
    rmSync(gate('project-a'));
    writeFileSync(gate('project-b'), '');
    await press(key.enter, 3, /✓ {2}002 shared-library/, /003 integration .*Bash/);
    await press(key.enter, 4, /\[log\]/, /›\S {2}└ 003 integration/, /> Bash node --test/);
    writeFileSync(gate('project-a'), '');
    await press('j1', 5, /›✓ {4}└ 004/, /completed .*4\/4 done/, / result /);
    terminal.type('q');
    await terminal.exited;
    return await castSvg(frames, size, 2);
  } finally {
    for (const project of ['project-a', 'project-b']) writeFileSync(gate(project), '');
    terminal.kill('SIGTERM');
    await terminal.ended;
    terminal.close();
  }
}
