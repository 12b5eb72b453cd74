/**
 * Promises: with GITHUB_ACTIONS=true no text of a model, a file or a user becomes a workflow command, in any
 * command's output. JSON keeps its meaning, and output to files is unchanged.
 */
import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { createOutput } from '../../../src/cli/output.ts';
import { nightUser, withNight } from '../../support/cli/night.ts';
import { launcher } from '../../support/cli/user.ts';
import { fc } from '../../support/property.ts';

withNight();

const hostile = 'Fine.\n::error file=a.ts::taken over\n \t::set-env name=PATH::/x\nso ##[error]taken over';
const actions = { GITHUB_ACTIONS: 'true' };
const commandsIn = (text: string) => text.split(/\r\n|\r|\n/).filter((line) => /^\s*::|##\[/.test(line));

async function completed(): Promise<string> {
  const group = await nightUser.group('auth', { api: ['--description', '::error ::named', '--prompt', hostile] });
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const api = await nightUser.begun(group, 'api');
  await api.print({ type: 'assistant', message: { id: 'm', content: [{ type: 'text', text: hostile }] } });
  await api.succeed(0.25, hostile);
  await run.finished;
  return group;
}

test('session text is no GitHub workflow command in any command’s output', async () => {
  const group = await completed();
  const lines = [
    ['session', 'logs', `${group}/api`],
    ['session', 'logs', `${group}/api`, '--raw'],
    ['session', 'logs', `${group}/api`, '--json'],
    ['session', 'show', `${group}/api`],
    ['session', 'show', `${group}/api`, '--json'],
    ['session', 'list', group],
    ['group', 'show', group],
    ['group', 'show', group, '--json'],
    ['group', 'report', group],
    ['group', 'list'],
  ];
  for (const line of lines) {
    const { code, stdout, stderr } = await nightUser.runWith({ env: actions }, ...line);
    const named = line.join(' ');
    expect({ named, code, commands: commandsIn(stdout + stderr) }).toEqual({ named, code: 0, commands: [] });
    const elsewhere = await nightUser.run(...line);
    if (line.includes('--json')) expect(parsed(stdout)).toEqual(parsed(elsewhere.stdout));
    if (line[1] === 'logs') expect(stdout).toContain('taken over');
  }
}, 60_000);

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return text.split('\n').map((line) => (line === '' ? null : JSON.parse(line)));
  }
};

test('output to a file is unchanged under GITHUB_ACTIONS', async () => {
  const group = await completed();
  const file = Bun.file(join(nightUser.folder, 'api.jsonl'));
  const command = [launcher, 'session', 'logs', `${group}/api`, '--raw'];
  const child = Bun.spawn(command, { env: { ...nightUser.env, ...actions }, stdout: file, stderr: 'inherit' });
  expect(await child.exited).toBe(0);
  expect(await file.text()).toContain('so ##[error]taken over');
}, 60_000);

test('workflow commands are neutralised across any chunks of output', () => {
  const piece = fc.constantFrom('::', '\n', '\r', ' ', '\t', 'x', '::error::', '\n\n', 'x ::', '##[x]');
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), fc.boolean(), (pieces, isFile) => {
      let written = '';
      const write = (data: string | Uint8Array): void => {
        written += String(data);
      };
      const output = createOutput({ on: () => {}, write, isFile }, actions);
      for (const text of pieces) output.write(text);
      if (isFile) expect(written).toBe(pieces.join(''));
      else expect(commandsIn(written)).toEqual([]);
      expect(written.replaceAll('| ::', '::').replaceAll('## [', '##[')).toBe(pieces.join(''));
    }),
  );
});
