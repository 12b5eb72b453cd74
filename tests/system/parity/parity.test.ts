/**
 * Promises: a session does what plain claude does in the same folder for the same user: what the model receives, what
 * runs, what claude reports. Every difference stands in docs/parity.md with its reason and the place where the user is
 * told. The fixture (tests/support/parity/fixture.ts) uses what a project and a user can tell claude.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { packageRoot } from '../../support/cli.ts';
import { patienceMs } from '../../support/mailbox.ts';
import { allowedDifferences, fits } from '../../support/parity/allowed.ts';
import { differences, itemsOf, type RunOfClaude } from '../../support/parity/items.ts';
import { type GroupRun, ParityGround } from '../../support/parity/runs.ts';

setDefaultTimeout(4 * patienceMs);

/** By project; each begins with a slash command of the project. */
const prompts = { app: '/fix-issue 12 now @docs/mentioned.md', lib: '/deploy to the moon' } as const;

let ground: ParityGround;
let plain: Readonly<Record<keyof typeof prompts, RunOfClaude>>;
let grouped: GroupRun;
let inherited: GroupRun;

function workflow(...names: string[]): string {
  const sessions = names.map((name) => {
    const project = name.split('-')[0] as keyof typeof prompts;
    const isolate = name.endsWith('-apart') ? 'worktree' : 'none';
    return `  ${name}: { project: "${ground.fixture[project]}", isolate: ${isolate}, prompt: "${prompts[project]}" }`;
  });
  return ['version: 1', 'title: Parity', 'sessions:', ...sessions, ''].join('\n');
}

beforeAll(async () => {
  ground = new ParityGround();
  const [app, lib] = await Promise.all([
    ground.plain('plain-app', { project: 'app', prompt: prompts.app }),
    ground.plain('plain-lib', { project: 'lib', prompt: prompts.lib }),
  ]);
  plain = { app, lib };
  grouped = await ground.group('alone', workflow('app', 'lib', 'app-apart', 'lib-apart'));
  inherited = await ground.group(
    'inherited',
    workflow('app-apart').replace('sessions:', 'group: { inherit: user }\nsessions:'),
  );
}, 4 * patienceMs);
afterAll(() => ground.close());

const [always, inWorktree, withoutInherit, withInherit] = [
  'Everywhere',
  'In a worktree',
  'Without `inherit: user`',
  'With `inherit: user`',
];

const allowed = allowedDifferences(packageRoot);
const used = new Set<string>();

function notAllowed(first: RunOfClaude, second: RunOfClaude, ...where: readonly string[]): string[] {
  const patterns = allowed.filter((row) => where.includes(row.where)).flatMap((row) => row.patterns);
  const found = [...differences(itemsOf(first), itemsOf(second))];
  return found.flatMap(([difference, text]) => {
    const fitting = patterns.filter((pattern) => fits(pattern, difference));
    for (const pattern of fitting) used.add(pattern);
    return fitting.length > 0 ? [] : [`${difference}\n${text}`];
  });
}

describe('compared with plain claude', () => {
  test.each(['app', 'lib', 'app-apart', 'lib-apart'])('a session in %s differs as the list says', (name) => {
    const session = grouped.sessions[name] as RunOfClaude;
    const [project, isApart] = name.split('-') as [keyof typeof prompts, string | undefined];
    const where = [always, withoutInherit, ...(isApart === undefined ? [] : [inWorktree])];
    expect(session.requests.length).toBeGreaterThan(0);
    expect(notAllowed(plain[project], session, ...where)).toEqual([]);
  });

  test('with inherit: user a session has what its user has', () => {
    expect(
      notAllowed(plain.app, inherited.sessions['app-apart'] as RunOfClaude, always, inWorktree, withInherit),
    ).toEqual([]);
  });

  test('each row of the list is still true, and says why and where the user is told', () => {
    expect(allowed.flatMap(({ patterns }) => patterns).filter((pattern) => !used.has(pattern))).toEqual([]);
    for (const { reason, told } of allowed) expect([reason, told].every((text) => /\w/.test(text))).toBe(true);
  });
});
