/** `doctor`: is this machine ready, and was anything left behind? Each trouble comes with its cure. */
import type { Command } from '@commander-js/extra-typings';
import { ok } from '../../core/failure.ts';
import { padColumns, type Tone } from '../../report/format.ts';
import { safeJson, safeLine } from '../../report/terminal-text.ts';
import type { Context, Work } from '../context.ts';
import type { Finding, FindingLevel } from '../doctor/finding.ts';
import { checkGroups } from '../doctor/groups.ts';
import { checkMachine } from '../doctor/machine.ts';
import { exitCode } from '../exit-code.ts';

const example = `
Example:
  $ claude-code-agent doctor
  $ claude-code-agent doctor --json | jq '.checks[] | select(.level != "ok")'`;

const marks: Readonly<Record<FindingLevel, { readonly word: string; readonly tone: Tone }>> = {
  ok: { word: 'ok', tone: 'good' },
  warning: { word: 'warning', tone: 'warn' },
  broken: { word: 'broken', tone: 'bad' },
};

export function define(command: Command, context: Context): void {
  command
    .description('Checks Bun, claude and its login, git, the data folder, and what groups left behind.')
    .option('--json', 'one JSON document')
    .addHelpText('after', example)
    .action(({ json }) => context.run(() => examine(context, json === true)));
}

async function examine(context: Context, json: boolean): Promise<Work> {
  const root = context.root();
  const findings = await checkMachine(context, root);
  const isReadable = root.ok && findings.every(({ check, level }) => check !== 'data' || level !== 'broken');
  if (isReadable) findings.push(...checkGroups(context.world, root.value));
  const isBroken = findings.some(({ level }) => level === 'broken');
  if (json) context.stdout.line(safeJson({ ok: !isBroken, checks: findings }, 2));
  else for (const finding of findings) for (const line of describe(context, finding)) context.stdout.line(line);
  return ok(isBroken ? exitCode.failed : exitCode.done);
}

function describe({ stdout }: Context, { check, level, message, next }: Finding): string[] {
  const { word, tone } = marks[level];
  const lead = `${stdout.style(tone, word)}${' '.repeat(8 - word.length)}${padColumns(check, 8)}`;
  const lines = [`${lead}${safeLine(message, 400)}`];
  if (next !== '') lines.push(`${' '.repeat(16)}${safeLine(next, 400)}`);
  return lines;
}
