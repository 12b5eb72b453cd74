/**
 * Promises: the rehearsal server reports its address, finds sessions in the group's folders, returns on its old port,
 * and ends on request or when it is no longer needed.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findRehearsal, serveRehearsal } from '../../../src/rehearsal/serve.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import type { Clock, World } from '../../../src/system/world.ts';

/** A clock that stands still until the test moves it. */
class ManualClock implements Clock {
  private time = Date.UTC(2026, 0, 1);
  private timers: { at: number; action: () => void }[] = [];

  now(): number {
    return this.time;
  }

  after(delayMs: number, action: () => void): () => void {
    const timer = { at: this.time + delayMs, action };
    this.timers.push(timer);
    return () => {
      this.timers = this.timers.filter((other) => other !== timer);
    };
  }

  advance(ms: number): void {
    const end = this.time + ms;
    for (;;) {
      const next = this.timers.filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.timers = this.timers.filter((timer) => timer !== next);
      this.time = next.at;
      next.action();
    }
    this.time = end;
  }
}

let groupDir: string;
let clock: ManualClock;
let world: World;
let stop: AbortController;

beforeEach(() => {
  groupDir = mkdtempSync(join(tmpdir(), 'cca-serve-'));
  clock = new ManualClock();
  world = { ...createRealWorld(), clock };
  stop = new AbortController();
});

afterEach(() => {
  stop.abort();
  rmSync(groupDir, { recursive: true, force: true });
});

function addSession(id: string, meta: string): void {
  mkdirSync(join(groupDir, 'sessions', id), { recursive: true });
  writeFileSync(join(groupDir, 'sessions', id, 'meta.json'), meta);
}

function serve(script?: string) {
  const scriptFile = join(groupDir, 'script.yaml');
  if (script !== undefined) writeFileSync(scriptFile, script);
  return serveRehearsal(world, { groupDir, stop: stop.signal, ...(script === undefined ? {} : { scriptFile }) });
}

async function ask(session: string): Promise<string> {
  const response = await fetch(`${findRehearsal(world, groupDir)?.url}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': 'k', 'x-claude-code-session-id': session },
    body: JSON.stringify({ model: 'claude-opus-4-8', max_tokens: 9, messages: [{ role: 'user', content: 'x' }] }),
  });
  const reply = (await response.json()) as { content: { text: string }[] };
  return reply.content[0]!.text;
}

const script = `
version: 1
sessions:
  lib: {steps: [{text: 'lib as {{session}}'}]}
  2: {steps: [{text: two}]}
  "*": {steps: [{text: 'any as {{session}}'}]}
`;

test('the rehearsal server finds sessions by name or number, also those added later', async () => {
  addSession('001-aaa', '{"name": "lib"}');
  addSession('002-bbb', '{"torn');
  const served = serve(script);
  expect(await ask('aaa')).toBe('lib as lib');
  expect(await ask('bbb')).toBe('two');
  expect(await ask('ccc')).toBe('any as ccc');
  addSession('003-ccc', '{"name": "docs"}');
  expect(await ask('ccc')).toBe('any as docs');
  stop.abort();
  expect(await served).toEqual({ ok: true, value: undefined });
  expect(existsSync(join(groupDir, 'rehearsal.json'))).toBe(false);
  expect(findRehearsal(world, groupDir)).toBeNull();
});

test('a new rehearsal server takes the port of one that died', async () => {
  // The system may give the free port to another program for a moment, so the first attempt may fail.
  const takesOver = async (): Promise<boolean> => {
    stop = new AbortController();
    const served = serve();
    const first = findRehearsal(world, groupDir)!;
    expect(first).toMatchObject({ version: 1, ...world.machine.self });
    stop.abort();
    await served;
    writeFileSync(join(groupDir, 'rehearsal.json'), JSON.stringify({ ...first, startTime: '1' }));
    expect(findRehearsal(world, groupDir)).toBeNull();
    stop = new AbortController();
    const again = serve();
    const { url } = findRehearsal(world, groupDir)!;
    stop.abort();
    await again;
    return url === first.url;
  };
  for (let tries = 1; !(await takesOver()); tries += 1) expect(tries).toBeLessThan(5);
});

test('the rehearsal server ends after ten idle minutes, but not while a runner holds the group', async () => {
  const lock = world.locks.tryLock(join(groupDir, 'runner.lock'), { identity: world.machine.self, runId: 'r' });
  let over = false;
  const served = serve().then((result) => {
    over = true;
    return result;
  });
  clock.advance(11 * 60_000);
  await ask('x');
  lock?.release();
  clock.advance(9 * 60_000);
  await ask('x');
  clock.advance(9 * 60_000);
  await ask('x');
  expect(over).toBe(false);
  clock.advance(11 * 60_000);
  expect(await served).toEqual({ ok: true, value: undefined });
});

test('a missing or faulty script is refused before anything starts', async () => {
  const missing = await serveRehearsal(world, { groupDir, scriptFile: '/nowhere/x.yaml', stop: stop.signal });
  expect(missing).toMatchObject({ ok: false, failure: { reason: 'usage' } });
  expect(await serve('version: 1\nsessions: 3')).toMatchObject({ ok: false, failure: { reason: 'usage' } });
  expect(existsSync(join(groupDir, 'rehearsal.json'))).toBe(false);
});
