/**
 * Promises: the generated part of a pull request's text replaces only itself, and a model's text stays plain text.
 */
import { expect, test } from 'bun:test';
import type { MergeItem } from '../../../src/app/delivery/plan.ts';
import { proposalSection, proposalTitle, withOurSection } from '../../../src/app/delivery/pull-request.ts';
import type { GroupState } from '../../../src/core/state.ts';
import { CoreLog, sessionDefinition, sid } from '../../support/core-events.ts';
import { fc } from '../../support/property.ts';

function groupWith(result: string): { readonly state: GroupState; readonly items: MergeItem[] } {
  const log = new CoreLog()
    .addSession(sessionDefinition(1, [], { name: 'api' }))
    .run()
    .start(sid(1))
    .complete(sid(1));
  const record = log.state.sessions.get(sid(1));
  if (record === undefined) throw new Error('no session');
  record.state = { status: 'completed', result };
  const workspace = { path: '/w', folder: '/w', repository: '/r/.git', branch: 'cca/test/001-api', base: 'b' };
  const work = { commit: 'c', files: 1, insertions: 2, deletions: 0 };
  return { state: log.state, items: [{ record, workspace, work, source: 'c', uncommitted: [] }] };
}

test('text around the generated part stays, however often it is written', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.string(), fc.string(), (before, after, first, second) => {
      const [one, two] = [first, second].map((text) => {
        const { state, items } = groupWith(text);
        return proposalSection(state, items, []);
      }) as [string, string];
      expect(withOurSection(`${before}${one}${after}`, two)).toBe(`${before}${two}${after}`);
    }),
  );
});

test('a text without the generated part gets it at its end', () => {
  const { state, items } = groupWith('Done.');
  const section = proposalSection(state, items, []);
  expect(withOurSection('', section)).toBe(section);
  expect(withOurSection('By hand.\n', section)).toBe(`By hand.\n\n${section}`);
});

test('the generated part of any length stays within the server’s limit and is closed', () => {
  const { state, items } = groupWith('x'.repeat(100_000));
  for (const count of [1, 40, 3_000]) {
    const section = proposalSection(state, Array<MergeItem>(count).fill(items[0] as MergeItem), []);
    expect(section.length).toBeLessThan(65_536);
    expect(withOurSection(section, 'new')).toBe('new');
  }
});

test('names in code stay, mentions notify no users, and no issues are closed', () => {
  const { state, items } = groupWith('Use `@Override`, mail a@b.example, ask @boss. Closes: #1, fixed team/shop#2.');
  const section = proposalSection(state, items, []);
  expect(section).toContain('`@Override`');
  expect(section).toContain('a@b.example');
  expect(section).not.toMatch(/ @boss|Closes: #1|fixed team\/shop#2/);
  expect(proposalTitle(state)).toBe('Test');
});
