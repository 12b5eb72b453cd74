/**
 * Promises, with the real claude and a real ext4: a disk is copied at random instants of a run, and the run continues
 * from each copy after a "reboot". By the API's own count no more is spent than the cap and one message per session, no
 * completed session sends another request, and the group ends: held money is shown, and one command frees it. Skipped
 * without mount permission (no root, no loop devices).
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RehearsalScript, Step } from '../../../src/rehearsal/script.ts';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { modelOfKnownPrice } from '../../support/claude/rig.ts';
import { launcher, pinnedClaude, TestHome } from '../../support/cli.ts';
import { canMountImages, type DiskContents, DiskImage } from '../../support/disk-image.ts';
import { draw, testSeed } from '../../support/draw.ts';

const names = ['one', 'two', 'three'] as const;
const messages = 4;
/** 20,000 input tokens and 2,000 output tokens. */
const messageUsd = 0.15;
/** Enough for all the work, and less than two messages more. */
const capUsd = names.length * messages * messageUsd + 0.2;
const cutsMax = 10;
/** The longest time between two cuts, milliseconds. */
const gapMs = 900;

const usage = { input: 20_000, output: 2_000 };
const steps = (name: string): Step[] =>
  Array.from({ length: messages }, (_, index) =>
    index + 1 === messages
      ? { text: `${name} is done`, usage, delayMs: 200 }
      : { text: 'Working.', tool: 'Bash', input: { command: `echo ${index} >> ${name}.txt` }, usage, delayMs: 200 },
  );
const script: RehearsalScript = {
  version: 1,
  sessions: Object.fromEntries(names.map((name) => [name, { steps: steps(name) }])),
};

interface Cut {
  readonly contents: DiskContents;
  /** What the API had served at that time, US dollars. */
  readonly servedUsd: number;
  /** Names of the sessions that were reported completed at that time. */
  readonly completed: readonly string[];
}

let disk: DiskImage;
let machine: TestHome;
let api: ScriptedApi;
let byClaudeId: Map<string, string>;
let boots = 0;

beforeEach(() => {
  disk = new DiskImage();
  byClaudeId = new Map();
  api = startScriptedApi({ script, nameOf: (id) => byClaudeId.get(id) });
  machine = new TestHome({
    ANTHROPIC_BASE_URL: api.url,
    ANTHROPIC_API_KEY: 'test-key',
    CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
    CLAUDE_CODE_AGENT_HOME: join(disk.folder, 'data'),
  });
});
afterEach(async () => {
  await api.stop();
  disk.remove();
  machine.remove();
});

async function makeGroup(): Promise<string> {
  const group = await machine.ok('group', 'create', 'cut', '--max-budget-usd', String(capUsd), '--concurrent', '2');
  for (const name of names) {
    const project = join(disk.folder, 'projects', name);
    mkdirSync(project, { recursive: true });
    const after = name === 'three' ? ['--depends-on', 'one'] : [];
    const common = ['--project', project, '--prompt', `do ${name}`, '--model', modelOfKnownPrice];
    const id = await machine.ok(
      'session',
      'add',
      group,
      '--name',
      name,
      ...common,
      '--allowed-tools',
      'Bash',
      ...after,
    );
    byClaudeId.set(id.slice(4), name);
  }
  return group;
}

/** Runs the group and cuts the power at instants chosen by `seed`; the run itself is not affected. */
async function cutsOf(group: string, seed: number): Promise<Cut[]> {
  const child = Bun.spawn([launcher, 'group', 'run', group, '--output', 'json', '--no-warm-cache'], {
    cwd: machine.folder,
    env: machine.env,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'inherit',
  });
  let told = '';
  const listening = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of child.stdout) told += decoder.decode(chunk, { stream: true });
  })();
  const cuts: Cut[] = [];
  while (cuts.length < cutsMax) {
    await Promise.race([Bun.sleep(100 + draw(seed, cuts.length, gapMs)), child.exited]);
    if (child.exitCode !== null) break;
    const completed = names.filter((name) => isCompletedIn(told, name));
    // The API is part of this process, so it does not answer while the disk is copied.
    cuts.push({ contents: disk.powerCut(), servedUsd: api.served.total.costUsd, completed });
  }
  expect(await child.exited).toBe(0);
  await listening;
  return cuts;
}

function isCompletedIn(told: string, name: string): boolean {
  const id = [...byClaudeId].find(([, other]) => other === name)?.[0] ?? '';
  return told.split('\n').some((line) => line.includes('"session_completed"') && line.includes(id));
}

/** Runs the program after a simulated reboot: no earlier process is alive, and the boot id differs. */
async function afterReboot(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const bootId = join(machine.folder, 'boot-id');
  writeFileSync(bootId, `00000000-0000-4000-8000-${String(boots).padStart(12, '0')}\n`);
  const inNewBoot = 'mount --bind "$1" /proc/sys/kernel/random/boot_id && shift && exec "$@"';
  const child = Bun.spawn(['unshare', '-m', 'sh', '-c', inNewBoot, 'sh', bootId, launcher, ...args], {
    cwd: machine.folder,
    env: machine.env,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { code: await child.exited, stdout, stderr };
}

interface Budget {
  readonly spentUsd: number;
  readonly heldUsd?: number;
  readonly sessions: readonly { readonly id: string; readonly heldUsd?: number }[];
}

async function checkContinued(group: string, { contents, servedUsd, completed }: Cut, about: object): Promise<void> {
  disk.restore(contents);
  boots += 1;
  const servedBefore = api.served.total.costUsd;
  const requestsBefore = api.requests.length;
  const run = await afterReboot('group', 'run', group, '--output', 'json', '--no-warm-cache');
  expect({ ...about, ...run, isOver: run.code === 0 || run.code === 3 }).toMatchObject({ isOver: true });
  const asked = new Set(api.requests.slice(requestsBefore).map(({ name }) => name));
  expect({ ...about, again: completed.filter((name) => asked.has(name)) }).toEqual({ ...about, again: [] });
  const spentUsd = servedUsd + api.served.total.costUsd - servedBefore;
  const mostUsd = capUsd + names.length * messageUsd;
  expect({ ...about, spentUsd, isKept: spentUsd <= mostUsd + 1e-6 }).toMatchObject({ isKept: true });
  const budget = await machine.json<Budget>('group', 'budget', group);
  // The log records at least what was served, except for answers in progress at the cut.
  const knownUsd = budget.spentUsd + names.length * messageUsd;
  expect({ ...about, knownUsd, isKnown: knownUsd >= spentUsd - 1e-6 }).toMatchObject({ isKnown: true });
  if (run.code === 0) return;
  for (const { id, heldUsd = 0 } of budget.sessions) {
    if (heldUsd > 0) await machine.ok('group', 'budget', group, '--free', id);
  }
  const more = await afterReboot('group', 'resume', group, '--max-budget-usd', String(2 * capUsd), '--output', 'json');
  expect({ ...about, ...more }).toMatchObject({ code: 0 });
}

test.if(canMountImages())(
  'the power is cut at ten instants of a run',
  async () => {
    // A run that ends before all cuts is followed by another.
    for (let seed = testSeed, left = cutsMax; left > 0; seed += 1) {
      disk.unmount();
      expect(disk.format() && disk.mount()).toBe(true);
      const group = await makeGroup();
      const cuts = (await cutsOf(group, seed)).slice(0, left);
      expect(cuts.length).toBeGreaterThan(0);
      left -= cuts.length;
      for (const [index, cut] of cuts.entries()) {
        await checkContinued(group, cut, { seed, index, cutAtUsd: cut.servedUsd, completed: cut.completed });
      }
    }
  },
  30 * 60_000,
);
