/**
 * Promises about the shipped templates, with the real claude in a rehearsal: every workflow completes and passes
 * results on, every config is loaded and its rules hold, and every prompt reaches the model filled in.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { claudeBinary } from '../../support/claude/rig.ts';
import { User } from '../../support/cli/user.ts';
import { type FileTree, git, Repository } from '../../support/git/repository.ts';

const timeoutMs = 240_000;
let user: User;
beforeEach(() => {
  // A rehearsal uses the pinned claude unless another one is named.
  user = new User(claudeBinary === undefined ? {} : { CLAUDE_CODE_AGENT_CLAUDE: claudeBinary });
});
afterEach(() => user.remove());

function repository(name: string, tree: FileTree = { 'README.md': `# ${name}\n` }): string {
  const made = new Repository(user.project(name));
  made.commit(tree);
  return made.folder;
}

/** The scripted steps of each session. */
function script(sessions: Readonly<Record<string, readonly object[]>>): string {
  const path = join(user.folder, 'script.json');
  const entries = Object.entries(sessions).map(([name, steps]) => [name, { steps }]);
  writeFileSync(path, JSON.stringify({ version: 1, sessions: Object.fromEntries(entries) }));
  return path;
}

const bash = (command: string) => ({ tool: 'Bash', input: { command } });
const handIn = (input: object) => ({ tool: 'StructuredOutput', input });
const done = { text: 'Handed in.' };

class Ran {
  readonly #sessions: string;

  constructor(group: string) {
    this.#sessions = join(user.data, 'session-groups', group, 'sessions');
  }

  /** A file of the session with this number. */
  read(number: string, file: string): string {
    const folder = readdirSync(this.#sessions).find((name) => name.startsWith(`${number}-`));
    return readFileSync(join(this.#sessions, folder ?? '', file), 'utf8');
  }

  prompt(number: string): string {
    return this.read(number, 'prompt.md');
  }

  init(number: string): Readonly<Record<string, unknown>> {
    const lines = this.read(number, 'transcript.jsonl').trim().split('\n');
    return lines.map((line) => JSON.parse(line)).find(({ subtype }) => subtype === 'init');
  }
}

/** Runs a shipped workflow in `cwd`; it must complete. */
async function rehearse(cwd: string, rehearsal: string, ...args: string[]): Promise<Ran> {
  const finished = await user.runWith({ cwd }, 'run', ...args, '--rehearse', rehearsal, '--output', 'json');
  if (finished.code !== 0)
    throw new Error(`${args.join(' ')} ended with ${finished.code}: ${finished.stderr}${finished.stdout}`);
  const [group = ''] = readdirSync(join(user.data, 'session-groups'));
  expect(await user.json('group', 'show', group)).toMatchObject({ status: 'completed' });
  return new Ran(group);
}

const longRun = test.if(claudeBinary !== undefined);

longRun(
  'review-then-fix: the review changes nothing, and its findings reach the fix and the check',
  async () => {
    const project = repository('api', { 'src/a.ts': 'export const a = 1;\n', 'secrets/key.txt': 'hunter2' });
    const finding = { severity: 'major', place: 'src/a.ts:1', problem: 'a is 1', fix: 'make it 2' };
    const writes = [
      ...['echo x > made.txt', 'cat README.md >> made.txt', 'touch made.txt', 'mkdir made', 'cp src/a.ts made.txt'],
      ...['sed -i s/1/3/ src/a.ts', 'ls && touch made.txt', 'env touch made.txt', 'git diff --output=made.txt'],
      ...[
        'git commit --allow-empty -m x',
        'git checkout -b made',
        `node -e "require('fs').writeFileSync('made.txt', '')"`,
      ],
    ];
    const steps = [
      { tools: writes.map(bash) },
      {
        tools: [
          bash('git log --oneline 2>/dev/null'),
          bash('cat src/a.ts'),
          { tool: 'Read', input: { file_path: '{{project}}/secrets/key.txt' } },
        ],
      },
      { tools: [{ tool: 'Write', input: { file_path: '{{project}}/made.txt', content: 'x' } }] },
    ];
    const rehearsal = script({
      review: [...steps, handIn({ summary: 'Looked.', findings: [finding] }), done],
      fix: [bash('echo "export const a = 2;" > src/a.ts'), { text: 'I made it 2.' }],
      recheck: [
        handIn({ verdict: 'good', repairs: [{ finding: 'a', state: 'mended', evidence: 'src/a.ts:1' }] }),
        done,
      ],
    });
    const ran = await rehearse(project, rehearsal, 'review-then-fix', '--var', 'file_path=src');
    expect(git(project, 'status', '--short')).toBe('M src/a.ts');
    expect(git(project, 'log', '--oneline', '--all').split('\n')).toHaveLength(1);
    expect(readFileSync(join(project, 'src', 'a.ts'), 'utf8')).toBe('export const a = 2;\n');
    const transcript = ran.read('001', 'transcript.jsonl');
    expect(transcript).toContain('export const a = 1;');
    expect(transcript).not.toContain('hunter2');
    expect(ran.prompt('001')).toContain('Review the code in src.\n\nFocus on: security, performance, readability\n');
    expect(ran.prompt('002')).toContain('"place": "src/a.ts:1"');
    expect(ran.prompt('003')).toContain('I made it 2.');
    const init = ran.init('001');
    expect(init.skills).toContain('find-and-prove');
    expect(init.agents).toContain('second-opinion');
    expect(init.tools).not.toContain('Write');
    expect(ran.init('002').tools).toContain('Write');
  },
  timeoutMs,
);

longRun(
  'cross-repo-change: each project receives only its own survey',
  async () => {
    for (const name of ['api', 'web']) repository(name);
    const rehearsal = script({
      'survey-api': [{ text: 'The api uses it in two places.' }],
      'survey-web': [{ text: 'The web is not concerned.' }],
      '*': [{ text: 'The change in {{session}} is made.' }],
      'review-api': [handIn({ verdict: 'good', summary: 'Fine.', findings: [] }), done],
      'review-web': [handIn({ verdict: 'not-concerned', summary: 'Fine.', findings: [] }), done],
    });
    const vars = ['--var', 'change=Use the shared logger', '--var', 'projects=projects/*'];
    const ran = await rehearse(user.folder, rehearsal, 'cross-repo-change', ...vars);
    const prompts = ['001', '002', '003', '004', '005', '006'].map((number) => ran.prompt(number));
    const of = (text: string) => prompts.filter((prompt) => prompt.includes(text)).length;
    // The change and the review of the project.
    expect(of('The api uses it in two places.')).toBe(2);
    expect(of('The web is not concerned.')).toBe(2);
    expect(prompts.filter((prompt) => prompt.includes('two places') && prompt.includes('not concerned.'))).toEqual([]);
    expect(of('The change in change-api is made.')).toBe(1);
  },
  timeoutMs,
);

longRun(
  'strict-typescript and documentation are loaded and their rules hold; every prompt reaches the model',
  async () => {
    const project = repository('api', {
      'package.json': '{"scripts":{"check":"echo checked"}}',
      '.env': 'TOKEN=hunter2',
      'README.md': '# api\n',
    });
    const group = await user.ok('group', 'create', 'shipped');
    const sessions = [
      ['strict', '--prompt', 'Implement auth module', '--template', 'typescript-strict'],
      ['docs', '--template', 'document', '--config-template', 'documentation', '--var', 'file_path=src'],
      ['tests', '--template', 'write-tests', '--var', 'file_path=src/a.ts', '--prompt', 'Mind the edges.'],
      ['update', '--template', 'update-dependency', '--var', 'dependency=zod', '--var', 'target_version=4'],
      ['feature', '--template', 'implement-feature', '--var', 'feature=Log in'],
      ['review', '--template', 'code-review', '--var', 'file_path=src/b.ts'],
    ];
    const common = ['session', 'add', group, '--project', project, '--name'];
    for (const session of sessions) await user.ok(...common, ...session);
    const rehearsal = script({
      strict: [
        {
          tools: [
            bash('npm run check'),
            bash('npm publish'),
            { tool: 'Read', input: { file_path: '{{project}}/.env' } },
            bash('cat .env'),
          ],
        },
        { text: 'Done.' },
      ],
      '*': [{ text: 'Done.' }],
    });
    const finished = await user.run('group', 'run', group, '--rehearse', rehearsal, '--concurrent', '2');
    expect(finished).toMatchObject({ code: 0 });
    const ran = new Ran(group);
    const [strict, docs, ...others] = ['001', '002', '003', '004', '005', '006'].map((number) => ran.init(number));
    expect(strict?.slash_commands).toEqual(expect.arrayContaining(['check', 'fix-types']));
    expect(docs?.slash_commands).toContain('outline');
    expect(docs?.skills).toContain('plain-documentation');
    for (const other of others) expect(other.slash_commands).not.toContain('outline');
    const transcript = ran.read('001', 'transcript.jsonl');
    expect(transcript).toContain('checked');
    expect(transcript).toContain('Permission to use Bash with command npm publish has been denied');
    expect(transcript).not.toContain('hunter2');
    expect(ran.read('001', join('claude-config', 'CLAUDE.md'))).toContain('# TypeScript in this session');
    expect(ran.read('002', join('claude-config', 'CLAUDE.md'))).toContain('# Documentation in this session');
    expect(ran.prompt('001').trim()).toBe('The task of this session:\n\nImplement auth module');
    expect(ran.prompt('002')).toContain('Document src for developers');
    expect(ran.prompt('003')).toMatch(/\n\nWrite tests for src\/a\.ts\.[\s\S]*Mind the edges\./);
    expect(ran.prompt('004')).toContain('Update the dependency zod to 4.');
    expect(ran.prompt('005')).toContain('Implement this feature:\n\nLog in\n');
    expect(ran.prompt('006')).toContain('Review the code in src/b.ts.');
  },
  timeoutMs,
);
