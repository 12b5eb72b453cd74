/**
 * Promises, with the real claude in a mount namespace with an organisation's settings in /etc/claude-code: settings
 * that prevent a start are named, and without hooks sessions complete and name what they lack.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { chmodSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { stepLimitMs } from '../../support/claude/rig.ts';
import { User } from '../../support/cli/user.ts';
import { launcher, pinnedClaude } from '../../support/cli.ts';
import { canMount, PrivateDisk } from '../../support/faults/private-disk.ts';

setDefaultTimeout(stepLimitMs);

const mountable = canMount();
let api: ScriptedApi;
let user: User;
let disk: PrivateDisk;

beforeAll(async () => {
  if (!mountable) return;
  const look = { tool: 'Bash', input: { command: 'ls' } };
  api = startScriptedApi({
    script: { version: 1, sessions: { '*': { steps: [look, { text: 'done' }] } } },
    nameOf: () => undefined,
  });
  user = new User({
    ANTHROPIC_BASE_URL: api.url,
    ANTHROPIC_API_KEY: 'test-key',
    CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
  });
  disk = await PrivateDisk.begin();
  const before = join(user.folder, 'etc');
  mkdirSync(before);
  disk.mount('--bind', '/etc', before);
  disk.mount('-t', 'tmpfs', 'tmpfs', '/etc');
  for (const name of readdirSync('/etc')) symlinkSync(join(before, name), disk.inside(join('/etc', name)));
  mkdirSync(disk.inside('/etc/claude-code'));
  user.program = join(user.folder, 'managed');
  writeFileSync(user.program, `#!/bin/sh\nexec ${disk.prefix.join(' ')} '${launcher}' "$@"\n`);
  chmodSync(user.program, 0o755);
});
afterAll(async () => {
  if (!mountable) return;
  disk.end();
  user.remove();
  await api.stop();
});

/** A run with a claude that is new to this machine, under these settings of the organisation. */
async function runUnder(settings: object) {
  writeFileSync(disk.inside('/etc/claude-code/managed-settings.json'), JSON.stringify(settings));
  rmSync(join(user.data, 'tried-claudes.json'), { force: true });
  const group = await user.ok('group', 'create', 'team');
  await user.add(group, 'work', '--allowed-tools', 'Bash');
  const run = await user.run('group', 'run', group);
  const shown = await user.json<{ status: string; warnings?: { code: string; message: string }[] }>(
    ...['session', 'show', `${group}/work`],
  );
  return { run, shown };
}

test.skipIf(!mountable)(
  'a version that the organisation does not allow is refused with the name of the setting',
  async () => {
    const { run } = await runUnder({ requiredMinimumVersion: '9.9.9' });
    expect(run.code).toBe(2);
    expect(run.stderr).toContain('(/etc/claude-code) set requiredMinimumVersion: 9.9.9. Use a version');
    expect(run.stderr).not.toContain('another version of Claude Code');
  },
);

test.skipIf(!mountable).each(['allowManagedHooksOnly', 'disableAllHooks'])(
  'without hooks, by %s, sessions complete and name what they lack',
  async (name) => {
    const { run, shown } = await runUnder({ [name]: true });
    expect({ code: run.code, status: shown.status }).toEqual({ code: 0, status: 'completed' });
    expect(run.stderr).toContain(`(/etc/claude-code) set ${name}: true. Ask your administrator`);
    expect(shown.warnings).toMatchObject([{ code: 'hook-missing', message: expect.stringContaining(`${name}: true`) }]);
  },
);
