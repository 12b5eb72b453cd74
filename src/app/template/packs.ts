/** Adds and updates template packs from git. */
import { join, resolve } from 'node:path';
import { advise, adviseInOrder } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import { type Failure, fail, ok, type Result } from '../../core/failure.ts';
import type { UrlCredentials } from '../../git/git.ts';
import { syncDisks } from '../../git/leftover-files.ts';
import { checkOut, filesAt, nameOfSource, parseRef, parseRepository, splitRef } from '../../git/source.ts';
import { isObject, parseJson } from '../../store/json.ts';
import { systemFailure } from '../../store/system-failure.ts';
import { type Problem, problemsFailure, readYaml } from '../../store/yaml-text.ts';
import type { World } from '../../system/world.ts';
import { isTemplateName, packsFolder, userTemplates } from '../../template/places.ts';
import { readTextFile } from '../../template/text-file.ts';
import type { AppContext } from '../app-context.ts';
import { whileBusy } from '../live-runner.ts';
import { briefPath, lookAt } from '../path-argument.ts';
import { checkFolder } from './check-template.ts';

interface PackSource {
  readonly source: string;
  readonly ref?: string;
  readonly login?: UrlCredentials;
}

export interface FetchedPack {
  readonly note: PackNote;
  readonly templates: readonly string[];
  readonly powers: readonly string[];
  /** Files among the templates that cannot be used as templates. */
  readonly strays: readonly Problem[];
}

export interface AddedPack extends FetchedPack {
  /** The URL contained a password, which is not stored. */
  readonly hadPassword: boolean;
}

export type UpdatedPack = { readonly name: string } & (
  | { readonly status: 'unchanged'; readonly note: PackNote }
  | ({ readonly status: 'updated'; readonly from: PackNote } & FetchedPack)
  | { readonly status: 'failed'; readonly problem: Failure }
);

/** Where a repository may have its templates, the most specific folder first. */
const packRoots = ['.claude-code-agent/templates', 'templates', '.'];

export function packsOf(context: AppContext): Result<string> {
  const templates = userTemplates(context.env);
  return templates.ok ? ok(packsFolder(templates.value)) : templates;
}

/** On failure, changes nothing. */
export async function addPack(
  context: AppContext,
  address: string,
  { ref, name: givenName }: { readonly ref?: string | undefined; readonly name?: string | undefined },
): Promise<Result<AddedPack>> {
  const packs = packsOf(context);
  if (!packs.ok) return packs;
  const source = packSource(context, address, ref);
  if (!source.ok) return source;
  const name = packName(source.value, givenName);
  if (!name.ok) return name;
  const add = async (): Promise<Result<AddedPack>> => {
    const free = checkFree(context, packs.value, name.value, source.value);
    if (!free.ok) return free;
    const added = await install(context, packs.value, name.value, source.value);
    return added.ok ? ok({ ...added.value, hadPassword: source.value.login !== undefined }) : added;
  };
  return withPacks(context.world, packs.value, add, { make: true });
}

/** Updates the named pack, or all, with one outcome each. */
export async function updatePacks(
  context: AppContext,
  name: string | undefined,
  ref: string | undefined,
): Promise<Result<UpdatedPack[]>> {
  const packs = packsOf(context);
  if (!packs.ok) return packs;
  return withPacks<UpdatedPack[]>(context.world, packs.value, async () => {
    const one = name === undefined ? undefined : findPack(context.world, packs.value, name);
    if (one?.ok === false) return one;
    const done: UpdatedPack[] = [];
    for (const pack of one === undefined ? listPacks(context.world, packs.value) : [one.value]) {
      const updated = await tryUpdate(context, packs.value, pack, ref);
      done.push(updated.ok ? updated.value : { name: pack.name, status: 'failed', problem: updated.failure });
    }
    return ok(done);
  });
}

async function tryUpdate(
  context: AppContext,
  packs: string,
  { name, note }: InstalledPack,
  ref: string | undefined,
): Promise<Result<UpdatedPack>> {
  if (note === null) {
    const next = adviseInOrder(
      'Add it again from its source',
      ['template', 'remove', name],
      ['template', 'add', 'SOURCE'],
    );
    return fail('corrupt-file', 'Its pack.json is missing or cannot be read, so its source is not known.', next);
  }
  const source = packSource(context, note.source, ref ?? note.ref);
  if (!source.ok) return source;
  const installed = await install(context, packs, name, source.value, note);
  if (!installed.ok) return installed;
  const isSame = note.commit === installed.value.note.commit && note.ref === installed.value.note.ref;
  if (isSame) return ok({ name, status: 'unchanged', note });
  return ok({ name, status: 'updated', from: note, ...installed.value });
}

function packSource(context: AppContext, address: string, givenRef: string | undefined): Result<PackSource> {
  const typed = splitRef(address);
  const repository = parseRepository(typed.repository);
  if (!repository.ok) return repository;
  const ref = givenRef ?? typed.ref;
  const wanted = ref === undefined ? ok(undefined) : parseRef(ref);
  if (!wanted.ok) return wanted;
  const more = defined({ ref: wanted.value });
  if (repository.value !== null) {
    const { url, login } = repository.value;
    return ok({ source: url, ...more, ...defined({ login }) });
  }
  const path = resolve(context.cwd, address);
  const found = lookAt(context.world.files, path);
  const next = 'Give the URL of a git repository, or the path of one on this machine.';
  if (!found.ok) return fail('not-found', `${briefPath(path)} ${found.trouble}.`, next);
  const { files } = context.world;
  const isRepository = files.info(join(path, '.git')) !== null || files.info(join(path, 'HEAD')) !== null;
  if (found.value === 'folder' && isRepository) return ok({ source: path, ...more });
  const use = 'Commit it to one, or name the folder in CLAUDE_CODE_AGENT_TEMPLATES to use it as it is.';
  return fail('usage', `${briefPath(path)} is not a git repository.`, use);
}

function packName({ source }: PackSource, given: string | undefined): Result<string> {
  const name = given ?? nameOfSource(source);
  if (isTemplateName(name)) return ok(name);
  const rule = 'a letter or digit, then letters, digits, "-", "_" or ".", 64 at most';
  const what = given === undefined ? 'The source has no usable name for the pack' : 'That is not a valid pack name';
  return fail('usage', `${what}: ${JSON.stringify(name.slice(0, 100))}.`, `Give one with --name: ${rule}.`);
}

function checkFree({ world }: AppContext, packs: string, name: string, { source, ref }: PackSource): Result<void> {
  // Some file systems ignore case.
  const other = listPacks(world, packs).find((pack) => pack.name.toLowerCase() === name.toLowerCase());
  if (other === undefined) return ok(undefined);
  const given = ref === undefined || ref === other.note?.ref ? [] : ['--ref', ref];
  const isSame = other.note?.source === source;
  const change = ['template', isSame ? 'update' : 'remove', other.name, ...(isSame ? given : [])];
  const next = advise('Give this one another name with --name, or use', change);
  const from = other.note === null ? '' : ` from ${other.note.source}`;
  return fail('duplicate', `The template pack ${other.name}${from} already exists.`, next);
}

/** Fetches a pack at one commit, checks and installs it. On failure, changes nothing. */
async function install(
  context: AppContext,
  packs: string,
  name: string,
  { source, ref, login }: PackSource,
  before?: PackNote,
): Promise<Result<FetchedPack>> {
  const { world, env } = context;
  const git = { world, env };
  const folder = makeFetchFolder(world, packs);
  try {
    const input = { repository: source, folder, ...defined({ ref, login }) };
    const checkedOut = await whileBusy(context, `Fetching ${source}`, () => checkOut(git, input));
    if (!checkedOut.ok) return checkedOut;
    const { commit } = checkedOut.value;
    const addedAt = before?.addedAt ?? new Date(world.clock.now()).toISOString();
    const note: PackNote = { version: 1, name, source, ...defined({ ref }), commit, addedAt };
    if (before !== undefined && before.commit === commit && before.ref === ref)
      return ok({ note, templates: [], powers: [], strays: [] });
    const tree = await filesAt(git, folder, commit);
    if (!tree.ok) return tree;
    const checked = checkPack(context, folder, tree.value);
    if (!checked.ok) return checked;
    const { root, paths, ...found } = checked.value;
    const powers = powersOf(world, root, paths);
    world.files.remove(join(folder, '.git'));
    writeNote(world, root, note);
    await syncDisks(git, folder, folder);
    placePack(world, packs, name, root);
    return ok({ note, powers, ...found });
  } finally {
    world.files.remove(folder);
  }
}

function checkPack(
  context: AppContext,
  folder: string,
  tree: readonly { readonly path: string; readonly isLink: boolean }[],
): Result<Pick<FetchedPack, 'templates' | 'strays'> & { readonly root: string; readonly paths: readonly string[] }> {
  const isOfTemplates = /^(?:prompts|configs|workflows)(?:\/|$)/;
  const isTemplate = /^(?:prompts\/[^/]+\.md|configs\/[^/]+(?:\/.*)?|workflows\/[^/]+\.ya?ml)$/;
  const below = (root: string) =>
    tree.flatMap((entry) => {
      const path = root === '.' ? entry.path : entry.path.slice(root.length + 1);
      const isBelow = root === '.' || entry.path.startsWith(`${root}/`);
      const counts = entry.isLink ? isOfTemplates : isTemplate;
      return isBelow && counts.test(path) ? [{ ...entry, path }] : [];
    });
  const found = packRoots.find((root) => below(root).length > 0);
  if (found === undefined) {
    const message = 'There are no templates: no prompts/<name>.md, configs/<name>/ or workflows/<name>.yaml.';
    return fail('usage', message, 'A pack has them at its root, in templates/ or in .claude-code-agent/templates/.');
  }
  const shown = ({ file, ...problem }: Problem): Problem => {
    return { ...problem, file: file.startsWith(`${folder}/`) ? file.slice(folder.length + 1) : file };
  };
  const root = join(folder, found);
  const entries = below(found);
  // Symlinks are refused, because their targets are not part of the pack.
  const links = entries.filter(({ isLink }) => isLink);
  if (links.length > 0) {
    const problems = links.map(({ path }) => ({ file: join(root, path), line: 1, column: 1, message: 'is a symlink' }));
    return problemsFailure('The pack', problems.map(shown));
  }
  const { templates, problems, strays } = checkFolder(context, root);
  if (problems.length > 0) return problemsFailure('The pack', problems.map(shown));
  const names = templates.map(({ path }) => path.slice(root.length + 1).replace(/\.(?:md|ya?ml)$/, ''));
  return ok({ root, paths: entries.map(({ path }) => path), templates: names.sort(), strays: strays.map(shown) });
}

// Installed template packs: one folder each below the user's templates, with a pack.json that names its source.
// A pack is fetched and checked under another name and then renamed. The next command removes what a crash left
// behind.

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
