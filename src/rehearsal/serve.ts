/** The scripted API as a separate process: workers of a killed runner still need their model. */
import { join } from 'node:path';
import type { ProcessIdentity } from '../core/event.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import { parseOwn } from '../store/json.ts';
import type { World } from '../system/world.ts';
import { defaultScript, parseScript, type RehearsalScript, scriptKey } from './script.ts';
import { type ScriptedApi, startScriptedApi } from './scripted-api.ts';

/** The server exits after this long without a request and without a runner. */
const idleLimitMs = 10 * 60 * 1000;
const idleCheckMs = 30 * 1000;

export interface ScriptedServerOptions {
  readonly groupDir: string;
  readonly scriptFile?: string;
  /** Ends the server, for example on SIGTERM. */
  readonly stop: AbortSignal;
}

export interface RehearsalServer extends ProcessIdentity {
  readonly version: 1;
  readonly url: string;
  readonly port: number;
}

const serverFile = (groupDir: string) => join(groupDir, 'rehearsal.json');

/** Reads a script file, or returns the default script. Fails with `usage`. */
export function loadScript(world: World, file: string | undefined): Result<RehearsalScript> {
  if (file === undefined) return ok(defaultScript);
  const info = world.files.info(file);
  if (info?.kind === 'file') return parseScript(world.files.readText(file) ?? '', file);
  return fail('usage', `There is no rehearsal script ${file}.`, 'Give the path of a YAML file, or no path at all.');
}

/**
 * Serves until `stop` is aborted, until the group's folder is gone, or until ten minutes without a request and without
 * a runner. Fails with `usage` when the script is invalid; nothing was started then.
 */
export async function serveRehearsal(world: World, options: ScriptedServerOptions): Promise<Result<void>> {
  const loaded = loadScript(world, options.scriptFile);
  if (!loaded.ok) return loaded;
  const { groupDir } = options;
  let lastRequestAt = world.clock.now();
  const api = startOnOldPort(world, groupDir, {
    script: loaded.value,
    capture: false,
    nameOf: (id) => nameOf(world, groupDir, loaded.value, id),
    onRequest: () => {
      lastRequestAt = world.clock.now();
    },
  });
  const server: RehearsalServer = { version: 1, url: api.url, port: api.port, ...world.machine.self };
  world.files.writeAtomic(serverFile(groupDir), `${JSON.stringify(server, null, 2)}\n`);
  const idle = () =>
    world.files.info(groupDir) === null ||
    (world.clock.now() - lastRequestAt >= idleLimitMs && world.locks.holder(join(groupDir, 'runner.lock')) === null);
  await untilOver(world, options.stop, idle);
  await api.stop();
  // The file is kept when the group's folder is gone, or when a successor has replaced it.
  if (readServer(world, groupDir)?.port === api.port) world.files.remove(serverFile(groupDir));
  return ok(undefined);
}

export function findRehearsal(world: World, groupDir: string): RehearsalServer | null {
  const server = readServer(world, groupDir);
  return server !== null && world.processes.isAlive(server) ? server : null;
}

type ApiOptions = Parameters<typeof startScriptedApi>[0];

/** Workers of a dead server still call its port, so a successor uses that port if it is free. */
function startOnOldPort(world: World, groupDir: string, options: ApiOptions): ScriptedApi {
  const port = readServer(world, groupDir)?.port;
  if (port === undefined) return startScriptedApi(options);
  try {
    return startScriptedApi({ ...options, port });
  } catch {
    return startScriptedApi(options);
  }
}

/** Null even when a session has replaced it by something else. */
function readServer(world: World, groupDir: string): RehearsalServer | null {
  const server = parseOwn<RehearsalServer>(world.files.readText(serverFile(groupDir)));
  return server?.version === 1 ? server : null;
}

/** Its own name, otherwise its number, whichever the script has; sessions may be added while the server runs. */
function nameOf(world: World, groupDir: string, script: RehearsalScript, claudeId: string): string | undefined {
  const folders = world.files.list(join(groupDir, 'sessions'));
  const metaOf = (entry: string) =>
    parseOwn<{ name?: unknown; claudeSessionIds?: unknown }>(
      world.files.readText(join(groupDir, 'sessions', entry, 'meta.json')),
    );
  // A new conversation has another id than its session.
  const isOf = (entry: string) =>
    (metaOf(entry)?.claudeSessionIds as string[] | undefined)?.includes(claudeId) === true;
  const folder = folders.find((entry) => entry.replace(/^\d+-/, '') === claudeId) ?? folders.find(isOf);
  if (folder === undefined) return undefined;
  const meta = metaOf(folder);
  const number = folder.slice(0, folder.indexOf('-'));
  const names = typeof meta?.name === 'string' ? [meta.name, number] : [number];
  return scriptKey(script, names) ?? names[0];
}

function untilOver(world: World, stop: AbortSignal, isOver: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    let cancel = () => {};
    const end = () => {
      cancel();
      resolve();
    };
    const look = () => {
      if (isOver()) resolve();
      else cancel = world.clock.after(idleCheckMs, look);
    };
    cancel = world.clock.after(idleCheckMs, look);
    if (stop.aborted) end();
    else stop.addEventListener('abort', end, { once: true });
  });
}
