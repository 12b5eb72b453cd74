/**
 * Settings of several layers as one. What forbids is joined and can be taken away by no later layer; what only chooses
 * is decided by the last layer that says something.
 */
import { isObject } from '../store/shape.ts';
import { type JsonObject, permissionLists } from './config-shape.ts';

export interface SettingsLayer {
  readonly layer: string;
  readonly settings: JsonObject;
}

export interface MergedSettings {
  readonly settings: JsonObject;
  /** Dotted path of every value and of every entry of a joined list, such as `permissions.deny.0`, to its layer. */
  readonly origins: Readonly<Record<string, string>>;
}

/** `settings` may be deep, but not deeper than a stack; templates are checked for that when they are loaded. */
export function mergeSettings(layers: readonly SettingsLayer[]): MergedSettings {
  const root = emptyBranch();
  for (const { layer, settings } of layers) addObject(root, settings, layer, []);
  withoutDenied(root);
  const origins = new Map<string, string>();
  const settings = plain(root, '', origins) as JsonObject;
  return { settings, origins: Object.fromEntries(origins) };
}

/** A tree in which every leaf knows its layer. */
type Node = Branch | Joined | Leaf;
interface Branch {
  readonly kind: 'branch';
  readonly children: Map<string, Node>;
}
interface Joined {
  readonly kind: 'joined';
  entries: { readonly value: unknown; readonly layer: string }[];
}
interface Leaf {
  readonly kind: 'leaf';
  readonly value: unknown;
  readonly layer: string;
}

function emptyBranch(): Branch {
  return { kind: 'branch', children: new Map() };
}

function addObject({ children }: Branch, object: JsonObject, layer: string, path: readonly string[]): void {
  for (const [key, value] of Object.entries(object)) {
    // As a key of its own it means nothing, and as an assignment it would change the object itself.
    if (key === '__proto__') continue;
    const node = added(children.get(key), value, layer, [...path, key]);
    if (node !== undefined) children.set(key, node);
  }
}

/** What stands at `path` after this layer too. */
function added(before: Node | undefined, value: unknown, layer: string, path: readonly string[]): Node | undefined {
  if (isObject(value)) {
    if (before?.kind === 'joined') return before;
    const branch = before?.kind === 'branch' ? before : emptyBranch();
    addObject(branch, value, layer, path);
    return branch;
  }
  if (isJoined(path) && Array.isArray(value)) {
    const joined: Joined = before?.kind === 'joined' ? before : { kind: 'joined', entries: [] };
    const isHook = path[0] === 'hooks';
    for (const entry of value) {
      // Hooks run as often as they are listed; a rule says the same however often it is there.
      if (isHook || !joined.entries.some((known) => isEqual(known.value, entry))) {
        joined.entries.push({ value: entry, layer });
      }
    }
    return joined;
  }
  return before !== undefined && forbids(before) ? before : { kind: 'leaf', value, layer };
}

/** Lists in which every layer's entries count. */
function isJoined(path: readonly string[]): boolean {
  const [first, second] = path;
  if (path.length === 2 && first === 'hooks') return true;
  if (path.length === 2 && first === 'permissions') {
    if ((permissionLists as readonly string[]).includes(second as string)) return true;
  }
  return isDenyKey(path.at(-1) as string);
}

/** `deny`, `denyRead`, `deniedMcpServers`, `disabledMcpjsonServers`, `disallowedTools`: a list of what is forbidden. */
function isDenyKey(key: string): boolean {
  return /^(?:deny|denied|disabled|disallowed)(?:[A-Z]|$)/.test(key);
}

/** Whether taking this away would allow something. */
function forbids(node: Node): boolean {
  if (node.kind === 'leaf') return false;
  if (node.kind === 'joined') return true;
  return [...node.children.values()].some(forbids);
}

function isEqual(a: unknown, b: unknown): boolean {
  return a === b || (typeof a === 'object' && typeof b === 'object' && JSON.stringify(a) === JSON.stringify(b));
}

/** A rule that any layer denies is neither allowed nor asked for. */
function withoutDenied(root: Branch): void {
  const permissions = root.children.get('permissions');
  if (permissions?.kind !== 'branch') return;
  const deny = permissions.children.get('deny');
  if (deny?.kind !== 'joined') return;
  const denied = new Set(deny.entries.map(({ value }) => value));
  for (const kind of ['allow', 'ask']) {
    const list = permissions.children.get(kind);
    if (list?.kind === 'joined') list.entries = list.entries.filter(({ value }) => !denied.has(value));
  }
}

/** The tree as plain data; the layers go into `origins`. */
function plain(node: Node, path: string, origins: Map<string, string>): unknown {
  const below = (key: string | number): string => (path === '' ? String(key) : `${path}.${key}`);
  if (node.kind === 'leaf') {
    origins.set(path, node.layer);
    return node.value;
  }
  if (node.kind === 'joined') {
    return node.entries.map(({ value, layer }, index) => {
      origins.set(below(index), layer);
      return value;
    });
  }
  return Object.fromEntries([...node.children].map(([key, child]) => [key, plain(child, below(key), origins)]));
}
