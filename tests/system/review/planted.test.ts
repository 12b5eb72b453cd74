/** Promise of `review`: of a night's work, what is harmful stands above all that is clean. */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { join } from 'node:path';
import { MergeUser, type WorkSketch } from '../../support/cli/merge-ground.ts';
import { gateway } from '../../support/cli/planted/gateway.ts';
import { money } from '../../support/cli/planted/money.ts';
import { orders } from '../../support/cli/planted/orders.ts';
import type { Plot } from '../../support/cli/planted/outcome.ts';
import { shop } from '../../support/cli/planted/shop.ts';
import { git, Repository } from '../../support/git/repository.ts';

const plots: Readonly<Record<string, Plot>> = { money, orders, gateway, shop };
const all = Object.values(plots).flatMap(({ outcomes }) => outcomes);
const harmOf = (name: string) => all.find((outcome) => outcome.name === name)?.harm;

let user: MergeUser;
beforeEach(() => {
  user = new MergeUser();
});
afterEach(() => user.remove());

const cloned = ['-c', 'protocol.file.allow=always', 'submodule', '--quiet'];

/** In the gateway, as people have it: cloned, at the second of three commits. */
function addProtocol(): void {
  const protocol = new Repository(join(user.folder, 'code', 'protocol'));
  for (const text of ['v1', 'v2', 'v3']) protocol.commit({ 'orders.proto': `// ${text}\nsyntax = "proto3";\n` });
  const folder = user.folderOf('gateway');
  git(folder, ...cloned, 'add', protocol.folder, 'proto');
  git(join(folder, 'proto'), 'checkout', '--quiet', 'HEAD^');
  user.repository('gateway').commit({});
}

function sketches(): WorkSketch[] {
  return Object.entries(plots).flatMap(([repository, { commits, outcomes }]) => {
    for (const tree of commits) user.repository(repository).commit(tree);
    if (repository === 'gateway') addProtocol();
    return outcomes.map(
      ({ name, prompt, said = 'Done.', tree, change, accept }): WorkSketch => ({
        name,
        repository,
        tree,
        change: (folder) => {
          if (change === undefined) return;
          git(folder, ...cloned, 'update', '--init');
          change(folder);
        },
        result: said,
        fields: { prompt, ...(accept === undefined ? {} : { accept }) },
      }),
    );
  });
}

interface Row {
  readonly title: string;
}

test('twelve harmful outcomes stand above forty-eight clean ones', async () => {
  const group = user.mergeGroup('night', sketches());
  const { rows } = await user.json<{ rows: readonly Row[] }>('review', group.id);
  // A title begins with the number of the session.
  const ranked = rows.map(({ title }) => title.slice(4));
  const harms = ranked.flatMap((name) => harmOf(name) ?? []);
  // One of them is a pair.
  expect([ranked.length, harms.length, new Set(harms).size]).toEqual([61, 13, 12]);
  const lowest = ranked.findLastIndex((name) => harmOf(name) !== undefined);
  expect(ranked.slice(0, lowest).filter((name) => harmOf(name) === undefined)).toEqual([]);
}, 300_000);
