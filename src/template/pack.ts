/**
 * Installed template packs: one folder each below the user's templates, with a pack.json that names its source. A pack
 * is fetched and checked under another name and then renamed. The next command removes what a crash left behind.
 */
import { join } from 'node:path';
import { advise } from '../core/advice.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import { isObject, parseJson } from '../store/json.ts';
import { systemFailure } from '../store/system-failure.ts';
import { readYaml } from '../store/yaml-text.ts';
import type { World } from '../system/world.ts';
import { isTemplateName } from './places.ts';
import { readTextFile } from './text-file.ts';

export interface PackNote {
  readonly version: 1;
  readonly name: string;
  /** URL without a password, or absolute path of a repository. */
  readonly source: string;
  /** The branch, tag or commit that was requested; absent = the default branch. */
  readonly ref?: string;
  readonly commit: string;
  /** ISO 8601, UTC. */
  readonly addedAt: string;
}

export interface InstalledPack {
  readonly name: string;
  readonly folder: string;
  readonly note: PackNote | null;
}

const noteFile = 'pack.json';
const noteBytesMax = 64 * 1024;
const lockFile = '.lock';
/** No pack's name can have this prefix. */
const fetched = '.fetch-';

export function listPacks(world: World, packs: string): InstalledPack[] {
  return world.files
    .list(packs)
    .filter((name) => isTemplateName(name) && world.files.entryKind(join(packs, name)) === 'folder')
    .map((name) => ({ name, folder: join(packs, name), note: readNote(world, join(packs, name)) }));
}

function readNote(world: World, folder: string): PackNote | null {
  const read = readTextFile(world, join(folder, noteFile), noteBytesMax);
  const note = read.ok ? parseJson(read.text) : null;
  return isObject(note) && typeof note.source === 'string' ? (note as unknown as PackNote) : null;
}

export function writeNote(world: World, folder: string, note: PackNote): void {
  world.files.writeAtomic(join(folder, noteFile), `${JSON.stringify(note, null, 2)}\n`, { durable: true });
}

export function findPack(world: World, packs: string, name: string): Result<InstalledPack> {
  const installed = listPacks(world, packs);
  const found = installed.find((pack) => pack.name === name);
  if (found !== undefined) return ok(found);
  const names = installed.map((pack) => pack.name).join(', ');
  const add = advise('No packs are installed. Add one with', ['template', 'add', 'SOURCE']);
  const next = names === '' ? add : `Installed packs: ${names}.`;
  return fail('not-found', `There is no template pack ${JSON.stringify(name.slice(0, 100))}.`, next);
}

/** Runs `action` while no other command changes packs. Fails with `busy` or `write-failed`. */
export async function withPacks<T>(
  world: World,
  packs: string,
  action: () => Result<T> | Promise<Result<T>>,
  options: { readonly make?: true } = {},
): Promise<Result<T>> {
  try {
    if (options.make === true) world.files.makeFolder(packs);
    else if (world.files.info(packs) === null) return await action();
    const holder = { identity: world.machine.self, runId: world.random.uuid() };
    const lock = world.locks.tryLock(join(packs, lockFile), holder);
    if (lock === null) {
      return fail('busy', 'Another command is changing the template packs.', 'Try again when it has finished.');
    }
    try {
      for (const name of world.files.list(packs)) if (name.startsWith(fetched)) world.files.remove(join(packs, name));
      return await action();
    } finally {
      lock.release();
    }
  } catch (error) {
    return { ok: false, failure: systemFailure(packs, error) };
  }
}

/** Creates an empty folder. If a crash leaves it behind, the next `withPacks` removes it. */
export function makeFetchFolder(world: World, packs: string): string {
  const folder = join(packs, `${fetched}${world.random.uuid()}`);
  world.files.makeFolder(folder);
  return folder;
}

/** Moves `folder` to the place of the pack, replacing the existing one. Only inside `withPacks`. */
export function placePack(world: World, packs: string, name: string, folder: string): void {
  const place = join(packs, name);
  if (world.files.entryKind(place) !== null) removePack(world, packs, name);
  world.files.rename(folder, place);
  world.files.syncFolder(packs);
}

/** Removes the pack in one step. Only inside `withPacks`; throws the system's error. */
export function removePack(world: World, packs: string, name: string): void {
  const aside = join(packs, `${fetched}${name}`);
  world.files.rename(join(packs, name), aside);
  world.files.remove(aside);
}

/** Settings that name programs, or variables that control the programs a session starts. */
const powerfulSettings = [
  ...['hooks', 'env', 'apiKeyHelper', 'awsAuthRefresh', 'awsCredentialExport', 'gcpAuthRefresh', 'otelHeadersHelper'],
  ...['proxyAuthHelper', 'statusLine', 'fileSuggestion', 'enabledPlugins', 'extraKnownMarketplaces'],
];
const readBytesMax = 1024 * 1024;

/** What the files of a pack can start, as sentences that begin with a path below `folder`. */
export function powersOf(world: World, folder: string, paths: readonly string[]): string[] {
  return paths.flatMap((path) => {
    const name = path.split('/').slice(2).join('/');
    const read = readTextFile(world, join(folder, path), readBytesMax);
    const text = read.ok ? read.text : '';
    if (/^workflows\/.*\.ya?ml$/.test(path)) return workflowPowers(path, text);
    if (!path.startsWith('configs/')) return [];
    if (name === 'settings.json') return settingsPowers(path, text);
    if (name === 'mcp.json' || name === '.mcp.json') return [`${path}: starts MCP servers`];
    if (/^plugins\/[^/]+\/\.claude-plugin\/plugin\.json$/.test(name)) {
      return [`${path}: contains a plugin, whose hooks and servers run`];
    }
    // These files can run shell commands before the model sees them.
    const runsShell = /^(?:commands|skills|agents)\//.test(name) && /!`/.test(text);
    return runsShell ? [`${path}: runs shell commands when it is used`] : [];
  });
}

/** Words that grant permissions are found anywhere in the text, because a workflow can compose its values. */
function workflowPowers(path: string, text: string): string[] {
  const yaml = readYaml({ text, file: path });
  const { group, sessions } = yaml.ok && isObject(yaml.value.value) ? yaml.value.value : {};
  const parts = [group, ...(isObject(sessions) ? Object.values(sessions) : [])].filter(isObject);
  const commands = ['setup', 'accept', 'onEvent'].filter((key) => parts.some((part) => typeof part[key] === 'string'));
  return [
    ...(text.includes('bypassPermissions') ? [`${path}: runs sessions that skip permission requests`] : []),
    ...(text.includes('settingsOverride') ? [`${path}: has its own settings`] : []),
    ...(commands.length === 0 ? [] : [`${path}: runs shell commands (${commands.join(', ')})`]),
  ];
}

function settingsPowers(path: string, text: string): string[] {
  const settings = parseJson(text);
  // A variable outside a string makes it invalid JSON; then the text itself is searched.
  const keys = isObject(settings)
    ? powerfulSettings.filter((key) => Object.hasOwn(settings, key))
    : powerfulSettings.filter((key) => text.includes(`"${key}"`));
  const bypasses = text.includes('bypassPermissions') ? [`${path}: skips permission requests`] : [];
  return keys.length === 0 ? bypasses : [...bypasses, `${path}: sets ${keys.join(', ')}`];
}
