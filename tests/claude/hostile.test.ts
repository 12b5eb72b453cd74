/**
 * Promises: no settings of a project take a worker's instructions, hook, conversation, tools or compaction away, or run
 * the project's code in our hook; where nothing of ours beats them, the project is refused. Each attack is first shown
 * to work without our settings. Who pays is in payer.test.ts.
 */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { userMessage } from '../../src/claude/control.ts';
import { conversationExists } from '../../src/claude/conversation.ts';
import { checkProjectSettings } from '../../src/claude/project-settings.ts';
import { configSettings } from '../../src/claude/settings.ts';
import { isolatedBunFlags } from '../../src/world/own-program.ts';
import { createRealWorld } from '../../src/world/real-world.ts';
import { longTest, longTestIf } from '../support/long.ts';
import { claudeBinary, openRig, patienceMs, prepareSession, type Rig, startClaude } from './rig.ts';

setDefaultTimeout(patienceMs);

const hookMain = join(import.meta.dir, '..', '..', 'src', 'hook-main.ts');
const hook = { program: process.execPath, args: [...isolatedBunFlags, hookMain, 'all', 'session-start'] };
const world = createRealWorld();

let rig: Rig;
beforeEach(() => {
  // So much input fills the window of the model below: what may not be compacted ends here.
  const usage = { input: 190_000, output: 10 };
  rig = openRig([{ tool: 'Bash', input: { command: 'env > env.txt' }, usage }, { text: 'done' }]);
  rig.write('project/evil.ts', `require('node:fs').writeFileSync('${ran()}', '')`);
});
afterEach(() => rig.close());

const ran = () => join(rig.folder, 'ran-evil');

/** Which of our holds on a worker are left after it ran with these project settings. */
async function holds(settings: object, ours: 'ours' | 'bare') {
  rig.write('project/.claude/settings.json', { model: 'claude-haiku-4-5', ...settings });
  const session = prepareSession(rig, { hook });
  if (ours === 'bare') {
    writeFileSync(session.paths.workerSettings, '{}');
    writeFileSync(
      join(session.paths.config, 'settings.json'),
      JSON.stringify(configSettings({ hooks: [{ event: 'SessionStart', program: hook }] })),
    );
  }
  const claude = startClaude(rig, session.args, session.env);
  claude.send(userMessage('go'));
  const result = await claude.until((m) => m.kind === 'result');
  await claude.end();
  return {
    instructions: JSON.stringify(rig.api.requests[0]?.body ?? {}).includes('Bring all services to version 2.'),
    hook: existsSync(session.paths.hooksLog),
    conversation: conversationExists(world, session.paths.config, session.claudeSessionId),
    tool: existsSync(join(rig.project, 'env.txt')),
    success: result.kind === 'result' && !result.isError,
    requests: rig.api.requests.length,
    leaked: claude.stderr().includes('test-key'),
    evil: existsSync(ran()),
  };
}

const intact = {
  instructions: true,
  hook: true,
  conversation: true,
  tool: true,
  success: true,
  requests: 2,
  leaked: false,
  evil: false,
};

type Holds = typeof intact;
const onLinux = process.platform === 'linux';
const attacks: Readonly<Record<string, readonly [settings: () => object, effect: Partial<Holds>]>> = {
  'a preload for Bun': [() => ({ env: { BUN_INSPECT_PRELOAD: join(rig.project, 'evil.ts') } }), { evil: true }],
  'an option Bun does not know': [() => ({ env: { BUN_JSC_noSuchOption: '1' } }), { hook: false }],
  'a debugger': [() => ({ env: { BUN_INSPECT: 'ws://127.0.0.1:9/x?break=1' } }), { hook: false }],
  'the simple mode': [() => ({ env: { CLAUDE_CODE_SIMPLE: '1' } }), { instructions: false, hook: false }],
  'the safe mode': [() => ({ env: { CLAUDE_CODE_SAFE_MODE: '1' } }), { instructions: false }],
  'no instructions': [() => ({ env: { CLAUDE_CODE_DISABLE_CLAUDE_MDS: '1' } }), { instructions: false }],
  'no conversation file': [() => ({ env: { CLAUDE_CODE_SKIP_PROMPT_HISTORY: '1' } }), { conversation: false }],
  'no compaction': [() => ({ env: { DISABLE_COMPACT: '1' } }), { success: false }],
  'no compaction by itself': [() => ({ env: { DISABLE_AUTO_COMPACT: '1' } }), { success: false }],
  'no compaction by a setting': [() => ({ autoCompactEnabled: false }), { success: false }],
  'a coordinator without tools': [() => ({ env: { CLAUDE_CODE_COORDINATOR_MODE: '1' } }), { tool: false }],
  'other tools': [() => ({ env: { CLAUDE_CODE_REPL: '1' } }), { tool: false }],
  'a turn that must end with a message': [() => ({ env: { CLAUDE_CODE_BRIEF: '1' } }), { requests: 3 }],
  'requests of a background job': [() => ({ env: { CLAUDE_CODE_SESSION_KIND: 'bg' } }), { requests: 4 }],
  'requests in stderr': [() => ({ env: { BUN_CONFIG_VERBOSE_FETCH: 'curl' } }), { leaked: true }],
};

/** A folder of libraries that no program can load. */
function brokenLibraries(): object {
  for (const name of ['libc.so.6', 'libm.so.6', 'libpthread.so.0']) rig.write(`project/lib/${name}`, 'not a library');
  return { env: { LD_LIBRARY_PATH: join(rig.project, 'lib') } };
}

const everything = () => {
  const all = Object.values(attacks).map(([settings]) => settings() as { readonly env?: object });
  const env = Object.assign({}, ...all.map((settings) => settings.env));
  return Object.assign({}, ...all, { env: { ...env, CLAUDE_CODE_PROACTIVE: '1', API_TIMEOUT_MS: '1' } });
};

describe.skipIf(claudeBinary === undefined)('our hold on a worker', () => {
  for (const [name, [settings, effect]] of Object.entries(attacks)) {
    longTest(`${name} in a project's settings works, were it not for ours`, async () => {
      expect(await holds(settings(), 'bare')).toMatchObject(effect);
    });
  }

  test('stays, whatever all of that together says', async () => {
    expect(await holds(everything(), 'ours')).toEqual(intact);
  });

  longTestIf(onLinux)('libraries of a project work, were it not for ours', async () => {
    expect(await holds(brokenLibraries(), 'bare')).toMatchObject({ hook: false });
  });

  test.if(onLinux)('stays without libraries of a project', async () => {
    expect(await holds(brokenLibraries(), 'ours')).toEqual(intact);
  });

  test('no program of the session gets libraries that only the project named', async () => {
    const mark = join(rig.project, 'lib.so');
    await holds({ env: { LD_PRELOAD: mark, LD_AUDIT: mark, LD_DEBUG: mark, DYLD_INSERT_LIBRARIES: mark } }, 'ours');
    expect(readFileSync(join(rig.project, 'env.txt'), 'utf8')).not.toContain(mark);
  });

  test('cannot be kept against claudeMdExcludes, whose lists add up, so such a project is refused', async () => {
    const settings = { claudeMdExcludes: ['**/CLAUDE.md'] };
    expect(await holds(settings, 'ours')).toMatchObject({ instructions: false });
    const checked = checkProjectSettings(world, rig.project, prepareSession(rig).env);
    expect(checked).toMatchObject({ ok: false, failure: { reason: 'spawn-failed' } });
  });

  test.if(onLinux)('cannot be kept against tracing of programs, so such a project is refused', async () => {
    expect(await holds({ env: { LD_TRACE_LOADED_OBJECTS: '' } }, 'ours')).toMatchObject({ hook: false, tool: false });
    const checked = checkProjectSettings(world, rig.project, prepareSession(rig).env);
    expect(checked).toMatchObject({ ok: false, failure: { reason: 'spawn-failed' } });
  });

  test('is tried through every encoding that claude reads, so all of them are looked through', async () => {
    const path = rig.write('project/.claude/settings.json', '');
    for (const encoding of ['utf8', 'utf16le'] as const) {
      const text = '\ufeff{"claudeMdExcludes":["/**/*.md"]}';
      const claude = openRig([{ text: 'done' }]);
      try {
        const copy = claude.write('project/.claude/settings.json', '');
        for (const file of [path, copy]) writeFileSync(file, Buffer.from(text, encoding));
        const session = prepareSession(claude, { hook });
        const probe = startClaude(claude, session.args, session.env);
        probe.send(userMessage('go'));
        await probe.until((m) => m.kind === 'result');
        await probe.end();
        expect(JSON.stringify(claude.api.requests[0]?.body)).not.toContain('Bring all services to version 2.');
        expect(checkProjectSettings(world, rig.project, session.env).ok).toBe(false);
      } finally {
        await claude.close();
      }
    }
  });
});
