/**
 * Promises: row 5 of the specification (a new file with the current id; the old one goes after the new one is
 * confirmed), and that no call that fails and no moment of a crash loses a line of either file.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { adopt } from '../../../../src/context/cpm/adoption.ts';
import type { ContextFiles } from '../../../../src/context/hook-call.ts';
import { other as newId, own as oldId, Project, progress, realFiles } from '../../../support/context/cpm/rig.ts';
import { fc } from '../../../support/property.ts';

let project: Project;
beforeEach(() => {
  project = new Project();
});
afterEach(() => project.remove());

const take = (files: ContextFiles = realFiles) => adopt(files, project.folder, oldId, newId);
const read = (id: string) => readFileSync(project.path(id), 'utf8');

describe('5. Session ID adoption on resume', () => {
  test('a new progress file is created with the current session ID', () => {
    const path = project.write(oldId, `\ufeff${progress('cpm:do', '2 of 4')}\r\n`);
    const bytes = readFileSync(path);
    expect(take()).toEqual({ ok: true, value: 'moved' });
    expect(readFileSync(project.path(newId)).equals(bytes)).toBe(true);
    expect(readdirSync(project.plans)).toEqual([`.cpm-progress-${newId}.md`]);
  });
  test('the old progress file is deleted after the new file is confirmed', () => {
    project.write(oldId, progress('cpm:do', '2 of 4'));
    const calls: string[] = [];
    const files = watched((name, path) => calls.push(`${name} ${path.includes(oldId) ? 'old' : 'new'}`));
    expect(take(files).ok).toBe(true);
    const [written, confirmed, removed] = ['writeBytes new', 'readBytes new', 'remove old'].map((call) =>
      calls.lastIndexOf(call),
    ) as [number, number, number];
    expect(written).toBeGreaterThanOrEqual(0);
    expect(confirmed).toBeGreaterThan(written);
    expect(removed).toBeGreaterThan(confirmed);
    expect(removed).toBe(calls.length - 1);
  });
  test('a new file that is not what was written is no reason to delete the old one', () => {
    project.write(oldId, progress('cpm:do', '2 of 4'));
    const lying: ContextFiles = {
      ...realFiles,
      writeBytes: (path, bytes, options) => realFiles.writeBytes(path, bytes.subarray(0, 10), options),
      writeAtomic: (path, text, options) => realFiles.writeAtomic(path, text.slice(0, 10), options),
    };
    expect(take(lying).ok).toBe(false);
    expect(read(oldId)).toBe(progress('cpm:do', '2 of 4'));
  });
});

describe('when the new file exists', () => {
  test('what it lacks is appended under a heading', () => {
    project.write(oldId, progress('cpm:do', '2 of 4', 'OLD'));
    project.write(newId, progress('cpm:do', '3 of 4', 'NEW'));
    expect(take()).toEqual({ ok: true, value: 'merged' });
    const text = read(newId);
    expect(text).toStartWith(progress('cpm:do', '3 of 4', 'NEW').trimEnd());
    const [, adopted] = text.split(`\n## Adopted from session ${oldId}\n`);
    expect(adopted).toContain('OLD');
    expect(adopted).toContain('**Phase**: 2 of 4');
    // Both say the same about the next action.
    expect(text.match(/## Next Action/g)).toHaveLength(1);
    expect(existsSync(project.path(oldId))).toBe(false);
  });
  test('nothing is appended when it lacks nothing', () => {
    project.write(oldId, progress('cpm:do', '2 of 4', 'OLD'));
    project.write(newId, `${progress('cpm:do', '2 of 4', 'OLD').replaceAll('\n', '\r\n')}\r\n## More\r\nx\r\n`);
    const before = read(newId);
    expect(take()).toEqual({ ok: true, value: 'contained' });
    expect(read(newId)).toBe(before);
    expect(existsSync(project.path(oldId))).toBe(false);
  });
  test('a part of a line is not the line', () => {
    project.write(oldId, 'Use A');
    project.write(newId, 'Use AB');
    expect(take()).toEqual({ ok: true, value: 'merged' });
    expect(read(newId).split('\n')).toContain('Use A');
  });
  test('it may appear at the last moment', () => {
    project.write(oldId, progress('cpm:do', '2 of 4', 'OLD'));
    let done = false;
    const files = watched((name) => {
      if (name !== 'writeBytes' || done) return;
      done = true;
      project.write(newId, progress('cpm:do', '3 of 4', 'NEW'));
    });
    expect(take(files)).toEqual({ ok: true, value: 'merged' });
    expect(read(newId)).toContain('NEW');
    expect(read(newId)).toContain('OLD');
  });
  test('the old session may write once more meanwhile', () => {
    project.write(oldId, progress('cpm:do', '2 of 4', 'OLD'));
    let done = false;
    const files = watched((name) => {
      if (name !== 'writeBytes' || done) return;
      done = true;
      project.write(oldId, progress('cpm:do', '2 of 4', 'LAST WORDS'));
    });
    expect(take(files).ok).toBe(true);
    expect(read(newId)).toContain('LAST WORDS');
    expect(existsSync(project.path(oldId))).toBe(false);
  });
});

/** Tells of every call before it is made. */
function watched(before: (name: string, path: string) => void): ContextFiles {
  const wrap = (name: keyof ContextFiles) => {
    return (path: string, ...rest: unknown[]) => {
      before(name, path);
      return (realFiles[name] as (...all: unknown[]) => unknown)(path, ...rest);
    };
  };
  const names = Object.keys(realFiles) as (keyof ContextFiles)[];
  return Object.fromEntries(names.map((name) => [name, wrap(name)])) as unknown as ContextFiles;
}

class Crash extends Error {}

describe.each([
  ['moved', undefined],
  ['merged', progress('cpm:do', '3 of 4', 'NEW')],
])('at every file call (%s)', (_, current) => {
  const lines = (text: string | undefined) => (text ?? '').split('\n').filter((line) => line !== '');
  const everything = [...lines(progress('cpm:do', '2 of 4', 'OLD')), ...lines(current)];

  function prepare(): void {
    project.write(oldId, progress('cpm:do', '2 of 4', 'OLD'));
    if (current === undefined) realFiles.remove(project.path(newId));
    else project.write(newId, current);
  }

  function held(): Set<string> {
    return new Set([oldId, newId].flatMap((id) => (existsSync(project.path(id)) ? lines(read(id)) : [])));
  }

  function failingAt(call: number, error: Error): { files: ContextFiles; reached: () => boolean } {
    let count = 0;
    const files = watched(() => {
      count += 1;
      if (count === call) throw error;
    });
    return { files, reached: () => count >= call };
  }

  test('a crash loses nothing, and the next try completes it', () => {
    let call = 1;
    for (; ; call += 1) {
      prepare();
      const { files, reached } = failingAt(call, new Crash());
      if (reached()) throw new Error('no call was made yet');
      try {
        take(files);
      } catch (error) {
        expect(error).toBeInstanceOf(Crash);
      }
      const now = held();
      for (const line of everything) expect(now).toContain(line);
      if (!reached()) break;
      expect(take().ok).toBe(true);
      const heading = `## Adopted from session ${oldId}`;
      const after = new Set(lines(read(newId)).filter((line) => line !== heading));
      expect([...after].sort()).toEqual([...new Set(everything)].sort());
      expect(existsSync(project.path(oldId))).toBe(false);
    }
    expect(call).toBeGreaterThan(10);
  });
  test('a system that refuses is a sentence, and loses nothing', () => {
    for (let call = 1; ; call += 1) {
      prepare();
      const { files, reached } = failingAt(call, Object.assign(new Error('full'), { code: 'ENOSPC' }));
      const result = take(files);
      const now = held();
      for (const line of everything) expect(now).toContain(line);
      if (!reached()) break;
      if (result.ok) throw new Error('it should have failed');
      expect(result.failure).toMatchObject({ reason: 'write-failed', message: expect.stringContaining('ENOSPC') });
    }
  });
  test('a new file that was written in part is completed', () => {
    prepare();
    if (current !== undefined) return;
    writeFileSync(project.path(newId), progress('cpm:do', '2 of 4', 'OLD').slice(0, 60));
    expect(take().ok).toBe(true);
    for (const line of everything) expect(lines(read(newId))).toContain(line);
  });
});

test('any two texts: no line of either is lost, and doing it twice changes nothing', () => {
  const text = fc
    .array(fc.constantFrom('## A', '## B', '# T', 'x', 'xy', '', '  z', 'é😀', '\r'), { maxLength: 12 })
    .map((lines) => lines.join('\n'));
  fc.assert(
    fc.property(text, text, (old, current) => {
      project.write(oldId, old);
      project.write(newId, current);
      expect(take().ok).toBe(true);
      const after = read(newId);
      const kept = new Set(after.split(/\r?\n|\r/).map((line) => line.trim()));
      const lines = `${old}\n${current}`.split(/\r?\n|\r/).filter((line) => line.trim() !== '');
      for (const line of lines) expect(kept).toContain(line.trim());
      project.write(oldId, old);
      expect(take()).toEqual({ ok: true, value: 'contained' });
      expect(read(newId)).toBe(after);
    }),
    { numRuns: 60 },
  );
});

describe('is refused', () => {
  const reasonOf = (result: ReturnType<typeof adopt>) => (result.ok ? 'ok' : result.failure.reason);
  test('when there is nothing to take over', () => expect(reasonOf(take())).toBe('not-found'));
  test.each([
    [oldId, oldId],
    ['../x', newId],
    [oldId, '../x'],
    ['', newId],
  ])('for ids that are none: %j to %j', (from, to) => {
    project.write(oldId, 'x');
    expect(reasonOf(adopt(realFiles, project.folder, from, to))).toBe('usage');
    expect(read(oldId)).toBe('x');
  });
  test.each(['old', 'new'])('for links and folders (%s)', (which) => {
    const outside = join(project.top, 'outside.md');
    writeFileSync(outside, 'theirs');
    const [odd, plain] = which === 'old' ? [oldId, newId] : [newId, oldId];
    project.write(plain, 'x');
    symlinkSync(outside, project.path(odd));
    expect(reasonOf(take())).toBe('corrupt-file');
    realFiles.remove(project.path(odd));
    mkdirSync(project.path(odd));
    expect(reasonOf(take())).toBe('corrupt-file');
    expect(read(plain)).toBe('x');
    expect(readFileSync(outside, 'utf8')).toBe('theirs');
  });
  test('for a folder of plans that lies outside of the project', () => {
    const outside = join(project.top, 'plans');
    realFiles.remove(project.plans);
    mkdirSync(outside);
    symlinkSync(outside, project.plans);
    project.write(oldId, 'x');
    expect(reasonOf(take())).toBe('corrupt-file');
    expect(readdirSync(outside)).toEqual([`.cpm-progress-${oldId}.md`]);
  });
  test('for bytes that cannot be merged; moved they can be', () => {
    const bytes = Buffer.from([0xff, 0xfe, 0x00, 0x0a]);
    writeFileSync(project.path(oldId), bytes);
    project.write(newId, 'x');
    expect(reasonOf(take())).toBe('corrupt-file');
    expect(readFileSync(project.path(oldId)).equals(bytes)).toBe(true);
    expect(read(newId)).toBe('x');
    realFiles.remove(project.path(newId));
    expect(take()).toEqual({ ok: true, value: 'moved' });
    expect(readFileSync(project.path(newId)).equals(bytes)).toBe(true);
  });
  test('for a file that is no progress file by its size', () => {
    project.write(oldId, 'x'.repeat(4 * 1024 * 1024 + 1));
    expect(reasonOf(take())).toBe('corrupt-file');
    expect(existsSync(project.path(newId))).toBe(false);
  });
});
