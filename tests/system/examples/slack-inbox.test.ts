/**
 * Promises: examples/slack-inbox posts how many questions wait without their content, dials out to Slack (a stand-in on
 * loopback), shows and answers questions for chosen users only, and connects again when Slack closes the connection.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ServerWebSocket } from 'bun';
import { nightUser, withNight } from '../../support/cli/night.ts';
import { checkoutRoot, launcher } from '../../support/cli.ts';
import { Mailbox } from '../../support/mailbox.ts';

const example = join(checkoutRoot, 'examples', 'slack-inbox', 'slack.ts');

interface Reply {
  readonly text: string;
  readonly blocks?: readonly { readonly text?: { readonly text: string }; readonly elements?: readonly Button[] }[];
}

interface Button {
  readonly text: { readonly text: string };
  readonly value: string;
}

/** The part of Slack that the example uses: opens connections, takes messages, and sends what users do. */
class SlackStandIn {
  readonly posted = new Mailbox<Reply & { readonly channel: string }>();
  readonly replies = new Mailbox<Reply & { readonly response_type: string }>();
  readonly acknowledged = new Mailbox<string>();
  readonly #sockets = new Mailbox<ServerWebSocket<undefined>>();
  readonly #server: ReturnType<typeof Bun.serve>;
  #socket: ServerWebSocket<undefined> | undefined;
  #count = 0;

  constructor() {
    this.#server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: (request, server) => this.#answer(request, server),
      websocket: {
        open: (socket: ServerWebSocket<undefined>) => {
          socket.send(JSON.stringify({ type: 'hello', num_connections: 1 }));
          this.#sockets.put(socket);
        },
        message: (_, text) => this.acknowledged.put(JSON.parse(String(text)).envelope_id),
      },
    });
  }

  get api(): string {
    return `http://127.0.0.1:${this.#server.port}/api`;
  }

  async #answer(request: Request, server: Bun.Server<undefined>): Promise<Response | undefined> {
    const { pathname } = new URL(request.url);
    if (pathname === '/link') return server.upgrade(request) ? undefined : new Response(null, { status: 400 });
    const token = request.headers.get('authorization');
    const refuse = () => Response.json({ ok: false, error: 'invalid_auth' });
    if (pathname === '/api/apps.connections.open') {
      if (token !== 'Bearer xapp-test') return refuse();
      return Response.json({ ok: true, url: `ws://127.0.0.1:${this.#server.port}/link` });
    }
    const body = JSON.parse(await request.text());
    if (pathname === '/reply') this.replies.put(body);
    else if (token !== 'Bearer xoxb-test') return refuse();
    else this.posted.put(body);
    return Response.json({ ok: true });
  }

  async connected(): Promise<void> {
    this.#socket = await this.#sockets.next(() => 'a connection to Slack');
  }

  /** A user types /cca, or presses a button. Returns the reply, which only this user sees. */
  async does(person: string, what: { readonly text: string } | { readonly press: string }): Promise<Reply> {
    this.#count += 1;
    const response_url = `http://127.0.0.1:${this.#server.port}/reply`;
    const isTyped = 'text' in what;
    const payload = isTyped
      ? { command: '/cca', text: what.text, user_id: person, response_url }
      : { type: 'block_actions', user: { id: person }, actions: [{ value: what.press }], response_url };
    const type = isTyped ? 'slash_commands' : 'interactive';
    const envelope = { type, envelope_id: `envelope-${this.#count}`, accepts_response_payload: isTyped, payload };
    this.#socket?.send(JSON.stringify(envelope));
    const reply = await this.replies.next(() => `a reply to ${JSON.stringify(what)}`);
    expect(await this.acknowledged.next(() => 'an acknowledgement')).toBe(envelope.envelope_id);
    expect(reply.response_type).toBe('ephemeral');
    return reply;
  }

  /** As Slack does every few hours. */
  refresh(): void {
    this.#socket?.send(JSON.stringify({ type: 'disconnect', reason: 'refresh_requested' }));
  }

  async stop(): Promise<void> {
    await this.#server.stop(true);
  }
}

withNight();
let slack: SlackStandIn;
let listener: ReturnType<typeof Bun.spawn> | undefined;
beforeEach(() => {
  slack = new SlackStandIn();
});
afterEach(async () => {
  listener?.kill('SIGKILL');
  await listener?.exited;
  await slack.stop();
});

const textOf = ({ text, blocks = [] }: Reply) => [text, ...blocks.map((block) => block.text?.text)].join('\n');
const buttonsOf = ({ blocks = [] }: Reply) => blocks.flatMap(({ elements = [] }) => elements);

test('questions are counted in the channel, and chosen users list and answer them', async () => {
  Object.assign(nightUser.env, {
    ...{ SLACK_API: slack.api, SLACK_CHANNEL: 'C1', SLACK_USERS: 'U1,U2', CCA: launcher },
    ...{ SLACK_BOT_TOKEN: 'xoxb-test', SLACK_APP_TOKEN: 'xapp-test' },
  });
  const settings = join(nightUser.home, '.config', 'claude-code-agent');
  mkdirSync(settings, { recursive: true });
  const program = `'${process.execPath}' '${example}'`;
  writeFileSync(join(settings, 'config.yaml'), `onEvent: |\n  ${program} notify\n`);
  listener = Bun.spawn([process.execPath, example, 'listen'], {
    env: nightUser.env,
    stdin: 'ignore',
    stdout: 'inherit',
  });
  await slack.connected();

  const group = await nightUser.group('ship', { api: [], web: [] }, '--ask', 'wait', '--concurrent', '2');
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const api = await nightUser.asks(group, 'api', 'npm publish');
  const first = await slack.posted.next(() => 'the first message');
  expect(first).toMatchObject({ channel: 'C1', text: `${group}: 1 question waits` });
  const web = await nightUser.asks(group, 'web', 'deploy <!channel>');
  const second = await slack.posted.next(() => 'the second message');
  expect(second.text).toBe(`${group}: 2 questions wait`);
  expect(JSON.stringify([first, second])).not.toMatch(/publish|deploy/);

  const [list] = buttonsOf(second);
  const press = list?.value ?? '';
  expect(await slack.does('U9', { press })).toMatchObject({ text: 'You may not answer questions here.' });
  const listed = await slack.does('U1', { press });
  expect(textOf(listed)).toContain('Bash: npm publish');
  expect(textOf(listed)).toContain('Bash: deploy <!channel>');
  expect(listed.blocks?.every(({ text }) => text === undefined || 'type' in text)).toBe(true);
  expect(JSON.stringify(listed)).not.toContain('mrkdwn');
  const [allow, deny, ...others] = buttonsOf(listed);
  expect([allow, deny, ...others].map((one) => one?.text.text)).toEqual(['allow', 'deny', 'allow', 'deny']);
  expect(await slack.does('U9', { press: allow?.value ?? '' })).toMatchObject({
    text: expect.stringMatching(/may not/),
  });
  expect(textOf(await slack.does('U1', { press: allow?.value ?? '' }))).toContain('Answered');
  expect(await api.answer()).toMatchObject({ behavior: 'allow' });
  // The first answer counts, also against another user.
  expect(textOf(await slack.does('U2', { press: deny?.value ?? '' }))).toContain('was already answered: allow');

  slack.refresh();
  await slack.connected();
  const [, item = ''] = JSON.parse(others[1]?.value ?? '[]') as string[];
  const typed = `answer ${item} deny --note “Use the mirror; $(touch ran).”`;
  expect(textOf(await slack.does('U2', { text: typed }))).toContain(`Answered ${item}`);
  expect(JSON.stringify(await web.answer())).toContain('Use the mirror; $(touch ran).');
  expect(await slack.does('U2', { text: '' })).toMatchObject({ text: 'The inbox is empty.' });
  expect(await slack.does('U2', { text: 'run everything' })).toMatchObject({
    text: expect.stringMatching(/^Use: \/cca/),
  });
  for (const fake of [api, web]) await fake.succeed();
  expect(await run.finished).toMatchObject({ code: 0, stderr: '' });
}, 60_000);
