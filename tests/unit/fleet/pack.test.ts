/** Promises: an order carries only the session's own files, and never a login that a user left there. */
import { beforeEach, expect, test } from 'bun:test';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { answerFirstRun } from '../../../src/claude/launch/config-dir.ts';
import type { Places } from '../../../src/fleet/agent/lay-out.ts';
import { packSession } from '../../../src/fleet/order.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const world = createRealWorld();
const temp = withTempFolder();
let places: Places;

beforeEach(() => {
  places = {
    session: temp.path,
    worktree: join(temp.path, 'worktree'),
    package: '/opt/package',
    bun: '/opt/bun',
    slug: '-one',
  };
  mkdirSync(join(temp.path, 'claude-config'));
});

const packed = (): Record<string, string> => {
  const files = packSession(world.files, { folder: temp.path }, places, []);
  return Object.fromEntries(files.map(({ path, data }) => [path, Buffer.from(data, 'base64').toString()]));
};

test('a login typed while attached stays on its host', () => {
  const config = join(temp.path, 'claude-config');
  answerFirstRun(world, config, join(temp.path, 'worktree'), { ANTHROPIC_API_KEY: 'a-key-of-mine' });
  const state = JSON.parse(world.files.readText(join(config, '.claude.json')) ?? '');
  expect(JSON.stringify(state)).toContain('a-key-of-mine');
  const more = { ...state, primaryApiKey: 'a-key-of-mine', oauthAccount: { emailAddress: 'me@mine' } };
  writeFileSync(join(config, '.claude.json'), JSON.stringify(more));
  // The copies of it that claude writes now, and those of earlier versions.
  mkdirSync(join(config, 'backups'));
  for (const copy of ['backups/.claude.json.backup.17', 'backups/.claude.json.corrupted.18', '.claude.json.backup'])
    writeFileSync(join(config, copy), JSON.stringify(more));
  writeFileSync(join(config, '.credentials.json'), '{"claudeAiOauth":{"accessToken":"a-token-of-mine"}}');
  const files = packed();
  expect(Object.keys(files)).toEqual(['claude-config/.claude.json']);
  expect(JSON.stringify(files)).not.toContain('of-mine');
  expect(JSON.stringify(files)).not.toContain('me@mine');
  expect(files['claude-config/.claude.json']).toContain('hasTrustDialogAccepted');
});

test('a damaged login file and symlinks to the user’s login are not sent', () => {
  const config = join(temp.path, 'claude-config');
  writeFileSync(join(config, '.claude.json'), '{"primaryApiKey":"a-key-of-mine"');
  writeFileSync(join(temp.path, 'prompt.md'), 'x');
  symlinkSync('/etc/hostname', join(config, 'linked'));
  expect(packed()).toEqual({ 'claude-config/.claude.json': '{}', 'prompt.md': 'x' });
  // No text.
  writeFileSync(join(config, '.claude.json'), Buffer.from('{"primaryApiKey":"a-key-of-mine\xff"}', 'latin1'));
  expect(packed()['claude-config/.claude.json']).toBe('{}');
});
