/**
 * The form of a workflow file, version 1. The JSON Schema for editors is made from it, so every key says what it is
 * for.
 */

import type { z as Z } from 'zod';
import { configSettings, groupSettings, sessionSettings } from '../../core/definitions.ts';
import { sessionNamePattern, sessionNameRule } from '../../core/values.ts';
import { zod } from '../../store/schema.ts';
import { shapeOf } from '../setting-schema.ts';
import { variableMap } from '../variables.ts';

const z = zod();

const slugRule = 'expected lower-case letters, digits and single hyphens, at most 64';
const variableNamePattern = /^(?!__proto__$)[A-Za-z_][A-Za-z0-9_-]{0,63}$/;
const templatePattern = /^(?:[A-Za-z0-9][A-Za-z0-9._-]{0,63}|.*\/.*)$/;
const templateRule = 'expected the name of a template (letters, digits, ".", "_" and "-"), or a path with a "/"';
const textRule = 'expected a text, a number or true or false';

const plainValue = z.union([z.string(), z.number(), z.boolean()], textRule);
const templateName = z.string().regex(templatePattern, templateRule);
const oneOrMore = (what: string) => z.union([z.string(), z.array(z.string()).min(1)], what);

const projects = z
  .union(
    [
      z.string(),
      z.array(z.string()).min(1),
      z.strictObject({
        file: z.string().min(1).describe('A text file with one path or pattern a line; "#" begins a comment'),
      }),
      z.strictObject({ glob: oneOrMore('expected a pattern or a list of patterns') }),
    ],
    'expected a path or pattern, a list of them, {file: list.txt} or {glob: pattern}',
  )
  .describe('Project folders, one session for each: a path or pattern with * ? ** {a,b}, a list, or a file of them');

const matrixValues = z
  .array(plainValue, 'expected a list of values')
  .min(1)
  .describe('One session for each value, which is {{matrix.KEY}}');

const matrix = z
  .object({ projects: projects.optional() })
  .catchall(matrixValues)
  .describe('Makes one session for each combination of values');

const config = z
  .strictObject(shapeOf(configSettings) as object)
  .describe('What is generated into the config dir of the session');

/** The others are read by `settingsIn`, without their keys being known to the compiler. */
interface ReadByKey {
  readonly description: Z.ZodOptional<Z.ZodString>;
  readonly outputSchema: Z.ZodOptional<Z.ZodRecord<Z.ZodString, Z.ZodUnknown>>;
}

const session = z
  .strictObject({
    project: z.string().min(1).optional().describe('Folder in which the session works'),
    matrix: matrix.optional(),
    prompt: z.string().optional().describe('The task; beside a template it fills its {{prompt}}, or replaces it'),
    template: templateName.optional().describe('Name or path of the prompt template that makes the task'),
    vars: z
      .record(z.string().regex(variableNamePattern, 'is no name of a variable'), plainValue)
      .optional()
      .describe('Values for the variables of the templates'),
    dependsOn: oneOrMore('expected the name of a session, or a list of them')
      .optional()
      .describe('Sessions that must be completed before: NAME, NAME[*], NAME[VALUE] or NAME[matrix.KEY]'),
    configTemplate: templateName.optional().describe('Name or path of the config template'),
    config: config.optional(),
    ...(shapeOf(sessionSettings) as object as ReadByKey),
  })
  .describe('One session, or one for each combination of its matrix');

const group = z
  .strictObject({
    template: templateName.optional().describe('Prompt template for sessions that name none'),
    configTemplate: templateName.optional().describe('Config template for all sessions that inherit from the group'),
    ...(shapeOf(groupSettings) as object),
    ...(shapeOf(sessionSettings, (setting) => setting.group === true) as object),
  })
  .describe('Settings of the group, as options of "group create"');

export const workflowSchema = z
  .strictObject({
    $schema: z.string().optional().describe('For editors only'),
    version: z.literal(1, 'expected 1').describe('Version of this format'),
    name: z
      .string()
      .max(64, slugRule)
      .regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/, slugRule)
      .optional()
      .describe('Slug of the group; the name of the file unless said'),
    title: z.string().optional().describe('Name of the group for people'),
    description: z.string().optional().describe('What the group is for'),
    vars: variableMap().optional().describe('Variables that are given by --var: a default, or what is expected'),
    group: group.optional(),
    sessions: z
      .record(z.string().regex(sessionNamePattern, sessionNameRule), session)
      .describe('The sessions by their names'),
  })
  .describe('A workflow of claude-code-agent');

export type WorkflowFile = Z.output<typeof workflowSchema>;
export type SessionSpec = Z.output<typeof session>;
export type GroupSpec = Z.output<typeof group>;
export type MatrixSpec = Z.output<typeof matrix>;
export type ProjectsSpec = Z.output<typeof projects>;

/** The keys that are known at each level, for "did you mean". */
export const knownKeys = {
  workflow: Object.keys(workflowSchema.shape),
  group: Object.keys(group.shape),
  session: Object.keys(session.shape),
  config: Object.keys(config.shape),
};

export const matrixKeyPattern = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;
/** `{{matrix.project}}` and `{{matrix.name}}` come from `projects`. */
export const takenMatrixKeys = ['project', 'name'];

/** The JSON Schema of a workflow file, for the completion of editors. */
export function workflowJsonSchema(): Record<string, unknown> {
  const schema = z.toJSONSchema(workflowSchema, { io: 'input', unrepresentable: 'any' });
  return { title: 'Workflow of claude-code-agent, version 1', ...schema };
}
