/** Rehearsal scripts: what the scripted model answers in each session, read from YAML or JSON. */
import type { z } from 'zod';
import { ok, type Result } from '../core/failure.ts';
import { schema } from '../store/schema.ts';
import { checkYaml, problemsFailure, readYaml } from '../store/yaml-text.ts';

const toolCall = schema((z) =>
  z.strictObject({
    /** As claude names it: Bash, Read, Edit, Write, Agent, ... */
    tool: z.string().min(1),
    input: z.record(z.string(), z.unknown()).optional(),
  }),
);

const count = schema((z) => z.int().min(0));

const faultKeys = ['status', 'hang', 'cut', 'limit'] as const;
const faultWords = '"status", "hang", "cut" or "limit"';

/** The ways in which a step gives no or no complete answer; a valid script has at most one per step. */
export function scriptFaults(item: { readonly [key in (typeof faultKeys)[number]]?: unknown }) {
  return faultKeys.filter((key) => item[key] !== undefined && item[key] !== false);
}

const step = schema((z) =>
  z
    .strictObject({
      /** The model's text. Without tool calls it ends the turn: the next step answers the next prompt. */
      text: z.string().min(1).optional(),
      /** The model's thinking before it; alone, it is the whole answer, once or `times` times. */
      thinking: z.string().min(1).optional(),
      tool: z.string().min(1).optional(),
      input: z.record(z.string(), z.unknown()).optional(),
      /** Several tool calls in one message, instead of `tool` and `input`. */
      tools: z.array(toolCall()).min(1).optional(),
      /** Tokens to report; the default is 1000 in and 200 out. */
      usage: z
        .strictObject({
          input: count().optional(),
          output: count().optional(),
          cacheRead: count().optional(),
          cacheCreation: count().optional(),
        })
        .optional(),
      /** How long the model thinks, milliseconds. */
      delayMs: count().optional(),
      /** Delay before each event of a streamed answer after the headers, milliseconds. */
      eventDelayMs: count().optional(),
      /** Answers with this HTTP error instead. */
      status: z.int().min(400).max(599).optional(),
      errorType: z.string().min(1).optional(),
      message: z.string().min(1).optional(),
      headers: z.record(z.string(), z.string()).optional(),
      /** The whole body of the error, such as the page of a proxy; HTML unless `headers` differ. */
      body: z.string().min(1).optional(),
      /** Never answers. */
      hang: z.boolean().optional(),
      /** Closes the connection in the middle of the answer. */
      cut: z.boolean().optional(),
      /** A usage limit: 429 with the headers of a subscription, from the first such request on for this long. */
      limit: z
        .strictObject({
          window: z.enum(['five_hour', 'seven_day', 'seven_day_opus', 'seven_day_sonnet', 'overage']),
          lastsMs: count(),
        })
        .optional(),
      /** This many events of the answer are streamed before the fault. */
      afterEvents: z.int().min(1).optional(),
      /** The fault applies only to models whose name contains one of these. */
      models: z.array(z.string().min(1)).min(1).optional(),
      /**
       * A fault applies only to the first requests, counted per session, sub-agent and step in the server's memory;
       * then the rest of the step applies, or the next step without a rest.
       */
      times: z.int().min(1).optional(),
      stopReason: z.string().min(1).optional(),
    })
    .check((context) => {
      const { value, issues } = context;
      const complain = (message: string, key?: string) =>
        issues.push({ code: 'custom', message, input: value, path: key === undefined ? [] : [key] });
      const faults = scriptFaults(value);
      if (value.tool !== undefined && value.tools !== undefined) complain('use either "tool" or "tools"', 'tools');
      if (value.input !== undefined && value.tool === undefined) complain('"input" needs a "tool" beside it', 'input');
      for (const key of ['errorType', 'message', 'headers', 'body'] as const) {
        if (value[key] !== undefined && value.status === undefined)
          complain(`"${key}" needs a "status" beside it`, key);
      }
      const says = value.text !== undefined || value.tool !== undefined || value.tools !== undefined;
      const counts = faults.length > 0 || (value.thinking !== undefined && !says);
      for (const key of ['times', 'models', 'afterEvents'] as const) {
        if (value[key] !== undefined && !(key === 'times' ? counts : faults.length > 0))
          complain(`"${key}" needs ${faultWords} beside it`, key);
      }
      for (const second of faults.slice(1)) complain(`use either "${faults[0]}" or "${second}"`, second);
      if (value.limit !== undefined && value.afterEvents !== undefined)
        complain('a usage limit comes before an answer', 'afterEvents');
      if (!counts && !says) {
        complain(`a step needs "text", "thinking", "tool", "tools", ${faultWords}`);
      }
    }),
);

const sessionScript = schema((z) =>
  z.strictObject({
    steps: z.array(step()).min(1),
    /** The steps of every sub-agent of the session, each from the first one. */
    agents: z.array(step()).min(1).optional(),
  }),
);

const script = schema((z) =>
  z.strictObject({
    version: z.literal(1),
    /** By session name or number; `*` applies to every other session. */
    sessions: z.record(z.string(), sessionScript()),
  }),
);

export type RehearsalScript = z.infer<ReturnType<typeof script>>;
export type Step = z.infer<ReturnType<typeof step>>;
export type ToolCall = z.infer<ReturnType<typeof toolCall>>;

export const defaultScript: RehearsalScript = {
  version: 1,
  sessions: {
    '*': {
      steps: [
        { text: 'I will look at the project first.', tool: 'Bash', input: { command: 'ls -la | head' } },
        { text: 'This was a rehearsal of session {{session}}: I listed the files of {{project}} and changed nothing.' },
      ],
    },
  },
};

/** Answers a sub-agent whose session has no `agents` steps. */
const defaultAgentSteps: readonly Step[] = [{ text: 'I looked into it; there is nothing to add.' }];

/** Numbers are equal by value: `2`, `002` and "2" name the same session. */
function sameKey(key: string, name: string): boolean {
  return key === name || (/^\d+$/.test(key) && /^\d+$/.test(name) && Number(key) === Number(name));
}

/** The script's key of the first matching name in `names`; undefined when only `*` could match. */
export function scriptKey(rehearsal: RehearsalScript, names: readonly string[]): string | undefined {
  const keys = Object.keys(rehearsal.sessions).filter((key) => key !== '*');
  for (const name of names) {
    const key = keys.find((candidate) => sameKey(candidate, name));
    if (key !== undefined) return key;
  }
  return undefined;
}

/** The steps of a session, or of its sub-agents: its own script, otherwise that of `*`, otherwise the default. */
export function stepsFor(rehearsal: RehearsalScript, name: string | undefined, agent: boolean): readonly Step[] {
  const key = name === undefined ? undefined : scriptKey(rehearsal, [name]);
  const own = rehearsal.sessions[key ?? '*'] ?? rehearsal.sessions['*'];
  if (agent) return own?.agents ?? defaultAgentSteps;
  return own?.steps ?? defaultScript.sessions['*']?.steps ?? [];
}

export function toolCalls(item: Step): readonly ToolCall[] {
  if (item.tools !== undefined) return item.tools;
  return item.tool === undefined ? [] : [{ tool: item.tool, ...(item.input ? { input: item.input } : {}) }];
}

/** Replaces `{{session}}` and `{{project}}` in every string of `value`, once. */
export function fillScript<T>(value: T, values: { readonly session: string; readonly project: string }): T {
  if (typeof value === 'string') {
    return value.replace(/\{\{(session|project)\}\}/g, (_, name: 'session' | 'project') => values[name]) as T;
  }
  if (Array.isArray(value)) return value.map((item) => fillScript(item, values)) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fillScript(item, values)])) as T;
}

/** Reads a script. `file` is only used in messages. Fails with `usage` and names every problem with its position. */
export function parseScript(text: string, file: string): Result<RehearsalScript> {
  const yaml = readYaml({ text, file });
  const checked = yaml.ok ? checkYaml(yaml.value, script(), 'the script') : yaml;
  if (checked.ok) return ok(checked.value);
  return problemsFailure('The rehearsal script', checked.problems, 'Correct the script and run the command again.');
}
