/** Promises: a host executes a signed order once, and its runner receives all output. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { worktreeOf } from '../../../src/fleet/agent/prepare.ts';
import { listHosts, type RegisteredHost } from '../../../src/fleet/registry.ts';
import { newFleetKeys, Signer } from '../../../src/fleet/seal.ts';
import type { ParcelFile } from '../../../src/fleet/wire.ts';
import { FleetRig } from '../../support/fleet-rig.ts';
import { hasRedis } from '../../support/redis-server.ts';
import { eventually, expectOk } from '../../support/system/rig.ts';

const speaks = `echo '{"type":"assistant"}'`;
const echo = 'while read -r line; do [ "$line" = end ] && exit 3; echo "heard $line"; done';
const text = (path: string, content: string) => ({
  path,
  isText: true,
  data: Buffer.from(content).toString('base64'),
});

describe.skipIf(!hasRedis)('with redis-server', () => {
  let rig: FleetRig;

  beforeEach(async () => {
    rig = await FleetRig.open({ leaseMs: 12_000, redis: ['appendonly yes'] });
    rig.startAgent();
  });
  afterEach(() => rig.close());

  test('an order is prepared, started, gets input and is followed to its end; then its slot is free', async () => {
    writeFileSync(join(rig.project, 'kept.txt'), 'changed\n');
    writeFileSync(join(rig.project, 'new.txt'), 'new\n');
    const files = [text('prompt.md', 'see {{cca:session}}/inputs'), text('claude-config/a/settings.json', '{}')];
    const { token, attemptId } = await rig.start({
      script: `pwd; echo "$CLAUDE_CONFIG_DIR"; cat new.txt; ${echo}`,
      files,
    });
    const started = await rig.hear(attemptId, 'started');
    await eventually(() => rig.living(attemptId).includes(started.process.pid));
    await rig.say(token, { do: 'write', id: 'first', lines: 'one\ntwo' });
    // A repeated order, from any sender, has no effect.
    await rig.say(token, { do: 'write', id: 'first', lines: 'one\ntwo' });
    await rig.say(token, { do: 'write', id: crypto.randomUUID(), lines: 'end' });
    expect(await rig.hear(attemptId, 'ended')).toMatchObject({ status: { kind: 'exited', code: 3 }, fenced: false });
    const { folder, config } = rig.paths();
    const worktree = worktreeOf({ folder });
    expect(rig.printed(attemptId)).toBe(`${worktree}\n${config}\nnew\nheard one\nheard two\n`);
    expect(readFileSync(join(folder, 'prompt.md'), 'utf8')).toBe(`see ${folder}/inputs`);
    expect(rig.gitIn(worktree, 'status', '--porcelain')).toBe('M kept.txt\n?? new.txt');
    expect(rig.gitIn(worktree, 'rev-parse', 'HEAD')).toBe(rig.git('rev-parse', 'HEAD'));
    expect(rig.gitIn(worktree, 'branch', '--show-current')).toBe('cca/group/001-one');
    await rig.say(token, { do: 'release' });
    await eventually(() => rig.slotFolders().length === 0);
    const lease = { host: 'one', token };
    while (expectOk(await rig.leases.look([lease]))[0] !== null) await Bun.sleep(5);
  });

  test('results return as files and commits, including uncommitted changes', async () => {
    const script = [
      'mkdir -p "$CLAUDE_CONFIG_DIR/projects/x" ignored',
      'printf "{\\"a\\":1}\\n{\\"half" >"$CLAUDE_CONFIG_DIR/projects/x/talk.jsonl"',
      'echo "$PWD/here" >"$CLAUDE_CONFIG_DIR/state.json"',
      'echo done >committed.txt; git add committed.txt',
      'git -c user.name=C -c user.email=c@localhost commit --quiet -m work',
      'echo dirty >dirty.txt; echo no >ignored/no.txt',
      `echo '{"type":"user","message":{"content":[{"type":"tool_result"}]}}'`,
      echo,
    ].join('\n');
    const { token, attemptId, order } = await rig.start({ script });
    const first = await rig.hear(attemptId, 'checkpoint');
    const { files } = JSON.parse(Buffer.from(await rig.blob(first.files as never)).toString()) as {
      files: ParcelFile[];
    };
    const contents = Object.fromEntries(files.map(({ path, data }) => [path, Buffer.from(data, 'base64').toString()]));
    expect(contents).toMatchObject({
      'claude-config/projects/x/talk.jsonl': '{"a":1}\n',
      'claude-config/state.json': '{{cca:worktree}}/here\n',
    });
    expect(first.prints).toBe(rig.printed(attemptId).length);
    rig.git('fetch', '--quiet', rig.repositoryThere, 'refs/claude-code-agent/*:refs/claude-code-agent/*');
    const { head = '', snapshot = '' } = first;
    expect(rig.git('log', '--format=%s', `${order.work.head}..${head}`)).toBe('work');
    expect(rig.git('diff', '--name-only', head, snapshot)).toBe('dirty.txt');
    expect(rig.git('rev-parse', `${snapshot}^`)).toBe(head);
    await rig.say(token, { do: 'write', id: crypto.randomUUID(), lines: 'end' });
    await rig.hear(attemptId, 'ended');
    // Nothing was new.
    expect(rig.news(attemptId).filter(({ say }) => say === 'checkpoint')).toHaveLength(1);
  });

  test('a checkpoint with the work of a tool also has its result in the conversation', async () => {
    const script = [
      speaks,
      // The first checkpoint may be done by then, and claude writes its output to the file a moment later.
      'mkdir -p "$CLAUDE_CONFIG_DIR/projects/x"; sleep 4',
      `echo made >made.txt; echo '{"type":"user","message":{"content":[{"type":"tool_result"}]}}'; sleep 0.4`,
      'echo result >"$CLAUDE_CONFIG_DIR/projects/x/talk.jsonl"',
      echo,
    ].join('\n');
    const { attemptId } = await rig.start({ script });
    const { snapshot = '', files } = await rig.hear(attemptId, 'checkpoint');
    expect(rig.gitIn(rig.repositoryThere, 'ls-tree', '--name-only', snapshot)).toContain('made.txt');
    const parcel = JSON.parse(Buffer.from(await rig.blob(files as never)).toString()) as { files: ParcelFile[] };
    expect(parcel.files.map(({ path }) => path)).toContain('claude-config/projects/x/talk.jsonl');
  });

  test('a second order for the same slot or attempt starts nothing', async () => {
    const { token, attemptId, order } = await rig.start({ script: `${speaks}; echo $$ >>../../starts; ${echo}` });
    const starts = join(rig.paths().folder, '..', 'starts');
    await rig.hear(attemptId, 'started');
    await rig.say(token, { do: 'order', order });
    await rig.say(token, { do: 'order', order: { ...order, attemptId: rig.newAttempt() } });
    // A word-for-word repetition is not a second order.
    await rig.sendSigned({ kind: 'slot', token, groupId: order.groupId, command: { do: 'order', order } });
    await rig.say(await rig.takeSlot(), { do: 'order', order });
    await eventually(() => rig.told().split('was done before').length === 2);
    await rig.say(token, { do: 'write', id: crypto.randomUUID(), lines: 'end' });
    await rig.hear(attemptId, 'ended');
    expect(readFileSync(starts, 'utf8').trim().split('\n')).toHaveLength(1);
  });

  test("an order without an accepted runner's signature, or unsealed, starts nothing", async () => {
    const token = await rig.takeSlot();
    const order = await rig.makeOrder({ script: 'touch ../../started' });
    const message = { kind: 'slot', token, groupId: order.groupId, command: { do: 'order', order } };
    await rig.sendSigned(message, new Signer(newFleetKeys().signingKey));
    await eventually(() => rig.told().includes('no runner that this host accepts has signed it'));
    await rig.redis.client.xadd('cca:h:one', '*', 'm', JSON.stringify(message));
    await eventually(() => rig.told().includes('it is not sealed with the key of the fleet'));
    await rig.sendSigned({ ...message, command: { do: 'dance' } });
    await eventually(() => rig.told().includes('this version does not understand it'));
    await rig.sendSigned({ ...message, token: 'one:1:stolen' });
    expect(await rig.hear(order.attemptId, 'refused')).toMatchObject({ failure: { reason: 'other-host' } });
    expect(existsSync(join(rig.paths().folder, '..', 'started'))).toBe(false);
    expect(rig.living(order.attemptId)).toEqual([]);
  });

  test('an archive that leads out of its folder is refused, and nothing of it is written', async () => {
    const files = [text('prompt.md', 'x'), text('../outside', 'x')];
    const { attemptId } = await rig.start({ script: echo, files });
    const { failure } = await rig.hear(attemptId, 'refused');
    expect(failure.message).toContain('which would lead out of the folder of its session');
    expect(existsSync(rig.paths().prompt)).toBe(false);
    expect(existsSync(join(rig.paths().folder, '..', 'outside'))).toBe(false);
  });

  test('set-up runs once in a worktree, whose ignored files stay for the next attempt', async () => {
    const setup = { command: 'mkdir ignored; echo made >>ignored/made.txt; echo "set up"', timeoutMs: 20_000 };
    const one = await rig.start({ script: 'cat ignored/made.txt; echo stray >stray.txt', change: { setup } });
    await rig.hear(one.attemptId, 'ended');
    expect(rig.printed(one.attemptId)).toBe('made\n');
    await rig.say(one.token, { do: 'release' });
    const two = await rig.start({ script: 'cat ignored/made.txt; ls', change: { setup } });
    await rig.hear(two.attemptId, 'ended');
    expect(rig.printed(two.attemptId)).toBe('made\nignored\nkept.txt\n');
  });

  test('a failed set-up is reported with its output', async () => {
    const setup = { command: 'echo "no such thing"; exit 4', timeoutMs: 20_000 };
    const { attemptId } = await rig.start({ script: echo, change: { setup } });
    const { failure } = await rig.hear(attemptId, 'refused');
    expect(failure.reason).toBe('setup-failed');
    const { files } = await rig.hear(attemptId, 'checkpoint');
    const parcel = JSON.parse(Buffer.from(await rig.blob(files as never)).toString()) as { files: ParcelFile[] };
    const log = parcel.files.find(({ path }) => path === 'setup.log');
    expect(Buffer.from(log?.data ?? '', 'base64').toString()).toContain('no such thing');
  });

  test('a command runs in the worktree and returns its result, even when it is stopped', async () => {
    const { token, attemptId } = await rig.start({ script: 'exit 0' });
    await rig.hear(attemptId, 'ended');
    await rig.say(token, { do: 'run', id: 'a', command: 'cat kept.txt; exit 7', timeoutMs: 20_000 });
    expect(await rig.hear(attemptId, 'ran')).toMatchObject({ id: 'a', exitCode: 7, timedOut: false, output: 'kept' });
    await rig.say(token, { do: 'run', id: 'b', command: 'sleep 1000', timeoutMs: 900_000 });
    await eventually(() => rig.living(attemptId).length > 0);
    await rig.say(token, { do: 'stopRun', id: 'b' });
    const stopped = await eventually(() => rig.news(attemptId).find((news) => news.say === 'ran' && news.id === 'b'));
    expect(stopped).toMatchObject({ exitCode: null, timedOut: false });
  });

  test('a released slot is free again, and its processes are ended', async () => {
    const { token, attemptId } = await rig.start({ script: `trap '' TERM; ${speaks}; echo "pid $$"; ${echo}` });
    const pid = await rig.pidOf(attemptId, 'pid');
    await rig.say(token, { do: 'release' });
    await eventually(() => rig.slotFolders().length === 0);
    expect(rig.living(attemptId)).not.toContain(pid);
  });

  test('prompt, files and login cannot be read in Redis or in its files on disk', async () => {
    const files = [text('prompt.md', 'a secret prompt')];
    const { token, attemptId } = await rig.start({
      script: `cat ../prompt.md; echo a secret file >new; ${echo}`,
      files,
    });
    await eventually(() => rig.printed(attemptId).includes('a secret prompt'));
    await rig.say(token, { do: 'write', id: crypto.randomUUID(), lines: 'a secret word' });
    await eventually(() => rig.printed(attemptId).includes('a secret word'));
    await rig.say(token, { do: 'write', id: crypto.randomUUID(), lines: 'end' });
    await rig.hear(attemptId, 'ended');
    const written = readdirSync(join(rig.server.folder, 'appendonlydir'))
      .map((name) => readFileSync(join(rig.server.folder, 'appendonlydir', name), 'latin1'))
      .join('');
    expect(written).toContain('cca:h:one');
    for (const secret of ['secret', 'test-key', Buffer.from('a secret prompt').toString('base64')]) {
      expect(written).not.toContain(secret);
    }
  });

  test('a host reports its claude, and why it may not be used', async () => {
    const says = (what: object) => {
      writeFileSync(join(rig.root, 'claude.json.new'), JSON.stringify(what));
      renameSync(join(rig.root, 'claude.json.new'), join(rig.root, 'claude.json'));
    };
    const listed = async (isMeant: (host: RegisteredHost) => boolean): Promise<void> => {
      while (!expectOk(await listHosts(rig.redis)).some(isMeant)) await Bun.sleep(20);
    };
    await listed((host) => host.abilities.claudeVersion === '2.1.331');
    says({ refusal: 'Money would be endangered.' });
    await listed((host) => host.refusal === 'Money would be endangered.' && host.abilities.claudeVersion === '');
    expect(rig.told()).toContain('This host takes nothing: Money would be endangered.');
    says({});
    await listed((host) => host.refusal === undefined && host.abilities.claudeVersion === '2.1.331');
  });
});
