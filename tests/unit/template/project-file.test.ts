/**
 * Promises: a project file is data of a known form, or every problem is reported at its place, and reading ends for
 * any file. When it applies is tested in `tests/unit/cli/session-work.test.ts` and `workflow-work.test.ts`.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { mkdirSync } from 'node:fs';
import { isProjectFile, loadProjectFile, projectFileFor } from '../../../src/template/workflow/project-file.ts';
import { problemsIn, TemplateFixture, templateWorld, valid } from '../../support/template/rig.ts';

const name = '.claude-code-agent/project.yaml';
let folder: TemplateFixture;
beforeEach(() => {
  folder = new TemplateFixture();
});
afterEach(() => folder.remove());

function load(text: string | Uint8Array) {
  return loadProjectFile(templateWorld, folder.write(name, text));
}

describe('contents of a project file', () => {
  test('every key of a project file is read', () => {
    const text =
      'isolate: worktree\naccept: |\n  npm test\n  npm run lint\nacceptTimeout: 5m\nsetup: npm ci\nsetupTimeout: 1h\n';
    expect(valid(load(text)).work).toEqual({
      isolate: 'worktree',
      accept: 'npm test\nnpm run lint',
      acceptTimeoutMs: 300_000,
      setup: 'npm ci',
      setupTimeoutMs: 3_600_000,
    });
    expect(valid(load('accept: false')).work.accept).toBe(false);
    for (const nothing of ['', '# later\n', '---\n', '{}']) {
      expect(Object.values(valid(load(nothing)).work).filter((one) => one !== undefined)).toEqual([]);
    }
  });

  test('all problems of a project file are reported at once, each at its place', () => {
    const text =
      'acept: x\nisolate: yes\naccept: make {{target}}\nacceptTimeout: soon\nsetup: ""\nexpectChanges: true\n';
    expect(problemsIn(load(text)).map((line) => line.split(':').slice(0, 3).join(':'))).toEqual([
      '1:1 the project file has no "acept"; did you mean "accept"?',
      '2:10 isolate must be one of none, worktree',
      '4:16 acceptTimeout must be a time from 1s to 30d, such as 90s, 15m, 2h or 1h30m',
      '6:1 the project file has no "expectChanges"',
    ]);
    expect(problemsIn(load('accept: make {{target}}\nsetup: ""'))).toEqual([
      expect.stringContaining('1:9 accept: {{target}} cannot be used in a shell command'),
      '2:8 setup: the command is blank',
    ]);
    expect(problemsIn(load('accept: true\nsetup: 12'))).toEqual([
      '1:9 accept: expected a shell command, or false for no command',
      '2:8 setup: expected a shell command, or false for no command',
    ]);
  });
});

describe('invalid project files', () => {
  test('a project file that is no map, no text or no YAML is refused', () => {
    for (const text of ['- npm test', 'npm test', '2026-01-02']) {
      expect(problemsIn(load(text))).toEqual([expect.stringContaining('the project file must be a map')]);
    }
    expect(problemsIn(load(new Uint8Array([0x61, 0x3a, 0x20, 0xff])))).toEqual(['1:1 is not UTF-8 text']);
    expect(problemsIn(load('accept: "a\0b"'))).toEqual(['1:1 contains a NUL character']);
    expect(problemsIn(load('accept: "a\\0b"'))).toEqual(['1:9 accept: the command holds a NUL character']);
    expect(problemsIn(load('accept: [')).length).toBeGreaterThan(0);
    const bomb = Array.from({ length: 12 }, (_, level) => {
      const inner = level === 0 ? '"x"' : `*a${level - 1}`;
      return `a${level}: &a${level} [${Array(9).fill(inner).join(', ')}]`;
    });
    expect(problemsIn(load(bomb.join('\n')))).toHaveLength(1);
  });
});

describe('selection of the project file', () => {
  const commandIn = (place: string) => valid(projectFileFor(templateWorld, folder.at(place)))?.work.accept;

  test('the nearest project file applies completely, up to the repository root', () => {
    mkdirSync(folder.at('outer/repo/.git'), { recursive: true });
    mkdirSync(folder.at('outer/repo/app/src'), { recursive: true });
    folder.write(`outer/${name}`, 'accept: outside');
    expect(commandIn('outer/repo/app/src')).toBeUndefined();
    folder.write(`outer/repo/${name}`, 'accept: whole');
    expect(commandIn('outer/repo/app/src')).toBe('whole');
    folder.write(`outer/repo/app/${name}`, 'setup: npm ci');
    expect(commandIn('outer/repo/app/src')).toBeUndefined();
    expect(commandIn('outer/repo')).toBe('whole');
  });

  test('without a repository only the project file of the folder applies', () => {
    mkdirSync(folder.at('a/b'), { recursive: true });
    folder.write(`a/${name}`, 'accept: above');
    expect(commandIn('a/b')).toBeUndefined();
    expect(commandIn('a')).toBe('above');
  });

  test('a project file has one of the known names', () => {
    expect(isProjectFile('/x/.claude-code-agent/project.yaml')).toBe(true);
    expect(isProjectFile('/x/project.yaml')).toBe(false);
    expect(isProjectFile('/x/not.claude-code-agent/project.yaml')).toBe(false);
  });
});
