/** One command line that must be refused (or answered without harm), and what a refusal has to look like. */
import { expect } from 'bun:test';
import { mayBeRefusedInProcess, type ProgramCall, runInProcess } from '../../in-process.ts';
import { unprivileged } from '../../unprivileged.ts';
import { launcher } from '../user.ts';
import type { Ground } from './ground.ts';

export interface Mistake {
  readonly cwd?: string;
  /** undefined = the variable is not set. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** As a user to whom file permissions apply. */
  readonly unprivileged?: true;
  readonly args: readonly string[];
  readonly code: number;
  /** What the sentence must name. */
  readonly culprit: string | RegExp;
  /** What it must tell to do. */
  readonly next: string | RegExp;
  /** Present when the command has something to show all the same; it is not a refusal then. */
  readonly shows?: string | RegExp;
}

export interface MistakeOutcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export function mistake(
  args: readonly string[],
  code: number,
  culprit: string | RegExp,
  next: string | RegExp,
  more: Partial<Mistake> = {},
): Mistake {
  return { args, code, culprit, next, ...more };
}

const titleColumnsMax = 100;

/** Command line and circumstances on one printable line. */
export function mistakeTitle({ args, cwd: _, ...rest }: Mistake, ground: Ground): string {
  const words = args.map((arg) => (/^[\w./:=@-]+$/.test(arg) ? arg : JSON.stringify(arg))).join(' ');
  const variables = Object.entries(rest.env ?? {}).map(([name, value]) => `${name}=${value ?? '(unset)'} `);
  const line = `${variables.join('')}${words}${rest.unprivileged ? ' (unprivileged)' : ''}`;
  const plain = line.replaceAll(ground.folder, '~').replace(/[^\x20-\x7e]/g, '?');
  return plain.length > titleColumnsMax ? `${plain.slice(0, titleColumnsMax - 3)}...` : plain;
}

const lineOf = (ground: Ground, { args, cwd = ground.folder, env }: Mistake): ProgramCall => ({
  args,
  cwd,
  env: { ...ground.env, ...env },
});

const needsProcess = ({ args, unprivileged }: Mistake): boolean =>
  unprivileged === true || !mayBeRefusedInProcess(args);

async function commitAsProcess(ground: Ground, mistake: Mistake): Promise<MistakeOutcome> {
  const line = lineOf(ground, mistake);
  const command = [...(mistake.unprivileged ? unprivileged.prefix : []), launcher, ...line.args];
  const set = Object.entries(line.env).filter(([, value]) => value !== undefined);
  const child = Bun.spawn(command, {
    cwd: line.cwd,
    env: Object.fromEntries(set) as Record<string, string>,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { code: await child.exited, stdout, stderr };
}

/**
 * Commits all of them, those that need a process of their own never more than `atOnce` at the same time; the outcomes
 * in the order of the mistakes.
 */
export async function runMistakes(ground: Ground, all: readonly Mistake[], atOnce: number): Promise<MistakeOutcome[]> {
  const outcomes: MistakeOutcome[] = [];
  const open: [number, Mistake][] = [];
  for (const [index, mistake] of all.entries()) {
    if (needsProcess(mistake)) open.push([index, mistake]);
    else outcomes[index] = await runInProcess(lineOf(ground, mistake));
  }
  const work = async (): Promise<void> => {
    for (let next = open.shift(); next !== undefined; next = open.shift()) {
      outcomes[next[0]] = await commitAsProcess(ground, next[1]);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return outcomes;
}

const sentenceLengthMax = 2_100;

/** How sentences begin that tell what to do. */
const advice = new RegExp(
  `^(?:${[
    ...['Add', 'Check', 'Continue', 'Correct', 'Create', 'Delete', 'Describe', 'Finish', 'Give', 'Leave out'],
    ...['Let', 'Look at', 'Lower', 'Pause', 'Put', 'Remove', 'Restore', 'Resume', 'Retry', 'Run', 'Say', 'See:'],
    ...[
      'Set',
      'Start',
      'Try',
      'Use',
      'Watch',
      'Inspect',
      'Fix',
      'Choose',
      'Fetch',
      'Replace',
      'Commit',
      'Resolve',
      'Move',
    ],
  ].join('|')}) `,
);

/** One of the sentences after the one with the trouble, or below a list of troubles, tells what to do: `next`. */
export function expectAdvice(stderr: string, next: string | RegExp = ''): void {
  const lines = stderr.trimEnd().split('\n');
  const sentences = (lines.at(-1) as string).split(/(?<=[.?]) (?=[A-Z])/);
  const following = lines.length > 1 ? sentences : sentences.slice(1);
  expect(following.join(' ')).toMatch(next);
  expect({ stderr, advises: following.some((sentence) => advice.test(sentence)) }).toMatchObject({ advises: true });
}

/** One line that says what is wrong and what to do next, nothing that moves a cursor, and nothing else. */
export function expectRefusal(mistake: Mistake, { code, stdout, stderr }: MistakeOutcome): void {
  expect(stderr).toMatch(mistake.culprit);
  expect(stderr).toMatch(mistake.next);
  expect({ code, stderr }).toEqual({ code: mistake.code, stderr });
  // biome-ignore lint/suspicious/noControlCharactersInRegex: nothing of the input may control the terminal.
  expect(stdout + stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028-\u202e]/);
  expect(stderr).not.toMatch(/\n\s+at |Internal error|defect|undefined|\[object/);
  expect(stderr.length).toBeLessThan(sentenceLengthMax);
  if (mistake.shows !== undefined) {
    expect(stdout).toMatch(mistake.shows);
    return;
  }
  expect(stdout).toBe('');
  expectAdvice(stderr, mistake.next);
  // One line, or a list of the problems of a file, with the line in question, and the next step below it.
  const problem = /[^\n]+:\d+:\d+: [^\n]+\n(?:\d+ \| [^\n]*\n *\| *\^\n)?/.source;
  const list = new RegExp(`^claude-code-agent: [A-Z][^\\n]+ problems?:\\n(?:${problem})+[A-Z][^\\n]+\\.\\n$`);
  if (!list.test(stderr)) expect(stderr).toMatch(/^claude-code-agent: [A-Z"][^\n]+\n$/);
}
