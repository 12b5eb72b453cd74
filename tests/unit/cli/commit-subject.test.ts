/**
 * Promises: the commit of a session's uncommitted work has its description or sent prompt as the subject, never the
 * raw template text, in at most 72 characters.
 */
import { expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { commitMessage } from '../../../src/worker/attempt/acceptance.ts';
import { nightUser, withNight } from '../../support/cli/night.ts';
import { git, Repository } from '../../support/git/repository.ts';
import { fc } from '../../support/property.ts';

withNight();

test('the commit subject is the prompt that was sent', async () => {
  new Repository(nightUser.project('api')).commit({ 'base.txt': 'base\n' });
  const here = ['--isolate', 'worktree', '--project', nightUser.project('api')];
  const more = [...here, '--depends-on', 'api', '--prompt', 'Document it: {{sessions.api.result}}\n\nBe brief.'];
  const group = await nightUser.group('auth', { api: [], docs: more });
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  await (await nightUser.begun(group, 'api')).succeed(0.01, 'a store of\u001b[31m keys\nand more');
  const docs = await nightUser.begun(group, 'docs');
  writeFileSync(join(docs.hello.cwd, 'docs.md'), 'so');
  await docs.succeed();
  await run.finished;
  const subjects = git(nightUser.project('api'), 'log', '--all', '--format=%s').split('\n');
  expect(subjects).toContain('docs: Document it: a store of keys');
}, 60_000);

test('a commit message has the results under headings and a short subject', () => {
  const of = (task: string, description = '') =>
    commitMessage({ id: '001-x', name: 'docs', description } as Parameters<typeof commitMessage>[0], task).split('\n');
  expect(of('Document it: ### api\n\nIt works.').at(0)).toBe('docs: Document it: api');
  expect(of('\n\n## The task\nWrite.').at(0)).toBe('docs: The task');
  expect(of('Use issue #12.', 'Say what #12 changed').at(0)).toBe('docs: Say what #12 changed');
  expect(of('').at(0)).toBe('docs: work');
  const piece = fc.constantFrom('a', ' ', '\n', '\r', '# ', '😀', '\u001b[1m', '\u202e', 'word ', '\0');
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 100 }), (pieces) => {
      const task = pieces.join('');
      const [subject = '', blank] = of(task);
      expect(subject.length).toBeLessThanOrEqual(72);
      expect(subject.isWellFormed()).toBe(true);
      expect(blank).toBe('');
    }),
  );
});
