/**
 * Promises: all problems of a workflow are reported at once, each at the place to fix it, with the nearest valid
 * word. Messages of the YAML parser are not tested.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { exampleWorkflow, WorkflowFolder } from '../../support/template/workflow-rig.ts';

let folder: WorkflowFolder;
beforeAll(() => {
  folder = new WorkflowFolder();
});
afterAll(() => folder.remove());

const ok = 'project: .., prompt: hi';

describe('form', () => {
  test('a file that is no workflow is refused', () => {
    expect(folder.allFaults('')).toEqual(['1:1 a workflow must be a map with "version: 1" and "sessions"']);
    expect(folder.allFaults('- 1')).toEqual(['1:1 a workflow must be a map with "version: 1" and "sessions"']);
    expect(folder.allFaults('sessions: {}')).toEqual(['1:1 version is missing: start the file with "version: 1"']);
    expect(folder.allFaults('version: 2\nagents: {}')).toEqual([
      '1:10 version 2 is newer than this program, which knows version 1',
    ]);
    expect(folder.allFaults('version: "1"')).toEqual([expect.any(String), '1:10 version: expected 1']);
    expect(folder.allFaults('version: 1')).toEqual(['1:1 sessions is missing']);
    expect(folder.allFaults('version: 1\n---\nversion: 1')).toEqual([
      '2:1 a second document starts here (---); the file may contain only one',
    ]);
    expect(folder.allFaults('version: 1\nsessions: {}')).toEqual([
      '2:11 sessions: a workflow needs at least one session',
    ]);
  });

  test('unknown workflow keys are reported with the nearest known key', () => {
    const text =
      `version: 1\ntittle: x\ngroup: { maxBudgetUSD: 1 }\nsessions:\n  a: { ${ok}, dependson: b, ` +
      `config: { generateSetings: true } }`;
    expect(folder.allFaults(text)).toEqual([
      '2:1 the workflow has no "tittle"; did you mean "title"?',
      '3:10 group has no "maxBudgetUSD"; did you mean "maxBudgetUsd"?',
      '5:33 sessions.a has no "dependson"; did you mean "dependsOn"?',
      '5:57 sessions.a.config has no "generateSetings"; did you mean "generateSettings"?',
    ]);
  });

  test('workflow values of the wrong type are reported', () => {
    const text =
      '  a:\n    project: ..\n    prompt: hi\n    timeout: 30\n    retries: 99\n    maxBudgetUsd: 0\n' +
      '    model: "--evil"\n    permissionMode: yolo\n    allowedTools: "Bash(git"\n';
    expect(folder.faults(text).map((fault) => fault.split(':')[0])).toEqual(['6', '7', '8', '9', '10', '11']);
    expect(folder.faults(text)[0]).toBe(
      '6:14 sessions.a.timeout must be a time from 1s to 30d, such as 90s, 15m, 2h or 1h30m',
    );
  });

  test('an output schema that claude would refuse is reported', () => {
    expect(folder.faults(`  a: { ${ok}, outputSchema: { type: array } }`)).toEqual([
      '3:47 outputSchema: its "type" must be "object"',
    ]);
  });

  test('times that are too short or too long are reported', () => {
    for (const time of ['0s', '31d', '1.5h', 'm', '"1 m"']) {
      expect(folder.faults(`  a: { ${ok}, timeout: ${time} }`)).toEqual([expect.stringContaining('must be a time')]);
    }
  });

  test('invalid session names are reported', () => {
    for (const name of ['"1"', '"a b"', '-a', '"😀"', 'a/b', 'x'.repeat(65), '""', '"\\u0000"']) {
      expect(folder.faults(`  ${name}: { ${ok} }`)).toEqual([expect.stringMatching(/^3:3 .*is not a valid name/)]);
    }
  });

  test('a duplicate session name is reported', () => {
    expect(folder.faults(`  a: { ${ok} }\n  a: { ${ok} }`)).toEqual([
      '4:3 the key "a" appears twice in its map; remove one of them',
    ]);
  });

  test('an impossible group slug is reported', () => {
    const text = `name: My Flow\nversion: 1\nsessions: { a: { ${ok} } }`;
    expect(folder.allFaults(text)).toEqual([expect.stringContaining('1:7 name: expected lower-case letters')]);
  });

  test('invalid matrix keys are reported', () => {
    const faults = folder.faults(
      `  a: { ${ok}, matrix: { name: [x], project: [x], "a b": [x], y: [], z: 1 } }\n  b: { ${ok}, matrix: {} }`,
    );
    expect(faults).toHaveLength(3);
    expect(faults.at(-1)).toEndWith('a matrix needs a key, such as "projects"');
    expect(folder.faults(`  a: { ${ok}, matrix: { name: [x], project: [x], "a b": [x] } }`)).toEqual([
      expect.stringContaining('"name" is reserved: {{matrix.name}} comes from "projects"'),
      expect.stringContaining('"project" is reserved'),
      expect.stringContaining('is not a valid key'),
    ]);
  });
});

describe('variables', () => {
  test('a variable that only its user can set is reported', () => {
    const text = `version: 1\nvars:\n  ticket: { required: true }\nsessions: { a: { ${ok} } }`;
    expect(folder.allFaults(text, {})).toEqual([
      '3:11 the variable "ticket" has no value; set it with --var ticket=VALUE',
    ]);
  });

  test('all missing and misspelt variables are reported at once', () => {
    const text =
      `version: 1\nvars:\n  ticket: { required: true }\n  level: { type: enum, values: [low, high], ` +
      `required: true }\nsessions: { a: { ${ok} } }`;
    expect(folder.allFaults(text, { tickets: 'x', level: 'hihg' })).toEqual([
      '3:3 there is no variable "tickets" to set; did you mean "ticket"?',
      '3:11 the variable "ticket" has no value; did you mean it by "tickets"?',
      '4:10 the variable "level": "hihg" is not one of "low", "high"; did you mean "high"?',
    ]);
  });

  test('required variables cannot be blank, as unset shell variables are', () => {
    const text =
      `version: 1\nvars:\n  ticket: { required: true, description: The ticket }\n  area: api\n` +
      `sessions: { a: { project: .., prompt: "{{ticket}} {{area}}", template: wrap } }`;
    expect(folder.allFaults(text, { ticket: ' ', area: '' })).toEqual([
      '3:11 the variable "ticket" (The ticket) is empty',
    ]);
    expect(folder.allFaults(text, { ticket: 'x', area: '' })).toEqual([]);
  });

  test('required variables of templates cannot be blank, wherever the blank comes from', () => {
    const declared = 'variables:\n  - name: topic\n    required: true\n';
    folder.write('templates/prompts/about.md', `---\n${declared}---\nAbout {{topic}}`);
    folder.write('templates/configs/about/config.yaml', declared);
    folder.write('templates/configs/about/CLAUDE.md', 'About {{topic}}');
    const text = (more: string) =>
      'version: 1\nvars: { note: { } }\nsessions:\n' +
      `  a: { project: .., template: about, configTemplate: about${more} }\n`;
    const faults = [
      '4:31 template about: the variable "topic" is empty',
      '4:54 config template about: the variable "topic" is empty',
    ];
    expect(folder.allFaults(text(', vars: { topic: " " }'))).toEqual(faults);
    expect(folder.validate(text(', vars: { topic: " " }'))).toEqual(faults);
    expect(folder.allFaults(text(', vars: { topic: "{{note}}" }'))).toEqual(faults);
    const shared = text('').replace('note:', 'topic:');
    expect(folder.allFaults(shared)).toEqual(faults);
    expect(folder.allFaults(shared, { topic: 'x' })).toEqual([]);
    // Without given values each variable may still get one.
    expect(folder.validate(text(', vars: { topic: "{{note}}" }'))).toEqual([]);
    expect(folder.validate(shared)).toEqual([]);
    // An undeclared name must only be given.
    folder.write('templates/prompts/about.md', 'About {{topic}}.');
    folder.write('templates/configs/about/config.yaml', '');
    expect(folder.allFaults(shared)).toEqual([]);
  });

  test('variables of any type are no problem where no values are given', () => {
    const text =
      'version: 1\nvars:\n  n: { type: number, required: true }\n  f: { type: file, required: true }\n' +
      '  e: { type: enum, values: [low], required: true }\n  p: { type: path, required: true }\n' +
      '  b: { type: boolean, required: true }\nsessions:\n  a: { project: "{{p}}", prompt: "{{n}} ' +
      '{{f}} {{e}} {{b}}" }\n' +
      '  c: { project: .., template: typed, vars: { n: "{{e}}", e: "{{n}}" } }\n  d: { project: .., ' +
      'template: typed, vars: { n: x } }';
    folder.write(
      'templates/prompts/typed.md',
      '---\nvariables: [{name: n, type: number, required: true}, {name: e, type: enum, values: [a, ' +
        'b]}]\n---\n{{n}} {{e}}',
    );
    expect(folder.validate(text)).toEqual([expect.stringContaining('"x" is not a number')]);
  });

  test('unknown variables are reported at their place', () => {
    const text =
      'version: 1\ntitle: "x {{tiket}}"\nvars: { ticket: t }\nsessions:\n  a:\n    project: "{{project.path}}"\n' +
      '    matrix: { x: ["{{matrix.x}}"] }\n    prompt: |\n      One {{ticket}}\n      Two {{tiket}} ' +
      'and {{matrix.y}}\n' +
      '    vars: { other: "{{sessions.a.result}}" }\n';
    expect(folder.allFaults(text)).toEqual([
      '2:11 there is no variable "tiket"; did you mean "ticket"?',
      '7:20 "matrix.x" is undefined here: there is no matrix',
    ]);
    expect(folder.allFaults(text.replace('["{{matrix.x}}"]', '[one]'))).toEqual([
      '2:11 there is no variable "tiket"; did you mean "ticket"?',
      '6:15 "project.path" is not known here',
      '10:11 there is no variable "tiket"; did you mean "ticket"?',
      '10:25 the matrix has no key "y"; did you mean "x"?',
      '11:13 nothing in this session uses the variable "other"',
      '11:21 "sessions.a.result" can be used only in a prompt, because the result is not known earlier',
    ]);
  });
});

describe('projects', () => {
  test('projects that are missing or no folders are reported', () => {
    folder.write('flow/file.txt', 'x');
    const text =
      '  a: { prompt: hi }\n  b: { prompt: hi, project: nowhere }\n  c: { prompt: hi, project: file.txt }\n' +
      '  d: { prompt: hi, project: "~someone/x" }\n  e: { prompt: hi, project: "a\\0b" }\n';
    expect(folder.faults(text)).toEqual([
      '3:3 "a" has no project: add "project", or a matrix with "projects"',
      `4:29 the project ${folder.at('flow/nowhere')} does not exist`,
      `5:29 the project ${folder.at('flow/file.txt')} is not a folder`,
      '6:29 the project "~someone/x" starts with "~" but not "~/"; only your own home folder is supported',
      '7:29 the project "a\\u0000b" is not a valid path: it contains a NUL character',
    ]);
  });
});

describe('task', () => {
  test('a missing or empty task is reported', () => {
    expect(folder.faults('  a: { project: .. }\n  b: { project: .., prompt: " " }')).toEqual([
      '3:3 "a" has no task: add "prompt" or "template"',
      '4:29 the prompt is blank',
    ]);
  });

  test('a missing prompt template, or the name of a config template, is reported', () => {
    const faults = folder.faults(
      '  a: { project: .., template: wrp, prompt: hi }\n  b: { project: .., template: strict }',
    );
    expect(faults[0]).toStartWith('3:31 there is no prompt template "wrp"; did you mean "wrap"?');
    expect(faults[1]).toBe('4:31 "strict" is a config template; write "configTemplate: strict"');
  });

  test('missing and misspelt variables of a template are reported', () => {
    expect(folder.faults('  a: { project: .., template: implement, vars: { featur: x } }')).toEqual([
      '3:31 template implement: the variable "feature" has no value; did you mean it by "featur"?',
      '3:50 nothing in this session uses the variable "featur"; did you mean "feature"?',
      '7:8 there is no session "analyze" (in sessions.a)',
    ]);
  });

  test('errors of a template are reported in its own file', () => {
    const path = folder.write('templates/prompts/bad.md', '---\nvariables: []\n---\nHi {{who}}');
    const loaded = folder.load('version: 1\nsessions: { a: { project: .., template: bad } }');
    expect(loaded.ok ? [] : loaded.problems.map(({ file, line, column }) => `${file}:${line}:${column}`)).toEqual([
      `${path}:4:4`,
    ]);
  });

  test('a group’s template must exist even if no session uses it', () => {
    const text = 'version: 1\ngroup: { template: nope }\nsessions: { a: { project: .., template: wrap, prompt: hi } }';
    expect(folder.allFaults(text)).toEqual([expect.stringContaining('2:20 there is no prompt template "nope"')]);
  });
});

describe('config templates', () => {
  test('a missing config template and its missing variables are reported', () => {
    folder.write('templates/configs/needy/CLAUDE.md', 'For {{owner}}');
    const faults = folder.faults(`  a: { ${ok}, configTemplate: stric }\n  b: { ${ok}, configTemplate: needy }`);
    expect(faults[0]).toStartWith('3:49 there is no config template "stric"; did you mean "strict"?');
    expect(faults[1]).toStartWith('4:49 config template needy: the variable "owner" has no value');
  });

  test('the group’s config template is checked unless the session does not inherit it', () => {
    const text = (more: string) => `version: 1\ngroup: { configTemplate: house }\nsessions: { a: { ${ok}${more} } }`;
    expect(folder.allFaults(text(''))).toEqual([
      expect.stringContaining('2:26 config template house: the variable "area"'),
    ]);
    expect(folder.allFaults(text(', config: { inheritFromGroup: false }'))).toEqual([]);
  });

  test('conflicting and lost settings are reported: own settings beside none, and lost deny rules', () => {
    const own = 'settingsOverride: { permissions: { deny: [Bash] } }';
    const text = `  a:\n    project: ..\n    prompt: hi\n    config:\n      generateSettings: false\n      ${own}\n`;
    const fault = expect.stringMatching(/^8:25 .*has no effect with generateSettings: false; remove one of them$/);
    expect(folder.faults(text)).toEqual([fault]);
    expect(folder.validate(`version: 1\nsessions:\n${text}`)).toEqual([fault]);
    expect(folder.faults(text.replace('false', 'true'))).toEqual([]);
    expect(folder.faults(text.replace(`      ${own}\n`, ''))).toEqual([]);
  });

  test('settings that claude would not read are reported', () => {
    expect(folder.faults(`  a: { ${ok}, config: { settingsOverride: { permissions: [] } } }`)).toEqual([
      expect.stringMatching(/^3:\d+ .*permissions/),
    ]);
  });
});

describe('dependency problems', () => {
  test('unknown, circular and self dependencies are reported', () => {
    const text =
      `  a: { ${ok}, dependsOn: [c, bb] }\n  b: { ${ok}, dependsOn: a }\n  c: { ${ok}, dependsOn: b ` +
      `}\n  d: { ${ok}, dependsOn: d }`;
    expect(folder.faults(text)).toEqual([
      expect.stringMatching(/^3:\d+ the dependencies form a cycle: a -> c -> b -> a$/),
      expect.stringMatching(/^3:\d+ there is no session "bb"; did you mean "b"\?$/),
      expect.stringMatching(/^6:\d+ "d" depends on itself$/),
    ]);
  });

  test('references to results of non-ancestors, of the session itself, and in a wrong form are reported', () => {
    const text = `  one: { ${ok} }\n  two: { ${ok}, dependsOn: one }\n  three:
    project: ..
    dependsOn: two
    prompt: |
      {{sessions.one.result}} {{sessions.two.result}}
      {{sessions.four.result}}
      {{sessions.three.result}}
      {{sessions.tow.result}}
      {{sessions.two.structured.x}}
      {{sessions.two.diffStat.files}}
      {{sessions.two.branch[0]}}
      {{sessions.two.resutl}}
      {{sessions.two.result.x}}
      {{sessions.two}}
      {{sessions.two[*].result}}
  four: { ${ok} }`;
    expect(folder.faults(text)).toEqual([
      '10:7 "three" does not depend on "four"; add it to its dependsOn',
      '11:7 "three" cannot use its own result',
      '12:7 there is no session "tow"; did you mean "two"?',
      '13:7 "two" has no outputSchema, so it has no .structured; use .result',
      '14:7 .diffStat is plain text and has no fields',
      '15:7 .branch is plain text and has no fields',
      '16:7 a session has no "resutl"; did you mean "result"?',
      '17:7 a result is plain text; with an outputSchema its fields are in .structured',
      '18:7 add a field to "two": .result, .structured, .diffStat or .branch',
      '19:7 "two" has no matrix: write two without "[*]"',
    ]);
  });

  test('a reference to a field missing from the schema is reported', () => {
    const schema =
      '{ type: object, properties: { uses: { type: array, items: { type: object, properties: { file: ' +
      '{ type: string } } } } } }';
    const text = (way: string) =>
      `  a: { ${ok}, outputSchema: ${schema} }\n  b: { project: .., dependsOn: a, prompt: ` +
      `"{{sessions.a.structured${way}}}" }`;
    expect(folder.faults(text('.use'))).toEqual([
      expect.stringContaining('the outputSchema of "a" has no "use"; did you mean "uses"?'),
    ]);
    expect(folder.faults(text('.uses[0].fil'))).toEqual([
      expect.stringContaining('has no "fil"; did you mean "file"?'),
    ]);
    expect(folder.faults(text('.uses[0].file'))).toEqual([]);
    expect(folder.faults(text(''))).toEqual([]);
    expect(folder.faults(text('..uses'))).toEqual([expect.stringContaining('is not a path into a result')]);
  });
});

test('a problem shared by many sessions is reported once', () => {
  const text = exampleWorkflow.replace('Find uses of {{area}}', 'Find uses of {{aera}}');
  expect(folder.allFaults(text, { ticket: 'x' })).toEqual(['34:27 there is no variable "aera"; did you mean "area"?']);
});

describe('expensive workflows', () => {
  test('an alias bomb and a recursive value are refused', () => {
    const bomb = Array.from({ length: 12 }, (_, level) => {
      const inner = level === 0 ? '"x"' : `*a${level - 1}`;
      return `a${level}: &a${level} [${Array(9).fill(inner).join(', ')}]`;
    });
    expect(folder.allFaults(bomb.join('\n'))).toEqual([expect.stringContaining('Excessive alias count')]);
    expect(folder.allFaults('x: &s { y: *s }')).toEqual([expect.stringContaining('cyclic')]);
  });

  test('a workflow file of 5 MB is refused', () => {
    expect(folder.allFaults(`version: 1\n# ${'x'.repeat(5_000_000)}`)).toEqual(['1:1 is larger than 1 MiB']);
  });

  test('a matrix of a million sessions is refused', () => {
    const values = `[${Array.from({ length: 100 }, (_, index) => `v${index}`).join(', ')}]`;
    expect(folder.faults(`  a: { ${ok}, matrix: { x: ${values}, y: ${values}, z: ${values} } }`)).toEqual([
      expect.stringContaining('more than 10000 sessions'),
    ]);
  });
});
