/**
 * A headless Chromium of the system, controlled by its debugging pipe: opens a file, reports the page's requests and
 * errors, measures and photographs it. Its proxy is a closed port, so that not even its own traffic leaves the machine.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';

/** Path of a Chromium on PATH; null where there is none. */
export const chromiumProgram =
  ['chromium', 'chromium-browser', 'google-chrome'].map((name) => Bun.which(name)).find((path) => path !== null) ??
  null;

export interface Visit {
  /** Addresses, that of the file itself among them. */
  readonly requests: string[];
  /** Console messages, including exceptions and policy violations. */
  readonly complaints: string[];
}

export interface Look {
  readonly width: number;
  readonly height: number;
  readonly scheme: 'light' | 'dark';
}

type Message = Readonly<Record<string, unknown>>;

export class Chromium {
  private readonly profile = mkdtempSync(join(tmpdir(), 'cca chromium '));
  private readonly child: ChildProcess;
  private readonly exited: Promise<void>;
  private readonly answers = new Map<number, (message: Message) => void>();
  private readonly listeners = new Set<(method: string, params: Message) => void>();
  private lastId = 0;
  private session: string | undefined;

  constructor(program: string) {
    const quiet = ['--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
    const sealed = ['--proxy-server=127.0.0.1:9', '--proxy-bypass-list=<-loopback>', '--remote-debugging-pipe'];
    const plain = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars'];
    this.child = spawn(program, [...plain, ...quiet, ...sealed, `--user-data-dir=${this.profile}`, 'about:blank'], {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
    });
    this.exited = new Promise((resolve) => this.child.once('exit', () => resolve()));
    let rest = '';
    const output = this.child.stdio[4] as Readable;
    output.setEncoding('utf8').on('data', (chunk: string) => {
      const parts = (rest + chunk).split('\0');
      rest = parts.pop() ?? '';
      for (const part of parts) this.hear(JSON.parse(part) as Message);
    });
  }

  private hear(message: Message): void {
    if (typeof message.id === 'number') {
      this.answers.get(message.id)?.(message);
      this.answers.delete(message.id);
    } else {
      for (const listener of this.listeners) listener(message.method as string, (message.params ?? {}) as Message);
    }
  }

  /** Rejects when the browser refuses, or ends before it answers. */
  private async call(method: string, params: Message = {}): Promise<Message> {
    this.lastId += 1;
    const id = this.lastId;
    const answered = new Promise<Message>((resolve) => this.answers.set(id, resolve));
    const target = this.session === undefined ? {} : { sessionId: this.session };
    (this.child.stdio[3] as Writable).write(`${JSON.stringify({ id, method, params, ...target })}\0`);
    const gone = this.exited.then((): Message => ({ error: 'the browser ended' }));
    const answer = await Promise.race([answered, gone]);
    if (answer.error !== undefined) throw new Error(`${method}: ${JSON.stringify(answer.error)}`);
    return answer.result as Message;
  }

  /** Opens a file and waits until it is loaded. */
  async visit(path: string, { width, height, scheme }: Look): Promise<Visit> {
    if (this.session === undefined) {
      const { targetId } = await this.call('Target.createTarget', { url: 'about:blank' });
      const { sessionId } = await this.call('Target.attachToTarget', { targetId, flatten: true });
      this.session = sessionId as string;
    }
    const visit: Visit = { requests: [], complaints: [] };
    for (const domain of ['Page', 'Network', 'Runtime', 'Log']) await this.call(`${domain}.enable`);
    await this.call('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: width < 600 });
    await this.call('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
    const { promise: loaded, resolve } = Promise.withResolvers<void>();
    const listener = (method: string, params: Message): void => {
      if (method === 'Page.loadEventFired') resolve();
      if (method === 'Network.requestWillBeSent') visit.requests.push((params.request as { url: string }).url);
      if (/^(?:Log\.entryAdded|Runtime\.(?:consoleAPICalled|exceptionThrown))$/.test(method)) {
        visit.complaints.push(JSON.stringify(params));
      }
    };
    this.listeners.add(listener);
    await this.call('Page.navigate', { url: pathToFileURL(path).href });
    await Promise.race([loaded, this.exited]);
    // After two frames everything that the page requests by itself was requested.
    await this.evaluate('new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))');
    this.listeners.delete(listener);
    return visit;
  }

  /** The value of an expression in the page; promises are waited for. */
  async evaluate(expression: string): Promise<unknown> {
    const { result } = await this.call('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
    return (result as { value?: unknown }).value;
  }

  /** Presses a key, such as `j` or `Enter`, as a person does. */
  async press(key: string): Promise<void> {
    const text = key === 'Enter' ? '\r' : key.length === 1 ? key : undefined;
    const code = key === 'Enter' ? 13 : key === 'Escape' ? 27 : key.toUpperCase().charCodeAt(0);
    const typed = text === undefined ? {} : { text };
    await this.call('Input.dispatchKeyEvent', { type: 'keyDown', key, windowsVirtualKeyCode: code, ...typed });
    await this.call('Input.dispatchKeyEvent', { type: 'keyUp', key, windowsVirtualKeyCode: code });
  }

  async close(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.exited;
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }
}
