/**
 * cli/hooks/: our hooks in settings of a person's own. This file: the settings file that a person named: read
 * strictly, changed with a backup and as a whole, or not at all.
 */

import { dirname, join, resolve } from 'node:path';
import { readBackCheck } from '../../claude/settings.ts';
import { updateExclusively } from '../../context/exclusive-update.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { systemFailure } from '../../store/system-failure.ts';
import { findJsonFault } from '../../template/json-text.ts';

import type { Context } from '../context.ts';
import { briefPath, lookAt, tryPath } from '../path-argument.ts';
import { withMember } from './json-member.ts';

export interface Place {
  readonly project?: string | undefined;
  readonly configDir?: string | undefined;
}

type Settings = Readonly<Record<string, unknown>>;

/** More than any settings have; claude reads them at every start. */
const bytesMax = 4 * 1024 * 1024;

/**
 * Absolute path of the settings file, links resolved: the project's (this folder's, when nothing is named) or the one
 * of a config dir. Fails with `usage` when both are named or the folder is not there.
 */
export function settingsPath(context: Context, { project, configDir }: Place): Result<string> {
  if (project !== undefined && configDir !== undefined) {
    const message = 'Both --project and --config-dir are given.';
    return fail('usage', message, 'Give the one whose settings are meant.');
  }
  const typed = configDir ?? project ?? '.';
  const option = configDir === undefined ? '--project' : '--config-dir';
  const next = `Give the path of an existing folder to ${option}.`;
  if (typed === '') return fail('usage', `The path given to ${option} is empty.`, next);
  const folder = resolve(context.cwd, typed);
  const { files } = context.world;
  const found = lookAt(files, folder);
  if (!found.ok) return fail('usage', `The folder ${briefPath(folder)} ${found.trouble}.`, next);
  if (found.value !== 'folder') return fail('usage', `${briefPath(folder)} is not a folder.`, next);
  const path = configDir === undefined ? join(folder, '.claude', 'settings.json') : join(folder, 'settings.json');
  return targetOf(context, path);
}

/** People keep settings in a repository of their own and link to them: the file behind the link is changed. */
function targetOf({ world: { files } }: Context, path: string): Result<string> {
  const next = 'Correct that path, then run the command again.';
  const entry = tryPath(() => files.entryKind(path));
  if (!entry.ok) return fail('usage', `${briefPath(path)} ${entry.trouble}.`, next);
  if (entry.value === null) return ok(path);
  const real = tryPath(() => files.realPath(path));
  if (!real.ok) return fail('usage', `${briefPath(path)} ${real.trouble}.`, next);
  if (real.value === null) return fail('usage', `${briefPath(path)} is a link that leads nowhere.`, next);
  const kind = lookAt(files, real.value);
  if (!kind.ok) return fail('usage', `${briefPath(path)} ${kind.trouble}.`, next);
  return kind.value === 'file' ? ok(real.value) : fail('usage', `${briefPath(path)} is not a regular file.`, next);
}

/** What the file says; null when there is none. Fails with `corrupt-file` when claude would ignore it. */
export function readSettings({ world: { files } }: Context, path: string): Result<Settings | null> {
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
  const fault = findJsonFault(text);
  if (fault !== null) {
    const lines = text.slice(0, fault.offset).split('\n');
    const place = `${path}:${lines.length}:${(lines.at(-1) as string).length + 1}`;
    return refuse(`${place} is not valid JSON that can be changed safely: ${fault.message}.`);
  }
  const checked = readBackCheck(path, text);
  return checked.ok ? ok({ text, settings: checked.value }) : refuse(checked.failure.message);
}

export interface Changed {
  readonly isChanged: boolean;
  /** Path of the copy of what was there before; null when nothing was. */
  readonly backup: string | null;
}

/**
 * Gives the file the `hooks` that `change` makes; all other members keep their bytes. What was there is kept beside it.
 * Fails with `corrupt-file`, `busy` or `write-failed`, and then the file is as it was.
 */
export function changeHooks(
  { world }: Context,
  path: string,
  change: (settings: Settings) => Settings,
): Result<Changed> {
  const { files } = world;
  const nowMs = world.clock.now();
  let backup: string | null = null;
  try {
    files.makeFolder(dirname(path));
    const updated = updateExclusively(files, {
      path,
      nowMs,
      bytesMax,
      change: (bytes) => {
        const before: Result<Parsed> = bytes === null ? ok({ text: '{}\n', settings: {} }) : parseSettings(path, bytes);
        if (!before.ok) return before;
        const { text, settings } = before.value;
        const after = change(settings);
        if (Bun.deepEquals(settings, after)) return ok(null);
        const newText = withMember(text, 'hooks', after.hooks);
        // claude ignores a faulty file without a word, so ours is judged before it is there.
        const checked = readBackCheck(path, newText);
        if (!checked.ok) return checked;
        if (bytes !== null) backup = keep(files, path, bytes, nowMs);
        return ok(new TextEncoder().encode(newText));
      },
    });
    return updated.ok ? ok({ isChanged: updated.value, backup }) : updated;
  } catch (error) {
    if (typeof (error as { code?: unknown }).code !== 'string') throw error;
    return { ok: false, failure: systemFailure(path, error) };
  }
}

/** Each change keeps a copy of its own, so that the very first state is never overwritten. */
function keep(files: Context['world']['files'], path: string, bytes: Uint8Array, nowMs: number): string {
  const stamp = new Date(nowMs).toISOString().replace(/[-:]/g, '').replace('T', '-').slice(0, 15);
  for (let copy = 1; ; copy += 1) {
    const target = `${path}.${stamp}${copy === 1 ? '' : `-${copy}`}.bak`;
    if (files.entryKind(target) !== null) continue;
    files.writeBytes(target, bytes, { durable: true });
    return target;
  }
}
