/** `hook status`: which of our hooks a settings file holds, and whether they can run. */
import type { Command } from '@commander-js/extra-typings';
import { readSettings, type SettingsPlace, settingsPath } from '../../../app/hooks/settings-file.ts';
import { lookAt } from '../../../app/path-argument.ts';
import { hookEvents } from '../../../context/hook-call.ts';
import { type InstalledHook, installedHooks } from '../../../context/install.ts';
import { contextNames } from '../../../core/definitions.ts';
import { ok } from '../../../core/failure.ts';
import { launcherIn } from '../../../system/own-program.ts';
import { type Cell, formatTable } from '../../../view/format.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent hook status
  $ claude-code-agent hook status --config-dir ~/.claude --json | jq '.hooks[] | select(.trouble)'`;

export function define(command: Command, context: Context): void {
  command
    .description('Shows which of our hooks are in settings.json, and whether the program they name is there.')
    .option('--project <dir>', 'folder of the project (default: this folder)')
    .option('--config-dir <dir>', "claude's config dir, such as ~/.claude")
    .option('--json', 'one JSON document')
    .addHelpText('after', example)
    .action(({ json, ...place }) => context.run(() => status(context, place, json === true)));
}

interface Row {
  readonly system: string;
  readonly event: string;
  readonly installed: boolean;
  readonly script?: string;
  readonly trouble?: string;
}

function status(context: Context, place: SettingsPlace, json: boolean): Work {
  const path = settingsPath(context, place);
  if (!path.ok) return path;
  const settings = readSettings(context, path.value);
  if (!settings.ok) return settings;
  const found = installedHooks(settings.value ?? {});
  const rows = contextNames.flatMap((system) =>
    hookEvents.map((event): Row => {
      const hooks = found.filter((hook) => hook.system === system && hook.event === event);
      const [hook] = hooks;
      if (hook === undefined) return { system, event, installed: false };
      const trouble = hooks.length > 1 ? 'is there more than once: install again' : troubleOf(context, hook);
      return { system, event, installed: true, script: hook.launcher, ...(trouble === null ? {} : { trouble }) };
    }),
  );
  const disabled = settings.value?.disableAllHooks === true;
  if (json) {
    const exists = settings.value !== null;
    context.stdout.line(safeJson({ settings: path.value, exists, disableAllHooks: disabled, hooks: rows }, 2));
    return ok(exitCode.done);
  }
  context.stdout.line(safeLine(path.value, 1000));
  const style = context.stdout.style;
  const columns = [{ title: 'SYSTEM' }, { title: 'EVENT' }, { title: 'STATE' }];
  for (const line of formatTable(columns, rows.map(cells), style)) context.stdout.line(line);
  if (disabled) context.stderr.line('None of them runs: "disableAllHooks" is true in that file.');
  return ok(exitCode.done);
}

function cells({ system, event, installed, trouble }: Row): Cell[] {
  if (trouble !== undefined) return [system, event, { text: safeLine(trouble, 300), tone: 'bad' }];
  return [system, event, installed ? { text: 'installed', tone: 'good' } : { text: 'not installed', tone: 'dim' }];
}

/** Why the hook cannot run, or does not run this program; null when all is well. */
function troubleOf(context: Context, { launcher }: InstalledHook): string | null {
  const found = lookAt(context.world.files, launcher);
  if (!found.ok || found.value !== 'file') {
    return `${launcher} ${found.ok ? 'is not a file' : found.trouble}: install again`;
  }
  if (launcher !== launcherIn(context.packageRoot)) return `runs another copy of this program: ${launcher}`;
  return null;
}
