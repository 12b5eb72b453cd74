/**
 * Promises: a fleet host uses the same claude as a run there, checked once for each file, and none that failed a
 * required check.
 */
import { beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AppContext } from '../../../src/app/app-context.ts';
import { broken, type CheckResult, checks, holds, unknown } from '../../../src/app/claude-check/checks.ts';
import { hostClaude } from '../../../src/app/fleet/serve.ts';
import { ok, type Result } from '../../../src/core/failure.ts';
import { fleetPaths, writeHost } from '../../../src/fleet/fleet-files.ts';
import { loginText } from '../../../src/fleet/login-files.ts';
import { newFleetKeys } from '../../../src/fleet/seal.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const temp = withTempFolder();
let root: string;
let program: string;
let trials: number;
let seen: CheckResult[];
let nowMs: number;
const said: string[] = [];
let logins: string[];

beforeEach(() => {
  [root, program] = [join(temp.path, 'data'), join(temp.path, 'claude')];
  [trials, logins, nowMs, seen] = [0, [], 1_800_000_000_000, checks.map(({ id }) => holds(id))];
  install('2.1.400');
});

function install(version: string): void {
  writeFileSync(`${program}-new`, `#!/bin/sh\necho "${version} (Claude Code)"\n`, { mode: 0o755 });
  rmSync(program, { force: true });
  renameSync(`${program}-new`, program);
}

const only = (...others: CheckResult[]) => checks.map(({ id }) => others.find((one) => one.id === id) ?? holds(id));

function open(env: Readonly<Record<string, string>> = { ANTHROPIC_API_KEY: 'test-key' }) {
  const real = createRealWorld();
  const place: AppContext = {
    env: { PATH: '/usr/bin:/bin', HOME: temp.path, CLAUDE_CODE_AGENT_CLAUDE: program, ...env },
    ...{ cwd: temp.path, packageRoot: temp.path },
    world: { ...real, clock: { ...real.clock, now: () => nowMs } },
    notes: { line: (text) => said.push(text), passing: () => {} },
    root: () => ok(root),
  };
  return hostClaude(place, root, async (_world, { login }): Promise<Result<readonly CheckResult[]>> => {
    trials += 1;
    logins.push(login);
    return ok(seen);
  });
}

test('a host checks its claude once, and the results are stored with the work for others', async () => {
  const claude = open();
  expect(await claude.choose()).toMatchObject({ ok: true, value: { program, version: '2.1.400' } });
  await claude.choose();
  await claude.close();
  expect(await open().choose()).toMatchObject({ ok: true, value: { version: '2.1.400' } });
  expect(trials).toBe(1);
  expect(existsSync(join(fleetPaths(root).folder, 'tried-claudes.json'))).toBe(true);
  expect(said.join()).toContain('claude 2.1.400 is new here: checking it at no cost');
});

test('a host refuses a claude that failed a required check until its file is replaced', async () => {
  seen = only(broken('cap', 'it never stops'));
  const claude = open();
  const refused = { ok: false, failure: { reason: 'claude-unproven' } };
  expect(await claude.choose()).toMatchObject(refused);
  nowMs += 60 * 60_000;
  expect(await claude.choose()).toMatchObject(refused);
  // The failed check stays failed.
  expect(trials).toBe(1);
  seen = only();
  install('2.1.401');
  nowMs += 60_000;
  expect(await claude.choose()).toMatchObject({ ok: true, value: { version: '2.1.401' } });
  expect(trials).toBe(2);
});

test('a claude that could not be checked is checked again, but not at every start', async () => {
  seen = only(unknown('cap', 'the check was too slow'));
  const claude = open();
  for (let look = 0; look < 3; look += 1) expect((await claude.choose()).ok).toBe(false);
  expect(trials).toBe(1);
  seen = only();
  nowMs += 60_000;
  expect((await claude.choose()).ok).toBe(true);
  expect(trials).toBe(2);
});

test('a host checks claude with its own login, not with that of its agent', async () => {
  const keys = newFleetKeys();
  const common = { redis: 'redis://127.0.0.1:1', sealingKey: keys.sealingKey, leaseMs: 8_000 };
  const own = { name: 'one', slots: 1, labels: [], runnerKeys: [keys.publicKey], login: 'team-a' };
  expect(writeHost(createRealWorld().files, root, { version: 1, ...common, ...own }).ok).toBe(true);
  mkdirSync(fleetPaths(root).logins, { recursive: true });
  writeFileSync(join(fleetPaths(root).logins, 'team-a.env'), loginText({ CLAUDE_CODE_OAUTH_TOKEN: 'test-token' }), {
    mode: 0o600,
  });
  const claude = open();
  expect((await claude.choose()).ok).toBe(true);
  expect(logins).toEqual(['oauth-token']);
});

test('a host without claude says so, and finds it once it is installed', async () => {
  rmSync(program);
  const claude = open();
  expect(await claude.choose()).toMatchObject({ ok: false, failure: { reason: 'claude-missing' } });
  install('2.1.400');
  expect((await claude.choose()).ok).toBe(true);
});
