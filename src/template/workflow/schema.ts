/**
 * template/workflow/: from the text of a workflow file to its sessions. This file: the schema of version 1. The JSON
 * Schema for editors is made from it, so every key has a description.
 */
import Ajv from 'ajv';
import type { z as Z } from 'zod';
import { configSettings, groupSettings, sessionSettings, workSettings } from '../../core/definitions.ts';
import { errorText } from '../../core/failure.ts';
import { sessionNamePattern, sessionNameRule } from '../../core/setting-values.ts';
import { isObject } from '../../store/json.ts';
import { zod } from '../../store/schema.ts';
import { checkYaml, type YamlText } from '../../store/yaml-text.ts';
import { schemaShape } from '../setting-schema.ts';
import { namePattern, nameRule, plainValue, variableMap } from '../variables.ts';
import type { Problems } from './problems.ts';

const z = zod();

const slugRule = 'expected lower-case letters, digits and single hyphens, at most 64';
const templatePattern = /^(?:[A-Za-z0-9][A-Za-z0-9._-]{0,63}|.*\/.*)$/;
const templateRule = 'expected the name of a template (letters, digits, ".", "_" and "-"), or a path with a "/"';

const templateName = z.string().regex(templatePattern, templateRule);
const oneOrMore = (what: string) => z.union([z.string(), z.array(z.string()).min(1)], what);

const projects = z
  .union(
    [
      z.string(),
      z.array(z.string()).min(1),
      z.strictObject({
        file: z.string().min(1).describe('A text file with one path or pattern per line; "#" starts a comment'),
      }),
      z.strictObject({ glob: oneOrMore('expected a pattern or a list of patterns') }),
    ],
    'expected a path or pattern, a list of them, {file: list.txt} or {glob: pattern}',
  )
  .describe('Project folders, with one session for each: a path or pattern with * ? ** {a,b}, a list, or a file');

const matrixValues = z
  .array(plainValue(), 'expected a list of values')
  .min(1)
  .describe('One session for each value, available as {{matrix.KEY}}');

const matrix = z
  .object({ projects: projects.optional() })
  .catchall(matrixValues)
  .superRefine((values, context) => {
    const refuse = (message: string, key?: string) =>
      context.addIssue({ code: 'custom', message, path: key === undefined ? [] : [key] });
    for (const key of Object.keys(values)) {
      // `{{matrix.project}}` and `{{matrix.name}}` come from `projects`.
      if (key === 'project' || key === 'name')
        refuse(`"${key}" is reserved: {{matrix.${key}}} comes from "projects"`, key);
      else if (!namePattern.test(key)) refuse(`it is not a valid key: ${nameRule}`, key);
    }
    if (Object.keys(values).length === 0) refuse('a matrix needs a key, such as "projects"');
  })
  .describe('Creates one session for each combination of values');

const config = z
  .strictObject(schemaShape(configSettings) as object)
  .superRefine(({ generateSettings, settingsOverride }: Record<string, unknown>, context) => {
    // Deny rules among the settings would be lost.
    if (generateSettings !== false || settingsOverride === undefined) return;
    const message = 'it has no effect with generateSettings: false; remove one of them';
    context.addIssue({ code: 'custom', message, path: ['settingsOverride'] });
  })
  .describe('What is generated in the session’s config dir');

/** The others are read by `settingsIn`, without static types of their keys. */
interface ReadByKey {
  readonly description: Z.ZodOptional<Z.ZodString>;
  readonly outputSchema: Z.ZodOptional<Z.ZodRecord<Z.ZodString, Z.ZodUnknown>>;
}

const session = z
  .strictObject({
    project: z.string().min(1).optional().describe('Folder in which the session works'),
    matrix: matrix.optional(),
    prompt: z.string().optional().describe('The task; with a template, fills its {{prompt}} or replaces it'),
    template: templateName.optional().describe('Name or path of the prompt template for the task'),
    vars: z
      .record(z.string().regex(namePattern, nameRule), plainValue())
      .optional()
      .describe('Values for the variables of the templates'),
    dependsOn: oneOrMore('expected the name of a session, or a list of them')
      .optional()
      .describe('Sessions that must be completed first: NAME, NAME[*], NAME[VALUE] or NAME[matrix.KEY]'),
    configTemplate: templateName.optional().describe('Name or path of the config template'),
    config: config.optional(),
    ...(schemaShape(sessionSettings) as object as ReadByKey),
  })
  .describe('One session, or one for each combination of its matrix');

const group = z
  .strictObject({
    template: templateName.optional().describe('Default prompt template of the sessions'),
    configTemplate: templateName.optional().describe('Config template for all sessions that inherit from the group'),
    ...(schemaShape(groupSettings) as object),
    ...(schemaShape(workSettings, (setting) => setting.group === true) as object),
  })
  .describe('Settings of the group, like the options of "group create"');

const workflowSchema = z
  .strictObject({
    $schema: z.string().optional().describe('For editors only'),
    version: z.literal(1, 'expected 1').describe('Version of this format'),
    name: z
      .string()
      .max(64, slugRule)
      .regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/, slugRule)
      .optional()
      .describe('Slug of the group; default: the file name'),
    title: z.string().optional().describe('Display name of the group'),
    description: z.string().optional().describe('Purpose of the group'),
    vars: variableMap().optional().describe('Variables for --var: a default value, or a declaration'),
    group: group.optional(),
    sessions: z
      .record(z.string().regex(sessionNamePattern, sessionNameRule), session)
      .refine((sessions) => Object.keys(sessions).length > 0, 'a workflow needs at least one session')
      .describe('The sessions by their names'),
  })
  .describe('A workflow of claude-code-agent');

export type WorkflowFile = Z.output<typeof workflowSchema>;
export type SessionSpec = Z.output<typeof session>;
export type GroupSpec = Z.output<typeof group>;
export type MatrixSpec = Z.output<typeof matrix>;
export type ProjectsSpec = Z.output<typeof projects>;

/** The JSON Schema of a workflow file, for completion in editors. */
export function workflowJsonSchema(): Record<string, unknown> {
  const schema = z.toJSONSchema(workflowSchema, { io: 'input', unrepresentable: 'any' });
  return { title: 'Workflow of claude-code-agent, version 1', ...schema };
}

/** The file by its schema; undefined when `problems` received any. */
export function checkForm(yaml: YamlText, problems: Problems): WorkflowFile | undefined {
  if (!isObject(yaml.value)) {
    problems.at([], 'a workflow must be a map with "version: 1" and "sessions"');
    return undefined;
  }
  const { version } = yaml.value;
  if (version === undefined) problems.at([], 'version is missing: start the file with "version: 1"');
  else if (typeof version === 'number' && version > 1) {
    problems.at(['version'], `version ${version} is newer than this program, which knows version 1`);
  } else {
    const checked = checkYaml(yaml, workflowSchema, 'the workflow');
    if (!checked.ok) problems.add(...checked.problems);
    else {
      checkValues(checked.value, yaml.value, problems);
      return checked.value;
    }
  }
  return undefined;
}

/**
 * Problems that a schema cannot express: values that YAML reads differently than they look, and those that claude
 * refuses.
 */
function checkValues({ sessions }: WorkflowFile, file: Record<string, unknown>, problems: Problems): void {
  for (const [name, declared] of Object.entries(isObject(file.vars) ? file.vars : {})) {
    if (isObject(declared)) problems.checkPlain(['vars', name, 'default'], declared.default);
    else problems.checkPlain(['vars', name], declared);
  }
  for (const [key, { vars = {}, matrix = {}, outputSchema }] of Object.entries(sessions)) {
    const path = ['sessions', key];
    for (const [name, value] of Object.entries(vars)) problems.checkPlain([...path, 'vars', name], value);
    for (const [name, values] of Object.entries(matrix)) {
      if (name === 'projects' || !Array.isArray(values)) continue;
      for (const [index, value] of values.entries()) problems.checkPlain([...path, 'matrix', name, index], value);
    }
    const fault = outputSchema === undefined ? null : outputSchemaFault(outputSchema);
    if (fault !== null) problems.at([...path, 'outputSchema'], `outputSchema: ${fault}`);
  }
}

/** The schema is passed to claude on its command line, where one argument may have 128 KiB. */
const outputSchemaBytesMax = 64 * 1024;
const ajv = new Ajv({ logger: false });

/** Why claude would refuse the schema, without a full stop; null when it would not. */
export function outputSchemaFault(schema: Readonly<Record<string, unknown>>): string | null {
  const { $schema, type } = schema;
  if (type !== 'object') return 'its "type" must be "object"';
  if (Buffer.byteLength(JSON.stringify(schema)) > outputSchemaBytesMax) {
    return `it is larger than ${outputSchemaBytesMax / 1024} KiB`;
  }
  if (typeof $schema === 'string' && !/^https?:\/\/json-schema\.org\/draft-07\/schema#?$/.test($schema)) {
    return 'it must use JSON Schema draft 7; remove "$schema"';
  }
  // Ajv caches compiled schemas under their identity and their $id.
  const own = { ...schema };
  try {
    ajv.compile(own);
    return null;
  } catch (error) {
    const reason = errorText(error).replace(/^schema is invalid: /, '');
    const format = /^unknown format "(.+)" ignored/.exec(reason)?.[1];
    if (format === undefined) return `claude would refuse it: ${reason.replace(/^strict mode: /, '')}`;
    return `claude supports no formats; remove "format: ${format}", or put it in a description`;
  } finally {
    ajv.removeSchema(own);
  }
}
