/**
 * Promises: `try` shows a running group in the dashboard without an account, from a data folder of its own. It ends on
 * q, after the given time or with its terminal, and leaves no file, process or group.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { launcher, User } from '../../support/cli/user.ts';
import { checkoutRoot, pinnedClaude, until } from '../../support/cli.ts';
import { TestTerminal } from '../../support/terminal.ts';

const timeoutMs = 120_000;
let user: User;
let tmp: string;
let terminals: TestTerminal[];
beforeEach(() => {
  user = new User();
  tmp = join(user.folder, 'tmp');
  mkdirSync(tmp);
  user.env.TMPDIR = tmp;
  terminals = [];
});
afterEach(() => {
  for (const terminal of terminals) terminal.close();
  user.remove();
});

function open(...command: string[]): TestTerminal {
  const terminal = new TestTerminal(command, { cwd: user.folder, env: user.env });
  terminals.push(terminal);
  return terminal;
}

/** Processes started below this test's temporary folder, or with it in their environment. */
function left(): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return (
        /^\d+$/.test(pid) && Bun.file(`/proc/${pid}/environ`).size >= 0 && environment(pid).includes(`TMPDIR=${tmp}`)
      );
    } catch {
      return false;
    }
  });
}

function environment(pid: string): string {
  return Bun.spawnSync(['cat', `/proc/${pid}/environ`]).stdout.toString();
}

async function expectNothingLeft(): Promise<void> {
  await until(() => left().length === 0);
  expect(readdirSync(tmp).filter((name) => name.startsWith('claude-code-agent-try-'))).toEqual([]);
  expect(await user.json('ls')).toEqual([]);
}

test('the dashboard, until q is pressed', async () => {
  const terminal = open(launcher, 'try');
  await terminal.shows('Cross-Project', 'auth-module', 'integration', 'running');
  expect(terminal.isAlternate).toBe(true);
  expect(readdirSync(tmp)).toHaveLength(1);
  terminal.type('q');
  expect(await terminal.exited).toBe(0);
  expect(terminal.text()).toContain('Next: claude-code-agent init');
  expect({ isAlternate: terminal.isAlternate, isCooked: terminal.isCooked }).toEqual({
    isAlternate: false,
    isCooked: true,
  });
  await expectNothingLeft();
}, 120_000);

test(
  '--seconds ends it after that time',
  async () => {
    const terminal = open(launcher, 'try', '--seconds', '1');
    expect(await terminal.exited).toBe(0);
    expect(terminal.raw).toContain('auth-module');
    await expectNothingLeft();
  },
  timeoutMs,
);

test(
  'closing its terminal ends it',
  async () => {
    const terminal = open(launcher, 'try');
    await terminal.shows('auth-module', 'running');
    terminal.kill('SIGHUP');
    await terminal.exited;
    await expectNothingLeft();
  },
  timeoutMs,
);

test(
  'npm run demo does the same on a terminal',
  async () => {
    user.env.PATH = `${user.env.PATH}:${dirname(process.execPath)}`;
    const terminal = open('sh', join(checkoutRoot, 'examples', 'demo.sh'));
    await terminal.shows('Cross-Project', 'running');
    terminal.type('q');
    expect(await terminal.exited).toBe(0);
    // In a clone the program is not on PATH.
    expect(terminal.text()).toContain(`Next: ${launcher} init`);
    await expectNothingLeft();
  },
  timeoutMs,
);

test(
  'without a terminal it prints the events',
  async () => {
    const ran = await user.run('try', '--seconds', '1');
    expect(ran).toMatchObject({ code: 0 });
    expect(ran.stdout).toContain('4 sessions to run');
    expect(ran.stdout).toContain('The demonstration has ended');
    // No advice refers to what is removed.
    expect(ran.stdout.match(/^(Next|Transcripts): .*$/gm)).toEqual([expect.stringMatching(/^Next: \S+ init /)]);
    await expectNothingLeft();
  },
  timeoutMs,
);

test.each([['0'], ['x'], ['1.5'], ['9999'], ['']])('--seconds %j is refused', async (seconds) => {
  const refused = await user.run('try', '--seconds', seconds);
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toContain('a whole number from 1 to 3600');
});

test('without git, claude or a temporary folder it names what is missing and leaves nothing', async () => {
  const tools = join(user.folder, 'tools');
  mkdirSync(tools);
  for (const tool of ['sh', 'dirname', 'mkdir', 'readlink', 'find', 'uname']) {
    symlinkSync(Bun.which(tool) ?? '', join(tools, tool));
  }
  const env = { PATH: tools, CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude() };
  const withoutGit = await user.runWith({ env }, 'try');
  expect(withoutGit).toMatchObject({ code: 2, stdout: '' });
  expect(withoutGit.stderr).toContain('git is needed');
  expect(readdirSync(tmp)).toEqual([]);
  const withoutClaude = await user.runWith({ env: { CLAUDE_CODE_AGENT_CLAUDE: '/nowhere/claude' } }, 'try');
  expect(withoutClaude).toMatchObject({ code: 2, stdout: '' });
  expect(withoutClaude.stderr).toContain('CLAUDE_CODE_AGENT_CLAUDE names /nowhere/claude, which is not a file.');
  expect(readdirSync(tmp)).toEqual([]);
  const nowhere = await user.runWith({ env: { TMPDIR: '/dev/null' } }, 'try');
  expect(nowhere).toMatchObject({ code: 2, stdout: '' });
  expect(nowhere.stderr).toContain('Set TMPDIR');
});
