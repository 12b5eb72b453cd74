/** `hook install`, `uninstall` and `status`, for the settings of a user or a project. */
import type { Command } from '@commander-js/extra-typings';
import {
  accessOf,
  changeHooks,
  readSettings,
  type SettingsPlace,
  settingsPath,
} from '../../../app/hooks/settings-file.ts';
import { lookAt } from '../../../app/path-argument.ts';
import { hookEvents } from '../../../context/hook-call.ts';
import { type InstalledHook, installedHooks, installHooks, uninstallHooks } from '../../../context/install.ts';
import { type ContextName, contextNames } from '../../../core/definitions.ts';
import { launcherIn } from '../../../system/own-program.ts';
import { formatTable, type TableCell } from '../../../view/format.ts';
import { safeLine } from '../../../view/terminal-text.ts';
import { type Context, need, refuse } from '../../context.ts';
import { parseContext } from '../../options/options.ts';

const installExample = `
Example:
  $ claude-code-agent hook install                              in .claude/settings.json of this folder
  $ claude-code-agent hook install --config-dir ~/.claude       for everything you do
  $ claude-code-agent hook install --project ./api --systems cpm,handover`;

export function defineInstall(command: Command, context: Context): void {
  onSystems(command)
    .description(
      'Install the hooks of the context systems in settings.json. Other entries are kept, a backup of the ' +
        'file is made once, and running it again changes nothing.',
    )
    .addHelpText('after', installExample)
    .action((given) => context.run(() => install(context, given)));
}

const uninstallExample = `
Example:
  $ claude-code-agent hook uninstall
  $ claude-code-agent hook uninstall --config-dir ~/.claude --systems faber`;

export function defineUninstall(command: Command, context: Context): void {
  onSystems(command)
    .description('Remove only our hooks from settings.json. The backup (settings.json.claude-code-agent.bak) is kept.')
    .addHelpText('after', uninstallExample)
    .action((given) => context.run(() => uninstall(context, given)));
}

function onSystems(command: Command) {
  return onSettings(command)
    .option('--systems <list>', 'of cpm, faber and handover (default: all)', parseContext)
    .option('--json', 'one JSON document: {"path", "systems", "isChanged"}');
}

function onSettings(command: Command) {
  return command
    .option('--project <dir>', 'folder of the project (default: this folder)')
    .option('--config-dir <dir>', "claude's config dir, such as ~/.claude");
}

interface Given extends SettingsPlace {
  readonly systems?: readonly ContextName[] | undefined;
  readonly json?: true | undefined;
}

function systemsOf({ systems = contextNames }: Given): readonly ContextName[] {
  if (systems.length === 0) refuse('usage', 'No system is named.', 'Give some of cpm, faber and handover.');
  return systems;
}

function install(context: Context, given: Given): void {
  const systems = systemsOf(given);
  const path = need(settingsPath(context, given));
  // Read first, so that nothing is created if the file is faulty.
  const before = need(readSettings(context, path));
  // The launcher, not the current executable, because settings outlive an installed Bun or binary.
  const launcher = launcherIn(context.packageRoot);
  const target = { path, access: accessOf(given) };
  const changed = need(changeHooks(context, target, (settings) => installHooks(settings, launcher, systems)));
  const { stdout, stderr } = context;
  const { isChanged, backup } = changed;
  const verb = isChanged ? 'Installed' : 'Already installed,';
  if (given.json) stdout.json({ path, systems, isChanged });
  else stdout.line(safeLine(`${verb} the hooks of ${systems.join(', ')} in ${path}`, 1000));
  if (backup !== null) stderr.line(safeLine(`The previous settings are kept in ${backup}`, 1000));
  if (before?.disableAllHooks === true) {
    stderr.line('They will not run: "disableAllHooks" is true in the same file.');
  }
}

function uninstall(context: Context, given: Given): void {
  const systems = systemsOf(given);
  const path = need(settingsPath(context, given));
  const before = need(readSettings(context, path));
  const hasOurs = before !== null && installedHooks(before).some(({ system }) => systems.includes(system));
  const target = { path, access: accessOf(given) };
  const isChanged =
    hasOurs && need(changeHooks(context, target, (settings) => uninstallHooks(settings, systems))).isChanged;
  const hooks = `hooks of ${systems.join(', ')}`;
  const text = isChanged ? `Removed the ${hooks} from` : `There are no ${hooks} in`;
  if (given.json) context.stdout.json({ path, systems, isChanged });
  else context.stdout.line(safeLine(`${text} ${path}`, 1000));
}

const statusExample = `
Example:
  $ claude-code-agent hook status
  $ claude-code-agent hook status --config-dir ~/.claude --json | jq '.hooks[] | select(.trouble)'`;

export function defineHookStatus(command: Command, context: Context): void {
  onSettings(command)
    .option('--json', 'one JSON document')
    .description('Show which of our hooks are in settings.json, and whether their program exists.')
    .addHelpText('after', statusExample)
    .action((given) => context.run(() => status(context, given)));
}

interface Row {
  readonly system: string;
  readonly event: string;
  readonly installed: boolean;
  readonly script?: string;
  readonly trouble?: string;
}

function status(context: Context, given: Given): void {
  const { stdout, stderr } = context;
  const path = need(settingsPath(context, given));
  const settings = need(readSettings(context, path));
  const found = installedHooks(settings ?? {});
  const hooks = contextNames.flatMap((system) =>
    hookEvents.map((event): Row => {
      const own = found.filter((hook) => hook.system === system && hook.event === event);
      const [hook] = own;
      if (hook === undefined) return { system, event, installed: false };
      const trouble = own.length > 1 ? 'is installed more than once: install again' : troubleOf(context, hook);
      return { system, event, installed: true, script: hook.launcher, ...(trouble === null ? {} : { trouble }) };
    }),
  );
  const disableAllHooks = settings?.disableAllHooks === true;
  if (given.json) {
    stdout.json({ settings: path, exists: settings !== null, disableAllHooks, hooks });
    return;
  }
  stdout.line(safeLine(path, 1000));
  const columns = [{ title: 'SYSTEM' }, { title: 'EVENT' }, { title: 'STATE' }];
  stdout.lines(formatTable(columns, hooks.map(cells), stdout.style));
  if (disableAllHooks) stderr.line('None of them runs: "disableAllHooks" is true in that file.');
}

function cells({ system, event, installed, trouble }: Row): TableCell[] {
  if (trouble !== undefined) return [system, event, { text: safeLine(trouble, 300), tone: 'bad' }];
  return [system, event, installed ? { text: 'installed', tone: 'good' } : { text: 'not installed', tone: 'dim' }];
}

/** Why the hook cannot run, or does not run this program; null if it works. */
function troubleOf(context: Context, { launcher }: InstalledHook): string | null {
  const found = lookAt(context.world.files, launcher);
  if (!found.ok || found.value !== 'file') {
    return `${launcher} ${found.ok ? 'is not a file' : found.trouble}: install again`;
  }
  return launcher === launcherIn(context.packageRoot) ? null : `runs another copy of this program: ${launcher}`;
}
