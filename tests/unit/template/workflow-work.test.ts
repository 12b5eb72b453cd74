/**
 * Promises: a workflow can set where sessions work and how their work is checked, for one session or all. Project
 * files apply where the workflow is silent, errors have their place, and no value becomes part of a shell command.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import type { SessionDefinition } from '../../../src/core/group.ts';
import { WorkflowFolder } from '../../support/template/workflow-rig.ts';

let folder: WorkflowFolder;
beforeEach(() => {
  folder = new WorkflowFolder();
});
afterEach(() => folder.remove());

const api = 'project: ../services/api, prompt: hi';
const keys = [
  'isolate',
  'accept',
  'acceptRetries',
  'acceptTimeoutMs',
  'setup',
  'setupTimeoutMs',
  'expectChanges',
  'commit',
] as const;

function work(definition: SessionDefinition | object | undefined): object {
  const entries = Object.entries(definition ?? {}).filter(([key]) => (keys as readonly string[]).includes(key));
  return Object.fromEntries(entries);
}

/** The work settings of each session. */
function works(text: string, given: Readonly<Record<string, string>> = {}): object[] {
  return folder.draft(text, given).sessions.map(({ definition }) => work(definition));
}

describe('work settings', () => {
  test('work settings of a session take precedence over those of the group', () => {
    const text = `version: 1
group: { isolate: worktree, accept: npm test, acceptRetries: 3, setup: npm ci, setupTimeout: 20m, commit: false }
sessions:
  a: { ${api} }
  b: { ${api}, isolate: none, accept: make check, acceptTimeout: 30s }
  c: { ${api}, accept: false, setup: false, commit: true, expectChanges: true }`;
    expect(works(text)).toEqual([
      {
        isolate: 'worktree',
        accept: 'npm test',
        acceptRetries: 3,
        setup: 'npm ci',
        setupTimeoutMs: 1_200_000,
        commit: false,
      },
      { isolate: 'none', accept: 'make check', acceptRetries: 3, acceptTimeoutMs: 30_000 },
      { isolate: 'worktree', expectChanges: true },
    ]);
  });

  test('the repository is found for each project', () => {
    const repositories = folder
      .sessions(`  a: { matrix: { projects: "../services/*" }, prompt: hi }\n  b: { project: .., prompt: hi }`)
      .map(({ definition }) => definition.repository);
    const shared = folder.at('services/.git');
    expect(repositories).toEqual([shared, shared, shared, undefined]);
  });
});

describe('commands', () => {
  const withVars = (command: string) => `version: 1
vars: { check: "", area: api }
sessions:
  a: { ${api}, accept: ${JSON.stringify(command)} }`;

  test('a variable may be a whole command, and a blank one counts as unset', () => {
    expect(works(withVars('{{check}}'), { check: "npm test -- --grep '{{x}}'" })).toEqual([
      { accept: "npm test -- --grep '{{x}}'" },
    ]);
    expect(works(withVars('{{check}}'))).toEqual([{}]);
    expect(works(withVars('{{check}}'), { check: ' \n' })).toEqual([{}]);
    const matrix = 'matrix: { check: [make a, make b] }, accept: "{{matrix.check}}"';
    expect(works(`version: 1\nsessions:\n  a: { ${api}, ${matrix} }`)).toEqual([
      { accept: 'make a' },
      { accept: 'make b' },
    ]);
  });
});

describe('refused work settings', () => {
  test('a wrong work setting is reported at its key', () => {
    expect(folder.faults(`  a: { ${api}, isolate: none, setup: npm ci, commit: false }`)).toEqual([
      '3:68 setup applies only to a new worktree, and the session gets none',
      '3:84 commit applies only to worktrees, and the session gets none',
    ]);
    expect(folder.faults(`  a: { ${api}, acceptRetries: 2, acceptTimeout: 5m, setupTimeout: 5m }`)).toEqual([
      expect.stringContaining('acceptRetries has no effect without an accept command'),
      expect.stringContaining('acceptTimeout has no effect without an accept command'),
      expect.stringContaining('setupTimeout has no effect without a setup command'),
    ]);
    expect(folder.faults(`  a: { ${api}, acceptRetries: 11 }`)).toHaveLength(1);
    expect(folder.faults(`  a: { ${api}, isolate: yes }`)).toHaveLength(1);
  });

  test('a worktree without a repository is reported', () => {
    const why = `isolate: worktree needs a git repository, and ${folder.path} is not in one`;
    expect(folder.faults('  a: { project: .., prompt: hi, isolate: worktree }')).toEqual([`3:42 ${why}`]);
    expect(
      folder.allFaults('version: 1\ngroup: { isolate: worktree }\nsessions:\n  a: { project: .., prompt: hi }'),
    ).toEqual([`4:6 group: ${why}`]);
    expect(folder.faults('  a: { project: .., prompt: hi, expectChanges: true }')).toEqual([
      '3:48 expectChanges needs a git repository, and the project is not in one',
    ]);
  });

  test('the branch of a session that cannot have one is reported', () => {
    const faults = (first: string, group = '{}') =>
      folder.allFaults(
        `version: 1\ngroup: ${group}\nsessions:\n  a: { ${first}, prompt: hi }\n` +
          '  b: { project: .., dependsOn: a, prompt: "{{sessions.a.branch}}, {{sessions.a.diffStat}}" }',
      );
    const services = 'project: ../services/api';
    const none = '"a" works in the project folder itself (isolate: none), so it has no branch';
    expect(faults(services)).toEqual([]);
    expect(faults(`${services}, isolate: worktree`, '{ isolate: none }')).toEqual([]);
    expect(faults(`${services}, isolate: none`)).toEqual([
      expect.stringContaining(none),
      expect.stringContaining(none),
    ]);
    expect(faults(services, '{ isolate: none }')).toHaveLength(2);
    // A shared workflow cannot know whether there is a repository.
    expect(faults('project: ..')).toEqual([]);
  });

  test('.branch and .diffStat are one text each', () => {
    const prompt = '{{sessions.a.branch.x}} {{sessions.a.diffStat[0]}} {{sessions.a.brunch}}';
    const text = `  a: { ${api} }\n  b: { project: .., dependsOn: a, prompt: "${prompt}" }`;
    expect(folder.faults(text)).toEqual([
      expect.stringContaining('.branch is plain text and has no fields'),
      expect.stringContaining('.diffStat is plain text and has no fields'),
      expect.stringContaining('a session has no "brunch"; did you mean "branch"?'),
    ]);
  });
});

describe('project files', () => {
  const write = (project: string, text: string) =>
    folder.write(`services/${project}/.claude-code-agent/project.yaml`, text);

  test('project files apply where neither session nor group sets a value, and are listed once', () => {
    const file = write('api', 'accept: npm test\nsetup: npm ci\nisolate: worktree\nacceptTimeout: 1m\n');
    write('web', 'accept: false');
    const text = (more: string, group = '{}') =>
      `version: 1\ngroup: ${group}\nsessions:\n` +
      `  a: { matrix: { projects: "../services/*", n: [x, y] }, prompt: hi${more} }`;
    const draft = folder.draft(text(''));
    expect(draft.sessions.map(({ definition }) => work(definition))).toEqual([
      ...Array(2).fill({ isolate: 'worktree', accept: 'npm test', acceptTimeoutMs: 60_000, setup: 'npm ci' }),
      ...Array(4).fill({}),
    ]);
    expect(draft.projectCommands).toEqual([
      { file, key: 'accept', command: 'npm test' },
      { file, key: 'setup', command: 'npm ci' },
    ]);
    const own = folder.draft(text(', accept: make', '{ setup: false }'));
    expect(work(own.sessions[0]?.definition)).toEqual({ isolate: 'worktree', accept: 'make', acceptTimeoutMs: 60_000 });
    expect(own.projectCommands).toEqual([]);
  });

  test('problems of a project file are reported once, with its own name', () => {
    const file = write('api', 'acept: x\n');
    const loaded = folder.load(
      'version: 1\nsessions: { a: { project: ../services/api, prompt: hi, matrix: { n: [x, y] } } }',
    );
    expect(loaded).toEqual({
      ok: false,
      problems: [{ file, line: 1, column: 1, message: 'the project file has no "acept"; did you mean "accept"?' }],
    });
  });

  test('project files that require a worktree outside a repository are reported', () => {
    const file = folder.write('.claude-code-agent/project.yaml', 'isolate: worktree');
    expect(folder.faults('  a: { project: .., prompt: hi }')).toEqual([
      `3:6 ${file}: isolate: worktree needs a git repository, and ${folder.path} is not in one`,
    ]);
    expect(folder.sessions('  a: { project: .., prompt: hi, isolate: none }')).toHaveLength(1);
  });
});
