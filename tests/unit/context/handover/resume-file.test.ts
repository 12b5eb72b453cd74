/**
 * Promises: a session is added to the list of a resume file in any notation, nothing else in the file changes, and
 * values are read as written.
 */
import { describe, expect, test } from 'bun:test';
import { parse } from 'yaml';
import { newResumeFile, readResumeFile, recordSession } from '../../../../src/context/handover/resume-file.ts';
import { fc } from '../../../support/property.ts';

const at = '2026-01-06T15:30:00.000Z';
const record = (text: string, id = 'bbb222') => recordSession(text, id, at) as string;
/** The front matter as a real YAML parser reads it. */
const yaml = (text: string) =>
  parse(/^\ufeff?---\r?\n([\s\S]*?)^---/m.exec(text)?.[1] ?? '') as Record<string, unknown>;
const file = (...lines: string[]) => `---\n${lines.map((line) => `${line}\n`).join('')}---\n`;

describe('specification 003, unit tests', () => {
  test('test_add_to_empty_list', () => {
    expect(record(file('session_ids: []'), 'aaa111')).toContain('session_ids: ["aaa111"]\n');
  });

  test('test_add_to_existing_list', () => {
    const result = record(file('session_ids: ["aaa111"]'), 'bbb222');
    expect(result).toContain('session_ids: ["aaa111", "bbb222"]\n');
  });

  test('test_no_duplicate', () => {
    const result = record(file('session_id: "zzz"', 'session_ids: ["aaa111"]'), 'aaa111');
    expect(result).toContain('session_ids: ["aaa111"]\n');
  });
});

describe('specification 003, edge cases', () => {
  test('1. Empty List Migration: a file of schema 1 keeps its session', () => {
    const result = record(file('session_id: "aaa111"', 'next_action: "x"'));
    expect(yaml(result)).toEqual({
      resume_schema_version: '2.0',
      last_updated: at,
      session_id: 'bbb222',
      session_ids: ['aaa111', 'bbb222'],
      next_action: 'x',
    });
  });

  test('2. Duplicate Prevention: a session that compacts twice is listed once', () => {
    const once = record(file('session_id: ""', 'session_ids: []'));
    expect(record(once)).toBe(once);
  });

  test('3. Backward Compatibility: what a hook of schema 1 reads is the last session', () => {
    const result = record(file('session_id: "aaa111"', 'session_ids: ["aaa111"]'));
    expect(/session_id:\s*"([^"]*)"/.exec(result)?.[1]).toBe('bbb222');
    expect(readResumeFile(file('session_id: "aaa111"'))).toMatchObject({ sessionId: 'aaa111', sessionIds: [] });
  });

  test.each([
    ['session_ids: ["aaa", \'bbb\', "ccc"]', ['aaa', 'bbb', 'ccc']],
    ['session_ids: []', []],
    ['session_ids: [ "aaa" , "bbb" ]', ['aaa', 'bbb']],
    ['session_ids: [aaa, bbb,]', ['aaa', 'bbb']],
    ['session_ids:\n  - "aaa"\n  - bbb', ['aaa', 'bbb']],
    ['session_ids: [\n  "aaa",\n  "bbb"\n]', ['aaa', 'bbb']],
  ])('4. Malformed List Handling: %s', (line, ids) => {
    expect(readResumeFile(file(line)).sessionIds).toEqual(ids);
    const result = record(file(line), 'ddd');
    expect(readResumeFile(result).sessionIds).toEqual([...ids, 'ddd']);
    expect(yaml(result).session_ids).toEqual([...ids, 'ddd']);
  });

  test('File Evolution: three sessions, T0 to T3', () => {
    const t0 = file('resume_schema_version: "2.0"', 'session_id: ""', 'session_ids: []');
    const t3 = ['aaa111', 'bbb222', 'ccc333'].reduce((text, id) => record(text, id), t0);
    expect(yaml(t3)).toEqual({
      last_updated: at,
      resume_schema_version: '2.0',
      session_id: 'ccc333',
      session_ids: ['aaa111', 'bbb222', 'ccc333'],
    });
  });
});

describe('notations of a list', () => {
  test.each([
    ['session_ids:', 'session_ids: ["bbb222"]'],
    ['session_ids: ~', 'session_ids: ["bbb222"]'],
    ['session_ids: # none yet', 'session_ids: ["bbb222"] # none yet'],
    ['session_ids: "aaa"', 'session_ids: ["aaa", "bbb222"]'],
    ['session_ids: aaa # old', 'session_ids: ["aaa", "bbb222"] # old'],
    ['session_ids:\n  - "aaa"\n  - ccc', 'session_ids:\n  - "aaa"\n  - ccc\n  - "bbb222"'],
    ['session_ids:\n- aaa', 'session_ids:\n- aaa\n- "bbb222"'],
    ['session_ids:\n  - aaa\n\n# more', 'session_ids:\n  - aaa\n  - "bbb222"\n\n# more'],
    ['session_ids: [\n  "aaa", # first ]\n  \'ccc\'\n]', 'session_ids: [\n  "aaa", # first ]\n  \'ccc\', "bbb222"\n]'],
    ['"session_ids": ["aaa"]', '"session_ids": ["aaa", "bbb222"]'],
    ['session_ids:\n  - bbb222 # me', 'session_ids:\n  - bbb222 # me'],
  ])('a session is added to the list %j', (before, after) => {
    const frame = (list: string, id: string) =>
      file('resume_schema_version: "2.0"', 'last_updated: x', `session_id: ${id}`, list, 'next_action: y');
    const result = record(frame(before, "'old'"));
    expect(result).toBe(frame(after, '"bbb222"').replace('last_updated: x', `last_updated: "${at}"`));
    expect(yaml(result)).toMatchObject({ session_id: 'bbb222', next_action: 'y' });
    expect((yaml(result).session_ids as string[]).includes('bbb222')).toBe(true);
  });

  test.each([
    ['session_id: "a" # last', 'session_id: "bbb222" # last'],
    ["session_id: 'a'", 'session_id: "bbb222"'],
    ['session_id: a-1', 'session_id: "bbb222"'],
    ['session_id:', 'session_id: "bbb222"'],
    ['session_id: |\n  a', 'session_id: "bbb222"'],
    ['session_id: |', 'session_id: "bbb222"'],
  ])('the legacy field is read and updated: %j', (before, after) => {
    expect(record(file(before, 'x: 1'))).toContain(`\n${after}\nx: 1\n`);
  });
});

describe('whole files', () => {
  test('only the front matter counts, and the same words in the text below stay', () => {
    const body = '\nsession_ids: ["no"]\nsession_id: "no"\nlast_updated: "no"\n---\nmore\n';
    const result = record(`${file('session_ids: []')}${body}`);
    expect(result.endsWith(`---\n${body}`)).toBe(true);
    expect(readResumeFile(result).sessionIds).toEqual(['bbb222']);
  });

  test.each([
    ['empty', ''],
    ['no front matter', '# Title\n\nText\n'],
    ['a rule of Markdown', '---\nJust text\n---\nMore\n'],
    ['a byte order mark', '\ufeff# Title\n'],
  ])('a file without front matter gets one: %s', (_, before) => {
    const result = record(before);
    expect(yaml(result)).toEqual({
      resume_schema_version: '2.0',
      last_updated: at,
      session_id: 'bbb222',
      session_ids: ['bbb222'],
    });
    expect(result.endsWith(before.replace('\ufeff', ''))).toBe(true);
    expect(result.startsWith('\ufeff')).toBe(before.startsWith('\ufeff'));
  });

  test('a resume file keeps its line ends', () => {
    const crlf = '---\r\nsession_ids: ["aaa"]\r\nother: 1\r\n---\r\nText\r\n';
    const result = record(crlf);
    expect(result.replaceAll('\r\n', '').includes('\n')).toBe(false);
    expect(readResumeFile(result).sessionIds).toEqual(['aaa', 'bbb222']);
  });

  test('an older schema becomes 2.0, a newer one stays', () => {
    expect(yaml(record(file('resume_schema_version: "1.0"'))).resume_schema_version).toBe('2.0');
    expect(yaml(record(file('resume_schema_version: 2'))).resume_schema_version).toBe(2);
    expect(yaml(record(file('resume_schema_version: "3.1"'))).resume_schema_version).toBe('3.1');
  });

  test('Phase 3: what a new project begins with is schema 2.0 and takes its first session', () => {
    const text = newResumeFile({ projectId: '28-a "b"', projectName: 'Ä', timestamp: at });
    expect(yaml(text)).toMatchObject({ resume_schema_version: '2.0', project_id: '28-a "b"', session_ids: [] });
    expect(readResumeFile(text)).toMatchObject({ nextAction: 'plan-project', projectName: 'Ä', sessionIds: [] });
    expect(readResumeFile(text).filesToLoad).toHaveLength(5);
    expect(readResumeFile(record(text)).sessionIds).toEqual(['bbb222']);
  });

  test('a value over several lines is read as one', () => {
    const facts = readResumeFile(
      file('next_action: >', '  build the', '  parser', 'files_to_load: [a.md, "b c.md"]', "project_name: 'it''s'"),
    );
    expect(facts).toMatchObject({
      nextAction: 'build the parser',
      filesToLoad: ['a.md', 'b c.md'],
      projectName: "it's",
    });
  });
});

describe('any file contents', () => {
  const piece = fc.constantFrom(
    ...['session_ids', 'session_id', 'last_updated', ':', ' ', '[', ']', '"', "'", '- ', ',', '#', '\n', '\r\n'],
    ...['---', '---\n', '  ', 'aaa', '{', '|', '>', '\\', '\u00e4', '\u00ff', '\t', '...', '\ufeff', 'x: y\n'],
  );
  const text = fc.array(piece, { maxLength: 40 }).map((parts) => parts.join(''));
  const anyFile = fc.oneof(
    text,
    text.map((inner) => `---\n${inner}\n---\nbody\n`),
    text.map((inner) => `---\nsession_ids: ["a"]\n${inner}\n---\nbody\n`),
  );

  test('recording a session never throws, ends, loses no id, and is idempotent', () => {
    fc.assert(
      fc.property(anyFile, (before) => {
        const after = recordSession(before, 'bbb222', at);
        if (after === null) return;
        const ids = readResumeFile(after).sessionIds;
        for (const id of readResumeFile(before).sessionIds) expect(ids).toContain(id);
        expect(ids).toContain('bbb222');
        expect(recordSession(after, 'bbb222', at)).toBe(after);
      }),
      { numRuns: 3000 },
    );
  });

  test('a well-formed file gets the new session, and other fields and its text stay for a real YAML parser', () => {
    const scalar = fc.stringMatching(/^[a-z0-9 ]{1,12}$/).map((value) => JSON.stringify(value.trim()));
    const id = fc.stringMatching(/^[a-z0-9-]{1,8}$/);
    const list = fc
      .tuple(fc.uniqueArray(id, { maxLength: 5 }), fc.constantFrom('flow', 'block', 'mixed'))
      .map(([ids, form]) => {
        if (form === 'block' && ids.length > 0) return `session_ids:\n${ids.map((one) => `  - "${one}"`).join('\n')}`;
        const quote = (one: string, index: number) => (form === 'mixed' && index % 2 === 0 ? `'${one}'` : `"${one}"`);
        return `session_ids: [${ids.map(quote).join(' , ')}]`;
      });
    const others = fc.dictionary(fc.stringMatching(/^[a-z]{3,6}$/), scalar, { maxKeys: 4 });
    fc.assert(
      fc.property(others, list, fc.string(), fc.boolean(), (fields, ids, body, first) => {
        const lines = Object.entries(fields).map(([key, value]) => `${key}: ${value}`);
        const before = `${file(...(first ? [ids, ...lines] : [...lines, ids]))}${body}`;
        const after = record(before, 'NEW');
        const was = yaml(before);
        expect(yaml(after)).toEqual({
          ...was,
          resume_schema_version: '2.0',
          last_updated: at,
          session_id: 'NEW',
          session_ids: [...(was.session_ids as string[]), 'NEW'],
        });
        expect(after.endsWith(`---\n${body}`)).toBe(true);
      }),
    );
  });
});

test.each(['session_ids: *ids', 'session_ids: ["a"', 'session_ids: [*x, "a"]', 'session_ids:\n  - *x'])(
  '%j cannot be changed safely and is left alone',
  (front) => expect(recordSession(`---\n${front}\n---\nText\n`, 'NEW', at)).toBeNull(),
);
