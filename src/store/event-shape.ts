/**
 * What each event must carry to be believed. The same table guards reading and writing a log, so a line that could
 * not be read again is never written.
 */

import {
  configSettings,
  contextNames,
  groupSettings,
  type Setting,
  type Settings,
  sessionSettings,
} from '../core/definitions.ts';
import type { EventType, GroupEvent } from '../core/event.ts';
import { defaultGroupConfig } from '../core/group.ts';
import { isGroupId, isSessionId } from '../core/id.ts';
import {
  type Check,
  fields,
  isFlag,
  isInstant,
  isNumber,
  isObject,
  isText,
  listOf,
  oneOf,
  optional,
  valuesOf,
} from './shape.ts';

// Ids become names of folders, so they are checked to the letter.
const aGroupId: Check = (value) => typeof value === 'string' && isGroupId(value);
const aSessionId: Check = (value) => typeof value === 'string' && isSessionId(value);

/** Only the type: whether a value is allowed is checked where it is given. */
function shapeOf({ kind }: Setting): Check {
  switch (kind) {
    case 'money':
    case 'share':
    case 'count':
    case 'megabytes':
    case 'duration':
      return isNumber;
    case 'flag':
      return isFlag;
    case 'labels':
    case 'rules':
      return listOf(isText);
    case 'systems':
      return listOf(oneOf(contextNames));
    case 'object':
      return isObject;
    default:
      return isText;
  }
}

function shapesOf(settings: Settings, needed: object = {}): Record<string, Check> {
  const shapes = Object.entries(settings).map(([name, setting]): [string, Check] => {
    return [name, Object.hasOwn(needed, name) ? shapeOf(setting) : optional(shapeOf(setting))];
  });
  return Object.fromEntries(shapes);
}

/** The settings of a group. */
export const configFields: Readonly<Record<string, Check>> = {
  ...shapesOf(groupSettings, defaultGroupConfig),
  prices: optional(
    valuesOf(fields({ input: isNumber, output: isNumber, cacheCreation: isNumber, cacheRead: isNumber })),
  ),
};
const aConfig = fields(configFields);

// The digest names a folder as well.
const isDigest: Check = (value) => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);
const aConfigTemplate = fields({ name: isText, origin: isText, digest: isDigest });

/** What a group's definition carries besides its settings and what never changes. */
export const descriptionFields: Readonly<Record<string, Check>> = {
  name: isText,
  description: isText,
  template: optional(isText),
  configTemplate: optional(aConfigTemplate),
  variables: optional(valuesOf(isText)),
  workflow: optional(fields({ name: isText, origin: isText, digest: isDigest })),
};

const aGroup = fields({ ...descriptionFields, id: aGroupId, slug: isText, createdAt: isInstant, config: aConfig });

const aReference = fields({
  at: isNumber,
  length: isNumber,
  sessionIds: listOf(aSessionId),
  every: optional(isFlag),
  field: oneOf(['result', 'structured', 'diffStat', 'branch']),
  path: optional(listOf(isText)),
});

const aSessionConfig = fields({ ...shapesOf(configSettings), claudeMdText: optional(isText) });

/** What a session's definition carries whether or not it has an id yet. */
export const sessionFields: Readonly<Record<string, Check>> = {
  ...shapesOf(sessionSettings),
  description: isText,
  projectPath: isText,
  prompt: isText,
  template: optional(isText),
  variables: optional(valuesOf(isText)),
  promptReferences: optional(listOf(aReference)),
  configTemplate: optional(aConfigTemplate),
  config: optional(aSessionConfig),
  dependsOn: listOf(aSessionId),
  repository: optional(isText),
  createdAt: isInstant,
};

const aSession = fields({ ...sessionFields, id: aSessionId });

export const aProcess = fields({
  pid: isNumber,
  startTime: isText,
  host: isText,
  bootId: isText,
  pidNamespace: optional(isText),
});
const aRun = fields({
  id: isText,
  runner: aProcess,
  rehearsal: optional(isFlag),
  script: optional(isText),
});

const someTokens = fields({ input: isNumber, output: isNumber, cacheRead: isNumber, cacheCreation: isNumber });
const someUsage = fields({
  costUsd: isNumber,
  tokens: someTokens,
  durationMs: isNumber,
  turns: isNumber,
  estimated: optional(isFlag),
  heldUsd: optional(isNumber),
  models: valuesOf(fields({ costUsd: isNumber, tokens: someTokens })),
});

const anAttempt = fields({
  id: isText,
  number: isNumber,
  kind: oneOf(['start', 'resume', 'retry']),
  offset: isNumber,
  reservedUsd: optional(isNumber),
  isolated: optional(isFlag),
  place: optional(fields({ host: isText, token: isText, job: isText })),
});

const aWorkspace = fields({
  path: isText,
  folder: isText,
  repository: isText,
  branch: isText,
  base: isText,
  target: optional(isText),
  checkout: optional(isText),
  origin: optional(isText),
  remade: optional(fields({ at: isText, from: isText })),
});
const someWork = fields({ commit: isText, files: isNumber, insertions: isNumber, deletions: isNumber });
const aMerge = fields({
  repository: isText,
  into: isText,
  from: isText,
  to: isText,
  sessionIds: listOf(aSessionId),
});

const ofSession = { sessionId: aSessionId };
const ofTakeOver = { ...ofSession, attachmentId: isText };
/** Of Conversed. */
export const conversedFields = {
  usage: someUsage,
  claudeSessionIds: listOf(isText),
  spoken: optional(isFlag),
  cleared: optional(isFlag),
};
const ofAttempt = { ...ofSession, attemptId: isText };
const aLiveProcess = fields({ ...ofAttempt, attempt: isNumber, process: aProcess });
const aDefinition = fields({ ...ofSession, session: aSession });
const anExplanation = fields({ reason: isText, message: isText });
const nothingMore: Check = () => true;

const shapes: Readonly<Record<EventType, Check>> = {
  group_created: fields({ group: aGroup }),
  group_changed: fields({ config: aConfig, changed: optional(listOf(isText)) }),
  group_redefined: fields({ group: fields(descriptionFields), changed: listOf(isText) }),
  session_added: aDefinition,
  session_changed: fields({ ...ofSession, session: aSession, changed: optional(listOf(isText)) }),
  session_inherited: fields({
    ...ofSession,
    from: fields({ groupId: aGroupId, sessionId: aSessionId }),
    result: isText,
    work: optional(someWork),
    isolated: isFlag,
    workspace: optional(aWorkspace),
    mergedInto: optional(isText),
  }),
  rehearsal_chosen: fields({ script: optional(isText) }),
  session_removed: fields(ofSession),
  group_started: fields({ run: aRun }),
  group_resumed: fields({ run: aRun, retry: listOf(aSessionId), only: optional(listOf(aSessionId)) }),
  session_starting: fields({ ...ofSession, attempt: anAttempt }),
  session_moved: fields({ ...ofSession, from: optional(isText), to: isText }),
  session_host_lost: fields({ ...ofAttempt, host: isText, held: isNumber }),
  session_booked: fields({ ...ofAttempt, usage: someUsage }),
  session_started: aLiveProcess,
  session_resumed: aLiveProcess,
  session_retrying: aLiveProcess,
  session_adopted: aLiveProcess,
  session_identified: fields({
    ...ofAttempt,
    claudeSessionId: isText,
    model: optional(isText),
    claudeVersion: optional(isText),
  }),
  session_stopping: fields({ ...ofAttempt, reason: isText }),
  session_attaching: fields({ ...ofTakeOver, process: aProcess }),
  session_attached: fields({ ...ofTakeOver, reservedUsd: optional(isNumber) }),
  session_detached: fields({ ...ofTakeOver, ...conversedFields }),
  session_warning: fields({ ...ofSession, warning: fields({ code: isText, message: isText }) }),
  session_isolated: fields({ ...ofAttempt, workspace: aWorkspace }),
  session_accepting: fields({ ...ofAttempt, result: isText, usage: someUsage }),
  session_completed: fields({ ...ofAttempt, result: isText, work: optional(someWork), usage: someUsage }),
  session_failed: fields({
    ...ofAttempt,
    reason: isText,
    message: isText,
    next: isText,
    output: optional(isText),
    usage: someUsage,
    unread: optional(listOf(isText)),
  }),
  session_paused: fields({
    ...ofAttempt,
    reason: isText,
    message: isText,
    output: optional(isText),
    usage: someUsage,
    retryAt: optional(isInstant),
    progressed: optional(isFlag),
    unread: optional(listOf(isText)),
  }),
  session_queued: fields({ ...ofSession, queued: isFlag, prompt: optional(isText) }),
  session_message: fields({ ...ofSession, text: isText, offset: optional(isNumber) }),
  session_stalled: fields({ ...ofAttempt, step: oneOf(['notice', 'interrupt']), silentMs: isNumber }),
  budget_warning: fields({ usage: isNumber, limit: isNumber }),
  session_budget_warning: fields({ ...ofSession, usage: isNumber, limit: isNumber }),
  session_budget_exceeded: fields({ ...ofSession, action: isText, usage: isNumber, limit: isNumber }),
  budget_exceeded: fields({ action: isText, usage: isNumber, limit: isNumber }),
  group_pausing: fields({ reason: isText, mode: optional(oneOf(['now', 'drain'])) }),
  group_frozen: fields({ until: isInstant }),
  group_thawed: nothingMore,
  limit_reached: fields({ resetsAt: isInstant, limitType: optional(isText) }),
  limit_lifted: nothingMore,
  group_paused: anExplanation,
  group_completed: nothingMore,
  group_failed: anExplanation,
  session_cost_settled: fields({ ...ofSession, usage: someUsage }),
  group_merged: fields({ merged: listOf(aMerge) }),
  session_cleaned: fields(ofSession),
  group_archived: nothingMore,
  request_answered: fields({ requestId: isText, done: isFlag, message: isText, sessionId: optional(aSessionId) }),
};

const anEnvelope = fields({ seq: isNumber, at: isInstant, groupId: aGroupId, type: isText });

/** `unknown`: a whole event that this version does not understand, of an unknown type or with unknown values. */
export type EventVerdict = 'good' | 'bad' | 'unknown';

export function judgeEvent(value: unknown): EventVerdict {
  if (!isObject(value) || !anEnvelope(value)) return 'bad';
  const type = value.type as string;
  if (!Object.hasOwn(shapes, type) || !shapes[type as EventType](value)) return 'unknown';
  return namesItself(value as unknown as GroupEvent) ? 'good' : 'bad';
}

/** A definition is filed under the id it carries. */
function namesItself(event: GroupEvent): boolean {
  if (event.type === 'group_created') return event.group.id === event.groupId;
  if (event.type === 'session_added' || event.type === 'session_changed') return event.session.id === event.sessionId;
  return true;
}
