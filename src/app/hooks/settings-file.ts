/** Changes the hooks in a settings.json of the user: parses strictly, keeps a backup and writes atomically. */
import { dirname, join } from 'node:path';
import { applyEdits, modify } from 'jsonc-parser';
import { readBackCheck } from '../../claude/launch/settings.ts';
import { updateExclusively } from '../../context/exclusive-update.ts';
import { installedHooks } from '../../context/install.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { findObjectFault } from '../../store/json-positions.ts';
import { systemFailure } from '../../store/system-failure.ts';
import type { FileAccess } from '../../system/world.ts';
import type { AppContext } from '../app-context.ts';
import { briefPath, folderNamed, lookAt, tryPath } from '../path-argument.ts';

export interface SettingsPlace {
  readonly project?: string | undefined;
  readonly configDir?: string | undefined;
}

type Settings = Readonly<Record<string, unknown>>;

/** New files in a project are for all its users; settings of a user may contain keys. */
export function accessOf({ configDir }: SettingsPlace): FileAccess {
  return configDir === undefined ? 'project' : 'private';
}

/** Far more than real settings, which claude reads at every start. */
const bytesMax = 4 * 1024 * 1024;

/** Absolute path of settings.json of a project (default: the current folder) or a config dir, symlinks resolved. */
export function settingsPath(context: AppContext, { project, configDir }: SettingsPlace): Result<string> {
  if (project !== undefined && configDir !== undefined) {
    const message = '--project and --config-dir cannot be combined.';
    return fail('usage', message, 'Give one of them.');
  }
  const option = configDir === undefined ? '--project' : '--config-dir';
  const next = `Give the path of an existing folder to ${option}.`;
  const folder = folderNamed(context, configDir ?? project, 'folder', next);
  if (!folder.ok) return folder;
  return targetOf(context, join(folder.value, configDir === undefined ? '.claude/settings.json' : 'settings.json'));
}

/** Users may link settings.json into a repository, so change the target of the symlink. */
function targetOf({ world: { files } }: AppContext, path: string): Result<string> {
  const wrong = (trouble: string): Result<never> =>
    fail('usage', `${briefPath(path)} ${trouble}.`, 'Correct that path, then run the command again.');
  const real = tryPath(() => (files.entryKind(path) === null ? path : files.realPath(path)));
  if (!real.ok) return wrong(real.trouble);
  if (real.value === null) return wrong('is a broken symlink');
  const kind = lookAt(files, real.value);
  return kind.ok && kind.value !== 'file' ? wrong('is not a regular file') : ok(real.value);
}

/** Null without a file. Fails with `corrupt-file` if claude would ignore the file. */
export function readSettings({ world: { files } }: AppContext, path: string): Result<Settings | null> {
  const read = tryPath(() => (files.info(path) === null ? null : files.readBytes(path, 0, bytesMax + 1)));
  if (!read.ok) return fail('usage', `${briefPath(path)} ${read.trouble}.`, 'Check its permissions.');
  if (read.value === null) return ok(null);
  const parsed = parseSettings(path, read.value);
  return parsed.ok ? ok(parsed.value.settings) : parsed;
}

interface Parsed {
  readonly text: string;
  readonly settings: Settings;
}

function parseSettings(path: string, bytes: Uint8Array): Result<Parsed> {
  const next = 'Correct the file, then run the command again; nothing was changed.';
  const refuse = (what: string) => fail('corrupt-file', what, next);
  if (bytes.length > bytesMax) return refuse(`${path} is larger than ${bytesMax} bytes.`);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return refuse(`${path} is not valid UTF-8.`);
  }
  const fault = findObjectFault(text);
  if (fault !== null) {
    const lines = text.slice(0, fault.offset).split('\n');
    const position = `${path}:${lines.length}:${(lines.at(-1) as string).length + 1}`;
    return refuse(`${position} is not valid JSON that can be changed safely: ${fault.message}.`);
  }
  const checked = readBackCheck(path, text);
  return checked.ok ? ok({ text, settings: checked.value }) : refuse(checked.failure.message);
}

export interface Changed {
  readonly isChanged: boolean;
  /** Path of the new backup; null if none was needed. */
  readonly backup: string | null;
}

/** Sets the member `hooks` and keeps all others byte for byte, with one backup. On failure, changes nothing. */
export function changeHooks(
  { world: { files } }: AppContext,
  { path, access }: { readonly path: string; readonly access: FileAccess },
  change: (settings: Settings) => Settings,
): Result<Changed> {
  let backup: string | null = null;
  try {
    files.makeFolder(dirname(path), access);
    const updated = updateExclusively(files, {
      path,
      bytesMax,
      access,
      change: (bytes) => {
        const before: Result<Parsed> = bytes === null ? ok({ text: '{}\n', settings: {} }) : parseSettings(path, bytes);
        if (!before.ok) return before;
        const { text, settings } = before.value;
        const after = change(settings);
        if (Bun.deepEquals(settings, after)) return ok(null);
        const newText = withMember(text, 'hooks', after.hooks);
        // claude silently ignores a faulty file, so check the new text before it is written.
        const checked = readBackCheck(path, newText);
        if (!checked.ok) return checked;
        if (bytes !== null) {
          const kept = keep(files, path, { bytes, settings });
          if (!kept.ok) return kept;
          backup = kept.value;
        }
        return ok(new TextEncoder().encode(newText));
      },
    });
    return updated.ok ? ok({ isChanged: updated.value, backup }) : updated;
  } catch (error) {
    if (typeof (error as { code?: unknown }).code !== 'string') throw error;
    return { ok: false, failure: systemFailure(path, error) };
  }
}

/** Keeps one backup: the file before our hooks were added. An empty object needs none. */
function keep(
  files: AppContext['world']['files'],
  path: string,
  { bytes, settings }: { readonly bytes: Uint8Array; readonly settings: Settings },
): Result<string | null> {
  if (Object.keys(settings).length === 0 || installedHooks(settings).length > 0) return ok(null);
  const copy = `${path}.claude-code-agent.bak`;
  const kind = files.entryKind(copy);
  if (kind !== null && kind !== 'file') {
    return fail('write-failed', `${copy} is in the way of a copy of what is there.`, 'Move it away.');
  }
  if (kind === 'file') files.remove(copy);
  files.writeBytes(copy, bytes, { durable: true, access: 'project', like: path });
  return ok(copy);
}

/**
 * Sets or removes one member in the text of a JSON object, so that the rest keeps its numbers, order and layout. `text`
 * must be a valid object without duplicate keys.
 */
export function withMember(text: string, key: string, value: unknown): string {
  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  const indent = /\n([ \t]+)"/.exec(text)?.[1] ?? '  ';
  const isOneLine = !text.trim().includes('\n') && text.includes('"');
  const layout = { eol, insertSpaces: !indent.startsWith('\t'), tabSize: indent.length };
  const changed = applyEdits(text, modify(text, [key], value, isOneLine ? {} : { formattingOptions: layout }));
  // Restore an empty object.
  return value === undefined ? changed.replace(/^(\s*)\{\s+\}/, '$1{}') : changed;
}
