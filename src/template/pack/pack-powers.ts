/** What in a pack can start programs when a session uses it, so that people know what to read first. */
import { isObject, parseJson } from '../../store/shape.ts';
import { readYaml } from '../../store/yaml-text.ts';
import { textOf } from '../text-file.ts';
import type { PackFile } from './pack-files.ts';

/** Settings that name programs, or variables that steer the programs a session starts. */
const powerfulSettings = [
  ...['hooks', 'env', 'apiKeyHelper', 'awsAuthRefresh', 'awsCredentialExport', 'gcpAuthRefresh', 'otelHeadersHelper'],
  ...['proxyAuthHelper', 'statusLine', 'fileSuggestion', 'enabledPlugins', 'extraKnownMarketplaces'],
];

/** Sentences without a full stop, each beginning with the path of a file. */
export function powersOf(files: readonly PackFile[]): string[] {
  return files.flatMap(({ path, bytes }) => {
    const name = path.split('/').slice(2).join('/');
    if (path.startsWith('workflows/')) return workflowPowers(path, textOf(bytes) ?? '');
    if (!path.startsWith('configs/')) return [];
    if (name === 'settings.json') return settingsPowers(path, textOf(bytes) ?? '');
    if (name === 'mcp.json' || name === '.mcp.json') return [`${path}: starts MCP servers`];
    // Such files may run a shell before the model sees them.
    const runsShell = /^(?:commands|skills|agents)\//.test(name) && /!`/.test(textOf(bytes) ?? '');
    return runsShell ? [`${path}: runs shell commands when it is called`] : [];
  });
}

/** A workflow may do more than it needs to say aloud: its words are looked for, wherever they stand. */
function workflowPowers(path: string, text: string): string[] {
  const commands = commandKeys(text, path);
  return [
    ...(text.includes('bypassPermissions') ? [`${path}: runs sessions that ask for no permission`] : []),
    ...(text.includes('settingsOverride') ? [`${path}: has settings of its own`] : []),
    ...(commands.length === 0 ? [] : [`${path}: runs shell commands (${commands.join(', ')})`]),
  ];
}

/** The keys under which a workflow has shell commands; words such as "accept" stand in many texts, so it is parsed. */
function commandKeys(text: string, file: string): string[] {
  const yaml = readYaml({ text, file });
  const { group, sessions } = yaml.ok && isObject(yaml.value.value) ? yaml.value.value : {};
  const parts = [group, ...(isObject(sessions) ? Object.values(sessions) : [])].filter(isObject);
  return ['setup', 'accept', 'onEvent'].filter((key) => parts.some((part) => typeof part[key] === 'string'));
}

function settingsPowers(path: string, text: string): string[] {
  const settings = parseJson(text);
  // A place for a variable outside of texts is no JSON yet: then the words themselves are looked for.
  const keys = isObject(settings)
    ? powerfulSettings.filter((key) => Object.hasOwn(settings, key))
    : powerfulSettings.filter((key) => text.includes(`"${key}"`));
  const bypasses = text.includes('bypassPermissions') ? [`${path}: asks for no permission`] : [];
  return keys.length === 0 ? bypasses : [...bypasses, `${path}: sets ${keys.join(', ')}`];
}
