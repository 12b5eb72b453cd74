/** `doctor`: diagnoses problems of this machine and of its groups, each with a suggestion. */
import { type Command, Option } from '@commander-js/extra-typings';
import { checkGroups } from '../../app/check/groups.ts';
import type { Finding, FindingLevel } from '../../app/check/machine.ts';
import { checkClaudeNow, checkMachine } from '../../app/check/machine.ts';
import { type CheckResult, judgeCheck, withResults } from '../../app/claude-check/checks.ts';
import { checkWorktrees } from '../../app/delivery/worktree-check.ts';
import { whileBusy } from '../../app/live-runner.ts';
import type { Result } from '../../core/failure.ts';
import { padColumns, type Tone } from '../../view/format.ts';
import { safeLine } from '../../view/terminal-text.ts';
import { type CommandResult, type Context, exitCode, need, refuse } from '../context.ts';

const example = `
Example:
  $ claude-code-agent doctor
  $ claude-code-agent doctor --claude
  $ claude-code-agent doctor --worktrees
  $ claude-code-agent doctor --hosts
  $ claude-code-agent doctor --json | jq '.checks[] | select(.level != "ok")'`;

const marks: Readonly<Record<FindingLevel, { readonly word: string; readonly tone: Tone }>> = {
  ok: { word: 'ok', tone: 'good' },
  warning: { word: 'warning', tone: 'warn' },
  broken: { word: 'broken', tone: 'bad' },
};

export function define(command: Command, context: Context): void {
  command
    .description('Check Bun, claude and its login, git, the data folder, and leftovers of groups.')
    .addOption(
      new Option('--claude', 'only check the installed claude, with the scripted API and at no cost').conflicts([
        'worktrees',
        'hosts',
      ]),
    )
    .addOption(
      new Option('--worktrees', 'only look for worktrees and branches that sessions left behind').conflicts('hosts'),
    )
    .option('--fix', 'with --worktrees: remove those without unsaved work; branches stay')
    .option('--hosts', 'only check the hosts of the fleet')
    .option('--json', 'one JSON document')
    .addHelpText('after', example)
    .action(({ claude, worktrees, fix, hosts, json }) =>
      context.run(async () => {
        if (fix && !worktrees) {
          return refuse('usage', '--fix needs --worktrees.', 'Run doctor --worktrees --fix.');
        }
        const root = context.root();
        if (claude) return printClaudeCheck(context, need(root), json === true);
        const findings = hosts
          ? await askHosts(context, need(root))
          : worktrees
            ? await whileBusy(context, 'Checking worktrees', () => checkWorktrees(context, need(root), fix === true))
            : await whileBusy(context, 'Checking this machine', () => checkAll(context, root));
        const isBroken = findings.some(({ level }) => level === 'broken');
        if (json === true) context.stdout.json({ ok: !isBroken, checks: findings });
        else for (const finding of findings) context.stdout.lines(describe(context, finding));
        return isBroken ? exitCode.failed : exitCode.done;
      }),
    );
}

async function askHosts(context: Context, root: string): Promise<Finding[]> {
  const { checkHosts } = await import('../../app/check/hosts.ts');
  return need(await whileBusy(context, 'Checking the fleet', () => checkHosts(context, root)));
}

async function checkAll(context: Context, root: Result<string>): Promise<Finding[]> {
  const findings = await checkMachine(context, root);
  const { rememberedCheck } = await import('../../app/check/machine.ts');
  if (root.ok) findings.push(...(await rememberedCheck(context, root.value)));
  const isReadable = root.ok && findings.every(({ check, level }) => check !== 'data' || level !== 'broken');
  return isReadable ? [...findings, ...checkGroups(context.world, root.value)] : findings;
}

function describe({ stdout }: Context, { check, level, message, next }: Finding): string[] {
  const { word, tone } = marks[level];
  const lead = `${stdout.style(tone, word)}${' '.repeat(8 - word.length)}${padColumns(check, 9)}`;
  const lines = [`${lead}${safeLine(message, 600)}`];
  if (next !== '') lines.push(`${' '.repeat(17)}${safeLine(next, 600)}`);
  return lines;
}

const tones: Readonly<Record<CheckResult['verdict'], Tone>> = { holds: 'good', broken: 'bad', unknown: 'warn' };

/** Exit code 0 if a run may use this claude, else 1. */
export async function printClaudeCheck(context: Context, root: string, isJson: boolean): Promise<CommandResult> {
  const { stdout, stderr } = context;
  const checked = need(await checkClaudeNow(context, root));
  if (checked === 'interrupted') return exitCode.interrupted;
  const { program, version, at, durationMs, results } = checked;
  const judged = judgeCheck(checked, undefined);
  const rows = withResults(results);
  if (isJson) stdout.json({ ok: judged.ok, version, program, at, durationMs, checks: rows });
  else {
    stdout.line(`claude ${version} (${safeLine(program, 300)}), checked in ${(durationMs / 1000).toFixed(1)} s`);
    for (const { id, isRequired, verdict, promise, meaning, detail } of rows) {
      const lead = `${stdout.style(tones[verdict], verdict)}${' '.repeat(9 - verdict.length)}`;
      stdout.line(`${lead}${isRequired ? 'required ' : '         '}${padColumns(id, 11)}${promise}`);
      const because = detail === '' ? '' : ` (${safeLine(detail, 300)})`;
      if (verdict !== 'holds')
        stdout.line(`${' '.repeat(29)}${verdict === 'broken' ? meaning : 'Could not be checked.'}${because}`);
    }
    if (!judged.ok) stderr.line(safeLine(judged.failure.message, 1000));
  }
  return judged.ok ? exitCode.done : exitCode.failed;
}
