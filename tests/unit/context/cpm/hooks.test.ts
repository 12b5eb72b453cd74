/** Promises: the acceptance rows of the CPM specification marked [unit], by name, and cases that they leave open. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { charactersMax, parseHookInput } from '../../../../src/context/hook-call.ts';
import { cpmSessionIds, other, own, Project, progress, realFiles } from '../../../support/context/cpm/rig.ts';

let project: Project;
beforeEach(() => {
  project = new Project();
});
afterEach(() => project.remove());

const firstLine = (text: string) => text.split('\n')[0] as string;
const blocks = (text: string) => [...text.matchAll(/^--- CPM SESSION STATE \((.*)\) \[(.*)\] ---$/gm)];
const namesOf = (text: string) => blocks(text).map((block) => block[2] as string);

describe('2. Session ID injection on startup', () => {
  test('session-start parses session_id from stdin JSON', () => {
    expect(parseHookInput(`{"session_id":"${own}","source":"startup"}\n`)).toEqual({
      sessionId: own,
      source: 'startup',
    });
  });
  test.each(['startup', 'resume', 'clear', 'fork'])(
    'the hook echoes `CPM_SESSION_ID: {id}` to stdout (%s)',
    (source) => {
      expect(firstLine(project.start({ source }))).toBe(`CPM_SESSION_ID: ${own}`);
      project.write(other, progress('cpm:do', '2 of 4 — Work'));
      expect(firstLine(project.start({ source }))).toBe(`CPM_SESSION_ID: ${own}`);
    },
  );
});

describe('3. Precise compaction recovery', () => {
  test('session-start (compact) parses session_id from stdin JSON', () => {
    expect(parseHookInput(`{"session_id":"${own}","source":"compact"}`).sessionId).toBe(own);
    expect(firstLine(project.compact())).toBe(`CPM_SESSION_ID: ${own}`);
  });
  test("the hook outputs only the matching session's progress file", () => {
    project.write(own, progress('cpm:spec', '3 of 6', 'MINE'));
    project.write(other, progress('cpm:do', '2 of 4', 'THEIRS'));
    project.writeFile('.cpm-progress.md', progress('cpm:brief', '1 of 2', 'LEGACY'));
    const text = project.compact();
    expect(namesOf(text)).toEqual([`.cpm-progress-${own}.md`]);
    expect(text).toContain('MINE');
    expect(text).not.toMatch(/THEIRS|LEGACY|cpm:do/);
  });
  test('the hook falls back to injecting all files if no match found', () => {
    // Old files too: one of them may belong to this session.
    for (const [index, id] of cpmSessionIds.slice(1).entries())
      project.write(id, progress('cpm:do', `epic ${id[7]}`), index * 30);
    expect(namesOf(project.compact()).sort()).toEqual(cpmSessionIds.slice(1).map((id) => `.cpm-progress-${id}.md`));
    const unknown = project.call('session-start', { source: 'compact' }).text;
    expect(namesOf(unknown)).toHaveLength(4);
    expect(unknown).not.toContain('CPM_SESSION_ID:');
  });
  test('a matching progress file is shown whatever its age', () => {
    project.write(own, progress('cpm:spec', '3 of 6', 'MINE'), 500);
    expect(project.compact()).toContain('MINE');
  });
  test('the legacy progress file is shown when there is no session file', () => {
    project.writeFile('.cpm-progress.md', progress('cpm:brief', '1 of 2', 'LEGACY'));
    expect(project.compact()).toContain('LEGACY');
    expect(project.start()).toContain('LEGACY');
  });
});

describe('the legacy file beside session files', () => {
  const legacyName = '.cpm-progress.md';
  const writeLegacy = (hoursOld = 0, body = 'LEGACY') =>
    project.writeFile(legacyName, progress('cpm:brief', '1 of 2', body), hoursOld);

  test.each(['startup', 'resume', 'clear', 'compact'])(
    'the legacy progress file beside session files is named in one line, never injected (%s)',
    (source) => {
      const path = writeLegacy();
      const line = `- cpm:brief — 1 of 2 — docs/specifications/07-spec-cpm-brief.md — file: ${path} (0h old)`;
      // The other file may belong to another session, to an abandoned one, or to this one.
      for (const [id, hoursOld] of [
        [other, 0],
        [other, 90],
        [own, 5],
      ] as const) {
        project.write(id, progress('cpm:do', '1'), hoursOld);
        for (const sessionId of [{}, { sessionId: own }]) {
          for (const isWorker of [true, false]) {
            const { text } = project.call('session-start', { source, isWorker, ...sessionId });
            expect(text.split('\n').filter((one) => one.includes(legacyName))).toEqual([line]);
            expect(text).not.toContain('LEGACY');
          }
        }
      }
    },
  );
  test.each([0, 47, 100])(
    'the legacy progress file is named even beside a hundred session files (%d hours old)',
    (hoursOld) => {
      const path = writeLegacy(hoursOld, 'LEGACY '.repeat(1_500));
      for (let number = 0; number < 100; number += 1) {
        project.write(`${cpmSessionIds[1]}-${number}`, progress('cpm:do', '1'), hoursOld);
      }
      for (const isWorker of [true, false]) expect(project.start({ isWorker })).toContain(path);
    },
  );
});

describe('4. Multi-file resume injection', () => {
  test('the startup hook globs all .cpm-progress-*.md files', () => {
    for (const id of cpmSessionIds) project.write(id, progress('cpm:do', `epic ${id[7]}`));
    project.writeFile('01-brief.md', 'no progress file');
    for (const source of ['startup', 'resume', 'clear', 'something-new', undefined]) {
      const text = project.call('session-start', { sessionId: own, ...(source === undefined ? {} : { source }) }).text;
      expect(namesOf(text).sort()).toEqual(cpmSessionIds.map((id) => `.cpm-progress-${id}.md`));
      expect(text).not.toContain('no progress file');
    }
  });
  test('each file is output with clear delimiters and labels', () => {
    project.write(other, progress('cpm:spec', 'Section 3 — Architecture'));
    const lines = project.start().split('\n');
    const begin = lines.indexOf(
      '--- CPM SESSION STATE (cpm:spec — Section 3 — Architecture — docs/specifications/07-spec-cpm-spec.md) ' +
        `[.cpm-progress-${other}.md] ---`,
    );
    const end = lines.indexOf('--- END ---');
    expect(begin).toBeGreaterThan(0);
    expect(lines.slice(begin + 1, end).join('\n')).toBe(progress('cpm:spec', 'Section 3 — Architecture').trimEnd());
    expect(lines.at(-1)).toStartWith('NOTE: Found CPM session state ');
    expect(lines.at(-1)).toMatch(/continue .* or to discard/);
  });
  test('the hook handles zero progress files gracefully (no output)', () => {
    expect(project.start()).toBe(`CPM_SESSION_ID: ${own}`);
    expect(project.compact()).toBe(`CPM_SESSION_ID: ${own}`);
    expect(project.call('session-start', { source: 'startup' }).text).toBe('');
    expect(project.start({ projectFolder: `${project.folder}/nowhere` })).toBe(`CPM_SESSION_ID: ${own}`);
  });
  test('the session’s own progress file comes first, then the newest', () => {
    for (const [hours, id] of cpmSessionIds.entries()) project.write(id, progress('cpm:do', '1'), hours);
    expect(namesOf(project.start({ sessionId: cpmSessionIds[3] })).map((name) => name[21])).toEqual([
      '4',
      '1',
      '2',
      '3',
      '5',
    ]);
  });
});

describe('7. Orphan detection', () => {
  test.each([
    [0, false],
    [47.9, false],
    [48, false],
    [48.1, true],
    [500, true],
  ])('the startup hook identifies files with mtime >48h: %d hours, stale %p', (hours, stale) => {
    project.write(other, progress('cpm:do', '1', 'THEIRS'), hours);
    const text = project.start();
    expect(text.includes('STALE: ')).toBe(stale);
    expect(text.includes('WARNING')).toBe(stale);
    expect(text.includes('THEIRS')).toBe(!stale);
  });
  test('stale files are flagged with readable context (skill name, phase)', () => {
    const path = project.write(other, progress('cpm:epics', '2 of 4 — Stories'), 73.5);
    project.write(own, progress('cpm:do', '1'));
    const lines = project.start().split('\n');
    const at = lines.indexOf(
      'STALE: cpm:epics — 2 of 4 — Stories — docs/specifications/07-spec-cpm-epics.md — ' +
        `file: ${path} (73h old). To remove: delete ${path}`,
    );
    expect(at).toBeGreaterThan(lines.findIndex((line) => line.startsWith('WARNING')));
    expect(lines.at(-1)).toStartWith('NOTE: ');
  });
  test.each(['startup', 'resume'])(
    'the session’s own progress file is shown whole whatever its age, never as stale (%s)',
    (source) => {
      project.write(own, progress('cpm:spec', '3 of 6', 'MINE'), 73.5);
      const old = project.write(other, progress('cpm:do', '1', 'THEIRS'), 60);
      project.write(cpmSessionIds[2], progress('cpm:do', '1'), 5);
      const text = project.start({ source });
      expect(namesOf(text)).toEqual([own, cpmSessionIds[2]].map((id) => `.cpm-progress-${id}.md`));
      expect(text).toContain(progress('cpm:spec', '3 of 6', 'MINE').trimEnd());
      expect(text.match(/^STALE: .*/gm)).toEqual([expect.stringContaining(`delete ${old}`)]);
      expect(text).not.toContain(`delete ${project.path(own)}`);
      expect(text.split('\n').at(-1)).toEndWith(
        ` .cpm-progress-${own}.md belongs to this session and was last written 73 hours ago.`,
      );
    },
  );
});

describe('8. Readable resume presentation', () => {
  test.each([
    ['**Skill**: cpm:do\n**Current task**: 4 — Add login\n', 'cpm:do — 4 — Add login'],
    ['**Skill:** cpm:spec\n**Section:** 3\n', 'cpm:spec — 3'],
    ['Skill: cpm:spec\nPhase: 3\n', 'cpm:spec — 3'],
    ['**Phase**: 2\n', 'unknown — 2'],
    ['free text\n', 'unknown'],
    ['', 'unknown'],
    ['**Skill**: cpm:do\n**Task**: 4\n**Step**: 2\n**Artifact**: docs/epic.md\n', 'cpm:do — 2 — docs/epic.md'],
  ])('each injected file includes extracted skill/phase/context as a label: %j', (text, label) => {
    project.write(other, text);
    expect(blocks(project.start())[0]?.[1]).toBe(label);
  });
  test('the label of a progress file has skill, phase and artifact in every list', () => {
    const label = 'cpm:spec — 3 of 6 — docs/specifications/07-spec-cpm-spec.md';
    const path = project.write(own, progress('cpm:spec', '3 of 6'));
    expect(project.start()).toContain(`--- CPM SESSION STATE (${label}) [`);
    expect(project.compact()).toContain(`--- CPM SESSION STATE (${label}) [`);
    expect(project.call('pre-compact', { sessionId: own }).text).toContain(`is at work: ${label}. `);
    expect(project.start({ sessionId: other, isWorker: true })).toContain(`- ${label} — file: ${path} `);
    project.write(own, progress('cpm:spec', '3 of 6'), 50);
    expect(project.start({ sessionId: other })).toContain(`STALE: ${label} — file: ${path} (50h old).`);
  });
});

describe('in a worker', () => {
  const worker = { isWorker: true };
  test('a worker is shown its own progress file whole, one line for others, and no question', () => {
    project.write(own, progress('cpm:spec', '3 of 6', 'MINE'), 400);
    const path = project.write(other, progress('cpm:do', '2 of 4', 'THEIRS'), 5);
    const old = project.write(cpmSessionIds[2], progress('cpm:do', '2 of 4', 'THEIRS'), 90);
    for (const source of ['startup', 'resume', 'clear']) {
      const text = project.start({ ...worker, source });
      expect(namesOf(text)).toEqual([`.cpm-progress-${own}.md`]);
      expect(text).toContain('MINE');
      expect(text).toContain(`— file: ${path} (5h old)\n`);
      expect(text).toContain(`— file: ${old} (90h old)\n`);
      expect(text).toContain('continue with its next action');
      expect(text).not.toMatch(/THEIRS|Ask the user|discard|STALE|WARNING/);
    }
  });
  test('a worker without its own progress file gets only the names of others', () => {
    project.write(other, progress('cpm:do', '2 of 4', 'THEIRS'));
    for (const text of [project.start(worker), project.compact(worker)]) {
      expect(text).toContain(`.cpm-progress-${other}.md`);
      expect(text).not.toMatch(/THEIRS|Ask the user|very session/);
    }
  });
  test.each(['clear', 'fork'])(
    'after /clear a worker adopts the progress file of its earlier id, even in a fork (%s)',
    (source) => {
      const [, , first, stranger] = cpmSessionIds;
      const conversations = `${project.top}/claude-config/projects/p`;
      mkdirSync(conversations, { recursive: true });
      for (const id of [first, other, own]) writeFileSync(`${conversations}/${id}.jsonl`, '');
      project.write(other, progress('cpm:spec', '3 of 6', 'MINE'));
      project.write(stranger, progress('cpm:spec', '1 of 6', 'THEIRS'));
      const call = { ...worker, transcriptPath: `${conversations}/${own}.jsonl`, sessionId: own };
      // A claude started by the worker has the same folder and adopts nothing.
      expect(project.start(call)).not.toContain('MINE');
      const { text, notes } = project.call('session-start', { ...call, source });
      expect(text).toContain(progress('cpm:spec', '3 of 6', 'MINE').trimEnd());
      expect(text).not.toContain('THEIRS');
      expect(namesOf(text)).toEqual([`.cpm-progress-${own}.md`]);
      expect(notes).toMatchObject({ adopted: other, shown: [`.cpm-progress-${own}.md`] });
      expect(existsSync(project.path(other))).toBe(false);
      expect(project.compact(call)).toContain('MINE');
    },
  );
});

describe('size limit', () => {
  /** About 20 KB of distinct lines. */
  const long = (mark: string) =>
    Array.from({ length: 600 }, (_, index) => `${mark} decided matter ${index}`).join('\n');

  test.each([true, false])(
    '30 progress files of 20 KB: the own one up to the limit, the rest by path (worker: %p)',
    (isWorker) => {
      const many = Array.from({ length: 30 }, (_, index) => `id-${index}`);
      for (const id of many) project.write(id, progress('cpm:do', id, long(id)));
      for (const source of ['startup', 'resume', 'compact']) {
        const text = project.start({ sessionId: 'id-7', isWorker, source });
        expect(text.length).toBeLessThanOrEqual(charactersMax);
        expect(text.length).toBeGreaterThan(7_000);
        expect(namesOf(text)).toEqual(['.cpm-progress-id-7.md']);
        expect(text).toContain('id-7 decided matter 150');
        // The cut is between the beginning and the next action.
        expect(text).toContain('Ask about the second part of cpm:do.');
        expect(text).toContain(`the rest is in ${project.path('id-7')}`);
        const named = text.split('\n').filter((line) => line.startsWith('- ')).length;
        const counted = Number(/^(\d+) more CPM progress files/m.exec(text)?.[1] ?? 0);
        expect(named + counted).toBe(source === 'compact' ? 0 : 29);
        for (const id of many.filter((one) => one !== 'id-7')) expect(text).not.toContain(`${id} decided`);
      }
    },
  );
  test('the own progress file is never cut to make room for others', () => {
    for (const id of cpmSessionIds) project.write(id, progress('cpm:do', '1', 'x'.repeat(7_000)));
    for (const isWorker of [true, false]) {
      const text = project.start({ isWorker });
      expect(text).toContain('x'.repeat(7_000));
      expect(text).not.toContain('... (');
      expect(text.length).toBeLessThanOrEqual(charactersMax);
      for (const id of cpmSessionIds) expect(text).toContain(`.cpm-progress-${id}.md`);
    }
  });
  test('progress files are shown whole while there is room, otherwise by path', () => {
    for (const id of cpmSessionIds) project.write(id, progress('cpm:do', '1', id.repeat(60)));
    const text = project.start();
    expect(namesOf(text)).toHaveLength(3);
    expect(text.match(/--- END ---/g)).toHaveLength(3);
    expect(text.match(/^- cpm:do — 1 — .* — file: /gm)).toHaveLength(2);
    expect(text.length).toBeLessThanOrEqual(charactersMax);
    expect(charactersMax).toBe(9_500);
  });
  test.each(['startup', 'resume', 'clear'])(
    'beside stale files of one line each, other progress files are shown whole (%s)',
    (source) => {
      const stale = [cpmSessionIds[1], cpmSessionIds[3]].map((id) =>
        project.write(id, progress('cpm:do', '1', 'THEIRS'), 49),
      );
      const shown = [cpmSessionIds[2], cpmSessionIds[4]];
      for (const id of shown) project.write(id, progress('cpm:epics', '2 of 4', `WORK ${id}`), 47);
      const text = project.start({ source });
      expect(namesOf(text).sort()).toEqual(shown.map((id) => `.cpm-progress-${id}.md`).sort());
      for (const id of shown) expect(text).toContain(progress('cpm:epics', '2 of 4', `WORK ${id}`).trimEnd());
      expect(text).not.toContain('THEIRS');
      const named = text.split('\n').filter((line) => line.startsWith('STALE: '));
      expect(named.map((line) => line.replace(/^.*To remove: delete /, '')).sort()).toEqual(stale.sort());
    },
  );
  test('thousands of progress files are counted, and only a few are read', () => {
    for (let number = 0; number < 2_000; number += 1) project.write(`id-${number}`, progress('cpm:do', '1'), 100);
    let reads = 0;
    const readBytes: typeof realFiles.readBytes = (...args) => {
      reads += 1;
      return realFiles.readBytes(...args);
    };
    const text = project.start({ files: { ...realFiles, readBytes } });
    expect(reads).toBeGreaterThan(10);
    expect(reads).toBeLessThanOrEqual(64);
    expect(text.length).toBeLessThanOrEqual(charactersMax);
    expect(text).toMatch(/\d+ more CPM progress files in docs\/plans/);
    expect(text.match(/^STALE: /gm)?.length).toBeGreaterThan(10);
  });
});

describe('pre-compact', () => {
  test('pre-compact prints guidance for the summary with the session’s current state', () => {
    project.write(own, progress('cpm:spec', '3 of 6', 'MINE'));
    project.write(other, progress('cpm:do', '2 of 4', 'THEIRS'));
    const { text } = project.call('pre-compact', { sessionId: own, source: 'auto' });
    expect(text).toContain('cpm:spec — 3 of 6');
    expect(text).toContain(project.path(own));
    expect(text).toContain(`CPM_SESSION_ID: ${own}`);
    expect(text).toContain('next action');
    expect(text).not.toMatch(/cpm:do|THEIRS/);
  });
  test('pre-compact prints general guidance without a progress file', () => {
    project.write(other, progress('cpm:do', '2 of 4'));
    for (const sessionId of [own, undefined]) {
      const { text } = project.call('pre-compact', sessionId === undefined ? {} : { sessionId });
      expect(text).toContain('keep in the summary');
      expect(text).not.toContain('cpm:do');
    }
  });
  test('the hook at the end of a session prints nothing and changes nothing', () => {
    project.write(own, progress('cpm:spec', '3 of 6'));
    expect(project.call('session-end', { sessionId: own, source: 'other' })).toEqual({ text: '' });
    expect(project.start()).toContain('cpm:spec');
  });
});
