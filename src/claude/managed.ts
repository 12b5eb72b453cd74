/** An organisation's managed settings, which override all others: those that keep sessions from working properly. */
import { join } from 'node:path';
import { parseJson } from '../store/json.ts';
import { platform } from '../system/machine.ts';
import type { World } from '../system/world.ts';
import { object } from './lenient.ts';

type Files = Pick<World, 'files'>;

const folder = platform === 'darwin' ? '/Library/Application Support/ClaudeCode' : '/etc/claude-code';
const bounds = ['requiredMinimumVersion', 'requiredMaximumVersion'];

/** Names the settings that disable our hooks; undefined without any. */
export function managedHooks(world: Files): string | undefined {
  const switches = ['disableAllHooks', 'allowManagedHooksOnly'];
  return named(world, ([name, value]) => switches.includes(name) && value === true);
}

/** Names the settings that allow only some versions of claude. */
export function managedVersions(world: Files): string | undefined {
  return named(world, ([name]) => bounds.includes(name));
}

function named({ files }: Files, isMeant: (entry: [string, unknown]) => boolean): string | undefined {
  const more = join(folder, 'managed-settings.d');
  const paths = [join(folder, 'managed-settings.json'), ...files.list(more).map((name) => join(more, name))];
  const settings = Object.assign({}, ...paths.map((path) => object(parseJson(files.readText(path) ?? ''))));
  const meant = Object.entries(settings).filter(isMeant);
  if (meant.length === 0) return undefined;
  const said = meant.map(([name, value]) => `${name}: ${String(value)}`).join(', ');
  return `The managed settings of this machine (${folder}) set ${said}`;
}
