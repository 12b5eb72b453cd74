/** The form of a workflow file: plain data of version 1 with known keys. What the values mean is checked later. */
import Ajv from 'ajv';
import { errorText } from '../../core/failure.ts';
import { quoted } from '../../core/id.ts';
import { sessionNamePattern, sessionNameRule } from '../../core/values.ts';
import { type Checked, checkYaml, type YamlPath, type YamlText } from '../../store/yaml-text.ts';
import { onlyKnown, type Problems } from './problems.ts';
import { knownKeys, matrixKeyPattern, takenMatrixKeys, type WorkflowFile, workflowSchema } from './schema.ts';

/** Levels of maps and lists; aliases can nest more than brackets do. */
const depthMax = 300;
/** The schema is handed to claude on its command line, where one argument may have 128 KiB. */
const outputSchemaBytesMax = 64 * 1024;

type Data = Record<string, unknown>;

/** The file as its schema has it; undefined when `problems` got something. */
export function checkForm(yaml: YamlText, problems: Problems): WorkflowFile | undefined {
  if (!isMap(yaml.value)) {
    problems.at([], 'a workflow is a map with "version: 1" and "sessions"');
    return undefined;
  }
  if (!isPlain(yaml.value, problems) || !isVersion(yaml.value.version, problems)) return undefined;
  const value = withoutWrongKeys(yaml.value, problems);
  const checked: Checked<WorkflowFile> = checkYaml({ ...yaml, value }, workflowSchema, 'the workflow');
  if (!checked.ok) problems.add(...checked.problems);
  else checkPlainValues(checked.value, yaml.value, problems);
  if (isMap(yaml.value.sessions)) checkSessions(yaml.value.sessions, problems);
  return checked.ok && problems.size === 0 ? checked.value : undefined;
}

function isVersion(version: unknown, problems: Problems): boolean {
  if (version === 1) return true;
  if (version === undefined) problems.at([], 'version is missing: begin the file with "version: 1"');
  else if (typeof version === 'number' && version > 1) {
    problems.at(['version'], `version ${version} is newer than this program, which knows version 1`);
  } else problems.at(['version'], 'version: expected the number 1');
  return false;
}

/** YAML can also make circles, dates and sets; none of them could be stored. */
function isPlain(root: unknown, problems: Problems): boolean {
  const before = problems.size;
  const above = new Set<unknown>();
  // Levels below each map and list: aliases bring the same one to several depths.
  const heights = new Map<unknown, number>();
  const walk = (value: unknown, path: YamlPath): number => {
    const fault = faultOf(value) ?? (above.has(value) ? 'holds itself, by an alias' : undefined);
    if (fault !== undefined) problems.at(path, fault);
    if (typeof value !== 'object' || value === null || problems.size > before) return 0;
    let height = heights.get(value);
    if (path.length + (height ?? 0) > depthMax) problems.at(path, `nests more than ${depthMax} levels`);
    if (height !== undefined || problems.size > before) return height ?? 0;
    height = 0;
    above.add(value);
    for (const [key, child] of Object.entries(value)) {
      if (key === '__proto__') problems.atKey(path, key, 'a key cannot be called "__proto__"');
      else height = Math.max(height, 1 + walk(child, [...path, Array.isArray(value) ? Number(key) : key]));
    }
    above.delete(value);
    heights.set(value, height);
    return height;
  };
  walk(root, []);
  return problems.size === before;
}

function faultOf(value: unknown): string | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : 'expected a finite number';
  if (typeof value === 'object') {
    return value === null || Array.isArray(value) || isMap(value) ? undefined : 'expected plain data';
  }
  return typeof value === 'string' || typeof value === 'boolean' ? undefined : 'expected plain data';
}

function isMap(value: unknown): value is Data {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    Object.getPrototypeOf(value) === Object.prototype
  );
}

/** A copy without the keys about which more can be said than a schema does. */
function withoutWrongKeys(file: Data, problems: Problems): Data {
  const whole = onlyKnown(file, [], 'the workflow', knownKeys.workflow, problems);
  if (isMap(whole.group)) whole.group = onlyKnown(whole.group, ['group'], 'group', knownKeys.group, problems);
  if (!isMap(whole.sessions)) return whole;
  const sessions: Data = {};
  for (const [key, given] of Object.entries(whole.sessions)) {
    if (!sessionNamePattern.test(key)) {
      problems.atKey(['sessions'], key, `${quoted(key)} cannot be a name: ${sessionNameRule}`);
    } else sessions[key] = isMap(given) ? sessionKeys(key, given, problems) : given;
  }
  return { ...whole, sessions };
}

function sessionKeys(key: string, given: Data, problems: Problems): Data {
  const path = ['sessions', key];
  const session = onlyKnown(given, path, path.join('.'), knownKeys.session, problems);
  if (isMap(session.config)) {
    const where = [...path, 'config'];
    session.config = onlyKnown(session.config, where, where.join('.'), knownKeys.config, problems);
  }
  if (isMap(session.matrix)) session.matrix = matrixKeys(session.matrix, [...path, 'matrix'], problems);
  return session;
}

function matrixKeys(given: Data, path: YamlPath, problems: Problems): Data {
  const matrix: Data = {};
  for (const [key, value] of Object.entries(given)) {
    if (takenMatrixKeys.includes(key)) {
      problems.atKey(path, key, `"${key}" is taken: {{matrix.${key}}} comes from "projects"`);
    } else if (!matrixKeyPattern.test(key)) {
      problems.atKey(path, key, `${quoted(key)} cannot be a key: expected 1 to 64 letters, digits, "-" or "_"`);
    } else matrix[key] = value;
  }
  if (Object.keys(given).length === 0) problems.at(path, 'a matrix needs a key, such as "projects"');
  return matrix;
}

/** What a schema of the form cannot say. */
function checkSessions(sessions: Data, problems: Problems): void {
  if (Object.keys(sessions).length === 0) problems.at(['sessions'], 'a workflow needs at least one session');
  for (const [key, session] of Object.entries(sessions)) {
    if (!isMap(session)) continue;
    if (isMap(session.config)) checkConfig(session.config, ['sessions', key, 'config'], problems);
    if (isMap(session.outputSchema)) {
      checkOutputSchema(session.outputSchema, ['sessions', key, 'outputSchema'], problems);
    }
  }
}

/** Deny rules among the settings would be lost without a word. */
function checkConfig({ generateSettings, settingsOverride }: Data, path: YamlPath, problems: Problems): void {
  if (generateSettings !== false || settingsOverride === undefined) return;
  const message = 'settingsOverride has no effect with generateSettings: false; leave one of them out';
  problems.atKey(path, 'settingsOverride', message);
}

function checkOutputSchema(schema: Data, path: YamlPath, problems: Problems): void {
  const { type } = schema;
  if (type !== 'object') problems.at([...path, 'type'], 'outputSchema: its "type" must be "object"');
  if (Buffer.byteLength(JSON.stringify(schema)) > outputSchemaBytesMax) {
    problems.at(path, `outputSchema is larger than ${outputSchemaBytesMax / 1024} KiB`);
    return;
  }
  const fault = type === 'object' ? outputSchemaFault(schema) : null;
  if (fault !== null) problems.at(path, `outputSchema: claude would not take it: ${fault}`);
}

/** Everything that becomes a text although YAML reads it as a number or a flag. */
function checkPlainValues({ sessions }: WorkflowFile, file: Data, problems: Problems): void {
  for (const [name, declared] of Object.entries(isMap(file.vars) ? file.vars : {})) {
    const path = ['vars', name];
    if (isMap(declared)) problems.checkPlain([...path, 'default'], declared.default);
    else problems.checkPlain(path, declared);
  }
  for (const [key, { vars = {}, matrix = {} }] of Object.entries(sessions)) {
    const path = ['sessions', key];
    for (const [name, value] of Object.entries(vars)) problems.checkPlain([...path, 'vars', name], value);
    for (const [name, values] of Object.entries(matrix)) {
      if (name === 'projects' || !Array.isArray(values)) continue;
      for (const [index, value] of values.entries()) problems.checkPlain([...path, 'matrix', name, index], value);
    }
  }
}

const ajv = new Ajv({ logger: false });

/** What claude could not do with the schema, without a full stop; null when it takes it. */
export function outputSchemaFault(schema: Readonly<Record<string, unknown>>): string | null {
  const { $schema } = schema;
  if (typeof $schema === 'string' && !/^https?:\/\/json-schema\.org\/draft-07\/schema#?$/.test($schema)) {
    return 'it must be of draft 7; leave out "$schema"';
  }
  // Ajv keeps what it compiled, under its own identity and under its $id.
  const own = { ...schema };
  try {
    ajv.compile(own);
    return null;
  } catch (error) {
    const said = errorText(error).replace(/^schema is invalid: /, '');
    const format = /^unknown format "(.+)" ignored/.exec(said)?.[1];
    if (format === undefined) return said.replace(/^strict mode: /, '');
    return `claude knows no formats; leave out "format: ${format}", or say it in a description`;
  } finally {
    ajv.removeSchema(own);
  }
}
