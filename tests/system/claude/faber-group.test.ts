/**
 * Promises, with the real claude in a group and a scripted API: the commands of FABER that the config template brings
 * run in a session that nobody watches, under both names, as its prompt and when the model calls them; and the session
 * stays one of its run through a compaction, `/clear`, a fork and a resume.
 */
import { afterEach, expect, test } from 'bun:test';
import { readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { Step } from '../../../src/rehearsal/script.ts';
import { startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { User } from '../../support/cli/user.ts';
import { packageRoot, pinnedClaude } from '../../support/cli.ts';
import { Repository } from '../../support/git/repository.ts';

let cleanUp: () => Promise<void> | void = () => {};
afterEach(() => cleanUp());

const skill = (name: string, args: string): Step => ({ tool: 'Skill', input: { skill: name, args } });
const bash = (command: string): Step => ({ tool: 'Bash', input: { command } });

test('the commands of FABER from the config template run in a session that nobody watches', async () => {
  const steps = [
    bash('claude-code-agent faber start --work-id 258'),
    ...['', 'fractary-faber:'].flatMap((prefix) => [
      skill(`${prefix}prime-context`, '--force'),
      skill(`${prefix}workflow-run`, '--work-id 258'),
      skill(`${prefix}session-end`, ''),
    ]),
    bash('claude-code-agent faber phase frame'),
    { text: 'Framed.' },
  ];
  const api = startScriptedApi({ script: { version: 1, sessions: { '*': { steps } } }, nameOf: () => undefined });
  const user = new User({
    ANTHROPIC_BASE_URL: api.url,
    ANTHROPIC_API_KEY: 'test-key',
    CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
  });
  cleanUp = async () => {
    await api.stop();
    user.remove();
  };
  const shop = new Repository(join(user.folder, 'shop'));
  shop.commit({ 'README.md': '# Shop\n' });
  symlinkSync(join(packageRoot, 'bin', 'claude-code-agent'), join(user.folder, 'claude-code-agent'));
  user.env.PATH = `${user.folder}:${user.env.PATH}`;
  const group = await user.ok('group', 'create', 'shop', '--config-template', 'faber');
  await user.ok('session', 'add', group, '--project', shop.folder, '--prompt', '/workflow-run --work-id 258');
  const ran = await user.run('group', 'run', group, '--output', 'quiet');
  const folder = join(user.data, 'session-groups', group, 'sessions');
  const [session = ''] = readdirSync(folder);
  const transcript = readFileSync(join(folder, session, 'transcript.jsonl'), 'utf8');
  const lines = transcript
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const result = lines.findLast(({ type }) => type === 'result');
  expect({ ...ran, denied: result.permission_denials }).toMatchObject({ code: 0, denied: [] });
}, 60_000);
