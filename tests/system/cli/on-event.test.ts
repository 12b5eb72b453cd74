/**
 * Promises: `onEvent` commands of the user and of the workflow get each subscribed event as one line of JSON, without
 * logins. They cannot harm the run and leave no process. `--notify` rings terminals only.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EventCommands } from '../../../src/app/event-commands.ts';
import { notify } from '../../../src/cli/commands/group/run.ts';
import type { Output } from '../../../src/cli/output.ts';
import type { GroupEvent } from '../../../src/core/event.ts';
import { sessionUuid } from '../../../src/core/id.ts';
import type { GroupState } from '../../../src/core/state.ts';
import { groupPathsIn } from '../../../src/store/paths.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { Night } from '../../support/cli/night.ts';
import { type FakeClaudeHarness, startRig } from '../../support/fake-claude-rig.ts';

const world = createRealWorld();
const marked = (file: string) =>
  readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(file);
    } catch {
      return false;
    }
  });

describe('in a run', () => {
  let rig: FakeClaudeHarness;
  let user: Night;
  beforeAll(async () => {
    rig = await startRig();
  });
  afterAll(() => rig.stop());
  beforeEach(() => {
    user = new Night(rig);
  });
  afterEach(() => user.remove());

  function configure(text: string): void {
    const folder = join(user.home, '.config', 'claude-code-agent');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'config.yaml'), text);
  }

  async function completes(group: string, name: string): Promise<void> {
    const [session] = await user.json<{ id: string; name: string }[]>('session', 'list', group);
    expect(session?.name).toBe(name);
    const fake = await rig.nextFor(sessionUuid(session?.id ?? ''));
    await fake.prompt();
    await fake.init();
    await fake.succeed(0.01);
  }

  test('both commands get the event and no login; a failure is reported once and does not affect the run', async () => {
    const told = join(user.folder, 'told.json');
    const env = join(user.folder, 'env');
    const child = `sleep 987${process.pid}`;
    configure(`onEvent: |\n  cat >'${told}'; env >'${env}'\n  ${child} &\n  echo "it broke" >&2; exit 3\n`);
    const flow = join(user.folder, 'flow.yaml');
    const ofWorkflow = (name: string) =>
      `version: 1\ngroup:\n  onEvent: "cat >>'${join(user.folder, name)}'; exit 4"\n` +
      `sessions:\n  api: { project: ${JSON.stringify(user.project('api'))}, prompt: Do it. }\n`;
    writeFileSync(flow, ofWorkflow('flow.json'));
    const group = await user.ok('group', 'create', 'auth', '--from', flow);
    // The workflow file as it was at that time applies.
    writeFileSync(flow, ofWorkflow('later.json'));
    const plan = await user.ok('group', 'plan', group);
    expect(plan).toContain('Command for events (end, pauses, limits)\n  cat >>');
    const run = user.start('group', 'run', group, '--output', 'quiet');
    await completes(group, 'api');
    const { code, stderr } = await run.finished;
    expect(code).toBe(0);
    expect(stderr).toMatch(/^warning: An onEvent command failed \(exit code [34]\): .*\n$/);
    const event = JSON.parse(readFileSync(told, 'utf8')) as object;
    expect(event).toMatchObject({ type: 'group_completed', groupId: group });
    expect(readFileSync(told, 'utf8')).toBe(readFileSync(join(user.folder, 'flow.json'), 'utf8'));
    expect(existsSync(join(user.folder, 'later.json'))).toBe(false);
    expect(readFileSync(env, 'utf8')).not.toContain('ANTHROPIC_API_KEY');
    expect(marked(child.split(' ')[1] ?? '')).toEqual([]);
    expect(readdirSync(join(user.data, 'session-groups', group, 'on-event'))).toEqual(['output.log']);
  }, 60_000);

  test('a pause is reported as well, and the group is free before the command ends', async () => {
    const [told, go] = [join(user.folder, 'told'), join(user.folder, 'go')];
    configure(`onEvent: "cat >>'${told}'; while [ ! -e '${go}' ]; do sleep 0.05; done"\n`);
    const group = await user.group('auth', { api: [] });
    const run = user.start('group', 'run', group, '--output', 'quiet');
    const api = await user.begun(group, 'api');
    const pause = user.start('group', 'pause', group);
    const id = await api.control('interrupt');
    await api.print({ type: 'control_response', response: { subtype: 'success', request_id: id } });
    await api.print({ type: 'result', subtype: 'error_during_execution', is_error: true, total_cost_usd: 0.01 });
    expect((await pause.finished).code).toBe(0);
    const resume = user.start('group', 'resume', group, '--output', 'quiet');
    await (await user.begun(group, 'api')).succeed();
    await user.event(group, 'group_completed');
    writeFileSync(go, '');
    expect([(await run.finished).code, (await resume.finished).code]).toEqual([3, 0]);
    const types = readFileSync(told, 'utf8').trim().split('\n');
    expect(types.map((line) => JSON.parse(line).type)).toEqual(['group_paused', 'group_completed']);
  }, 60_000);

  test('an invalid command is refused with its location', async () => {
    const group = await user.group('auth', { api: [] });
    configure('prices: {}\nonEvent: "  "\n');
    const refused = await user.run('group', 'run', group);
    expect({ code: refused.code, stdout: refused.stdout }).toEqual({ code: 2, stdout: '' });
    expect(refused.stderr).toContain('config.yaml:2:10: onEvent: the command is blank');
    const flow = join(user.folder, 'flow.yaml');
    writeFileSync(
      flow,
      'version: 1\nvars: {x: y}\ngroup: {onEvent: "echo {{x}}"}\nsessions: {a: {project: ., prompt: b}}\n',
    );
    const bad = await user.run('group', 'create', 'b', '--from', flow);
    expect(bad.code).toBe(2);
    expect(bad.stderr).toContain('flow.yaml:3:18: onEvent: {{x}} cannot be used in a shell command');
  }, 60_000);
});

describe('onEvent commands', () => {
  let folder: string;
  let warnings: string[];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'cca events '));
    warnings = [];
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const event = (seq: number): GroupEvent => ({
    ...{ seq, at: '2026-01-04T10:00:00Z', groupId: '20260104-100000-auth' },
    type: 'group_completed',
  });
  const commands = (timeoutMs?: number) =>
    new EventCommands(world, {
      paths: groupPathsIn(folder),
      env: { PATH: process.env.PATH ?? '' },
      warn: (text) => warnings.push(text),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    });

  test('a slow command and a stopped one are ended, and one that cannot start is reported', async () => {
    const slow = commands(100);
    slow.tell(event(1), [`exec sleep 986${process.pid}`, 'exit 1']);
    await slow.finish();
    expect(warnings).toHaveLength(1);
    const stopped = commands();
    stopped.tell(event(2), [`exec sleep 986${process.pid}`]);
    stopped.stop();
    await stopped.finish();
    expect(marked(`986${process.pid}`)).toEqual([]);
    rmSync(folder, { recursive: true });
    writeFileSync(folder, 'no folder');
    const broken = commands();
    broken.tell(event(3), ['true']);
    await broken.finish();
    expect(warnings.at(-1)).toContain('could not be started');
  }, 60_000);
});

test('--notify rings terminals, with text that cannot contain control codes', () => {
  const written: string[] = [];
  const output = (isTerminal: boolean) =>
    ({ isTerminal, write: (text: string) => written.push(text) }) as unknown as Output;
  const state = { group: { name: 'au\u001b]0;x\u0007th\u009b' } } as unknown as GroupState;
  const ofGroup = { seq: 1, at: '2026-01-04T10:00:00Z', groupId: 'g' } as const;
  const failed: GroupEvent = { ...ofGroup, type: 'group_failed', reason: 'sessions-failed', message: '' };
  notify(output(false), {}, failed, state);
  notify(output(true), {}, { ...ofGroup, type: 'group_archived' }, state);
  expect(written).toEqual([]);
  notify(output(true), {}, failed, state);
  notify(output(true), { TERM: 'dumb' }, failed, state);
  expect(written).toEqual(['\u0007\u001b]9;auth failed: sessions-failed\u0007', '\u0007']);
});
