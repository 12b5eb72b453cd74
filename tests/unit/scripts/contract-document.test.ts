/**
 * Promises: every claim of docs/claude-contract.md names an existing test or says that there is none, and a contract
 * run includes all files that need the real claude.
 */
import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { contractDocument, contractFiles, namedTests } from '../../../scripts/claude/contract.ts';
import { claimKey, readTable, tableIn } from '../../../scripts/claude/table.ts';
import { checkoutRoot } from '../../support/cli.ts';
import { isThere } from '../../support/named-tests.ts';

const document = readFileSync(contractDocument, 'utf8');
const [claims = ''] = document.split('## The last run');

/** The text in place of a test where there is none. */
const marks = /\*[^*]*(tools, no claim|by hand|source|assumed|not tested|not seen)[^*]*\*/;

/** List items, and rows of tables whose last column names tests. */
function claimsIn(text: string): string[] {
  let isTable = false;
  return text.split('\n').filter((line) => {
    if (!line.startsWith('|')) isTable = false;
    else if (/^\| .* \| Test \|$/.test(line)) isTable = true;
    else return isTable && !line.startsWith('|---');
    return line.startsWith('- ');
  });
}

function problems(text: string): string[] {
  const silent = claimsIn(text).filter((line) => namedTests(line).length === 0 && !marks.test(line));
  const wrong = text
    .split('\n')
    .flatMap(namedTests)
    .filter((named) => !isThere(named));
  return [...silent, ...wrong.map(({ file, begin }) => `${file} has no test that begins with: ${begin}`)];
}

test('every claim of the contract names an existing test or says that there is none', () => {
  expect(claimsIn(claims).length).toBeGreaterThan(60);
  expect(problems(claims)).toEqual([]);
});

test('a claim without an existing test is found', () => {
  expect(problems('- It flies. → `contract: starts from a FIFO`')).toEqual([]);
  expect(problems('- It flies. *(seen by hand)*')).toEqual([]);
  expect(problems('- It flies.')).toEqual(['- It flies.']);
  expect(problems('| x | Test |\n|---|---|\n| It flies | `contract: starts` |\n| It swims | – |')).toEqual([
    '| It swims | – |',
  ]);
  expect(problems('| x | y |\n|---|---|\n| It flies | – |')).toEqual([]);
  expect(problems('- It flies. → `contract: flies`')).toEqual([
    'tests/system/claude/contract.test.ts has no test that begins with: flies',
  ]);
  expect(problems('- It flies. → `gone: flies`')).toHaveLength(1);
});

test('a contract run includes every named file that needs the real claude', () => {
  const files = contractFiles();
  for (const name of ['contract', 'payer', 'hostile', 'supervision', 'shipped']) {
    expect(files).toContain(`tests/system/claude/${name}.test.ts`);
  }
  expect(files).toContain('tests/system/cli/workflow.test.ts');
  // None of these tests needs claude.
  expect(files).not.toContain('tests/unit/claude/launch.test.ts');
});

test('the table of the last contract run names the pinned version and no failure', () => {
  const table = readTable(tableIn(document));
  const { devDependencies } = JSON.parse(readFileSync(join(checkoutRoot, 'package.json'), 'utf8'));
  expect(table.map(({ version }) => version)).toContain(devDependencies['@anthropic-ai/claude-code']);
  for (const { verdicts } of table) {
    expect(
      verdicts.has(
        claimKey('tests/system/claude/payer.test.ts', 'the login is never written into a file of the session'),
      ),
    ).toBe(true);
    expect([...verdicts].filter(([, verdict]) => verdict === 'broken')).toEqual([]);
  }
});
