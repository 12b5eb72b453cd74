/**
 * Makes the pictures of the README and of docs/ (docs/pictures/*.svg) from the real program in a terminal. The model is
 * scripted, so no account is needed. It takes its time as a real one does, so a run of this script takes ten minutes.
 *
 *   sh scripts/bun.sh scripts/pictures.ts [FOLDER]
 */
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { TestTerminal } from '../tests/support/terminal.ts';
import { type ScreenSize, screenSvg } from './pictures/screen-svg.ts';
import { tryCast } from './pictures/try-cast.ts';

const root = resolve(import.meta.dir, '..');
const program = join(root, 'bin', 'claude-code-agent');
const target = resolve(process.argv[2] ?? join(root, 'docs', 'pictures'));
const work = realpathSync(mkdtempSync(join(tmpdir(), 'pictures-')));
const env = {
  PATH: process.env.PATH ?? '',
  HOME: join(work, 'home'),
  CLAUDE_CODE_AGENT_HOME: join(work, 'data'),
  LANG: 'C.UTF-8',
  COLORTERM: '',
};

/** The check of every project but `keys` waits for this file. */
const gate = join(work, 'go');
const check = `#!/bin/sh
echo '18 checks'
case $PWD in */keys) sleep 18 ;; *) while [ ! -e '${gate}' ]; do sleep 0.2; done ;; esac
echo '18 passed'
`;

async function cca(...args: string[]): Promise<string> {
  const child = Bun.spawn([program, ...args], { cwd: work, env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' });
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  if ((await child.exited) !== 0) throw new Error(`claude-code-agent ${args.join(' ')}: ${stderr}${stdout}`);
  return stdout.trim();
}

function keep(name: string, svg: string): void {
  for (const path of [work, root, tmpdir()]) {
    if (path !== '/' && svg.includes(path)) throw new Error(`${name} shows a path of this machine: ${path}`);
  }
  writeFileSync(join(target, name), svg);
  console.log(`${name}  ${Math.round(svg.length / 1024)} KiB`);
}

/** What a command prints, below the command itself. */
async function printed(
  name: string,
  size: ScreenSize,
  args: readonly string[],
  shown: readonly string[],
): Promise<void> {
  const terminal = new TestTerminal([program, ...args], { columns: size.columns, rows: 500, cwd: work, env });
  await terminal.exited;
  const prompt = `\u001b[32m$\u001b[39m \u001b[1mclaude-code-agent ${shown.join(' ')}\u001b[22m\r\n`;
  keep(name, await screenSvg(prompt + terminal.raw, { columns: size.columns, rows: size.rows }));
  terminal.close();
}

/** The dashboard once it shows these texts, and after each of these keys the next ones. */
async function dashboard(
  name: string,
  group: string,
  size: ScreenSize,
  steps: readonly { readonly keys?: string; readonly shows: readonly string[] }[],
): Promise<void> {
  const terminal = new TestTerminal([program, 'group', 'watch', group], { ...size, cwd: work, env });
  for (const { keys, shows } of steps) {
    for (const sign of keys ?? '') {
      terminal.type(sign);
      // Keys that arrive together are taken for a pasted text.
      await Bun.sleep(200);
    }
    await terminal.shows(...shows);
  }
  keep(name, await screenSvg(terminal.raw, size));
  terminal.kill('SIGTERM');
  await terminal.exited;
  terminal.close();
}

/** Every session waits, has failed or has completed. */
async function plateau(group: string): Promise<void> {
  for (;;) {
    const { progress } = JSON.parse(await cca('group', 'show', group, '--json')) as {
      progress: { sessions: { name: string; status: string; currentTool?: string; estimated?: true; cost: number }[] };
    };
    const of = (name: string) => progress.sessions.find((session) => session.name === name);
    const waits = ['gateway', 'events'].every((name) => of(name)?.currentTool?.includes('check.sh') === true);
    const isPaid = ['gateway', 'events', 'billing'].every((name) => (of(name)?.cost ?? 0) > 0);
    const isExact = progress.sessions.every(({ estimated }) => estimated === undefined);
    if (waits && isPaid && isExact && of('accounts')?.status === 'completed' && of('catalog')?.status === 'failed')
      return;
    await Bun.sleep(200);
  }
}

async function makePictures(): Promise<void> {
  mkdirSync(env.HOME);
  mkdirSync(target, { recursive: true });
  keep('try.svg', await tryCast(program, work, env));
  const projects = join(work, 'projects');
  const made = Bun.spawnSync(['/bin/sh', join(root, 'examples', 'wide-batch', 'setup.sh'), projects], { env });
  if (!made.success) throw new Error(made.stderr.toString());
  for (const name of ['keys', 'gateway', 'events']) {
    writeFileSync(join(projects, name, 'check.sh'), check);
    chmodSync(join(projects, name, 'check.sh'), 0o755);
  }
  const workflow = join(import.meta.dir, 'pictures/workflow.yaml');
  const group = await cca('group', 'create', 'key-rotation', '--from', workflow, '--var', `dir=${projects}`);
  await cca('group', 'run', group, '--detach', '--rehearse', join(import.meta.dir, 'pictures/rehearsal.yaml'));
  await plateau(group);
  const opened = { shows: ['001 keys', '006 gateway', 'q quit'] };
  const gateway = { keys: 'gjjjj', shows: ['─ 006 gateway', './check.sh --all'] };
  await dashboard('dashboard.svg', group, { columns: 120, rows: 24 }, [opened, gateway]);
  const log = { keys: 'gl', shows: ['─ 001 keys', '[log]', '== attempt 1 started', 'All 18 checks pass'] };
  await dashboard('details.svg', group, { columns: 110, rows: 42 }, [opened, log]);
  keep('graph.svg', `${await cca('group', 'graph', group, '--format', 'svg')}\n`);
  const logs = ['session', 'logs'];
  await printed('logs.svg', { columns: 100, rows: 48 }, [...logs, `${group}/keys`], [...logs, 'key-rotation/keys']);
}

async function tidyUp(): Promise<void> {
  writeFileSync(gate, '');
  await cca('stop', '--all').catch(() => {});
  rmSync(work, { recursive: true, force: true });
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => void tidyUp().then(() => process.exit(1)));
}
try {
  await makePictures();
} finally {
  await tidyUp();
}
