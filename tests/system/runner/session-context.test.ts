/**
 * Promises: which hooks a generated config contains, and that the session may run what they name. Not covered: the
 * hooks.
 */
import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ContextName } from '../../../src/core/definitions.ts';
import { removeGroup } from '../../support/crash-rig.ts';
import { makeGroup } from '../../support/group-fixture.ts';
import { rig, withRig } from '../../support/rig-ground.ts';

withRig();

const events = ['SessionStart', 'PreCompact', 'SessionEnd'];

test.each<[string, readonly ContextName[] | undefined, readonly string[]]>([
  ['said nothing', undefined, ['cpm', 'handover', 'faber']],
  ['names', ['faber'], ['faber']],
  ['none', [], []],
])(
  'every generated config has the hooks of all context systems, and names or `none` exclude the others: %s',
  async (_, context, systems) => {
    const group = makeGroup([{ name: 'a', ...(context === undefined ? {} : { fields: { context } }) }]);
    const run = group.run(rig.env);
    const fake = await rig.nextFor(group.claudeId('a'));
    await fake.prompt();
    await fake.init();
    await fake.succeed();
    expect(await run.result).toMatchObject({ status: 'completed' });
    const { hooks, permissions } = JSON.parse(readFileSync(join(group.session('a').config, 'settings.json'), 'utf8'));
    for (const event of events) {
      const found = JSON.stringify(hooks[event] ?? []).match(/(?<=")(?:cpm|handover|faber)(?=")/g);
      expect({ event, found: [...(found ?? [])] }).toEqual({ event, found: [...systems] });
    }
    const allowed: string[] = permissions?.allow ?? [];
    expect(allowed.includes('Bash(claude-code-agent faber phase:*)')).toBe(systems.includes('faber'));
    expect(allowed.includes('Bash(claude-code-agent cpm list:*)')).toBe(systems.includes('cpm'));
    expect(allowed.includes('Bash(claude-code-agent handover find:*)')).toBe(systems.includes('handover'));
    // Hooks that remove worktrees or replace the active run are not installed without a request.
    expect(allowed.join()).not.toMatch(/faber:|worktrees|start|clean|init/);
    removeGroup(group);
  },
);
