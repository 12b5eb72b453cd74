/**
 * Promises: the project instructions that we say claude reads are those that reach the model; AGENTS.md only with a
 * claude that has the plugin for it.
 */
import { afterEach, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { userMessage } from '../../../src/claude/control.ts';
import { projectInstructions } from '../../../src/claude/launch/project-settings.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { claudeBinary, openRig, prepareSession, type Rig, startClaude, stepLimitMs } from '../../support/claude/rig.ts';
import { sampled } from '../../support/long.ts';

setDefaultTimeout(stepLimitMs);

let rig: Rig;
afterEach(() => rig.close());

const places: readonly (readonly [there: readonly string[], expected: readonly string[]])[] = [
  [['project/CLAUDE.md', 'project/AGENTS.md'], ['project/CLAUDE.md']],
  [['project/.claude/CLAUDE.md', 'project/AGENTS.md'], ['project/.claude/CLAUDE.md']],
  [['CLAUDE.md', 'project/AGENTS.md'], ['CLAUDE.md']],
  [
    ['AGENTS.md', 'project/AGENTS.md'],
    ['AGENTS.md', 'project/AGENTS.md'],
  ],
  [['project/agents.md', 'project/sub/AGENTS.md'], []],
];

test.skipIf(claudeBinary === undefined).each(sampled(places, 2))('with %j claude reads %j', async (there, expected) => {
  rig = openRig([{ text: 'done' }]);
  for (const path of there) rig.write(path, `WORDS OF ${path} END`);
  const session = prepareSession(rig);
  const claude = startClaude(rig, session.args, session.env);
  claude.send(userMessage('go'));
  await claude.until((m) => m.kind === 'result');
  await claude.end();
  const told = JSON.stringify(rig.api.requests[0]?.body);
  const inRig = projectInstructions(createRealWorld(), rig.project).filter((path) => path.startsWith(rig.folder));
  expect(inRig).toEqual(expected.map((path) => join(rig.folder, path)));
  const knowsAgents = claude.text().includes('agents-md@builtin');
  const read = there.filter((path) => told.includes(`WORDS OF ${path} END`));
  expect(read).toEqual(expected.filter((path) => knowsAgents || !path.endsWith('AGENTS.md')));
});
