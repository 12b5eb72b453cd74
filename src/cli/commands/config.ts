/** `config`: shows settings with their sources, and changes those in config.yaml. */
import { Argument, type Command } from '@commander-js/extra-typings';
import {
  changeSetting,
  configPath,
  type EffectiveSetting,
  listSettings,
  settingOf,
} from '../../app/config/settings.ts';
import { programPath } from '../../core/program-name.ts';
import { formatTable, type TableCell, titled } from '../../view/format.ts';
import { safeLine, safeText } from '../../view/terminal-text.ts';
import { type CommandResult, type Context, need, refuse } from '../context.ts';

const example = `
Example:
  $ claude-code-agent config
  $ claude-code-agent config get home
  $ claude-code-agent config set onEvent 'jq -r .type >> ~/events'
  $ claude-code-agent config set worktrees "$PWD/w"
  $ claude-code-agent config set prices.opus '{input: 5, output: 25}'     prices.opus '' removes it`;

const actions = ['list', 'get', 'set', 'path'] as const;

const valueColumns = 400;

export function define(command: Command, context: Context): void {
  command
    .description(
      `Show every setting, its value and its source: a default, config.yaml or the
environment. "set" changes one in config.yaml and keeps its comments; "path"
prints the path of that file.`,
    )
    .addArgument(new Argument('[action]', 'the action').choices(actions).default('list' as const))
    .argument('[key]', 'name of a setting, as shown by "list"')
    .argument('[value]', 'value for "set"; an empty one removes the setting')
    .option('--json', 'one JSON document: {"settings"}, {"key", "value"} or {"path"}')
    .addHelpText('after', example)
    .action((action, key, value, { json }) =>
      context.run(async () => {
        const given = [key, value].filter((word) => word !== undefined).length;
        const wanted = { list: 0, path: 0, get: 1, set: 2 }[action];
        if (given !== wanted) {
          const form = ['', ' KEY', ' KEY VALUE'][wanted];
          const message = `config ${action} was given ${['nothing', 'one word', 'two words'][given]}.`;
          return refuse('usage', message, `Give it as: ${programPath} config ${action}${form}`);
        }
        switch (action) {
          case 'list':
            return list(context, json);
          case 'path': {
            const path = need(configPath(context));
            return print(context, json ? { path } : path);
          }
          case 'get':
            return say(context, key as string, settingOf(need(await listSettings(context)), key as string), json);
          case 'set':
            return say(context, key as string, await changeSetting(context, key as string, value as string), json);
        }
      }),
    );
}

function say(context: Context, key: string, found: ReturnType<typeof settingOf>, json: true | undefined): void {
  const value = need(found);
  print(context, json ? { key, value } : value);
}

/** For scripts: strings without quotes, nothing for null, everything else as JSON. */
function print({ stdout }: Context, value: unknown): void {
  if (typeof value === 'string') stdout.line(safeText(value));
  else if (value !== null) stdout.json(value);
}

async function list(context: Context, json: true | undefined): Promise<CommandResult> {
  const settings = need(await listSettings(context));
  if (json) context.stdout.json({ settings: settings });
  else {
    const columns = titled(['SETTING', 'VALUE', 'FROM']);
    const rows = settings.map((setting): TableCell[] => [setting.key, shown(setting), from(setting)]);
    context.stdout.lines(formatTable(columns, rows, context.stdout.style));
  }
}

function shown({ value }: EffectiveSetting): string {
  if (value === null || (Array.isArray(value) && value.length === 0)) return '-';
  if (Array.isArray(value)) return safeLine(value.join(':'), valueColumns);
  if (typeof value !== 'object') return safeLine(String(value), valueColumns);
  return Object.entries(value)
    .map(([part, number]) => `${part} ${number}`)
    .join(', ');
}

function from({ source, variable }: EffectiveSetting): string {
  return source === 'environment' ? `environment (${variable})` : source;
}
