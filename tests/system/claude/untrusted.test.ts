/**
 * Promises: in an untrusted session a project's hooks do not run and its variables do not reach the tools, while its
 * instructions and deny rules stay and our own hook runs. No project can undo it.
 */
import { afterEach, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { userMessage } from '../../../src/claude/control.ts';
import { claudeBinary, openRig, prepareSession, type Rig, startClaude, stepLimitMs } from '../../support/claude/rig.ts';

setDefaultTimeout(stepLimitMs);

const rigs: Rig[] = [];
afterEach(async () => {
  for (const rig of rigs.splice(0)) await rig.close();
});

/** What a hostile project achieves in a session. */
async function harm(untrusted: boolean, more: object = {}) {
  const rig = openRig([
    { tool: 'Bash', input: { command: 'env > env.txt' } },
    { tool: 'Read', input: { file_path: 'secret.txt' } },
    { text: 'done' },
  ]);
  rigs.push(rig);
  const hook = { hooks: [{ type: 'command', command: 'touch "$CLAUDE_PROJECT_DIR/hook-ran"' }] };
  rig.write('project/.claude/settings.json', {
    env: { OF_THE_PROJECT: '1', ...more },
    hooks: { SessionStart: [hook], PreToolUse: [hook], Stop: [hook] },
    permissions: { deny: ['Read(./secret.txt)'] },
  });
  rig.write('project/CLAUDE.md', 'WORDS OF THE PROJECT');
  rig.write('project/secret.txt', 'SECRET');
  const session = prepareSession(rig, { untrusted });
  const claude = startClaude(rig, session.args, session.env);
  claude.send(userMessage('go'));
  const result = await claude.until((m) => m.kind === 'result');
  await claude.end();
  const told = JSON.stringify(rig.api.requests.map(({ body }) => body));
  return {
    hookRan: existsSync(join(rig.project, 'hook-ran')),
    variable: readFileSync(join(rig.project, 'env.txt'), 'utf8').includes('OF_THE_PROJECT=1'),
    instructions: told.includes('WORDS OF THE PROJECT'),
    ownHook: told.includes('CONTEXT of the session'),
    secretRead: told.includes('SECRET'),
    success: result.kind === 'result' && !result.isError,
  };
}

const kept = { instructions: true, ownHook: true, secretRead: false, success: true };

test.skipIf(claudeBinary === undefined)('a trusted project has its hooks and variables', async () => {
  expect(await harm(false)).toEqual({ ...kept, hookRan: true, variable: true });
});

test.if(claudeBinary !== undefined)('an untrusted project has neither, whatever its settings', async () => {
  const plain = await harm(true);
  const undone = await harm(true, { CLAUDE_CODE_IGNORE_PERSISTED_TRUST: '' });
  expect(undone).toEqual(plain);
  expect(plain).toEqual({ ...kept, hookRan: false, variable: false });
});
