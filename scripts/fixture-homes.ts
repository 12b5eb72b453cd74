/**
 * Has an earlier program write groups in every state a user may have left one in, for tests/upgrade:
 *
 *   sh scripts/bun.sh scripts/fixture-homes.ts COMMIT --claude PROGRAM [--newer-claude PROGRAM] [GROUP...]
 *
 * One file for each group in tests/fixtures/homes/COMMIT. Run it once, with the commit that users have, before a change
 * of what is stored. What was written stays: the groups of that program are on disks for good. `--claude` is the one
 * that the commit pins, `--newer-claude` one that it did not know yet, whose costs it may have counted twice.
 */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startRig } from '../tests/support/fake-claude-rig.ts';
import { pack, writeKept } from '../tests/upgrade/home-file.ts';
import { Prefix } from '../tests/upgrade/old-program.ts';
import { Author } from './fixture-homes/author.ts';
import { doubled, rehearsed, scenarios } from './fixture-homes/scenarios.ts';

const { values, positionals } = parseArgs({
  args: process.argv.slice(2),
  options: { claude: { type: 'string' }, 'newer-claude': { type: 'string' } },
  allowPositionals: true,
});
const [commit, ...wanted] = positionals;
const { claude, 'newer-claude': newer } = values;
if (commit === undefined || claude === undefined) throw new Error('usage: fixture-homes.ts COMMIT --claude PROGRAM');

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'fixture-homes-')));
const prefix = new Prefix(folder);
prefix.build(commit);
prefix.put(commit);
const rig = await startRig();
const all = {
  ...scenarios,
  rehearsed: (author: Author) => rehearsed(author, claude),
  ...(newer === undefined ? {} : { doubled: (author: Author) => doubled(author, newer) }),
};
try {
  for (const [slug, write] of Object.entries(all)) {
    if (wanted.length > 0 && !wanted.includes(slug)) continue;
    const author = new Author(rig, prefix.program, slug);
    try {
      await write(author);
      const text = pack({ folder: author.folder, packageRoot: prefix.packageRoot }, await author.kept());
      writeKept(commit, slug, text);
      console.log(`${slug}: ${text.length} bytes`);
    } finally {
      author.remove();
    }
  }
} finally {
  rig.stop();
  rmSync(folder, { recursive: true, force: true });
}
