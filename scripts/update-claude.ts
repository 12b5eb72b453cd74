/**
 * Moves the pinned claude to the newest version, or to the named one: tries what we rely on with it, prints what is
 * different from the last run, and changes package.json, both lock files and the table in docs/claude-contract.md.
 *
 *   npm run claude:update -- [VERSION] [--anyway]
 *
 * When it breaks a claim the pin stays, and the exit code is 1; `--anyway` moves it nevertheless, before a fix. Exit
 * code 2 when the version is not available.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { contractDocument, runContract } from './claude/contract.ts';
import { breaks, changes, readTable, tableIn, tableText, withTable } from './claude/table.ts';
import { movePin, NotAvailable, pinnedVersion, programOf, resolveVersion } from './claude/versions.ts';

const { values, positionals } = parseArgs({
  options: { anyway: { type: 'boolean', default: false } },
  allowPositionals: true,
});

async function update(): Promise<number> {
  const from = pinnedVersion();
  const version = await resolveVersion(positionals[0] ?? 'latest');
  if (version === from) {
    console.log(`claude ${version} is the pinned version already.`);
    return 0;
  }
  console.log(`claude ${version}: trying ...`);
  const run = await runContract(version);
  const document = readFileSync(contractDocument, 'utf8');
  const last = readTable(tableIn(document));
  const before = last.find((column) => column.version === from) ?? last.at(-1);
  if (before !== undefined) {
    const different = changes(before.verdicts, run.verdicts);
    console.log(`\nDifferent from the last run with ${before.version}: ${different.length === 0 ? 'nothing' : ''}`);
    for (const line of different) console.log(`  ${line}`);
  }
  const broken = breaks(run);
  for (const claim of broken) console.log(`claude ${version} breaks: ${claim}`);
  if (broken.length > 0) console.log(`What the tests printed: ${run.log}`);
  if (broken.length > 0 && !values.anyway) {
    console.log(`The pin stays at ${from}. To work on it: TEST_CLAUDE='${await programOf(version)}' npm test`);
    return 1;
  }
  await movePin(version);
  const others = last.filter((column) => column.version !== version && column.version !== from);
  const written = withTable(document, tableText([...others, run]));
  if (written !== null) writeFileSync(contractDocument, written);
  console.log(`The pin is ${version} now, it was ${from}.`);
  return broken.length === 0 ? 0 : 1;
}

try {
  process.exit(await update());
} catch (error) {
  if (!(error instanceof NotAvailable)) throw error;
  console.log(error.message);
  process.exit(2);
}
