/**
 * Config templates: folders with files for a session's config dir. They are read completely and checked, because a
 * stored copy must never contain more than its author put there.
 */

import { basename, join } from 'node:path';
import type { z } from 'zod';
import type { JsonObject } from '../store/json.ts';
import { findObjectFault } from '../store/json-positions.ts';
import { schema } from '../store/schema.ts';
import { checkYaml, type Problem, readYaml, type Validated, wholeFile } from '../store/yaml-text.ts';
import { tryPath } from '../system/system-error.ts';
import type { World } from '../system/world.ts';
import { aboutFile, type ConfigFile, mcpFaults, settingsFaults } from './config-layers.ts';
import { isTemplateName } from './places.ts';
import { implicitVariables, undeclared } from './prompt-template.ts';
import { type Lookup, parsePieces, problemIn, render, type Template } from './render.ts';
import { decodeText, readBytesFile, sizeText } from './text-file.ts';
import { exampleValue, type VariableSpec, variableList } from './variables.ts';

interface RenderedJson {
  readonly text: string;
  /** Faults of the JSON, each at its position in the template; unknown names are left to the caller. */
  readonly problems: readonly Problem[];
}

export interface ConfigTemplate {
  readonly name: string;
  readonly path: string;
  readonly description: string;
  readonly variables: readonly VariableSpec[];
  /** By path. With config.yaml, so that a stored copy knows its variables; a session does not get that file. */
  readonly files: readonly ConfigFile[];
  /** SHA-256 over paths and contents, in hexadecimal. */
  readonly digest: string;
}

const jsonFiles: ReadonlySet<string> = new Set(['settings.json', 'mcp.json']);
const allText: ReadonlySet<string> = new Set([...jsonFiles, 'CLAUDE.md', aboutFile]);

const about = schema((z) =>
  z.strictObject({
    description: z.string().max(2_000).optional(),
    aliases: z.array(z.string().refine(isTemplateName, 'is not a valid template name')).max(20).optional(),
    variables: variableList().optional(),
  }),
);

type About = z.output<ReturnType<typeof about>>;

/** Reads and checks the folder; every problem at once. Never throws because of its content. */
export function loadConfigTemplate(world: World, folder: string): Validated<ConfigTemplate> {
  const read = readFolder(world, folder);
  if (!read.ok) return read;
  const { files, description = '', variables: declared } = read.value;
  const name = basename(folder);
  if (files.length === 0) {
    return { ok: false, problems: [wholeFile(join(folder, ''), 'the config template is empty')] };
  }
  const templates = templatesOf(files, folder).map(({ template }) => template);
  const variables = declared ?? implicitVariables(templates);
  const problems = [
    ...templates.flatMap((template) => undeclared(template, variables)),
    ...faultsOfJson(files, folder, (template) => withExamples(template, variables)),
  ];
  if (problems.length > 0) return { ok: false, problems };
  return { ok: true, value: { name, path: folder, description, variables, files, digest: digestOf(files) } };
}

/** The group's shared-config, checked like a template, without variables. An empty folder is valid. */
export function loadSharedConfig(world: World, folder: string): Validated<readonly ConfigFile[]> {
  const read = readFolder(world, folder);
  if (!read.ok) return read;
  const { files } = read.value;
  const problems = faultsOfJson(files, folder, asItStands);
  return problems.length > 0 ? { ok: false, problems } : { ok: true, value: files };
}

const fileBytesMax = 1024 ** 2;
const wholeBytesMax = 8 * 1024 ** 2;
const entriesMax = 500;

const topFiles: ReadonlySet<string> = new Set(['CLAUDE.md', 'settings.json', 'mcp.json', '.mcp.json', aboutFile]);
const topFolders: ReadonlySet<string> = new Set(['commands', 'skills', 'agents', 'rules', 'plugins']);
/** Files that file managers and git leave in folders. */
const litter = /^(?:\.DS_Store|Thumbs\.db|desktop\.ini|\.gitkeep|\.gitignore|\.gitattributes)$/i;
const readme = /^README(?:\.\w+)?$/i;
const allowed =
  'a config template has CLAUDE.md, settings.json, mcp.json, commands, skills, agents, rules, plugins, config.yaml';

/** Reads the folder's files by path; every problem at once. The folder itself may be a symlink, nothing in it may. */
function readConfigFiles(world: World, folder: string): Validated<ConfigFile[]> {
  const { files: disk } = world;
  const files: ConfigFile[] = [];
  const problems: Problem[] = [];
  const report = (path: string, message: string) => problems.push(wholeFile(join(folder, path), message));
  let entries = 0;
  let bytes = 0;
  const isFull = () => entries > entriesMax || bytes > wholeBytesMax;
  const takeFile = (path: string): void => {
    const read = readBytesFile(world, join(folder, path), fileBytesMax);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is what this is for.
    if (/[\\\u0000-\u001f\u007f]/.test(path)) report(path, 'has a name with a backslash or a control character');
    else if (!read.ok) report(path, read.trouble);
    else {
      bytes += read.bytes.length;
      const text = decodeText(read.bytes);
      const isText = text !== null && !text.includes('\0');
      files.push({ path: path === '.mcp.json' ? 'mcp.json' : path, bytes: read.bytes, isText });
    }
  };
  const take = (path: string, wanted?: 'file' | 'folder'): void => {
    entries += 1;
    if (isFull()) return;
    const kind = disk.entryKind(join(folder, path));
    if (kind === null) report(path, 'cannot be read: it vanished, or its name is not UTF-8');
    else if (kind === 'link') report(path, 'is a symlink; replace it with a copy of its target');
    else if (kind === 'other') report(path, 'is neither a file nor a folder');
    else if (wanted !== undefined && kind !== wanted) report(path, `is a ${kind}, but must be a ${wanted}`);
    else if (kind === 'file') takeFile(path);
    else for (const name of disk.list(join(folder, path))) if (!litter.test(name)) take(`${path}/${name}`);
  };
  const looked = tryPath(() => {
    const info = folder.includes('\0') ? null : disk.info(folder);
    if (info?.kind !== 'folder') report('', info === null ? 'does not exist' : 'is not a folder');
    const names = info?.kind === 'folder' ? disk.list(folder).filter((name) => !litter.test(name)) : [];
    for (const name of names) {
      if (isFull()) break;
      if (topFolders.has(name) || topFiles.has(name)) take(name, topFolders.has(name) ? 'folder' : 'file');
      else if (!readme.test(name)) {
        entries += 1;
        report(name, `does not belong here; ${allowed}`);
      }
    }
    for (const name of disk.list(join(folder, 'plugins')).filter((one) => !litter.test(one))) {
      const has = (path: string) => files.some((file) => file.path === `plugins/${name}/${path}`);
      if (!has('.claude-plugin/plugin.json'))
        report(`plugins/${name}`, 'is not a plugin: .claude-plugin/plugin.json is missing');
      // With --strict-mcp-config claude starts none of a plugin.
      if (has('.mcp.json'))
        report(`plugins/${name}/.mcp.json`, 'its servers would not start; move them to mcp.json of the template');
    }
    if (names.includes('mcp.json') && names.includes('.mcp.json')) {
      report('.mcp.json', 'means the same as mcp.json; keep only one of them');
    }
  });
  if (!looked.ok) report('', looked.trouble);
  if (entries > entriesMax) report('', `has more than ${entriesMax} files and folders`);
  if (bytes > wholeBytesMax) report('', `all files together are larger than ${sizeText(wholeBytesMax)}`);
  if (problems.length > 0) return { ok: false, problems };
  return { ok: true, value: files.sort((a, b) => (a.path < b.path ? -1 : 1)) };
}

/** Everything about the files that does not depend on variables. */
function readFolder(world: World, folder: string): Validated<About & { readonly files: readonly ConfigFile[] }> {
  const read = readConfigFiles(world, folder);
  if (!read.ok) return read;
  const files = read.value;
  const problems: Problem[] = files
    .filter(({ path, isText }) => !isText && allText.has(path))
    .map(({ path }) => wholeFile(join(folder, path), 'is not UTF-8 text'));
  if (problems.length > 0) return { ok: false, problems };
  const described = readAbout(files, folder);
  return described.ok ? { ok: true, value: { ...described.value, files } } : described;
}

function readAbout(files: readonly ConfigFile[], folder: string): Validated<About> {
  const found = files.find(({ path }) => path === aboutFile);
  if (found === undefined) return { ok: true, value: {} };
  const yaml = readYaml({ text: decodeText(found.bytes) ?? '', file: join(folder, aboutFile) });
  if (!yaml.ok) return yaml;
  if ((yaml.value.value ?? null) === null) return { ok: true, value: {} };
  return checkYaml(yaml.value, about(), aboutFile);
}

function templatesOf(files: readonly ConfigFile[], folder: string): { path: string; template: Template }[] {
  return files
    .filter(({ path, isText }) => isText && path !== aboutFile)
    .map(({ path, bytes }) => ({ path, template: { text: decodeText(bytes) ?? '', file: join(folder, path) } }));
}

function faultsOfJson(
  files: readonly ConfigFile[],
  folder: string,
  toJson: (template: Template) => RenderedJson,
): Problem[] {
  return templatesOf(files, folder)
    .filter(({ path }) => jsonFiles.has(path))
    .flatMap(({ path, template }) => {
      const { text, problems } = toJson(template);
      return problems.length > 0 ? problems : shapeProblems(path, text, template);
    });
}

/** JSON is checked with example values: a fault with one is a fault with all. */
function withExamples(template: Template, variables: readonly VariableSpec[]): RenderedJson {
  const examples = new Map(variables.map((spec) => [spec.name, exampleValue(spec)]));
  return renderJson(template, (name) => examples.get(name) ?? 'example');
}

function asItStands(template: Template): RenderedJson {
  const { text } = template;
  const fault = findObjectFault(text);
  return { text, problems: fault === null ? [] : [problemIn(template, fault.offset, fault.message)] };
}

function shapeProblems(path: string, json: string, template: Template): Problem[] {
  const value = JSON.parse(json) as JsonObject;
  const faults = path === 'mcp.json' ? mcpFaults(value) : settingsFaults(value);
  return faults.map((fault) => problemIn(template, 0, fault));
}

/** Each name and content is preceded by its length, so that no two folders have the same bytes. */
function digestOf(files: readonly ConfigFile[]): string {
  const hash = new Bun.CryptoHasher('sha256');
  for (const { path, bytes } of files) {
    hash.update(`${Buffer.byteLength(path)}:${path}:${bytes.length}:`);
    hash.update(bytes);
  }
  return hash.digest('hex');
}

/**
 * Fills in the variables of a JSON file. Inside a string a value is escaped, elsewhere it is one JSON value: it can
 * neither end its string nor add a key.
 */
export function renderJson(template: Template, lookup: Lookup): RenderedJson {
  let text = '';
  let isInside = false;
  for (const piece of parsePieces(template.text)) {
    if (piece.kind === 'text') {
      text += piece.text;
      isInside = endsInside(piece.text, isInside);
      continue;
    }
    const value = lookup(piece.name);
    const known = typeof value === 'string' ? value : '';
    text += isInside ? JSON.stringify(known).slice(1, -1) : jsonValue(known);
  }
  const fault = findObjectFault(text);
  // No value has several lines, so the template's line is right.
  return { text, problems: fault === null ? [] : [problemIn({ ...template, text }, fault.offset, fault.message)] };
}

function endsInside(text: string, before: boolean): boolean {
  let isInside = before;
  for (let index = 0; index < text.length; index += 1) {
    const char = text[index];
    if (char === '\\' && isInside) index += 1;
    else if (char === '"') isInside = !isInside;
  }
  return isInside;
}

/** A value outside quotes: JSON as it is, such as a number or a list, anything else as a string. */
function jsonValue(value: string): string {
  try {
    JSON.parse(value);
    // Not serialised again, because that would round long numbers.
    return value;
  } catch {
    return JSON.stringify(value);
  }
}

/** Fills variables in all text files. Names known only at run time are problems: the files are written before. */
export function renderConfigTemplate(
  template: ConfigTemplate,
  values: Readonly<Record<string, string>>,
  extra: Lookup,
): { readonly files: readonly ConfigFile[]; readonly problems: readonly Problem[] } {
  const problems: Problem[] = [];
  const lookup: Lookup = (name) => (Object.hasOwn(values, name) ? values[name] : extra(name));
  const known = [...new Set([...template.variables.map(({ name }) => name), ...Object.keys(values)])];
  const files = template.files
    .filter(({ path }) => path !== aboutFile)
    .map((file) => {
      if (!file.isText) return file;
      const source: Template = { text: decodeText(file.bytes) ?? '', file: join(template.path, file.path) };
      const rendered = render(source, lookup, known);
      problems.push(...rendered.problems, ...tooLate(source, lookup));
      const json = jsonFiles.has(file.path) ? renderJson(source, lookup) : null;
      // With an unknown name the JSON may be faulty only because its value is missing.
      if (json !== null && rendered.problems.length === 0) {
        problems.push(...(json.problems.length > 0 ? json.problems : shapeProblems(file.path, json.text, source)));
      }
      const text = json?.text ?? rendered.text;
      return text === source.text ? file : { ...file, bytes: new TextEncoder().encode(text) };
    });
  return { files, problems };
}

function tooLate(template: Template, lookup: Lookup): Problem[] {
  return parsePieces(template.text).flatMap((piece) =>
    piece.kind === 'variable' && typeof lookup(piece.name) === 'object'
      ? [problemIn(template, piece.offset, `"${piece.name}" is known only when the session starts; use it in a prompt`)]
      : [],
  );
}

/** Stores a copy at `<folder>/<digest>`, completely or not at all. Throws the system's error. */
export function freezeConfigTemplate(world: World, template: ConfigTemplate, folder: string): void {
  const { files, random } = world;
  const target = join(folder, template.digest);
  if (files.info(target) !== null) return;
  const temporary = join(folder, `.${template.digest}.${random.uuid()}.tmp`);
  try {
    files.makeFolder(temporary);
    for (const { path, bytes } of template.files) {
      const parts = path.split('/');
      if (parts.length > 1) files.makeFolder(join(temporary, ...parts.slice(0, -1)));
      files.writeBytes(join(temporary, ...parts), bytes, { durable: true });
    }
    files.rename(temporary, target);
  } catch (error) {
    files.remove(temporary);
    // Another process stored the same copy meanwhile.
    if (files.info(target) === null) throw error;
  }
}
