/** `hook uninstall`: takes our hooks out of a person's or a project's own settings. */
import type { Command } from '@commander-js/extra-typings';
import {
  accessOf,
  changeHooks,
  readSettings,
  type SettingsPlace,
  settingsPath,
} from '../../../app/hooks/settings-file.ts';
import { uninstallHooks } from '../../../context/install.ts';
import { type ContextName, contextNames } from '../../../core/definitions.ts';
import { fail, ok } from '../../../core/failure.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
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
    .option('--json', 'one JSON document: {"path", "systems", "isChanged"}')
    .addHelpText('after', example)
    .action((given) => context.run(() => uninstall(context, given)));
}

interface Given extends SettingsPlace {
  readonly systems?: readonly ContextName[] | undefined;
  readonly json?: true | undefined;
}

function uninstall(context: Context, given: Given): Work {
  const { systems = contextNames, json } = given;
  if (systems.length === 0) return fail('usage', 'No system is named.', 'Give some of cpm, faber and handover.');
  const path = settingsPath(context, given);
  if (!path.ok) return path;
  const before = readSettings(context, path.value);
  if (!before.ok) return before;
  const { stdout, stderr } = context;
  const say = (isChanged: boolean): void => {
    const names = systems.join(', ');
    const text = isChanged ? `Removed the hooks of ${names} from` : `There are no hooks of ${names} in`;
    stdout.line(json ? safeJson({ path: path.value, systems, isChanged }, 2) : safeLine(`${text} ${path.value}`, 1000));
  };
  if (before.value === null || uninstallHooks(before.value, systems) === before.value) {
    say(false);
    return ok(exitCode.done);
  }
  const target = { path: path.value, access: accessOf(given) };
  const changed = changeHooks(context, target, (settings) => uninstallHooks(settings, systems));
  if (!changed.ok) return changed;
  say(changed.value.isChanged);
  if (changed.value.backup !== null) stderr.line(safeLine(`What was there is kept in ${changed.value.backup}`, 1000));
  return ok(exitCode.done);
}
