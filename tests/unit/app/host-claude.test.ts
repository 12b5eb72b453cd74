/**
 * Promises: a machine of a fleet uses the claude that a run there would use: tried once for each file, with what its
 * trial has shown, and none with which money or safety would be endangered.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { broken, claims, holds, type Seen, untried } from '../../../src/app/claude-check/claims.ts';
import { hostClaude } from '../../../src/app/fleet/serve.ts';
import type { Place } from '../../../src/app/place.ts';
import { ok, type Result } from '../../../src/core/failure.ts';
import { fleetPaths, writeHost } from '../../../src/fleet/fleet-files.ts';
import { loginText } from '../../../src/fleet/login-files.ts';
import { newFleetKeys } from '../../../src/fleet/seal.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { makeTempFolder } from '../../support/system/rig.ts';

let temp: ReturnType<typeof makeTempFolder>;
let root: string;
let program: string;
let trials: number;
let seen: Seen[];
let nowMs: number;
const said: string[] = [];

beforeEach(() => {
  temp = makeTempFolder();
  [root, program] = [join(temp.path, 'data'), join(temp.path, 'claude')];
  [trials, nowMs, seen] = [0, 1_800_000_000_000, claims.map(({ id }) => holds(id))];
  install('2.1.400');
});
afterEach(() => temp.remove());

function install(version: string): void {
  writeFileSync(`${program}-new`, `#!/bin/sh\necho "${version} (Claude Code)"\n`, { mode: 0o755 });
  rmSync(program, { force: true });
  renameSync(`${program}-new`, program);
}

const only = (...others: Seen[]) => claims.map(({ id }) => others.find((one) => one.id === id) ?? holds(id));

function open(env: Readonly<Record<string, string>> = { ANTHROPIC_API_KEY: 'test-key' }) {
  const real = createRealWorld();
  const place: Place = {
    env: { PATH: '/usr/bin:/bin', HOME: temp.path, CLAUDE_CODE_AGENT_CLAUDE: program, ...env },
    ...{ cwd: temp.path, packageRoot: temp.path },
    world: { ...real, clock: { ...real.clock, now: () => nowMs } },
    notes: { line: (text) => said.push(text), passing: () => {} },
    root: () => ok(root),
  };
  return hostClaude(place, root, async (): Promise<Result<readonly Seen[]>> => {
    trials += 1;
    return ok(seen);
  });
}

test('it is tried once, and what was shown is remembered with the work for others', async () => {
  const claude = open();
  expect(await claude.choose()).toMatchObject({ ok: true, value: { program, version: '2.1.400' } });
  await claude.choose();
  await claude.close();
  expect(await open().choose()).toMatchObject({ ok: true, value: { version: '2.1.400' } });
  expect(trials).toBe(1);
  expect(existsSync(join(fleetPaths(root).folder, 'tried-claudes.json'))).toBe(true);
  expect(said.join()).toContain('claude 2.1.400 is new here: trying it at no cost');
});

test('one with which money is endangered is refused until its file is replaced', async () => {
  seen = only(broken('cost', 'it counts nothing'));
  const claude = open();
  const refused = { ok: false, failure: { reason: 'claude-unproven' } };
  expect(await claude.choose()).toMatchObject(refused);
  nowMs += 60 * 60_000;
  expect(await claude.choose()).toMatchObject(refused);
  // What is broken stays so.
  expect(trials).toBe(1);
  seen = only();
  install('2.1.401');
  expect(await claude.choose()).toMatchObject({ ok: true, value: { version: '2.1.401' } });
  expect(trials).toBe(2);
});

test('one of which nothing could be seen is tried again, but not at every look', async () => {
  seen = only(untried('cost', 'the trial was too slow'));
  const claude = open();
  for (let look = 0; look < 3; look += 1) expect((await claude.choose()).ok).toBe(false);
  expect(trials).toBe(1);
  seen = only();
  nowMs += 5 * 60_000;
  expect((await claude.choose()).ok).toBe(true);
  expect(trials).toBe(2);
});

test('it is judged for the login of the machine, not for that of its agent', async () => {
  const keys = newFleetKeys();
  const common = { redis: 'redis://127.0.0.1:1', sealingKey: keys.sealingKey, leaseMs: 8_000 };
  const own = { name: 'one', slots: 1, labels: [], runnerKeys: [keys.publicKey], login: 'team-a' };
  expect(writeHost(createRealWorld().files, root, { version: 1, ...common, ...own }).ok).toBe(true);
  const { logins } = fleetPaths(root);
  mkdirSync(logins, { recursive: true });
  writeFileSync(join(logins, 'team-a.env'), loginText({ CLAUDE_CODE_OAUTH_TOKEN: 'test-token' }), { mode: 0o600 });
  seen = only(broken('login-token', 'x'));
  expect(await open().choose()).toMatchObject({ ok: false, failure: { reason: 'claude-unproven' } });
  rmSync(fleetPaths(root).host);
  expect((await open().choose()).ok).toBe(true);
});

test('where there is none that is said, and it is found once it is there', async () => {
  rmSync(program);
  const claude = open();
  expect(await claude.choose()).toMatchObject({ ok: false, failure: { reason: 'claude-missing' } });
  install('2.1.400');
  expect((await claude.choose()).ok).toBe(true);
});
