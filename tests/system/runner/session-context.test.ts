/** Promises: which hooks a session's generated config has, and that it may do what they say. Not covered: the hooks. */
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
  'S4: the hooks of all systems are in every generated config; names and none leave out the others: %s',
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
    // Nobody asked for what removes work trees or puts another run in the place of this one.
    expect(allowed.join()).not.toMatch(/faber:|worktrees|start|clean|init/);
    removeGroup(group);
  },
);
