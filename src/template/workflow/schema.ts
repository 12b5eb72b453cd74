/**
 * The form of a workflow file, version 1. The JSON Schema for editors is made from it, so every key says what it is
 * for.
 */

import type { z as Z } from 'zod';
import {
  budgetActions,
  contextNames,
  isolationModes,
  limitActions,
  lossActions,
  permissionModes,
  whereModes,
} from '../../core/group.ts';
import {
  acceptRetriesMax,
  concurrentMax,
  hostNamePattern,
  hostNameRule,
  labelPattern,
  labelRule,
  labelsMax,
  memoryMb,
  moneyUsd,
  permissionRules,
  processesRange,
  retriesMax,
  rulesRule,
  sessionNamePattern,
  sessionNameRule,
  thresholdMax,
  wordPattern,
  wordRule,
} from '../../core/values.ts';
import { zod } from '../../store/schema.ts';
import { variableMap } from '../variables.ts';
import { command as aCommand, duration as aDuration } from './work-settings.ts';

const z = zod();

const slugRule = 'expected lower-case letters, digits and single hyphens, at most 64';
const variableNamePattern = /^(?!__proto__$)[A-Za-z_][A-Za-z0-9_-]{0,63}$/;
const templatePattern = /^(?:[A-Za-z0-9][A-Za-z0-9._-]{0,63}|.*\/.*)$/;
const templateRule = 'expected the name of a template (letters, digits, ".", "_" and "-"), or a path with a "/"';
const textRule = 'expected a text, a number or true or false';

const plainValue = z.union([z.string(), z.number(), z.boolean()], textRule);
const templateName = z.string().regex(templatePattern, templateRule);
const word = z.string().regex(wordPattern, `expected ${wordRule}`);
const money = z.number().min(moneyUsd.min).max(moneyUsd.max);
const duration = aDuration();
const command = aCommand();
const label = z.string().regex(labelPattern, `expected ${labelRule}`);
const hostName = z.string().regex(hostNamePattern, `expected ${hostNameRule}`);
const anyObject = z.record(z.string(), z.unknown());

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

const generated = {
  generateClaudeMd: z
    .boolean()
    .optional()
    .describe('Whether there is a CLAUDE.md, which tells the group, the task and the dependencies; true unless said'),
  generateSettings: z.boolean().optional().describe("Whether the config template's settings.json counts"),
  generateCommands: z
    .boolean()
    .optional()
    .describe("Whether the config template's commands, skills, agents and rules count"),
  generateMcpConfig: z.boolean().optional().describe("Whether the config template's MCP servers are started"),
  claudeMdTemplate: z
    .string()
    .min(1)
    .optional()
    .describe("Path or prompt template that stands in CLAUDE.md instead of the config template's"),
  settingsOverride: anyObject
    .optional()
    .describe('Settings merged over those of the templates; not beside generateSettings: false'),
  inheritFromGroup: z
    .boolean()
    .optional()
    .describe("Whether shared-config and the group's config template count; true unless said"),
};

const config = z.strictObject(generated).describe('What is generated into the config dir of the session');

/** What a session says of its place and of the check of its work, and what the group says for all of its sessions. */
const work = {
  isolate: z
    .enum(isolationModes)
    .optional()
    .describe('worktree: a git worktree of its own; none: the project folder itself; else as the group needs it'),
  accept: command
    .optional()
    .describe('Shell command that must succeed before the session is completed, or false for none'),
  acceptRetries: z
    .int()
    .min(0)
    .max(acceptRetriesMax)
    .optional()
    .describe('How often claude is told what the accept command printed and tries again; 1 unless said'),
  acceptTimeout: duration.optional().describe('Longest time of the accept command; 10m unless said'),
  setup: command.optional().describe('Shell command that is run once in a new worktree, or false for none'),
  setupTimeout: duration.optional().describe('Longest time of the setup command; 10m unless said'),
  commit: z
    .boolean()
    .optional()
    .describe('Whether what is left uncommitted in a worktree is committed; true unless said'),
};

/** What a session may do, and what the group says for all of its sessions. */
const bounds = {
  untrusted: z
    .boolean()
    .optional()
    .describe("Whether the project's hooks do not run, and of its variables only harmless ones count"),
  memory: z
    .int()
    .min(memoryMb.min)
    .max(memoryMb.max)
    .optional()
    .describe('Megabytes that its commands, with those of others that run at once, may take'),
  maxProcesses: z
    .int()
    .min(processesRange.min)
    .max(processesRange.max)
    .optional()
    .describe("Processes and threads that it may have at once, claude's own included"),
};

const session = z
  .strictObject({
    description: z.string().optional().describe('What the session is for'),
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
    outputSchema: anyObject.optional().describe('JSON Schema to which the result is held'),
    model: word.optional().describe('Model of the session'),
    permissionMode: z.enum(permissionModes).optional().describe("claude's permission mode"),
    allowedTools: z
      .union([z.string(), z.array(z.string())], rulesRule)
      .refine((rules) => [rules].flat().every((rule) => permissionRules(rule) !== null), rulesRule)
      .optional()
      .describe('Permission rules such as "Edit,Bash(git log:*)", or a list of them'),
    context: z
      .union([z.literal('none'), z.array(z.enum(contextNames))], 'expected a list of cpm, faber and handover, or none')
      .optional()
      .describe('What keeps the state of the session: cpm, faber and handover unless said'),
    maxBudgetUsd: money.optional().describe('Cap for this session alone, US dollars'),
    retries: z.int().min(0).max(retriesMax).optional().describe('Further attempts after a transient failure'),
    timeout: duration.optional().describe('Longest wall time of one attempt, such as 30m'),
    stallTimeout: duration.optional().describe('Longest time without any progress, such as 10m'),
    ...bounds,
    requires: z.array(label).max(labelsMax).optional().describe('Labels of the machine on which it works, such as gpu'),
    host: hostName.optional().describe('Name of the only machine of the fleet on which it works'),
    ...work,
    expectChanges: z.boolean().optional().describe('Whether a session that changed no file gets a warning'),
  })
  .describe('One session, or one for each combination of its matrix');

const group = z
  .strictObject({
    model: word.optional().describe('Model for sessions that name none'),
    maxBudgetUsd: money.optional().describe('Hard cap over all sessions and attempts, US dollars'),
    onBudgetExceeded: z.enum(budgetActions).optional().describe('What to do then; pause unless said'),
    warningThreshold: z.number().gt(0).max(1).optional().describe('Share of the budget that gives a warning'),
    concurrent: z.int().min(1).max(concurrentMax).optional().describe('Sessions that may run at once'),
    commandsAtOnce: z
      .int()
      .min(1)
      .max(concurrentMax)
      .optional()
      .describe('Checkouts, set-up and acceptance commands that may run at once; the number of cores unless said'),
    errorThreshold: z.int().min(1).max(thresholdMax).optional().describe('Failures after which nothing new starts'),
    pauseOnError: z.boolean().optional().describe('Whether the group is paused then, instead of failed'),
    respectDependencies: z.boolean().optional().describe('Whether a session waits for its dependencies'),
    onLimit: z.enum(limitActions).optional().describe('What to do at a usage limit: wait for its reset, or pause'),
    warmCache: z
      .boolean()
      .optional()
      .describe('Whether one of several similar sessions makes its first request before the others start'),
    template: templateName.optional().describe('Prompt template for sessions that name none'),
    configTemplate: templateName.optional().describe('Config template for all sessions that inherit from the group'),
    shareCheckouts: z
      .boolean()
      .optional()
      .describe('Whether sessions without a worktree may work in one checkout at the same time; false unless said'),
    onEvent: z
      .string()
      .optional()
      .describe('Shell command that gets each end, pause and usage limit of the group as one line of JSON'),
    where: z
      .enum(whereModes)
      .optional()
      .describe('Whether sessions work here, in the fleet, or in both (any, unless said)'),
    onLost: z
      .enum(lossActions)
      .optional()
      .describe('When a machine is lost: move its sessions to another one, unless said, or wait for it'),
    ...bounds,
    ...work,
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
  config: Object.keys(generated),
};

export const matrixKeyPattern = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;
/** `{{matrix.project}}` and `{{matrix.name}}` come from `projects`. */
export const takenMatrixKeys = ['project', 'name'];

/** The JSON Schema of a workflow file, for the completion of editors. */
export function workflowJsonSchema(): Record<string, unknown> {
  const schema = z.toJSONSchema(workflowSchema, { io: 'input', unrepresentable: 'any' });
  return { title: 'Workflow of claude-code-agent, version 1', ...schema };
}
