/** `hook uninstall`: takes our hooks out of a person's or a project's own settings. */
import type { Command } from '@commander-js/extra-typings';
import { uninstallHooks } from '../../../context/install.ts';
import {
  accessOf,
  changeHooks,
  readSettings,
  type SettingsPlace,
  settingsPath,
} from '../../../control/hooks/settings-file.ts';
import { fail, ok } from '../../../core/failure.ts';
import { type ContextName, contextNames } from '../../../core/group.ts';
import { safeLine } from '../../../report/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { parseContext } from '../../options/option-values.ts';

const example = `
Example:
  $ claude-code-agent hook uninstall
  $ claude-code-agent hook uninstall --config-dir ~/.claude --systems faber`;

export function define(command: Command, context: Context): void {
  command
    .description('Takes exactly our hooks out of settings.json. One copy of the file as you had it is kept beside it.')
    .option('--project <dir>', 'folder of the project (default: this folder)')
    .option('--config-dir <dir>', "claude's config dir, such as ~/.claude")
    .option('--systems <list>', 'of cpm, faber and handover (default: all)', parseContext)
    .addHelpText('after', example)
    .action((given) => context.run(() => uninstall(context, given)));
}

interface Given extends SettingsPlace {
  readonly systems?: readonly ContextName[] | undefined;
}

function uninstall(context: Context, given: Given): Work {
  const { systems = contextNames } = given;
  if (systems.length === 0) return fail('usage', 'No system is named.', 'Give some of cpm, faber and handover.');
  const path = settingsPath(context, given);
  if (!path.ok) return path;
  const before = readSettings(context, path.value);
  if (!before.ok) return before;
  const { stdout, stderr } = context;
  const nothing = `There are no hooks of ${systems.join(', ')} in ${path.value}`;
  if (before.value === null || uninstallHooks(before.value, systems) === before.value) {
    stdout.line(safeLine(nothing, 1000));
    return ok(exitCode.done);
  }
  const target = { path: path.value, access: accessOf(given) };
  const changed = changeHooks(context, target, (settings) => uninstallHooks(settings, systems));
  if (!changed.ok) return changed;
  const removed = `Removed the hooks of ${systems.join(', ')} from ${path.value}`;
  stdout.line(safeLine(changed.value.isChanged ? removed : nothing, 1000));
  if (changed.value.backup !== null) stderr.line(safeLine(`What was there is kept in ${changed.value.backup}`, 1000));
  return ok(exitCode.done);
}
