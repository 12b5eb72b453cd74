/**
 * The parts of settings.json and mcp.json that merging relies on. claude ignores a faulty settings file as a whole,
 * deny rules and all, so that a fault is told instead of merged.
 */
import { isObject } from '../store/shape.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

/** The lists of `permissions` that are joined over the layers. */
export const permissionLists = ['allow', 'deny', 'ask', 'additionalDirectories'] as const;

/** Sentences without a full stop; empty when the settings can be merged. */
export function settingsFaults({ permissions, hooks }: JsonObject): string[] {
  const faults: string[] = [];
  if (permissions !== undefined && !isObject(permissions)) faults.push('"permissions" is not an object');
  if (isObject(permissions)) {
    for (const kind of permissionLists) {
      const rules = own(permissions, kind);
      if (rules !== undefined && !isTexts(rules)) faults.push(`"permissions.${kind}" is not a list of texts`);
    }
  }
  if (hooks !== undefined && !isObject(hooks)) faults.push('"hooks" is not an object');
  if (isObject(hooks)) {
    for (const [event, entries] of Object.entries(hooks)) {
      const isList = Array.isArray(entries) && entries.every(isObject);
      if (!isList) faults.push(`"hooks.${event}" is not a list of objects`);
    }
  }
  return faults;
}

/** Sentences without a full stop; empty when it is a list of MCP servers by name. */
export function mcpFaults(mcp: JsonObject): string[] {
  const faults = Object.keys(mcp)
    .filter((key) => key !== 'mcpServers')
    .map((key) => `there is no place for ${JSON.stringify(key)} beside "mcpServers"`);
  const servers = own(mcp, 'mcpServers');
  if (!isObject(servers)) return [...faults, '"mcpServers" is not there, or is not an object of servers by name'];
  for (const [name, server] of Object.entries(servers)) {
    if (!isObject(server)) faults.push(`the MCP server ${JSON.stringify(name)} is not an object`);
  }
  return faults;
}

function own(object: JsonObject, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}
