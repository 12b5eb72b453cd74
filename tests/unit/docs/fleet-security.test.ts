/** Promises: each entry of docs/fleet-security.md has a test, and every relevant attacker is covered. */
import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkoutRoot } from '../../support/cli.ts';
import { isThere } from '../../support/named-tests.ts';

const document = readFileSync(join(checkoutRoot, 'docs', 'fleet-security.md'), 'utf8');
const attackers = (/\n## Who can do what\n([\s\S]*?)\n## Known limits/.exec(document)?.[1] ?? '')
  .split('\n### ')
  .slice(1)
  .map((section) => section.split('\n'));
/** Attacker and entry, as in "A host cannot replay an order". */
const entries = attackers.flatMap(([who, ...lines]) => {
  let verb = '';
  return lines.flatMap((line) => {
    verb = /^It (can|cannot):$/.exec(line)?.[1] ?? verb;
    return line.startsWith('- ') ? [`${who} ${verb} ${line.slice(2)}`] : [];
  });
});

/** The test of each entry: its file, and how its name begins. */
const testOf: Readonly<Record<string, readonly [file: string, begin: string]>> = {
  'A client without a password cannot send anything': ['system/fleet/rights', 'a client with %s'],
  'A client with the password of Redis can delete, delay or repeat messages': [
    'system/fleet/rights',
    'a password alone reads',
  ],
  'A client with the password of Redis can occupy slots': ['system/fleet/security', 'a password alone can take slots'],
  'A client with the password of Redis can start a session a second time elsewhere': [
    'system/fleet/security',
    'a password alone can take slots',
  ],
  'A client with the password of Redis cannot read or forge code, prompts or results': [
    'system/fleet/rights',
    'a password alone reads',
  ],
  'A client with the password of Redis cannot make a host start anything': [
    'system/fleet/agent',
    'an order without an accepted',
  ],
  'A client with the password of Redis cannot pose as a host': ['system/fleet/registry', 'a forged entry'],
  'A client with the password of Redis cannot reach other keys or settings of that Redis': [
    'system/fleet/rights',
    "the fleet's password alone",
  ],
  'A host can do all of the above': ['system/fleet/rights', 'a password alone reads'],
  'A host can read what is sent to other hosts': ['system/fleet/security', 'a host can read'],
  'A host can report false results and costs, even for sessions of other hosts': [
    'system/fleet/security',
    'a host can answer',
  ],
  'A host can use the logins that it holds': ['system/cli/fleet-hosts', 'a group runs on an added host'],
  'A host cannot make another host start anything': ['system/fleet/security', 'a host cannot give'],
  'A host cannot replay an order': ['system/fleet/security', 'a recorded order'],
  'A host cannot exchange the files of an order': ['system/fleet/security', 'the content of an order'],
  'A host cannot change settings, hooks, tools or prompts of claude on your machine': [
    'unit/fleet/hostile-host',
    'the conversation of a checkpoint is stored',
  ],
  'A host cannot change other branches, tags or the configuration of the repository': [
    'unit/fleet/hostile-host',
    'commits that arrive with refs',
  ],
  'A host cannot write into `.git`, or outside the worktree': ['unit/fleet/hostile-host', 'commits with a folder .git'],
  'A host cannot pass options to git': ['unit/fleet/hostile-host', 'a commit id with extra text'],
  'A host cannot send escape codes to your terminal or commands to your shell': [
    'system/cli/fleet',
    'stolen entries inject',
  ],
  'A host cannot fill the log of a group': ['unit/fleet/hostile-host', 'the log keeps at most 64 KB'],
  'A host cannot get your logins or those of other hosts': ['system/cli/fleet-hosts', 'a group runs on an added host'],
  'A host cannot read a login that you typed while attached': ['unit/fleet/pack', 'a login typed while attached'],
  'A session on a host can do all that a host can': ['system/fleet/security', 'a user who'],
  'A session on a host can read what the user of the agent can': ['system/fleet/security', 'a user who'],
  'A person with a join line can do all that a host can': ['unit/fleet/files', 'a join line has everything'],
  'A person with a join line cannot run groups': ['unit/fleet/files', 'a join line has everything'],
  'A runner can run commands on hosts': ['system/fleet/security', 'a user who'],
  'A runner can read what the user of the agent can': ['system/fleet/security', 'a user who'],
  'A runner cannot write outside the folders of its sessions': ['system/fleet/agent', 'an archive that leads'],
  'A runner cannot start one attempt twice, or without a slot': ['system/fleet/agent', 'a second order'],
  'A runner cannot give orders in the name of another group': ['system/fleet/security', 'an order for another group'],
  'Another user of a host cannot read keys or logins': ['unit/fleet/files', 'fleet files are read as'],
  'Another user of a host cannot plant keys': ['unit/fleet/files', 'fleet files that others can access'],
};

test('fleet security covers every relevant attacker', () => {
  expect(attackers.map(([who]) => who)).toEqual([
    'A client without a password',
    'A client with the password of Redis',
    'A host',
    'A session on a host',
    'A person with a join line',
    'A runner',
    'Another user of a host',
  ]);
});

test('every entry of fleet security has a test, and no test is left over', () => {
  expect(entries.toSorted()).toEqual(Object.keys(testOf).toSorted());
  const gone = Object.entries(testOf).filter(([, [file, begin]]) => !isThere({ file: `tests/${file}.test.ts`, begin }));
  expect(gone).toEqual([]);
});
