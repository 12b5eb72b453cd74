/**
 * Promises: each notation for sessions means exactly the sessions it says, or a message says why it means none, in
 * groups of any size. Contents of results are not tested.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdirSync } from 'node:fs';
import { WorkflowFolder } from '../../support/template/workflow-rig.ts';

let folder: WorkflowFolder;
beforeAll(() => {
  folder = new WorkflowFolder();
});
afterAll(() => folder.remove());

const base = `  one: { project: .., prompt: hi }
  build: { prompt: hi, matrix: { projects: "../services/*" } }
  both: { prompt: hi, matrix: { projects: "../services/*", flavour: [a, b, "x,y"] } }
`;

/** The dependencies of a session that names `target`, or the message when it is wrong. */
function dependenciesOf(target: string, matrix = ''): readonly string[] | string {
  const text = `${base}  last: { project: .., prompt: hi, dependsOn: ${JSON.stringify(target)}${matrix} }`;
  const loaded = folder.load(`version: 1\nsessions:\n${text}`);
  if (!loaded.ok) return loaded.problems.map(({ message }) => message).join('; ');
  return loaded.value.sessions.find(({ key }) => key.startsWith('last'))?.dependsOn ?? [];
}

const onApi = ', matrix: { projects: ../services/api, flavour: [b] }';
const services = ['api', 'core', 'web'];

describe('valid references', () => {
  test('a reference selects one session, all of an entry, or one by its value', () => {
    expect(dependenciesOf('one')).toEqual(['one']);
    expect(dependenciesOf('build[*]')).toEqual(services.map((name) => `build-${name}`));
    expect(dependenciesOf(' build[ * ] ')).toHaveLength(3);
    expect(dependenciesOf('build[core]')).toEqual(['build-core']);
    expect(dependenciesOf('build[../services/core]')).toEqual(['build-core']);
    expect(dependenciesOf(`build[${folder.at('services/core')}]`)).toEqual(['build-core']);
  });

  test('a reference to several dimensions has a value, a star or a matrix key for each, in order', () => {
    expect(dependenciesOf('both[core,a]')).toEqual(['both-core-a']);
    expect(dependenciesOf('both[ core , a ]')).toEqual(['both-core-a']);
    expect(dependenciesOf('both[core,*]')).toEqual(['both-core-a', 'both-core-b', 'both-core-x-y']);
    expect(dependenciesOf('both[*,b]')).toEqual(services.map((name) => `both-${name}-b`));
    expect(dependenciesOf('both[matrix.project,a]', onApi)).toEqual(['both-api-a']);
    expect(dependenciesOf('both[matrix.project,matrix.flavour]', onApi)).toEqual(['both-api-b']);
  });

  test('a matrix key in a reference selects the session with the same value, or all with it', () => {
    expect(dependenciesOf('build[matrix.project]', onApi)).toEqual(['build-api']);
    expect(dependenciesOf('build[matrix.name]', onApi)).toEqual(['build-api']);
    expect(dependenciesOf('both[matrix.flavour]', onApi)).toEqual(services.map((name) => `both-${name}-b`));
  });
});

describe('invalid references', () => {
  test('an invalid reference is reported with its reason', () => {
    const cases: readonly (readonly [string, string])[] = [
      ['biuld[*]', 'there is no session "biuld"; did you mean "build"?'],
      ['', 'there is no session ""'],
      ['build[', '"build[" is not a session reference: write NAME, NAME[*] or NAME[VALUE]'],
      ['build[a][b]', '"build[a][b]" is not a session reference: write NAME, NAME[*] or NAME[VALUE]'],
      ['build-api', 'there is no session "build-api" in this file; write build[api]'],
      ['both-api-a', 'there is no session "both-api-a" in this file; write both[api,a]'],
      [
        'build',
        '"build" has a matrix: write build[*] for all of its sessions, or build[matrix.project] for the ' +
          'one with the same project',
      ],
      ['one[*]', '"one" has no matrix: write one without "[*]"'],
      ['build[appi]', '"build" has no session for "appi"; did you mean "api"?'],
      ['build[]', '"build" has no session for ""'],
      [
        'both[api]',
        '"api" matches 3 sessions of "both" (both-api-a, both-api-b, both-api-x-y); add a value for each ' +
          'of project, flavour, separated by commas',
      ],
      ['both[api,c]', '"both" has no session for "api,c"; did you mean "api,a"?'],
      ['build[matrix.project]', '"last" has no matrix, so it has no matrix.project'],
      ['build[matrix.flavour]', 'the matrix of "build" has no key "flavour"; its keys are project'],
    ];
    for (const [target, message] of cases) expect(dependenciesOf(target)).toBe(message);
    expect(dependenciesOf('build[matrix.projct]', onApi)).toBe(
      'the matrix of "build" has no key "projct"; did you mean "project"?',
    );
    expect(dependenciesOf('both[matrix.flavour]', ', matrix: { projects: ../services/api }')).toBe(
      'the matrix of "last" has no key "flavour"; its keys are project',
    );
    expect(dependenciesOf('both[matrix.flavour]', ', matrix: { flavour: [z] }')).toBe(
      'no session of "both" has "z" as its matrix.flavour',
    );
  });

  test('two folders of the same name need more of their path in a reference', () => {
    for (const path of ['left/app', 'right/app']) mkdirSync(folder.at(path), { recursive: true });
    const text = (target: string) =>
      `  a: { prompt: hi, matrix: { projects: "../{left,right}/app" } }\n  b: { project: .., prompt: ` +
      `hi, dependsOn: "${target}" }`;
    expect(folder.faults(text('a[app]'))).toEqual([
      expect.stringContaining('"app" matches 2 sessions of "a" (a-app, a-app-2); give more'),
    ]);
    expect(folder.sessions(text('a[../right/app]')).at(-1)?.dependsOn).toEqual(['a-app-2']);
  });
});

describe('references in prompts', () => {
  const references = (prompt: string, more = ', dependsOn: ["build[*]", "both[*]", one]') => {
    const text = `${base}  last: { project: .., prompt: ${JSON.stringify(prompt)}${more} }`;
    return folder
      .sessions(text)
      .at(-1)
      ?.references.map(({ keys, every, field }) => ({ keys, every: every ?? false, field }));
  };

  test('a prompt can refer to one session, to all, and to several', () => {
    expect(references('{{sessions.one.result}} {{ sessions.build[*].result }} {{sessions.both[*,a].result}}')).toEqual([
      { keys: ['one'], every: false, field: 'result' },
      { keys: services.map((name) => `build-${name}`), every: true, field: 'result' },
      { keys: services.map((name) => `both-${name}-a`), every: true, field: 'result' },
    ]);
  });

  test('of session names with dots the longest match counts', () => {
    const text =
      '  a: { project: .., prompt: hi }\n  a.result: { project: .., prompt: hi }\n  c: { project: .., ' +
      'dependsOn: [a, a.result], prompt: "{{sessions.a.result.result}} {{sessions.a.result}}" }';
    expect(folder.faults(text)).toEqual([expect.stringContaining('add a field to "a.result"')]);
    expect(folder.sessions(text.replace(' {{sessions.a.result}}', '')).at(-1)?.references[0]?.keys).toEqual([
      'a.result',
    ]);
  });

  test('a prompt can refer only to ancestors of its session, however distant', () => {
    const chain = (target: string) =>
      `${base}  mid: { prompt: hi, matrix: { projects: "../services/*" }, dependsOn: "build[matrix.project]" }\n` +
      `  last: { prompt: "{{sessions.build[${target}].result}}", matrix: { projects: "../services/*" ` +
      `}, dependsOn: "mid[matrix.project]" }`;
    expect(folder.sessions(chain('matrix.project')).at(-1)?.references[0]?.keys).toEqual(['build-web']);
    expect(folder.faults(chain('*'))).toEqual([
      expect.stringContaining('"last" does not depend on "build[*]"; add it to its dependsOn'),
    ]);
    expect(folder.faults(chain('api'))).toEqual([
      expect.stringContaining('"last" does not depend on "build[api]"; add it to its dependsOn'),
    ]);
  });
});
