/** `host join`: makes this machine a host of a fleet. */
import { findClaude, versionOf } from '../../claude/launch/program.ts';
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { hostNamePattern, hostNameRule, labelPattern, labelRule, slotsMax } from '../../core/setting-values.ts';
import { fleetPaths, type HostConfig, parseJoinLine, readHost, writeHost } from '../../fleet/fleet-files.ts';
import { loginNames, readLogin } from '../../fleet/login-files.ts';
import { withoutPassword } from '../../fleet/redis.ts';
import { listHosts, type RegisteredHost } from '../../fleet/registry.ts';
import { delay } from '../../system/clock.ts';
import type { AppContext } from '../app-context.ts';
import { checkAccepted } from '../claude-check/checks.ts';
import { agentUnit, type Started, startAgent } from './agent-service.ts';
import { withRedis } from './init.ts';
import { checkName, homeOf } from './serve.ts';
import { checkDestination, lastLine } from './ssh.ts';

const gitMs = 20_000;
const lookMs = 200;
const listedMs = 100_000;

export interface JoinOptions {
  readonly line: string;
  /** Absent = the earlier name in the fleet, else the host name. */
  readonly name?: string | undefined;
  /** Absent = as before, else the number of cores. */
  readonly slots?: number | undefined;
  readonly labels?: readonly string[] | undefined;
  /** How git reaches this host from the machines that run groups. */
  readonly ssh?: string | undefined;
  readonly login?: string | undefined;
  readonly acceptClaude?: string | undefined;
}

export interface Joined {
  readonly host: HostConfig;
  readonly redis: string;
}

/** Writes the configuration of the host, if all options are valid and Redis answers. */
export async function joinFleet(context: AppContext, root: string, given: JoinOptions): Promise<Result<Joined>> {
  const { world } = context;
  const ticket = parseJoinLine(given.line);
  if (!ticket.ok) return ticket;
  const before = readHost(world.files, root);
  if (!before.ok) return before;
  const name = checkNewHostName(given.name ?? before.value?.name ?? world.machine.host);
  if (!name.ok) return name;
  const labels = checkLabels(given.labels ?? before.value?.labels ?? []);
  if (!labels.ok) return labels;
  const ssh = given.ssh === undefined ? ok(undefined) : checkDestination(given.ssh);
  if (!ssh.ok) return ssh;
  const codeUrl = ssh.value === undefined ? before.value?.codeUrl : codeUrlOf(ssh.value, fleetPaths(root).repositories);
  const slots = given.slots ?? before.value?.slots ?? Math.min(world.machine.cores, slotsMax);
  const loginName = given.login ?? before.value?.login;
  const login = checkLogin(context, root, loginName);
  if (!login.ok) return login;
  const programs = await checkPrograms(context, given.acceptClaude);
  if (!programs.ok) return programs;
  const { leaseMs } = ticket.value;
  const free = await withRedis(world, ticket.value, async (redis) => {
    const reached = await redis.nowMs();
    return reached.ok ? checkName(redis, { name: name.value, leaseMs }, homeOf(world, root)) : reached;
  });
  if (!free.ok) return free;
  const acceptClaude = given.acceptClaude ?? before.value?.acceptClaude;
  const host: HostConfig = {
    ...ticket.value,
    name: name.value,
    slots,
    labels: labels.value,
    ...defined({ login: loginName, acceptClaude, codeUrl }),
  };
  const written = writeHost(world.files, root, host);
  return written.ok ? ok({ host, redis: withoutPassword(host.redis) }) : written;
}

/** `ssh://user@host:port` is followed by the path, every other destination by a colon and the path. */
function codeUrlOf(ssh: string, path: string): string {
  return ssh.startsWith('ssh://') ? `${ssh}${path}` : `${ssh}:${path}`;
}

export const joinSteps = { start: 'Starting the agent ...', wait: 'Waiting for the agent to register ...' } as const;

export async function joinAndServe(
  context: AppContext,
  root: string,
  given: JoinOptions,
): Promise<Result<Joined & { readonly started: Started }>> {
  const joined = await joinFleet(context, root, given);
  if (!joined.ok) return joined;
  const before = await withRedis(context.world, joined.value.host, (redis) => redis.nowMs());
  if (!before.ok) return before;
  context.notes.line(joinSteps.start);
  const started = await startAgent(context, root);
  if (!started.ok) return started;
  context.notes.line(joinSteps.wait);
  const listed = await untilListed(context, joined.value.host, before.value, started.value);
  if (listed?.refusal !== undefined) {
    const again = acceptIt(listed);
    const next = `Install another version of Claude Code; the agent checks it automatically.${again}`;
    return fail('claude-unproven', `This host has joined but takes no sessions: ${listed.refusal}`, next);
  }
  if (listed !== undefined) return ok({ ...joined.value, started: started.value });
  if (started.value.as === 'unit') {
    return fail('timeout', `The agent (unit ${agentUnit}) did not register.`, `See: journalctl --user -u ${agentUnit}`);
  }
  const { log, isOver } = started.value;
  const printed = lastLine(context.world.files.readText(log) ?? '');
  const message = isOver() ? `The agent ended at once: ${printed}.` : 'The agent did not register.';
  return fail(isOver() ? 'spawn-failed' : 'timeout', message, `See its log: ${log}`);
}

/** Waits until the agent that was started after that time (of Redis) registers, which it does after checking claude. */
async function untilListed(
  { world }: AppContext,
  host: HostConfig,
  afterMs: number,
  started: Started,
): Promise<RegisteredHost | undefined> {
  const isOver = () => started.as === 'process' && started.isOver();
  const seen = await withRedis(world, host, async (redis) => {
    for (let waited = 0; waited < listedMs && !isOver(); waited += lookMs) {
      const hosts = await listHosts(redis);
      const own = hosts.ok ? hosts.value.find(({ name }) => name === host.name) : undefined;
      if (own?.isGuarded === true && own.since >= afterMs) return ok(own);
      await delay(world.clock, lookMs);
    }
    return ok(undefined);
  });
  return seen.ok ? seen.value : undefined;
}

function acceptIt({ abilities: { claudeVersion } }: RegisteredHost): string {
  return claudeVersion === '' ? '' : ` Or join again at your own risk with --accept-claude ${claudeVersion}.`;
}

async function checkPrograms(
  { world, env, packageRoot }: AppContext,
  accepted: string | undefined,
): Promise<Result<void>> {
  const claude = findClaude(world, env, { packageRoot });
  const version = claude.ok ? await versionOf(world, claude.value.program, env) : claude;
  if (!version.ok) return version;
  const isRight = checkAccepted(version.value, accepted);
  if (!isRight.ok) return isRight;
  const path = { PATH: env.PATH ?? '', HOME: env.HOME ?? '' };
  const git = await world.processes.run({ program: 'git', args: ['--version'], cwd: '/', env: path, timeoutMs: gitMs });
  if (git.ok && git.value.exitCode === 0) return ok(undefined);
  return fail('usage', 'There is no git on this machine.', 'Install git: sessions work in worktrees.');
}

export function checkNewHostName(name: string): Result<string> {
  if (hostNamePattern.test(name) && name !== 'any') return ok(name);
  return fail(
    'usage',
    `${JSON.stringify(name)} is not a valid host name: ${hostNameRule}.`,
    'Give another one with --name.',
  );
}

export function checkLabels(labels: readonly string[]): Result<string[]> {
  const wrong = labels.find((label) => !labelPattern.test(label));
  if (wrong === undefined) return ok([...new Set(labels)].toSorted());
  return fail(
    'usage',
    `${JSON.stringify(wrong)} is not a valid label: ${labelRule}.`,
    'Give one --label for each label.',
  );
}

function checkLogin({ world }: AppContext, root: string, name: string | undefined): Result<void> {
  if (name === undefined) return ok(undefined);
  const login = readLogin(world.files, root, name);
  if (!login.ok) return login;
  if (login.value !== undefined) return ok(undefined);
  const known = loginNames(world.files, root);
  const next =
    known.length > 0
      ? `There are: ${known.join(', ')}.`
      : `Create ${root}/fleet/logins/${name}.env(chmod 600) with a line such as ANTHROPIC_API_KEY=…`;
  return fail('not-found', `This host has no login ${JSON.stringify(name)}.`, next);
}
