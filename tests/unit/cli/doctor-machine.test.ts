/**
 * Promises: `doctor` reports programs that are not claude, a broken config.yaml, a data folder with open permissions,
 * and the abilities of this machine.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { limitText } from '../../../src/app/check/machine.ts';
import { programName, startedAs } from '../../../src/core/program-name.ts';
import { makeFifo } from '../../../src/system/libc.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { User } from '../../support/cli/user.ts';

let user: User;
beforeEach(() => {
  user = new User({ ANTHROPIC_API_KEY: 'test-key' });
});
afterEach(() => user.remove());

interface Finding {
  readonly check: string;
  readonly level: string;
  readonly message: string;
  readonly next: string;
}

async function findings(check: string): Promise<Finding[]> {
  const { checks } = JSON.parse((await user.run('doctor', '--json')).stdout) as { checks: Finding[] };
  return checks.filter((finding) => finding.check === check);
}

test.each(['/bin/ls', '/bin/true', '/bin/cat', process.execPath])(
  'doctor reports that %s is not claude',
  async (program) => {
    user.env.CLAUDE_CODE_AGENT_CLAUDE = program;
    expect(await findings('claude')).toMatchObject([
      { level: 'broken', message: expect.stringContaining(`${program} --version did not print a Claude Code`) },
    ]);
    const group = await user.makeGroup();
    const { code, stderr, stdout } = await user.run('group', 'run', group);
    expect([code, stderr + stdout]).toEqual([
      3,
      expect.stringContaining(`${program} --version did not print a Claude Code`),
    ]);
  },
);

test('doctor reports a broken config.yaml, and accepts a valid one', async () => {
  const folder = join(user.home, '.config', 'claude-code-agent');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'config.yaml'), 'prices: 5\n');
  expect(await findings('config')).toMatchObject([
    { level: 'broken', message: expect.stringContaining('config.yaml'), next: expect.stringMatching(/./) },
  ]);
  writeFileSync(join(folder, 'config.yaml'), '{}\n');
  expect(await findings('config')).toEqual([]);
  rmSync(join(folder, 'config.yaml'));
  makeFifo(join(folder, 'config.yaml'), 0o600);
  expect(await findings('config')).toMatchObject([
    { level: 'broken', message: expect.stringMatching(/config\.yaml is not a regular file\.$/) },
  ]);
});

test('doctor reports a data folder that other users can write to, with the remedy', async () => {
  await user.ok('group', 'create', 'x');
  expect(await findings('data')).toMatchObject([{ level: 'ok' }]);
  chmodSync(user.data, 0o777);
  const [found] = await findings('data');
  expect(found).toMatchObject({ level: 'warning', message: expect.stringContaining(user.data) });
  const command = found?.next.match(/: (chmod .*)$/)?.[1] ?? '';
  expect(Bun.spawnSync(['sh', '-c', command]).exitCode).toBe(0);
  expect(await findings('data')).toMatchObject([{ level: 'ok' }]);
});

test('doctor reports the process containment that works here', async () => {
  const said = { cgroup: 'control group', tree: 'the runner inherits', mark: 'by parent, session or' };
  const message = expect.stringContaining(said[createRealWorld().processes.containment()]);
  expect(await findings('cgroup')).toMatchObject([{ level: 'ok', message }]);
});

test('doctor reports the session limits that work here', async () => {
  const here = createRealWorld().processes.limits();
  expect(await findings('limits')).toMatchObject([{ level: 'ok', message: limitText(here) }]);
  const none = limitText(new Set());
  expect(none).toContain('only the commands of sessions');
  expect(none).toContain('--max-processes is refused); start with "systemd-run --user --scope -p Delegate=yes');
  const before = programName;
  startedAs('cca');
  expect(limitText(new Set())).toContain('-p Delegate=yes cca ..." to enable it');
  startedAs(before);
  const all = limitText(new Set(['memory', 'processes']));
  expect(all).toContain('for whole sessions');
  expect(all).not.toContain('systemd-run');
});
