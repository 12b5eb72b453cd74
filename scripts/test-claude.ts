/**
 * Tries what we rely on in Claude Code with several of its versions, and prints a table, claim × version. Exit code 1
 * when a supported version breaks a claim, 2 when a version cannot be had.
 *
 *   npm run test:claude -- [--write] [--warn-newer] [VERSION ...]
 *
 * VERSION is a version, `oldest` or `pinned` (these two when none is named), or what the registry calls so (`latest`).
 * `--write` puts the table into docs/claude-contract.md. With `--warn-newer` the pinned version is left out, and one
 * that is newer only causes warnings, even when it cannot be had.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { compareVersions, oldestClaude } from '../src/claude/launch/program.ts';
import { type ContractRun, contractDocument, runContract } from './claude/contract.ts';
import { breaks, summary, tableText, withTable } from './claude/table.ts';
import { NotAvailable, pinnedVersion, resolveVersion } from './claude/versions.ts';

const { values, positionals } = parseArgs({
  options: { write: { type: 'boolean', default: false }, 'warn-newer': { type: 'boolean', default: false } },
  allowPositionals: true,
});
const warnsOnly = values['warn-newer'];
const pinned = pinnedVersion();
let exitCode = 0;

/** What is wrong with a version: a warning where it is newer than ours and it was requested. */
function complain(isNewer: boolean, code: 1 | 2, text: string): void {
  if (isNewer && warnsOnly) console.log(`warning: ${text}`);
  else {
    console.log(text);
    exitCode = Math.max(exitCode, code);
  }
}

async function runAll(): Promise<ContractRun[]> {
  const runs: ContractRun[] = [];
  for (const word of positionals.length === 0 ? ['oldest', 'pinned'] : positionals) {
    try {
      const version = await resolveVersion(word);
      if (runs.some((run) => run.version === version)) continue;
      if (warnsOnly && version === pinned) {
        console.log(`claude ${version} is the pinned version, which was tried.`);
        continue;
      }
      console.log(`claude ${version}: trying ...`);
      const run = await runContract(version);
      console.log(`claude ${version}: ${summary(run.verdicts)}. What the tests printed: ${run.log}`);
      runs.push(run);
    } catch (error) {
      if (!(error instanceof NotAvailable)) throw error;
      complain(true, 2, error.message);
    }
  }
  return runs;
}

const runs = await runAll();
if (runs.length > 0) console.log(`\n${tableText(runs)}\n`);
for (const run of runs) {
  if (compareVersions(run.version, oldestClaude) < 0) {
    console.log(`claude ${run.version} is older than ${oldestClaude}, the oldest supported version.`);
    continue;
  }
  const isNewer = compareVersions(run.version, pinned) > 0;
  for (const claim of breaks(run)) complain(isNewer, 1, `claude ${run.version} breaks: ${claim}`);
}
if (values.write && runs.length > 0) {
  const document = withTable(readFileSync(contractDocument, 'utf8'), tableText(runs));
  if (document === null) throw new Error(`${contractDocument} has no marks for the table`);
  writeFileSync(contractDocument, document);
}
process.exit(exitCode);
