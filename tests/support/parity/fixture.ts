/**
 * A user's home with two repositories that use every project and user feature of claude. `app` is trusted and has
 * everything; `lib` was never opened in plain claude, and has AGENTS.md instead of CLAUDE.md.
 */
import { join } from 'node:path';
import type { Step } from '../../../src/rehearsal/script.ts';
import { Repository, writeTree } from '../git/repository.ts';

/** Appends its first word, or the variables of settings, and its folder to the file named by PARITY_RAN. */
const noteScript = `#!/bin/sh
note() { echo "$1 in $PWD" >> "$PARITY_RAN"; }
if [ "$1" != variables ]; then note "$1"; exit; fi
note "PROJECT $PROJECT_VARIABLE"
note "LOCAL $LOCAL_VARIABLE"
note "USER $USER_VARIABLE"
`;

/** A server with one tool, `probe`; its start is recorded as well. */
const serverScript = `const { appendFileSync } = require('node:fs');
const name = process.argv[2];
appendFileSync(process.env.PARITY_RAN, 'mcp ' + name + ' in ' + process.cwd() + '\\n');
const tools = [{ name: 'probe', description: 'Probe of ' + name, inputSchema: { type: 'object', properties: {} } }];
const answers = {
  initialize: ({ protocolVersion }) =>
    ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name, version: '1' } }),
  'tools/list': () => ({ tools }),
  'tools/call': () => ({ content: [{ type: 'text', text: 'probe of ' + name + ' answers' }] }),
};
let rest = '';
process.stdin.on('data', (chunk) => {
  const lines = (rest + chunk).split('\\n');
  rest = lines.pop();
  for (const line of lines.filter(Boolean)) {
    const { id, method, params } = JSON.parse(line);
    if (id === undefined) continue;
    const result = answers[method]?.(params) ?? {};
    process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
  }
});
`;

const hook = (name: string, said = '') => ({
  hooks: [{ type: 'command', command: `sh "$CLAUDE_PROJECT_DIR/note.sh" 'hook ${name}'${said}` }],
});
const server = (name: string, folder: string) => ({
  command: process.execPath,
  args: [join(folder, 'server.js'), name],
});
const asMarkdown = (about: object, text: string) =>
  `---\n${Object.entries(about)
    .map(([key, value]) => `${key}: ${value}`)
    .join('\n')}\n---\n\n${text}\n`;

const permissions = {
  allow: [
    'Bash(sh note.sh allowed)',
    'Bash(sh note.sh variables)',
    'mcp__approved__probe',
    'mcp__unapproved__probe',
    'Skill(review)',
  ],
  deny: ['Bash(sh note.sh denied)', 'Read(./secret.txt)'],
  ask: ['Bash(sh note.sh asked)'],
  additionalDirectories: ['../beside'],
};

/** Files of both projects, by path. */
function common(name: string): Record<string, string> {
  return {
    'note.sh': noteScript,
    'secret.txt': `SECRET OF ${name}\n`,
    'packages/sub/CLAUDE.md': `NESTED MEMORY OF ${name}\n`,
    'packages/sub/file.txt': 'nested\n',
    'packages/sub/code.ts': 'export {};\n',
    '.gitignore': 'CLAUDE.local.md\n.claude/settings.local.json\n',
    '.claude/rules/always.md': `RULE OF ${name}\n`,
    '.claude/rules/typed.md': asMarkdown({ paths: '"**/*.ts"' }, `TYPESCRIPT RULE OF ${name}`),
    '.claude/commands/fix-issue.md': asMarkdown(
      { description: 'Fix an issue' },
      'Fix the issue $ARGUMENTS. First: $1.',
    ),
    '.claude/skills/deploy/SKILL.md': asMarkdown(
      { name: 'deploy', description: 'Deploy it', 'disable-model-invocation': true },
      'Deploy to $ARGUMENTS as the skill says.',
    ),
    '.claude/skills/review/SKILL.md': asMarkdown({ name: 'review', description: 'Review it' }, 'Review like this.'),
    '.claude/agents/helper.md': asMarkdown({ name: 'helper', description: `Helps ${name}` }, 'You help.'),
    '.claude/output-styles/terse.md': asMarkdown(
      { name: 'terse', description: 'Few words' },
      'OUTPUT STYLE: few words.',
    ),
  };
}

function appFiles(): Record<string, string> {
  const settings = {
    permissions,
    env: { PROJECT_VARIABLE: 'of-the-project' },
    attribution: { commit: 'Signed-off-by: The App Team', pr: '' },
    outputStyle: 'terse',
    hooks: {
      SessionStart: [hook('SessionStart', '; echo CONTEXT OF A HOOK')],
      UserPromptSubmit: [hook('UserPromptSubmit')],
      PreToolUse: [
        { matcher: 'Bash', ...hook('PreToolUse') },
        { matcher: 'Read', hooks: [{ type: 'command', command: 'node_modules/.bin/guard --check' }] },
      ],
      PostToolUse: [{ matcher: 'Skill', ...hook('PostToolUse') }],
      Stop: [hook('Stop')],
      SessionEnd: [hook('SessionEnd')],
    },
  };
  return {
    ...common('app'),
    'server.js': serverScript,
    'CLAUDE.md': 'MEMORY OF app\n\n@docs/inside.md\n@../shared.md\n@~/mine.md\n',
    'docs/inside.md': 'IMPORTED FROM INSIDE\n',
    'docs/mentioned.md': 'MENTIONED IN THE PROMPT\n',
    '.claude/settings.json': JSON.stringify(settings),
    '.mcp.json': JSON.stringify({
      mcpServers: {
        approved: server('approved', '.'),
        unapproved: server('unapproved', '.'),
        broken: { command: 'no-such-server' },
      },
    }),
  };
}

function libFiles(): Record<string, string> {
  const settings = {
    permissions: { ...permissions, defaultMode: 'acceptEdits' },
    includeCoAuthoredBy: false,
    env: { PROJECT_VARIABLE: 'of-lib' },
    hooks: { SessionStart: [hook('SessionStart')] },
  };
  return {
    ...common('lib'),
    'server.js': serverScript,
    'AGENTS.md': 'AGENTS FILE OF lib\n',
    '.claude/settings.json': JSON.stringify(settings),
    '.mcp.json': JSON.stringify({ mcpServers: { unapproved: server('unapproved', '.') } }),
  };
}

/** Outside the repository: the user's files in this checkout. */
const localFiles = {
  'CLAUDE.local.md': 'LOCAL MEMORY OF app\n',
  '.claude/settings.local.json': JSON.stringify({
    permissions: { allow: ['Bash(sh note.sh local)'] },
    env: { LOCAL_VARIABLE: 'of-this-checkout' },
  }),
};

function userFiles(home: string, app: string): Record<string, string> {
  return {
    'mine.md': 'IMPORTED FROM HOME\n',
    'server.js': serverScript,
    'note.sh': noteScript,
    'work/CLAUDE.md': 'MEMORY ABOVE THE REPOSITORY\n',
    'work/shared.md': 'IMPORTED FROM ABOVE\n',
    'work/beside/file.txt': 'beside\n',
    '.claude/CLAUDE.md': 'MEMORY OF THE USER\n',
    '.claude/rules/mine.md': 'RULE OF THE USER\n',
    '.claude/skills/user-skill/SKILL.md': asMarkdown({ name: 'user-skill', description: 'Of the user' }, 'Do it.'),
    '.claude/commands/user-command.md': asMarkdown({ description: 'Of the user' }, 'Do it.'),
    '.claude/agents/user-agent.md': asMarkdown({ name: 'user-agent', description: 'Of the user' }, 'You help.'),
    '.claude/settings.json': JSON.stringify({
      permissions: { allow: ['Bash(sh note.sh user)', 'mcp__user-server__probe'] },
      env: { USER_VARIABLE: 'of-the-user', USER_PASSWORD: 'never-shown' },
      hooks: {
        PreToolUse: [
          { matcher: 'Bash', hooks: [{ type: 'command', command: `sh '${home}/note.sh' 'hook of the user'` }] },
        ],
      },
    }),
    '.claude.json': JSON.stringify({
      hasCompletedOnboarding: true,
      mcpServers: { 'user-server': server('user-server', home) },
      projects: {
        [app]: {
          hasTrustDialogAccepted: true,
          hasClaudeMdExternalIncludesApproved: true,
          enabledMcpjsonServers: ['approved', 'broken'],
          mcpServers: { 'local-server': server('local-server', home) },
        },
      },
    }),
  };
}

export interface Fixture {
  readonly app: string;
  readonly lib: string;
}

export function makeFixture(home: string): Fixture {
  const [app, lib] = [join(home, 'work/app'), join(home, 'other/lib')];
  writeTree(home, userFiles(home, app));
  new Repository(app).commit(appFiles());
  new Repository(lib).commit(libFiles());
  writeTree(app, localFiles);
  return { app, lib };
}

const bash = (command: string) => ({ tool: 'Bash', input: { command } });
const note = (word: string) => bash(`sh note.sh ${word}`);

/** The model's steps in every run. */
export function stepsIn(): readonly Step[] {
  const words = ['allowed', 'variables', 'denied', 'asked', 'local', 'unlisted', 'user'];
  return [
    { tools: words.map(note) },
    { tools: [bash('git status --porcelain')] },
    { tools: ['packages/sub/file.txt', 'packages/sub/code.ts', 'secret.txt'].map(read) },
    {
      tools: ['approved', 'unapproved', 'user-server', 'local-server'].map((name) => ({ tool: `mcp__${name}__probe` })),
    },
    { tools: [{ tool: 'Skill', input: { skill: 'review' } }] },
    { text: 'All of it is done.' },
  ];
}

/** claude accepts absolute paths only; the scripted model inserts the project. */
function read(path: string) {
  return { tool: 'Read', input: { file_path: `{{project}}/${path}` } };
}
