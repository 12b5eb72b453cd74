/**
 * What happens in a trial: short scenes, each with claudes of its own, and what was seen in them of which promise. A
 * scene ends early when it can see nothing more; what it did not see is untried.
 */
import { join } from 'node:path';
import { answersInterrupt, interruptRequest, usageRequest } from '../../claude/control.ts';
import { conversationExists } from '../../claude/conversation.ts';
import { attemptMark } from '../../claude/launch/attempt-mark.ts';
import type { JsonObject } from '../../claude/lenient.ts';
import type { ClaudeMessage, InitMessage, ResultMessage } from '../../claude/messages.ts';
import { isOverCap } from '../../claude/trouble.ts';
import { defined } from '../../core/defined.ts';
import { noTokens, type Tokens } from '../../core/group.ts';
import type { RehearsalScript, Step } from '../../rehearsal/script.ts';
import { broken, type ClaimId, holds, type Seen, seenIf, untried } from './claims.ts';
import type { Ground, LoginKind, TrialAttempt } from './ground.ts';
import { compactionAttacks, payerAttacks, stolenWord, together } from './hostile.ts';

/** Generous: a machine under load may take long to start a process. */
const startMs = 20_000;
/** As long as the runner waits, and as long again. */
const interruptMs = 10_000;
/** A killed command is gone at once; the system may take a moment to say so. */
const killedMs = 3_000;
/** Above the least that an attempt may spend, on the cheapest model there is. */
const dearInput = 100_000;
/** Above the threshold of the window that `compactionSettings` sets. */
const fullInput = 70_000;
const compactionSettings = { autoCompactWindow: 100_000 };

const task = 'Follow the script of this trial.';
const bash = (command: string, usage?: Step['usage']): Step => ({
  tool: 'Bash',
  input: { command },
  ...defined({ usage }),
});
const done: Step = { text: 'The trial is done.' };

const work: readonly Step[] = [
  {
    tools: [
      { tool: 'Bash', input: { command: 'rm precious' } },
      { tool: 'Bash', input: { command: 'env > env.txt' } },
    ],
  },
  bash('[ -s started ] || { echo $$ > started; sleep 60; }'),
  done,
];
const spend = (input: number) => bash('true', { input });
const compact: readonly Step[] = [bash('echo one'), bash('echo two', { input: fullInput }), done];

const scripts: Readonly<Record<string, readonly Step[]>> = {
  work,
  again: work,
  budget: [spend(dearInput), spend(dearInput), spend(dearInput), done],
  compact,
  'compact-unharmed': compact,
};

export const trialScript: RehearsalScript = {
  version: 1,
  sessions: {
    '*': { steps: [done] },
    ...Object.fromEntries(Object.entries(scripts).map(([name, steps]) => [name, { steps: [...steps] }])),
  },
};

export interface Scene {
  readonly claims: readonly ClaimId[];
  /** Seen may leave out claims of the scene: those are untried. */
  readonly play: (ground: Ground) => Promise<Seen[]>;
}

const logins: readonly LoginKind[] = ['key', 'token', 'store'];

/** The longest first. */
export const scenes: readonly Scene[] = [
  {
    claims: ['start', 'hooks', 'instructions', 'mark', 'deny', 'interrupt', 'resume', 'cost', 'fork'],
    play: playWork,
  },
  { claims: ['compaction', 'compaction-kept'], play: playCompaction },
  ...logins.map((login) => ({
    claims: [`login-${login}`, 'payer'] as const,
    play: (ground: Ground) => playLogin(ground, login),
  })),
  { claims: ['budget'], play: playBudget },
];

const isInit = (m: ClaudeMessage): m is InitMessage & ClaudeMessage => m.kind === 'init';
const isResult = (m: ClaudeMessage): m is ResultMessage & ClaudeMessage => m.kind === 'result';
const said = (ground: Ground, name: string, index: number): string =>
  JSON.stringify(ground.asked(name)[index]?.body ?? {});

/** A session as it is: it works, is paused in the middle of a command, goes on, and is forked. */
async function playWork(ground: Ground): Promise<Seen[]> {
  ground.world.files.makeFolder(join(ground.folder, 'projects', 'work'));
  const precious = join(ground.folder, 'projects', 'work', 'precious');
  ground.world.files.writeAtomic(precious, 'precious\n');
  const first = ground.start('work', { deny: ['Bash(rm:*)'] });
  const { probe, project, paths, claudeSessionId } = first;
  probe.open(task);
  const init = (await probe.until(isInit, startMs)) as InitMessage | null;
  if (init === null) {
    await probe.end();
    return probe.exit?.kind === 'exited' && probe.exit.code !== 143 ? [broken('start', probe.describe())] : [];
  }
  const ended = await playInterrupt(ground, first);
  await probe.end();
  const env = ground.world.files.readText(join(project, 'env.txt'));
  const isKept = conversationExists(ground.world, paths.config, claudeSessionId);
  const asked = said(ground, 'work', 0);
  const start = seenIf('start', [
    init.sessionId !== claudeSessionId && 'its session has another id than it was given',
    !isKept && 'its conversation is not in its config dir',
  ]);
  if (ground.asked('work').length === 0) return [start];
  return [
    start,
    seenIf('hooks', [
      !probe.stream.hookSeen && 'no hook was reported',
      !asked.includes(first.hookWord) && 'the text of the hook did not reach the model',
    ]),
    seenIf('instructions', [!asked.includes(first.instructionWord) && 'its text did not reach the model']),
    ...(env === null
      ? []
      : [
          seenIf('mark', [!env.split('\n').includes(`${attemptMark}=${first.id}`) && 'a command ran without it']),
          seenIf('deny', [ground.world.files.info(precious) === null && 'a forbidden command ran']),
        ]),
    ended,
    ...(await playAgain(ground, first)),
  ];
}

/** What an interrupt in the middle of a command comes to; asks for the usage first, as the runner does all the time. */
async function playInterrupt(ground: Ground, { id, probe, project }: TrialAttempt): Promise<Seen> {
  const { processes, files } = ground.world;
  const pid = () => Number(files.readText(join(project, 'started')) ?? '');
  await probe.wait(() => pid() > 0 || probe.messages.some(isResult), startMs);
  const shell = pid() > 0 ? processes.identify(pid()) : null;
  if (shell === null) return untried('interrupt', 'no command ran');
  const command = [shell, ...processes.findDescendants(shell.pid)];
  probe.send(usageRequest('trial'));
  probe.send(interruptRequest(id));
  const isAnswer = (m: ClaudeMessage) => m.kind === 'control-response' && m.ok && answersInterrupt(m.requestId);
  if ((await probe.until(isAnswer, interruptMs)) === null) return broken('interrupt', 'it was not answered');
  if ((await probe.until(isResult, interruptMs)) === null) return broken('interrupt', 'the turn did not end');
  const isGone = await probe.wait(() => !command.some((one) => processes.isAlive(one)), killedMs);
  return seenIf('interrupt', [!isGone && 'the command was left running']);
}

/** The second attempt of the session, and a fork of it. */
async function playAgain(ground: Ground, first: TrialAttempt): Promise<Seen[]> {
  const { claudeSessionId } = first;
  const again = ground.start('again', { session: first, deny: ['Bash(rm:*)'] });
  again.probe.open(task);
  const result = await again.probe.until(isResult, startMs);
  await again.probe.end();
  const asked = said(ground, 'again', 0);
  const isAsked = ground.asked('again').length > 0;
  const init = again.probe.messages.find(isInit);
  const seen = [
    seenIf('resume', [
      !isAsked && `nothing was asked of the model; ${again.probe.describe()}`,
      // Written by the model in the first attempt.
      !asked.includes('toolu_step0_0') && 'the model was not told what had been before',
      init?.sessionId !== claudeSessionId && 'it goes on under another id',
    ]),
    isAsked && result !== null ? costOf(ground, first, again) : untried('cost', 'the session did not end its turn'),
  ];
  const fork = ground.start('fork', { session: first, fork: true });
  fork.probe.open(task);
  await fork.probe.until(isResult, startMs);
  await fork.probe.end();
  if (ground.asked('fork').length === 0) return [...seen, untried('fork', `no fork ran; ${fork.probe.describe()}`)];
  const isTold = said(ground, 'fork', 0).includes(fork.hookWord);
  return [...seen, seenIf('fork', [!isTold && 'the text of the hook did not reach the model'])];
}

/**
 * Both attempts had requests of one size: the tokens are those that the model counted, and each request costs the same.
 * What that is in dollars is claude's word.
 */
function costOf(ground: Ground, ...attempts: readonly TrialAttempt[]): Seen {
  const prices = attempts.map(({ name, probe }) => probe.stream.costUsd / ground.asked(name).length);
  const faults = attempts.map(({ name, probe: { stream } }) => {
    const [told, served] = [tokensOf(stream.tokens), tokensOf(ground.servedTo(name))];
    const parts = Object.values(stream.models).reduce((sum, { costUsd }) => sum + costUsd, 0);
    const which = name === 'again' ? 'the resumed process' : 'the first process';
    if (told !== served) return `${which} reported ${told} tokens where ${served} were used`;
    return !isSame(parts, stream.costUsd) && `${which} reported ${stream.costUsd} dollars, by model ${parts}`;
  });
  const [first = 0, second = 0] = prices;
  return seenIf('cost', [
    ...faults,
    !(first > 0) && 'no cost was reported',
    !isSame(first, second) && `a request cost ${first} dollars, and ${second} after the resume`,
  ]);
}

const isSame = (a: number, b: number): boolean => Math.abs(a - b) < 1e-9;

function tokensOf(tokens: Tokens = noTokens): number {
  return tokens.input + tokens.output + tokens.cacheRead + tokens.cacheCreation;
}

/** A session with this login in a project that would have others pay. */
async function playLogin(ground: Ground, login: LoginKind): Promise<Seen[]> {
  const trace = join(ground.folder, `ran-${login}`);
  const elsewhere = join(ground.folder, `elsewhere-${login}`);
  ground.world.files.makeFolder(elsewhere);
  // The address tells whom it robbed.
  const means = { thief: `${ground.thiefUrl}/${login}`, trace, folder: elsewhere };
  const project = together(ground.met(payerAttacks(means)));
  const { probe } = ground.start(login, { login, project });
  probe.open(task);
  const result = await probe.until(isResult, startMs);
  await probe.end();
  const asked = ground.asked(login);
  const headers = asked.map((request) => request.headers);
  const wanted = Object.entries(ground.credentialOf(login));
  const others = logins.filter((other) => other !== login);
  const robbery = ground.robberies.find((call) => !others.some((other) => call.includes(` /${other}`)));
  const payer = seenIf('payer', [
    robbery !== undefined && `another server was asked (${robbery})`,
    ground.world.files.info(trace) !== null && 'a program of the project was run for a credential',
    asked.some((request) => JSON.stringify([request.headers, request.body]).includes(stolenWord)) &&
      'a request carried what the project says',
    headers.some((own) => wanted.some(([name, value]) => own[name] !== value)) && 'another credential was used',
    ground.world.files.list(elsewhere).length > 0 && 'something was written into a folder that the project names',
  ]);
  const isServed = result?.kind === 'result' && !result.isError && asked.length > 0;
  if (isServed) return [holds(`login-${login}`), payer];
  // A robbery explains why the login was not used.
  if (payer.verdict === 'broken') return [payer];
  const isTold = result?.kind === 'result';
  const how = isTold ? `it ended with: ${(result.result ?? result.subtype).slice(0, 200)}` : probe.describe();
  return [broken(`login-${login}`, how)];
}

async function playBudget(ground: Ground): Promise<Seen[]> {
  // Less than one request costs.
  const { probe } = ground.start('budget', { reservedUsd: 0 });
  probe.open(task);
  const result = await probe.until(isResult, startMs);
  await probe.end();
  const requests = ground.asked('budget').length;
  if (requests === 0) return [untried('budget', `nothing was asked of the model; ${probe.describe()}`)];
  const isStopped = result?.kind === 'result' && isOverCap(result);
  return [
    seenIf('budget', [
      requests > 1 && `${requests} requests were made where the first had used it up`,
      !isStopped && 'its result does not say so',
    ]),
  ];
}

async function playCompaction(ground: Ground): Promise<Seen[]> {
  const project = together(ground.met(compactionAttacks));
  const harmed = await compaction(ground, 'compact', project);
  if (harmed === 'fine') return [holds('compaction'), holds('compaction-kept')];
  const unharmed = await compaction(ground, 'compact-unharmed', {});
  if (unharmed === 'fine') return [holds('compaction'), broken('compaction-kept', harmed)];
  const about = ground.asked('compact-unharmed').length === 0 ? untried : broken;
  return [about('compaction', unharmed), untried('compaction-kept', 'there is none')];
}

/** What was wrong with the compaction of a window that is full. */
async function compaction(ground: Ground, name: string, project: JsonObject): Promise<string> {
  const { probe, hookWord } = ground.start(name, { settings: compactionSettings, project });
  probe.open(task);
  await probe.until(isResult, startMs);
  await probe.end();
  const asked = ground.asked(name);
  const summary = asked.findIndex(({ kind }) => kind === 'summary');
  const after = asked.slice(summary + 1).find(({ kind }) => kind === 'step');
  const { compactions, contextLost } = probe.stream;
  if (asked.length === 0) return `nothing was asked of the model; ${probe.describe()}`;
  if (summary === -1) return 'a full window was not compacted';
  if (compactions === 0) return 'the compaction was not reported';
  if (after === undefined) return 'the session did not go on after the compaction';
  if (contextLost || !JSON.stringify(after.body).includes(hookWord)) return 'the hook did not bring the state back';
  return 'fine';
}
