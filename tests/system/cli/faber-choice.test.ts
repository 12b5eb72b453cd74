/**
 * Promises of `faber start` while a run is active: on a terminal it asks; "take over", "worktree" and "cancel" do what
 * they say, and any other answer cancels. Two choices at once are refused.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { FaberUser } from '../../support/cli/faber-ground.ts';
import { launcher } from '../../support/cli/user.ts';

let user: FaberUser;
beforeEach(() => {
  user = new FaberUser();
});
afterEach(() => user.remove());

const beside = () => join(user.folder, 'shop-issue-259');
const runs = () => readdirSync(join(user.shop, '.fractary/runs'));

/** Answers the question on a terminal; returns the output and the exit code. */
async function onTerminal(answer: string, ...args: string[]): Promise<{ code: number; shown: string }> {
  let shown = '';
  let isAnswered = false;
  const child = Bun.spawn([launcher, 'faber', ...args], {
    cwd: user.shop,
    env: user.env,
    terminal: {
      cols: 300,
      rows: 40,
      data: (terminal, data) => {
        shown += Buffer.from(data).toString('utf8');
        if (isAnswered || !shown.includes('[y/N')) return;
        isAnswered = true;
        terminal.write(answer);
      },
    },
  });
  return { code: await child.exited, shown };
}

test('"…detects and warns about workflow conflicts": y takes over', async () => {
  const first = await user.begin();
  const { code, shown } = await onTerminal('y\r', 'start', '--work-id', '259');
  expect(code).toBe(0);
  for (const part of ['WARNING: Another workflow is active', `Active: ${first}`, 'or w for a new worktree in']) {
    expect(shown).toContain(part);
  }
  expect(user.activeRun()).toContain('-259-');
  expect(user.stateOf(first).status).toBe('in_progress');
});

test('w starts the run in its own worktree, and the first one continues', async () => {
  const first = await user.begin();
  const { code, shown } = await onTerminal('w\r', 'start', '--work-id', '259');
  expect(code).toBe(0);
  expect(shown).toContain(`Work in ${beside()}`);
  expect(user.activeRun()).toBe(`${first}\n`);
  expect(user.activeRun(beside())).toContain('-259-');
  expect(runs()).toEqual([first]);
});

test.each(['n\r', '\r', 'no\r', 'yw\r', '\u0004'])('%j cancels', async (answer) => {
  const first = await user.begin();
  const { code, shown } = await onTerminal(answer, 'start', '--work-id', '259');
  expect(code).toBe(1);
  expect(shown).toContain('Workflow start cancelled');
  expect(user.activeRun()).toBe(`${first}\n`);
  expect([runs(), existsSync(beside())]).toEqual([[first], false]);
});
