/** A group on the virtual disk as `group create` and `session add` leave it, with its projects and a claude to run. */
import { dirname, join } from 'node:path';
import type { GroupReference } from '../../../src/app/resolve.ts';
import type { SessionDefinition } from '../../../src/core/group.ts';
import { makeGroupId, makeSessionId } from '../../../src/core/id.ts';
import { createGroup } from '../../../src/store/group-store.ts';
import { groupPaths } from '../../../src/store/paths.ts';
import type { AcceptanceSketch, Scenario } from './scenario.ts';
import { seededFor } from './seeded.ts';
import type { VirtualMachine } from './virtual-machine.ts';
import { VirtualRunner } from './virtual-runner.ts';

const root = '/data';
const project = '/projects/one';
const claude = '/opt/claude';
export const simulatedPackageRoot = '/opt/claude-code-agent';
/** A key that can spend the user's money. */
export const secret = 'sk-ant-secret-of-the-user';
export const callerEnv = {
  PATH: '/usr/bin',
  HOME: '/user',
  ANTHROPIC_API_KEY: secret,
  CLAUDE_CODE_AGENT_CLAUDE: claude,
};

const createdMs = Date.UTC(2026, 0, 2, 3, 0, 0);

/** The path of the only group of every simulation. */
export function simulatedGroup(): GroupReference {
  const groupId = makeGroupId(createdMs, 'simulated');
  return { root, groupId, paths: groupPaths(root, groupId) };
}

/** A session as requested by another command: without an id. */
export function newDefinition(atMs: number, dependsOn: readonly string[]): Omit<SessionDefinition, 'id'> {
  const createdAt = new Date(atMs).toISOString();
  return { description: '', projectPath: project, prompt: 'do it', dependsOn, createdAt };
}

function acceptanceSettings({ retries, timeoutMs }: AcceptanceSketch): Partial<SessionDefinition> {
  const most = retries === undefined ? {} : { acceptRetries: retries };
  return { accept: 'make check', acceptTimeoutMs: timeoutMs, ...most };
}

/** Creates the group; everything is synced afterwards. */
export function createVirtualGroup(machine: VirtualMachine, scenario: Scenario): void {
  const { groupId } = simulatedGroup();
  // The gate's folder stays from the first limit on.
  for (const path of [root, join(root, 'limits'), project, dirname(claude)]) machine.disk.makeFolder(path, createdMs);
  machine.disk.createFile(claude, createdMs);
  const luck = seededFor(scenario.seed, 'ids');
  const ids = scenario.sessions.map((_, index) => makeSessionId(index + 1, luck.uuid()));
  const sessions = scenario.sessions.map((sketch, index): SessionDefinition => {
    const { dependsOn, behaviours: _, acceptance, ...settings } = sketch;
    const dependencies = dependsOn.flatMap((other) => ids[other] ?? []);
    const work = acceptance === undefined ? {} : acceptanceSettings(acceptance);
    const own = { id: ids[index] as string, prompt: `do part ${index + 1}` };
    return { ...newDefinition(createdMs, dependencies), ...own, ...settings, ...work };
  });
  const definition = {
    id: groupId,
    name: 'Simulated',
    description: '',
    slug: 'simulated',
    createdAt: new Date(createdMs).toISOString(),
    config: scenario.config,
  };
  const maker = new VirtualRunner(machine);
  const created = createGroup(maker.world, root, definition, sessions);
  if (!created.ok) throw new Error(`${created.failure.message} ${join(root, groupId)}`);
  maker.exit();
  machine.disk.syncAll();
}
