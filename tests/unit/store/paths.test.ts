/** Promises: every file has its specified place, and ids that would leave it are refused. */
import { expect, test } from 'bun:test';
import { configRoot, dataRoot, groupPaths, sessionPaths } from '../../../src/store/paths.ts';

test.each([
  [{ CLAUDE_CODE_AGENT_HOME: '/data/x/', HOME: '/home/u' }, '/data/x/'],
  [{ CLAUDE_CODE_AGENT_HOME: '', HOME: '/home/u' }, '/home/u/.local/claude-code-agent'],
  [{ HOME: '/home/u' }, '/home/u/.local/claude-code-agent'],
])('the data root of %j is %s', (env, expected) => {
  expect(dataRoot(env)).toEqual({ ok: true, value: expected });
});

test.each([
  [{ CLAUDE_CODE_AGENT_HOME: '~/x', HOME: '/home/u' }, 'CLAUDE_CODE_AGENT_HOME'],
  [{ HOME: 'here' }, 'HOME'],
  [{}, 'HOME'],
])('%j has no data root, and the message names the variable', (env, name) => {
  const root = dataRoot(env);
  expect(root).toMatchObject({ ok: false, failure: { reason: 'usage' } });
  if (!root.ok) expect(root.failure.message).toStartWith(`${name} is`);
});

test.each([
  [{ XDG_CONFIG_HOME: '/etc/x', HOME: '/home/u' }, '/etc/x/claude-code-agent'],
  [{ XDG_CONFIG_HOME: 'relative', HOME: '/home/u' }, '/home/u/.config/claude-code-agent'],
  [{ HOME: '/home/u' }, '/home/u/.config/claude-code-agent'],
])('the config root of %j is %s', (env, expected) => {
  expect(configRoot(env)).toEqual({ ok: true, value: expected });
});

test('the files of a group and its sessions are in the specified folders', () => {
  const group = groupPaths('/data', '20260104-143022-cross-project-refactor');
  const folder = '/data/session-groups/20260104-143022-cross-project-refactor';
  expect(group).toEqual({
    folder,
    meta: `${folder}/meta.json`,
    events: `${folder}/events.jsonl`,
    progress: `${folder}/progress.json`,
    lock: `${folder}/runner.lock`,
    runnerLogs: `${folder}/runner-logs`,
    eventCommands: `${folder}/on-event`,
    requests: `${folder}/requests`,
    rehearsal: `${folder}/rehearsal.json`,
    sessions: `${folder}/sessions`,
    sharedConfig: `${folder}/shared-config`,
    templates: `${folder}/templates`,
    workflow: `${folder}/workflow.yaml`,
  });
  expect(sessionPaths(group, '001-uuid-session1')).toMatchObject({
    meta: `${folder}/sessions/001-uuid-session1/meta.json`,
    config: `${folder}/sessions/001-uuid-session1/claude-config`,
    transcript: `${folder}/sessions/001-uuid-session1/transcript.jsonl`,
  });
});

test('an id that names another folder is refused', () => {
  expect(() => groupPaths('/data', '../../etc')).toThrow('is no group id');
  const group = groupPaths('/data', '20260104-143022-x');
  expect(() => sessionPaths(group, '001-../../x')).toThrow('is no session id');
});
