/**
 * cli/commands/context/: the commands of hooks, CPM, FABER and handover. This one: `hook install` puts our hooks into a
 * person's or a project's own settings.
 */
import type { Command } from '@commander-js/extra-typings';
import {
  accessOf,
  changeHooks,
  readSettings,
  type SettingsPlace,
  settingsPath,
} from '../../../app/hooks/settings-file.ts';
import { installHooks } from '../../../context/install.ts';
import { type ContextName, contextNames } from '../../../core/definitions.ts';
import { fail, ok } from '../../../core/failure.ts';
import { launcherIn } from '../../../system/own-program.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { parseContext } from '../../options/option-values.ts';

const example = `
Example:
  $ claude-code-agent hook install                              in .claude/settings.json of this folder
  $ claude-code-agent hook install --config-dir ~/.claude       for everything you do
  $ claude-code-agent hook install --project ./api --systems cpm,handover`;

export function define(command: Command, context: Context): void {
  command
    .description(
      'Puts the hooks of the context systems into settings.json. What else is there stays, one copy of the file as ' +
        'you had it is kept beside it, and doing it again changes nothing.',
    )
    .option('--project <dir>', 'folder of the project (default: this folder)')
    .option('--config-dir <dir>', "claude's config dir, such as ~/.claude")
    .option('--systems <list>', 'of cpm, faber and handover (default: all)', parseContext)
    .option('--json', 'one JSON document: {"path", "systems", "isChanged"}')
    .addHelpText('after', example)
    .action((given) => context.run(() => install(context, given)));
}

interface Given extends SettingsPlace {
  readonly systems?: readonly ContextName[] | undefined;
  readonly json?: true | undefined;
}

function install(context: Context, given: Given): Work {
  const { systems = contextNames, json } = given;
  if (systems.length === 0) return fail('usage', 'No system is named.', 'Give some of cpm, faber and handover.');
  const path = settingsPath(context, given);
  if (!path.ok) return path;
  // Read before a folder is made, so that a faulty file leaves everything as it is.
  const before = readSettings(context, path.value);
  if (!before.ok) return before;
  const target = { path: path.value, access: accessOf(given) };
  // Not what it finds to start, for settings live longer than a compiled program or a Bun.
  const launcher = launcherIn(context.packageRoot);
  const changed = changeHooks(context, target, (settings) => installHooks(settings, launcher, systems));
  if (!changed.ok) return changed;
  const { stdout, stderr } = context;
  const names = systems.join(', ');
  const { isChanged } = changed.value;
  const verb = isChanged ? 'Installed' : 'Already installed,';
  if (json) stdout.line(safeJson({ path: path.value, systems, isChanged }, 2));
  else stdout.line(safeLine(`${verb} the hooks of ${names} in ${path.value}`, 1000));
  if (changed.value.backup !== null) stderr.line(safeLine(`What was there is kept in ${changed.value.backup}`, 1000));
  if (before.value?.disableAllHooks === true) {
    stderr.line('They will not run: "disableAllHooks" is true in the same file.');
  }
  return ok(exitCode.done);
}
