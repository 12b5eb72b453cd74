/** Checks one program: a session that works, is interrupted and resumed, and a session that reaches its cap. */
import { join } from 'node:path';
import { answersInterrupt, interruptRequest, usageRequest } from '../../claude/control.ts';
import { isOverCap } from '../../claude/failure-text.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { Tokens } from '../../core/group.ts';
import type { RehearsalScript, Step } from '../../rehearsal/script.ts';
import { systemFailure } from '../../store/system-failure.ts';
import type { World } from '../../system/world.ts';
import { broken, type CheckResult, checks, resultOf, unknown } from './checks.ts';
import {
  type CheckedProcess,
  type CheckSession,
  hookTextFor,
  Sandbox,
  SandboxError,
  type SandboxOptions,
  taskFor,
} from './sandbox.ts';

/** Long, because a machine under load may start processes slowly. */
const turnMs = 20_000;
/** Twice as long as the runner waits. */
const interruptMs = 10_000;
const killedMs = 3_000;
const limitMs = 120_000;

const bash = (command: string): Step => ({ tool: 'Bash', input: { command } });
const done: Step = { text: 'The check is done.' };
const work = [bash('rm precious'), bash('[ -s started ] || { echo $$ > started; sleep 60; }'), done];
const spend: Step = { tool: 'Bash', input: { command: 'true' }, usage: { input: 100_000 } };
const deny = ['Bash(rm:*)'];

const script: RehearsalScript = {
  version: 1,
  sessions: {
    '*': { steps: [done] },
    work: { steps: work },
    again: { steps: work },
    cap: { steps: [spend, spend, spend, done] },
  },
};

export type CheckOptions = Omit<SandboxOptions, 'script'>;

/** A failure is checked again, because a busy machine can cause one. Fails with `write-failed` or `spawn-failed`. */
export async function checkClaude(world: World, options: CheckOptions): Promise<Result<readonly CheckResult[]>> {
  const limit = new AbortController();
  const cancel = world.clock.after(limitMs, () => limit.abort());
  const limited = { ...options, stop: AbortSignal.any([options.stop, limit.signal]) };
  try {
    const first = await checkOnce(world, limited);
    if (!first.ok || limited.stop.aborted || first.value.every(({ verdict }) => verdict === 'holds')) return first;
    const second = await checkOnce(world, limited);
    if (!second.ok) return second;
    // A forbidden command that ran once is a fault, whatever happens the second time.
    const ran = first.value.find(({ id, verdict }) => id === 'deny' && verdict === 'broken');
    return ok(second.value.map((one) => (one.id === ran?.id ? ran : one)));
  } finally {
    cancel();
  }
}

async function checkOnce(world: World, options: CheckOptions): Promise<Result<readonly CheckResult[]>> {
  let sandbox: Sandbox | null = null;
  try {
    world.files.remove(options.folder);
    world.files.makeFolder(options.folder);
    // A temporary folder may be reached by a link, and claude reports paths without links.
    const folder = world.files.realPath(options.folder) ?? options.folder;
    sandbox = new Sandbox(world, { ...options, folder, script });
    const both = await Promise.allSettled([checkWork(sandbox), checkCap(sandbox)]);
    const results = both.flatMap((one) => {
      if (one.status === 'rejected') throw one.reason;
      return one.value;
    });
    // An interrupted check looks like a failure.
    const made = options.stop.aborted ? [] : results;
    return ok(checks.map(({ id }) => made.find((one) => one.id === id) ?? unknown(id, '')));
  } catch (error) {
    if (!(error instanceof SandboxError)) return { ok: false, failure: systemFailure(options.folder, error) };
    return fail('spawn-failed', error.message, '');
  } finally {
    await sandbox?.close();
    removeQuietly(world, options.folder);
  }
}

function removeQuietly({ files }: World, folder: string): void {
  try {
    files.remove(folder);
  } catch {
    // Not a failure: the folder is in the folder for temporary files.
  }
}

async function checkWork(sandbox: Sandbox): Promise<CheckResult[]> {
  const { files } = sandbox.world;
  const session = sandbox.newSession('work');
  const precious = join(session.project, 'precious');
  files.writeAtomic(precious, 'precious\n');
  const first = sandbox.start('work', session, { deny });
  const interrupt = await checkInterrupt(sandbox, session, first);
  await first.end();
  const requests = sandbox.requestsOf('work');
  const [header, credential] = sandbox.credential;
  const login = resultOf('login', [
    requests.length === 0 && `no request was made; ${first.describe()}`,
    requests.some(({ headers }) => headers[header] !== credential) && 'another credential was used',
  ]);
  if (requests.length === 0) return [login];
  const request = JSON.stringify(requests[0]?.body);
  // The next command has run, so claude has handled the forbidden one.
  const isDecided = files.info(join(session.project, 'started')) !== null;
  return [
    login,
    resultOf('prompt', [!request.includes(taskFor('work')) && 'it is not in the first request']),
    resultOf('hooks', [
      !first.stream.hookSeen && 'no hook was reported',
      !request.includes(hookTextFor('work')) && 'its text is not in the first request',
    ]),
    isDecided
      ? resultOf('deny', [files.info(precious) === null && 'a forbidden command ran'])
      : unknown('deny', 'no command ran'),
    interrupt,
    ...(await checkResume(sandbox, session, first)),
  ];
}

async function checkInterrupt(sandbox: Sandbox, { project }: CheckSession, claude: CheckedProcess) {
  const { processes, files } = sandbox.world;
  const pid = () => Number(files.readText(join(project, 'started')) ?? '');
  const hasResult = () => claude.message('result') !== undefined;
  await claude.wait(() => pid() > 0 || hasResult(), turnMs);
  const shell = pid() > 0 ? processes.identify(pid()) : null;
  if (shell === null) return unknown('interrupt', 'no command ran');
  const command = [shell, ...processes.findDescendants([shell])];
  claude.send(usageRequest('check'));
  claude.send(interruptRequest('check'));
  const isAnswered = () =>
    claude.messages.some((one) => one.kind === 'control-response' && one.ok && answersInterrupt(one.requestId));
  if (!(await claude.wait(isAnswered, interruptMs))) return broken('interrupt', 'it was not answered');
  if (!(await claude.wait(hasResult, interruptMs))) return broken('interrupt', 'the turn did not end');
  const isGone = await claude.wait(() => !command.some((one) => processes.isAlive(one)), killedMs);
  return resultOf('interrupt', [!isGone && 'the command was left running']);
}

async function checkResume(sandbox: Sandbox, session: CheckSession, first: CheckedProcess): Promise<CheckResult[]> {
  const again = sandbox.start('again', session, { isResumed: true, deny });
  const isOver = await again.wait(() => again.message('result') !== undefined, turnMs);
  await again.end();
  const [request] = sandbox.requestsOf('again');
  const resume = resultOf('resume', [
    request === undefined && `no request was made; ${again.describe()}`,
    // The scripted model used this id in the first process.
    !JSON.stringify(request?.body ?? {}).includes('toolu_step0_0') && 'the model did not receive the conversation',
    again.message('init')?.sessionId !== session.claudeSessionId && 'it has another id',
  ]);
  const isComparable = isOver && request !== undefined;
  return [resume, isComparable ? checkCost(sandbox, first, again) : unknown('cost', 'the resumed turn did not end')];
}

/** All requests are of one size. The scripted model counts their tokens; the price of a request is claude's figure. */
function checkCost(sandbox: Sandbox, first: CheckedProcess, again: CheckedProcess): CheckResult {
  const reported = [first, again].map(({ stream }) => tokensIn(stream.tokens));
  const served = ['work', 'again'].map((name) => tokensIn(sandbox.servedTo(name)));
  const before = first.stream.costUsd / sandbox.requestsOf('work').length;
  const after = again.stream.costUsd / sandbox.requestsOf('again').length;
  return resultOf('cost', [
    reported.some((tokens, index) => tokens !== served[index]) &&
      `it reported ${reported.join(' and ')} tokens where ${served.join(' and ')} were used`,
    !(before > 0) && 'no cost was reported',
    Math.abs(before - after) > 1e-9 && `a request cost $${before}, and $${after} after the resume`,
  ]);
}

const tokensIn = ({ input, output, cacheRead, cacheCreation }: Tokens): number =>
  input + output + cacheRead + cacheCreation;

async function checkCap(sandbox: Sandbox): Promise<CheckResult[]> {
  const claude = sandbox.start('cap', sandbox.newSession('cap'), { reservedUsd: 0 });
  await claude.wait(() => claude.message('result') !== undefined, turnMs);
  await claude.end();
  const requests = sandbox.requestsOf('cap').length;
  if (requests === 0) return [unknown('cap', `no request was made; ${claude.describe()}`)];
  const result = claude.message('result');
  return [
    resultOf('cap', [
      requests > 1 && `it made ${requests} requests, and the first one had used up the cap`,
      !(result !== undefined && isOverCap(result)) && 'its result does not name the cap',
    ]),
  ];
}
