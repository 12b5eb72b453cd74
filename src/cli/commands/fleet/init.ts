/**
 * cli/commands/fleet/: the commands of a fleet, for whoever runs groups. This one: `fleet init` makes it; the join line
 * alone on stdout.
 */
import type { Command } from '@commander-js/extra-typings';
import { type FleetOptions, joinLineOf, type MadeFleet, makeFleet } from '../../../app/fleet/init.ts';
import { whileBusy } from '../../../app/live-runner.ts';
import { fail, ok } from '../../../core/failure.ts';
import { formatDuration } from '../../../view/format.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { parseLease } from '../../options/option-values.ts';

const example = `
Example:
  $ claude-code-agent fleet init --redis redis://127.0.0.1:6379
  $ claude-code-agent fleet init --redis rediss://cca-runner:PASSWORD@redis.example.org:6380 \\
      --host-redis rediss://cca-host:PASSWORD@redis.example.org:6380
  $ ssh gpu1 claude-code-agent host join "$(claude-code-agent fleet join-line)" --label gpu`;

export function define(command: Command, context: Context): void {
  command
    .description(`Makes a fleet of the machines that meet at a Redis, and prints the line with which one joins. The line
holds keys: give it to nobody but the machines. Done again, it keeps the keys that there are.`)
    .option('--redis <url>', 'with the user and password of whoever runs groups (default: CLAUDE_CODE_AGENT_FLEET)')
    .option('--host-redis <url>', 'the same Redis with the user and password of the machines (default: the same)')
    .option('--lease <seconds>', 'how long a machine may work without an answer of Redis (default: 60)', parseLease)
    .option('--ca <file>', 'PEM file of the authority that signed the certificate of Redis')
    .option('--insecure', 'Redis on another machine without encryption, in a network that only you use')
    .option('--json', 'one JSON document: {"joinLine", "isNew", "redis", "leaseMs"}')
    .addHelpText('after', example)
    .action((given) => context.run(() => init(context, given)));
}

interface Given {
  readonly redis?: string | undefined;
  readonly hostRedis?: string | undefined;
  readonly lease?: number | undefined;
  readonly ca?: string | undefined;
  readonly insecure?: true | undefined;
  readonly json?: true | undefined;
}

async function init(context: Context, { redis: given, json, lease, ...more }: Given): Promise<Work> {
  const root = context.root();
  if (!root.ok) return root;
  const redis = given ?? context.env.CLAUDE_CODE_AGENT_FLEET ?? '';
  if (redis === '') {
    return fail('usage', 'Machines meet at a Redis, and none was named.', 'Give its address as --redis URL.');
  }
  const options: FleetOptions = { ...more, redis, leaseMs: lease };
  const made = await whileBusy(context, 'Asking Redis', () => makeFleet(context, root.value, options));
  if (!made.ok) return made;
  for (const line of notes(made.value)) context.stderr.line(safeLine(line, 1_000));
  const { joinLine, isNew, redis: shown, leaseMs } = made.value;
  context.stdout.line(json ? safeJson({ joinLine, isNew, redis: shown, leaseMs }, 2) : joinLine);
  return ok(exitCode.done);
}

const changes = { redis: 'the address of Redis', lease: 'the lease', ca: 'the certificate' } as const;

function notes({ isNew, changed, redis, version, leaseMs, acl, file }: MadeFleet): string[] {
  const begun = isNew
    ? `Made a fleet at ${redis} (Redis ${version}, lease ${formatDuration(leaseMs)}); its keys are in ${file}.`
    : `There was a fleet; its keys stay. It is at ${redis} (Redis ${version}, lease ${formatDuration(leaseMs)}).`;
  const what = changed.map((one) => changes[one]).join(', ');
  const again = `Changed: ${what}. Machines that have joined must join again.`;
  const users = [
    'Redis has no users of its own for this fleet. To make them, type in redis-cli, each with another password:',
    ...acl.map((line) => `  ${line}`),
    'then do this again with --redis for cca-runner and --host-redis for cca-host.',
  ];
  return [
    begun,
    ...(changed.length > 0 ? [again] : []),
    ...(acl.length > 0 ? users : []),
    'With this line a machine joins; whoever has it can read what goes through Redis:',
  ];
}

// `fleet join-line`: the line with which a machine joins, alone on stdout.

const joinLineExample = `
Example:
  $ claude-code-agent fleet join-line
  $ claude-code-agent fleet join-line | ssh gpu1 claude-code-agent host join - --label gpu`;

export function defineJoinLine(command: Command, context: Context): void {
  command
    .description('Prints the line with which a machine joins the fleet. It holds keys and a password.')
    .option('--json', 'one JSON document: {"joinLine"}')
    .addHelpText('after', joinLineExample)
    .action(({ json }) => context.run(() => print(context, json === true)));
}

function print(context: Context, json: boolean): Work {
  const root = context.root();
  if (!root.ok) return root;
  const line = joinLineOf(context, root.value);
  if (!line.ok) return line;
  context.stdout.line(json ? safeJson({ joinLine: line.value }, 2) : line.value);
  return ok(exitCode.done);
}
