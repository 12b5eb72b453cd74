/**
 * Promises, with the real claude: scripted tool calls are really executed. An interrupted, killed, compacted or failed
 * session continues at the right step without repeating any. Claude's cost equals what was served, and it sends no
 * request that the real API would refuse.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RehearsalScript, Step } from '../../../src/rehearsal/script.ts';
import { type ScriptedApi, type ScriptedApiOptions, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { pinnedClaude } from '../../support/cli.ts';
import { sampled } from '../../support/long.ts';
import { ClaudeSandbox, resultLineOf, runClaude, startClaudeProcess } from '../../support/rehearsal/claude-process.ts';

const timeoutMs = 120_000;
let sandbox: ClaudeSandbox;
let api: ScriptedApi;

beforeEach(() => {
  sandbox = new ClaudeSandbox();
});

afterEach(async () => {
  expect(api.problems).toEqual([]);
  await api.stop();
  sandbox.remove();
});

function start(script: RehearsalScript | Step[], options: Partial<ScriptedApiOptions> = {}): void {
  const whole: RehearsalScript = Array.isArray(script) ? { version: 1, sessions: { '*': { steps: script } } } : script;
  api = startScriptedApi({ script: whole, nameOf: () => undefined, ...options });
}

/** Appends a word to the file `log`, which shows what ran and how often. */
const log = (word: string) => `echo ${word} >> log`;
const bash = (command: string): Step => ({ text: 'I run a command.', tool: 'Bash', input: { command } });
const logged = () => readFileSync(join(sandbox.project, 'log'), 'utf8').trim().split('\n');
const served = (session: string) => api.served.sessions.get(session)?.costUsd ?? Number.NaN;

/** A command that sends its process id through a FIFO and then runs long, but only the first time. */
function longCommand(): { command: string; started(): Promise<number> } {
  const fifo = join(sandbox.root, 'fifo');
  expect(Bun.spawnSync(['mkfifo', fifo]).exitCode).toBe(0);
  const first = `if [ ! -e begun ]; then touch begun; echo $$ > '${fifo}'; exec sleep 600; fi`;
  return { command: `${first}; ${log('long')}`, started: async () => Number(await Bun.file(fifo).text()) };
}

describe('claude', () => {
  const program = pinnedClaude();
  const options = (session: string, prompt: string) => ({ program, sandbox, url: api.url, session, prompt });

  test(
    'a script of two tools changes a file at the cost that was served',
    async () => {
      start([
        { text: 'I write.', tool: 'Write', input: { file_path: '{{project}}/note.txt', content: 'one\n' } },
        { tool: 'Edit', input: { file_path: '{{project}}/note.txt', old_string: 'one', new_string: 'two' } },
        { text: 'Done.', usage: { input: 10, output: 20, cacheRead: 3000, cacheCreation: 400 } },
      ]);
      const session = crypto.randomUUID();
      const result = resultLineOf(await runClaude(options(session, 'Write a note.')));
      expect(result).toMatchObject({ subtype: 'success', is_error: false, result: 'Done.', permission_denials: [] });
      expect(readFileSync(join(sandbox.project, 'note.txt'), 'utf8')).toBe('two\n');
      expect(result?.total_cost_usd).toBeCloseTo(served(session), 9);
      expect(api.requests.map((request) => request.step)).toEqual([0, 1, 2]);
    },
    timeoutMs,
  );

  describe('resuming', () => {
    test(
      'after an interrupt the interrupted call is requested again, finished ones are not',
      async () => {
        const long = longCommand();
        const calls = [log('two'), long.command].map((command) => ({ tool: 'Bash', input: { command } }));
        const steps = [bash(log('one')), { text: 'Two.', tools: calls }, bash(log('three')), { text: 'Done.' }];
        start(steps);
        const session = crypto.randomUUID();
        const claude = startClaudeProcess(options(session, 'Go.'));
        await long.started();
        claude.interrupt();
        const before = resultLineOf(await claude.done);
        expect(before?.subtype).toBe('error_during_execution');

        // A new server does not know the old one's conversation.
        await api.stop();
        const costBefore = served(session);
        expect(before?.total_cost_usd).toBeCloseTo(costBefore, 9);
        start(steps);
        const after = resultLineOf(await runClaude({ ...options(session, 'Go on.'), resume: true }));
        expect(after).toMatchObject({ subtype: 'success', result: 'Done.' });
        expect(logged()).toEqual(['one', 'two', 'long', 'three']);
        expect(api.requests.map((request) => request.step)).toEqual([1, 2, 3]);
        // Newer versions continue the cost of the conversation.
        const total = Number(after?.total_cost_usd);
        expect([served(session), served(session) + costBefore].some((usd) => Math.abs(total - usd) < 1e-9)).toBe(true);
      },
      timeoutMs,
    );

    test(
      'after a signal the call is requested again if claude has lost it',
      async () => {
        const long = longCommand();
        start([bash(log('one')), bash(long.command), { text: 'Done.' }, { text: 'Nothing else.' }]);
        const session = crypto.randomUUID();
        const claude = startClaudeProcess(options(session, 'Go.'));
        const tool = await long.started();
        claude.kill('SIGTERM');
        // Some versions report the interrupt, most do not.
        expect(resultLineOf(await claude.done)?.subtype ?? 'error_during_execution').toBe('error_during_execution');
        // In older versions the tool outlives claude; its process id is known.
        try {
          process.kill(tool, 'SIGKILL');
        } catch (error) {
          expect(error).toMatchObject({ code: 'ESRCH' });
        }
        const again = { ...options(session, 'Go on.'), resume: true };
        expect(resultLineOf(await runClaude(again))?.result).toBe('Done.');
        // Newer versions end the tool and record its result.
        const isForgotten = logged().includes('long');
        expect(logged()).toEqual(isForgotten ? ['one', 'long'] : ['one']);
        expect(resultLineOf(await runClaude(again))?.result).toBe('Nothing else.');
        expect(api.requests.map(({ step }) => step)).toEqual(isForgotten ? [0, 1, 1, 2, 3] : [0, 1, 2, 3]);
      },
      timeoutMs,
    );

    const compactions: readonly [string, Step[], object][] = [
      ['at a threshold', [{ ...bash(log('two')), usage: { input: 70_000 } }], { autoCompactWindow: 100_000 }],
      [
        'when the prompt is too long',
        [bash(log('two')), { status: 400, message: 'prompt is too long: 210000 tokens > 200000 maximum', times: 1 }],
        {},
      ],
    ];
    test.each(sampled(compactions, 2))(
      'a compaction %s loses no step',
      async (_, steps, settings) => {
        writeFileSync(join(sandbox.config, 'settings.json'), JSON.stringify(settings));
        start([bash(log('one')), ...steps, bash(log('three')), { text: 'Done in {{project}}.' }]);
        const session = crypto.randomUUID();
        const args = ['--exclude-dynamic-system-prompt-sections'];
        const lines = await runClaude({ ...options(session, 'Go.'), args });
        expect(lines.filter((line) => line.subtype === 'compact_boundary')).toHaveLength(1);
        expect(resultLineOf(lines)?.result).toBe(`Done in ${sandbox.project}.`);
        expect(logged()).toEqual(['one', 'two', 'three']);
        expect(api.requests.filter((request) => request.kind === 'summary')).toHaveLength(1);
        expect(resultLineOf(lines)?.total_cost_usd).toBeCloseTo(served(session), 9);
      },
      timeoutMs,
    );
  });

  test(
    'two concurrent sessions follow their own scripts, and a sub-agent its own',
    async () => {
      const names = new Map<string, string>(
        [crypto.randomUUID(), crypto.randomUUID()].map((id, index) => [id, 'ab'[index]!]),
      );
      const ask = { description: 'look', prompt: 'Look around.', subagent_type: 'general-purpose' };
      const script: RehearsalScript = {
        version: 1,
        sessions: {
          a: { steps: [bash(log('a1')), bash(log('a2')), { text: 'Done, {{session}}.' }] },
          b: {
            steps: [{ text: 'I ask.', tool: 'Agent', input: ask }, { text: 'Done, {{session}}.' }],
            agents: [bash(log('agent')), { text: 'Seen.' }],
          },
        },
      };
      start(script, { nameOf: (id) => names.get(id) });
      const results = await Promise.all(
        [...names.keys()].map((id) => runClaude(options(id, 'Go.')).then(resultLineOf)),
      );
      expect(results.map((result) => result?.result)).toEqual(['Done, a.', 'Done, b.']);
      expect(logged().sort()).toEqual(['a1', 'a2', 'agent']);
      for (const [index, id] of [...names.keys()].entries()) {
        expect(results[index]?.total_cost_usd).toBeCloseTo(served(id), 9);
      }
      expect(api.requests.filter((request) => request.agentId !== undefined)).toHaveLength(2);
    },
    timeoutMs,
  );
});
