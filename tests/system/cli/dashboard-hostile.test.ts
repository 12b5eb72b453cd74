/**
 * Promise: whatever sessions are called, say and do, the columns of the dashboard stand where they belong and nothing
 * of it reaches the terminal raw.
 */
import { afterEach, expect, test } from 'bun:test';
import { launcher } from '../../support/cli/user.ts';
import { type Invocation, type Rig, startRig } from '../../support/fake-claude-rig.ts';
import { type GroupFixture, makeGroup } from '../../support/group-fixture.ts';
import { key, TestTerminal } from '../../support/terminal.ts';

let rig: Rig | undefined;
let group: GroupFixture | undefined;
let terminal: TestTerminal | undefined;
afterEach(() => {
  terminal?.close();
  rig?.stop();
  group?.remove();
});

const hostile = [
  ['escape codes', '\u001b[31mred\u001b[0m \u001b[2J\u001b[10;10Hjumped \u001b]0;title\u0007 \u001bcreset \u009b5A'],
  ['clipboard', '\u001b]52;c;aGVsbG8=\u0007 and without an end \u001b]52;c;aGVs'],
  ['right to left', '\u202eevil\u202c \u2066x\u2069 \u200fשלום\u200e עולם'],
  ['long', `start ${'x'.repeat(10_000)} end`],
  ['emoji', '👨‍👩‍👧‍👦 🏳️‍🌈 👍🏽 ⚠️ 🇩🇪 1️⃣ ❤️ 🙂'],
  ['wide', '日本語のテキスト 漢字 한국어 ｆｕｌｌ'],
  ['marks', `Z${'\u0334\u0335'.repeat(60)}algo \u0e33 \u0ba8\u0bbf`],
  ['lines', 'one\rtwo\nthree\u2028four\u0085five\ttab\bback'],
] as const;

/** Sequences that set a title or the clipboard or reset the terminal, C1 codes, marks of direction. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is what this is for.
const forbidden = /\u001b\]|\u001bc|[\u0080-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069\u200b-\u200f]/u;

async function speak(fake: Invocation, text: string): Promise<void> {
  await fake.prompt();
  await fake.init();
  const say = (id: string, content: unknown) =>
    fake.print({ type: 'assistant', message: { id, model: 'claude-opus-4-8', content: [content] } });
  await say('m1', { type: 'text', text });
  await say('m2', { type: 'tool_use', id: 't1', name: 'Bash', input: { command: text } });
  const result = { type: 'tool_result', tool_use_id: 't1', content: text, is_error: true };
  await fake.print({ type: 'user', message: { role: 'user', content: [result] } });
  await say('m3', { type: 'tool_use', id: 't2', name: 'Bash', input: { command: `now ${text}` } });
}

/** The columns in which these words begin in a row of the screen. */
function columnOf(shown: TestTerminal, row: number, word: string): number {
  const cells = Array.from({ length: 120 }, (_, column) => shown.cell(row, column).text || '\u0000');
  return cells.findIndex((_, column) => cells.slice(column, column + word.length).join('') === word);
}

test('a screen full of hostile text keeps its columns', async () => {
  rig = await startRig();
  const made = makeGroup(
    hostile.map(([name, text], index) => ({ name: `${name} ${text.slice(0, 14)}`, project: `p${index}` })),
    { maxConcurrentSessions: hostile.length },
  );
  group = made;
  const { root, groupId, world } = made;
  world.files.makeFolder(root);
  const running = made.run(rig.env, { overrides: { minFreeMemoryBytes: 1 } });
  const fakes = await Promise.all(
    hostile.map(async ([name, text]) => {
      const fake = await (rig as Rig).nextFor(made.claudeId(`${name} ${text.slice(0, 14)}`));
      await speak(fake, text);
      return fake;
    }),
  );
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: made.folder,
    CLAUDE_CODE_AGENT_HOME: root,
    LANG: 'C.UTF-8',
    COLORFGBG: '15;0',
  };
  const shown = new TestTerminal([launcher, 'group', 'watch', groupId], {
    cwd: made.folder,
    env,
    columns: 120,
    rows: 40,
  });
  terminal = shown;
  await shown.shows('001 escape codes', '│ [now]');
  shown.type(key.enter);
  await shown.until((text) => (text.match(/Bash now/g) ?? []).length === hostile.length);

  const title = shown.lines().findIndex((line) => line.includes('SESSION'));
  const column = columnOf(shown, title, 'DOING');
  for (const [index] of hostile.entries()) {
    expect(columnOf(shown, title + 1 + index, 'Bash')).toBe(column);
    expect(columnOf(shown, title + 1 + index, `p${index} `)).toBe(columnOf(shown, title, 'PROJECT'));
    expect(columnOf(shown, title + 1 + index, `00${index + 1} `)).toBe(4);
  }
  for (const [index] of hostile.entries()) {
    shown.type('l');
    await shown.until(
      (text) => text.includes(`── 00${index + 1} `) && text.includes('[log]') && text.includes('> Bash'),
    );
    expect(shown.lines().at(-1)).toContain('enter list');
    shown.type(key.enter);
    await shown.shows('SESSION');
    shown.type('j');
  }
  expect(shown.raw).not.toMatch(forbidden);
  expect(shown.raw).not.toContain('\u001b[10;10H');
  shown.type('q');
  expect(await shown.exited).toBe(0);
  await Promise.all(fakes.map((fake) => fake.succeed(0.01)));
  await running.result;
}, 60_000);
