/**
 * The real claude in an emptied environment with a scripted API: one process per call, whose input stays open so that
 * it can be interrupted.
 */
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { modelOfKnownPrice } from '../claude/rig.ts';
import { pinnedClaude } from '../cli.ts';

/** A line of claude's stream, as far as tests read it. */
export interface StreamLine {
  readonly type: string;
  readonly subtype?: string;
  readonly is_error?: boolean;
  readonly result?: string;
  readonly total_cost_usd?: number;
  readonly [key: string]: unknown;
}

/** Folders of one test; `project` has a space so that unquoted paths show. */
export class ClaudeSandbox {
  readonly root = realpathSync(mkdtempSync(join(tmpdir(), 'cca-rehearsal-')));
  readonly project = join(this.root, 'my project');
  readonly config = join(this.root, 'config');

  constructor() {
    mkdirSync(this.project);
    mkdirSync(this.config);
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}

export interface ClaudeOptions {
  readonly sandbox: Pick<ClaudeSandbox, 'root' | 'project' | 'config'>;
  readonly url: string;
  /** What is started; default: the real claude. */
  readonly program?: string;
  readonly session: string;
  readonly prompt: string;
  readonly resume?: boolean;
  readonly args?: readonly string[];
  /** Permission rules; default: every command. */
  readonly allowedTools?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export interface Claude {
  readonly pid: number;
  /** Sends claude an interrupt. */
  interrupt(): void;
  /** Sends a signal to claude alone. */
  kill(signal: NodeJS.Signals): void;
  /** claude's first open question. */
  readonly asked: Promise<StreamLine>;
  answer(question: StreamLine, response: object): void;
  /** Resolves after the first `result` line or, without one, at the end: all lines up to there. */
  readonly done: Promise<StreamLine[]>;
}

/** Starts claude; it ends by itself after its first `result`. */
export function startClaudeProcess(options: ClaudeOptions): Claude {
  const { sandbox, program = pinnedClaude() } = options;
  const child = Bun.spawn(
    [
      ...[program, '-p', '--verbose', '--output-format', 'stream-json', '--input-format', 'stream-json'],
      ...['--model', modelOfKnownPrice, options.resume ? '--resume' : '--session-id', options.session],
      ...[
        '--permission-mode',
        'acceptEdits',
        ...(options.args ?? []),
        '--allowedTools',
        options.allowedTools ?? 'Bash',
      ],
    ],
    {
      cwd: sandbox.project,
      env: {
        PATH: process.env.PATH ?? '/usr/bin:/bin',
        HOME: sandbox.root,
        CLAUDE_CONFIG_DIR: sandbox.config,
        CLAUDE_CODE_TMPDIR: sandbox.root,
        ANTHROPIC_API_KEY: 'test-key',
        ANTHROPIC_BASE_URL: options.url,
        DISABLE_AUTOUPDATER: '1',
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: '1',
        ...options.env,
      },
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'inherit',
    },
  );
  const send = (value: object) => {
    child.stdin.write(`${JSON.stringify(value)}\n`);
    child.stdin.flush();
  };
  send({ type: 'user', message: { role: 'user', content: options.prompt } });
  const asked = Promise.withResolvers<StreamLine>();
  const read = async () => {
    const lines: StreamLine[] = [];
    let rest = '';
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      const parts = (rest + chunk).split('\n');
      rest = parts.pop() ?? '';
      lines.push(...parts.map((part) => JSON.parse(part) as StreamLine));
      const question = lines.find((line) => line.type === 'control_request');
      if (question !== undefined) asked.resolve(question);
      if (lines.some((line) => line.type === 'result')) child.stdin.end();
    }
    await child.exited;
    return lines;
  };
  return {
    pid: child.pid,
    interrupt: () => send({ type: 'control_request', request_id: 'i1', request: { subtype: 'interrupt' } }),
    kill: (signal) => child.kill(signal),
    asked: asked.promise,
    answer: ({ request_id }, response) =>
      send({ type: 'control_response', response: { subtype: 'success', request_id, response } }),
    done: read(),
  };
}

/** Runs claude to its end. */
export function runClaude(options: ClaudeOptions): Promise<StreamLine[]> {
  return startClaudeProcess(options).done;
}

/** The last `result` line. */
export function resultLineOf(lines: readonly StreamLine[]): StreamLine | undefined {
  return lines.findLast((line) => line.type === 'result');
}
