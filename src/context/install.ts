/**
 * Our hooks in the settings of a user or a project: added, found and removed. Pure: from settings to settings, with
 * everything else unchanged.
 */
import { isAbsolute } from 'node:path';
import { type ContextName, contextNames } from '../core/definitions.ts';
import { isObject } from '../store/json.ts';
import { launcherIn } from '../system/own-program.ts';
import { type HookEvent, hookEvents, installedMark } from './hook-call.ts';

type Json = Readonly<Record<string, unknown>>;

/** claude's names of the events. */
const claudeEvents: Readonly<Record<HookEvent, string>> = {
  'session-start': 'SessionStart',
  'pre-compact': 'PreCompact',
  'session-end': 'SessionEnd',
};

const hookWord = 'hook';

/** Without one, a hanging hook would block a start for ten minutes, and SessionEnd would get only 1.5 seconds. */
const timeoutSeconds = 10;

export interface InstalledHook {
  readonly system: ContextName;
  readonly event: HookEvent;
  readonly launcher: string;
}

/**
 * The settings with one entry per system and event, and without our other entries for these systems, such as those of a
 * moved package. Idempotent. `launcher` is the absolute path of bin/claude-code-agent; `settings.hooks` must be valid
 * for claude.
 */
export function installHooks(settings: Json, launcher: string, systems: readonly ContextName[]): Json {
  const others = uninstallHooks(settings, systems).hooks;
  const hooks: Record<string, unknown> = isObject(others) ? { ...others } : {};
  for (const event of hookEvents) {
    const ours = systems.map((system) => entryFor(event, launcher, system));
    hooks[claudeEvents[event]] = [...listOf(hooks[claudeEvents[event]]), ...ours];
  }
  return { ...settings, hooks };
}

/** The settings without our entries for these systems; lists that become empty are removed, and so is `hooks`. */
export function uninstallHooks(settings: Json, systems: readonly ContextName[]): Json {
  if (!isObject(settings.hooks)) return settings;
  const hooks: Record<string, unknown> = { ...settings.hooks };
  for (const event of hookEvents) {
    const before = listOf(hooks[claudeEvents[event]]);
    const after = before.flatMap((group) => without(event, group, systems));
    if (Bun.deepEquals(before, after)) continue;
    if (after.length > 0) hooks[claudeEvents[event]] = after;
    else delete hooks[claudeEvents[event]];
  }
  if (Bun.deepEquals(settings.hooks, hooks)) return settings;
  if (Object.keys(hooks).length > 0) return { ...settings, hooks };
  const { hooks: _hooks, ...rest } = settings;
  return rest;
}

/** Our hooks in the settings, by system, then by event. */
export function installedHooks(settings: Json): InstalledHook[] {
  const hooks = isObject(settings.hooks) ? settings.hooks : {};
  const found = hookEvents.flatMap((event) =>
    listOf(hooks[claudeEvents[event]]).flatMap((group) =>
      hooksIn(group).flatMap((hook) => {
        const ours = readHook(event, hook);
        return ours === null ? [] : [ours];
      }),
    ),
  );
  return contextNames.flatMap((system) => found.filter((hook) => hook.system === system));
}

/** One entry per system: claude gives the model at most 10,000 characters of each. */
function entryFor(event: HookEvent, launcher: string, system: ContextName): Json {
  const args = [hookWord, system, event, installedMark];
  return {
    ...(event === 'session-start' ? { matcher: 'startup|resume|clear|compact|fork' } : {}),
    hooks: [{ type: 'command', command: launcher, args, timeout: timeoutSeconds }],
  };
}

/** The hook as ours; null for another one. */
function readHook(event: HookEvent, hook: unknown): InstalledHook | null {
  if (!isObject(hook) || hook.type !== 'command' || typeof hook.command !== 'string') return null;
  const [word, system, ofEvent, mark] = listOf(hook.args).slice(-4);
  const known = contextNames.find((name) => name === system);
  if (mark !== installedMark || ofEvent !== event || known === undefined) return null;
  const isLauncher = isAbsolute(hook.command) && hook.command.endsWith(launcherIn('/'));
  return word === hookWord && isLauncher ? { system: known, event, launcher: hook.command } : null;
}

/** The entry without our hooks; empty when it has no other. */
function without(event: HookEvent, group: unknown, systems: readonly ContextName[]): unknown[] {
  const hooks = hooksIn(group);
  const kept = hooks.filter((hook) => !systems.includes(readHook(event, hook)?.system as ContextName));
  if (kept.length === hooks.length) return [group];
  return kept.length === 0 ? [] : [{ ...(group as Json), hooks: kept }];
}

function hooksIn(group: unknown): readonly unknown[] {
  return isObject(group) ? listOf(group.hooks) : [];
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
