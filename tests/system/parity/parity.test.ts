/**
 * Promises: a session does what plain claude does in the same folder for the same user: model input, executed commands,
 * reported messages. Every difference is listed in docs/parity.md with its reason and where the user sees it. The
 * fixture (tests/support/parity/fixture.ts) uses every project and user feature.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { patienceMs } from '../../support/mailbox.ts';
import { allowedDifferences, documentedDifferences, fits, headings } from '../../support/parity/allowed.ts';
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

const { everywhere, inWorktree, withoutInherit, withInherit } = headings;
const used = new Set<string>();

function notAllowed(first: RunOfClaude, second: RunOfClaude, ...where: readonly string[]): string[] {
  const patterns = allowedDifferences.filter((row) => where.includes(row.where)).flatMap((row) => row.patterns);
  const found = [...differences(itemsOf(first), itemsOf(second))];
  return found.flatMap(([difference, text]) => {
    const fitting = patterns.filter((pattern) => fits(pattern, difference));
    for (const pattern of fitting) used.add(pattern);
    return fitting.length > 0 ? [] : [`${difference}\n${text}`];
  });
}

/** Proof that a feature has an effect in plain claude: the name of an item and a part of its text. */
const features: Readonly<Record<keyof typeof prompts, readonly (readonly [item: string, text: string])[]>> = {
  app: [
    ['message: Contents of PROJECT/CLAUDE.md *', 'MEMORY OF app'],
    ['message: Contents of PROJECT/docs/inside.md *', 'IMPORTED FROM INSIDE'],
    ['message: Contents of HOME/work/shared.md *', 'IMPORTED FROM ABOVE'],
    ['message: Contents of HOME/mine.md *', 'IMPORTED FROM HOME'],
    ['message: Contents of PROJECT/CLAUDE.local.md *', 'LOCAL MEMORY OF app'],
    ['message: Contents of HOME/work/CLAUDE.md *', 'MEMORY ABOVE THE REPOSITORY'],
    ['message: Contents of CONFIG/CLAUDE.md *', 'MEMORY OF THE USER'],
    ['message: Contents of CONFIG/rules/mine.md *', 'RULE OF THE USER'],
    ['message: Contents of PROJECT/.claude/rules/always.md *', 'RULE OF app'],
    ['message: Contents of PROJECT/.claude/rules/typed.md*', 'TYPESCRIPT RULE OF app'],
    ['message: Contents of PROJECT/packages/sub/CLAUDE.md*', 'NESTED MEMORY OF app'],
    ['message: Fix the issue 12 now*', 'First: '],
    ['*message: # Output Style: terse', 'OUTPUT STYLE: few words.'],
    ['message: Attribution *', 'Signed-off-by: The App Team'],
    ['message: # Environment', 'HOME/work/beside'],
    ['init.agents helper', ''],
    ['init.agents user-agent', ''],
    ['init.skills review', ''],
    ['init.skills user-skill', ''],
    ['init.slash_commands fix-issue', ''],
    ['init.slash_commands user-command', ''],
    ['init.mcp_servers approved', 'connected'],
    ['init.mcp_servers user-server', 'connected'],
    ['init.mcp_servers local-server', 'connected'],
    ['result of Bash {"command":"sh note.sh allowed"}', ''],
    ['result of Bash {"command":"sh note.sh denied"}', 'denied'],
    ['refused Bash {"command":"sh note.sh asked"}', ''],
    ['result of Bash {"command":"sh note.sh local"}', ''],
    ['refused Bash {"command":"sh note.sh unlisted"}', ''],
    ['result of Bash {"command":"sh note.sh user"}', ''],
    ['result of Read {"file_path":"PROJECT/secret.txt"}', 'denied'],
    ['ran PROJECT of-the-project in PROJECT', ''],
    ['ran LOCAL of-this-checkout in PROJECT', ''],
    ['ran USER of-the-user in PROJECT', ''],
    ...['SessionStart', 'UserPromptSubmit', 'PreToolUse', 'PostToolUse', 'Stop', 'SessionEnd'].map(
      (event) => [`ran hook ${event} in PROJECT`, ''] as const,
    ),
    ['ran hook of the user in PROJECT', ''],
  ],
  lib: [
    ['message: Contents of PROJECT/AGENTS.md *', 'AGENTS FILE OF lib'],
    ['message: *', 'Deploy to to the moon as the skill says.'],
    ['stderr: Ignoring 5 permissions.allow entries *', ''],
    ['ran hook SessionStart in PROJECT', ''],
    ['init.permissionMode', 'acceptEdits'],
  ],
};

describe('compared with plain claude', () => {
  test.each(['app', 'lib'] as const)('each feature of the fixture has an effect in plain claude: %s', (project) => {
    const items = [...itemsOf(plain[project])];
    const without = features[project].filter(
      ([item, part]) => !items.some(([name, text]) => fits(item, name) && `${name}\n${text}`.includes(part)),
    );
    expect(without).toEqual([]);
  });

  test.each(['app', 'lib', 'app-apart', 'lib-apart'])('a session in %s differs exactly as listed', (name) => {
    const session = grouped.sessions[name] as RunOfClaude;
    const [project, isApart] = name.split('-') as [keyof typeof prompts, string | undefined];
    const where = [everywhere, withoutInherit, ...(isApart === undefined ? [] : [inWorktree])];
    expect(session.requests.length).toBeGreaterThan(0);
    expect(notAllowed(plain[project], session, ...where)).toEqual([]);
  });

  test("with inherit: user a session has the user's configuration", () => {
    expect(
      notAllowed(plain.app, inherited.sessions['app-apart'] as RunOfClaude, everywhere, inWorktree, withInherit),
    ).toEqual([]);
  });

  test('each listed difference still occurs, and docs/parity.md lists exactly these', () => {
    expect(allowedDifferences.flatMap(({ patterns }) => patterns).filter((pattern) => !used.has(pattern))).toEqual([]);
    expect(documentedDifferences()).toEqual(allowedDifferences.map(({ where, item }) => ({ where, item })));
  });
});

interface ConfigShown {
  readonly claudeMd: readonly { readonly text: string }[];
  readonly trusted: boolean;
  readonly settings: { readonly env: object; readonly permissions: { readonly allow: readonly string[] } };
  readonly files: readonly { readonly path: string }[];
  readonly mcpServers: object;
}

test("session show --config prints the session's configuration and no secret", async () => {
  const shown = await ground.machine.ok('session', 'show', '@/app-apart', '--config', '--json');
  const view = JSON.parse(shown) as ConfigShown;
  const { names = [] } = inherited.sessions['app-apart'] ?? {};
  const [config = ''] = names.find(([, name]) => name === 'CONFIG') ?? [];
  const read = (path: string) => JSON.parse(readFileSync(path, 'utf8'));
  const owned = ['agents', 'commands', 'rules', 'skills'].flatMap((folder) =>
    readdirSync(join(config, folder)).map((entry) => join(folder, entry)),
  );
  expect(view.files.map(({ path }) => path).sort()).toEqual(owned.sort());
  expect(Object.keys(view.mcpServers)).toEqual(Object.keys(read(join(dirname(config), 'mcp.json')).mcpServers));
  const settings = read(join(config, 'settings.json'));
  expect(settings.permissions.allow).toEqual(expect.arrayContaining([...view.settings.permissions.allow]));
  expect(Object.keys(view.settings.env)).toEqual(Object.keys(settings.env));
  const imports = readFileSync(join(config, 'CLAUDE.md'), 'utf8').match(/^@.*$/gm) ?? [];
  expect({ imports: imports.length, trusted: view.trusted }).toEqual({ imports: 2, trusted: true });
  for (const line of imports) expect(view.claudeMd[0]?.text).toContain(line);
  expect(shown).not.toContain('never-shown');
});

describe('failures of claude and of hooks reach the user', () => {
  const times = (text: string, part: string) => text.split(part).length - 1;

  test('a hook without its program and a server that does not start are warnings of the session', () => {
    const hook = 'The PreToolUse:Read hook failed and had no effect: /bin/sh: 1: node_modules/.bin/guard: not found.';
    for (const warning of [hook, 'The MCP server broken could not be started, so its tools were missing.']) {
      // When it happens and in the summary, for two sessions.
      expect({ warning, times: times(grouped.stdout, warning) }).toEqual({ warning, times: 4 });
    }
    expect(grouped.stdout).not.toContain('Ignoring');
  });

  test('ignored rules and servers are named before the run, once per project, and by the plan', () => {
    const rules = `Allow rules of ${ground.fixture.lib} are ignored, because the project is not trusted: `;
    const servers = (project: string) => `An MCP server in .mcp.json of ${project} will not start, `;
    for (const said of [rules, servers(ground.fixture.app), servers(ground.fixture.lib)]) {
      expect({ said, run: times(grouped.stderr, said), plan: times(grouped.plan, said) }).toEqual({
        said,
        run: 1,
        plan: 1,
      });
    }
    expect(grouped.stderr).not.toContain(`Allow rules of ${ground.fixture.app} `);
    expect(grouped.plan).toContain(`Your own claude configuration in ${ground.machine.home}/.claude is not used: `);
    expect(inherited.plan).not.toContain('Your own claude configuration');
    for (const entry of ['trust: true', 'projectMcp: all', 'inherit: user']) {
      expect(grouped.plan).toContain(`with: \`${entry}\` in the group of the workflow`);
    }
  });

  test('settings that claude ignores because of a mistake are named by the plan', async () => {
    const settings = join(ground.fixture.lib, '.claude/settings.json');
    const before = readFileSync(settings, 'utf8');
    expect(grouped.plan).not.toContain(settings);
    for (const [text, what] of [
      ['{ "permissions": {', 'is not valid JSON'],
      ['{ "env": "A=1" }', 'is invalid'],
    ] as const) {
      writeFileSync(settings, text);
      const file = join(ground.machine.folder, 'alone.yaml');
      const { stdout } = await ground.machine.run('run', file, '--dry-run', '--output', 'text');
      expect(stdout).toContain(`${settings} ${what}`);
    }
    writeFileSync(settings, before);
  });
});
