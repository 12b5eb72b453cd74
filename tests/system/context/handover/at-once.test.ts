/**
 * Promises: hooks that write one resume file at the same time lose no changes. A killed hook leaves a complete file and
 * blocks no other.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { chmodSync, readdirSync, statSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { noteInProject } from '../../../../src/context/handover/note.ts';
import { readResumeFile } from '../../../../src/context/handover/resume-file.ts';
import type { ContextFiles } from '../../../../src/context/hook-call.ts';
import { isolatedBunFlags } from '../../../../src/system/own-program.ts';
import { checkoutRoot } from '../../../support/cli.ts';
import { diskFiles, Root } from '../../../support/context/handover/rig.ts';

let root: Root;
let file: string;
beforeEach(() => {
  root = new Root();
  file = root.project('28-b', 'session_id: "first"', 'session_ids: ["first"]', 'note: "stays"');
});
afterEach(() => root.remove());

const reset = () => root.project('28-b', 'session_id: "first"', 'session_ids: ["first"]', 'note: "stays"');
const note = (files: ContextFiles, id: string, nowMs = Date.now()) => noteInProject(files, { file }, id, nowMs);
const ids = () => readResumeFile(root.read(root.resume('28-b'))).sessionIds;
const entries = () => readdirSync(dirname(file));

/** The real files, with `before` called before every call. */
function watched(before: (call: string, index: number) => void): ContextFiles {
  let index = 0;
  return new Proxy(diskFiles, {
    get(target, name: string) {
      const method = target[name as keyof ContextFiles] as (...args: unknown[]) => unknown;
      return (...args: unknown[]) => {
        before(name, index);
        index += 1;
        return method(...args);
      };
    },
  });
}

function callsOfOneNote(): string[] {
  const calls: string[] = [];
  expect(
    note(
      watched((call) => calls.push(call)),
      'counted',
    ).ok,
  ).toBe(true);
  reset();
  return calls;
}

test('killed at every moment: the file is complete, and the next session can write', () => {
  const calls = callsOfOneNote();
  for (const moment of calls.keys()) {
    reset();
    const killed = watched((_, index) => {
      if (index >= moment) throw new Error('killed');
    });
    expect(() => note(killed, 'mine')).toThrow('killed');
    expect([['first'], ['first', 'mine']]).toContainEqual([...ids()]);
    expect(root.read(root.resume('28-b')).endsWith('Notes of 28-b.\n')).toBe(true);
    expect(note(diskFiles, 'next').ok).toBe(true);
    expect(ids()).toEqual(expect.arrayContaining(['first', 'next']));
    expect(entries()).toEqual(['resume-context.md']);
  }
});

test.each([0o644, 0o664, 0o600, 0o640])('a resume file of mode %o keeps it', (mode) => {
  chmodSync(file, mode);
  expect(note(diskFiles, 'mine').ok).toBe(true);
  expect(statSync(file).mode & 0o777).toBe(mode);
});

test('a symlink in place of the new file is neither followed nor removed', () => {
  const victim = root.write('victim.txt', 'kept');
  symlinkSync(victim, join(dirname(file), '.resume-context.md.new'));
  expect(note(diskFiles, 'mine')).toMatchObject({ failure: { reason: 'write-failed' } });
  expect(root.read('victim.txt')).toBe('kept');
  expect(ids()).toEqual(['first']);
});

test('20 real hooks at once: every id is in the list, and the rest of the file is unchanged', async () => {
  const text = '---\nsession_id: ""\nsession_ids: []\nnote: "stays"\n---\nBody \u00e4\n';
  const folder = join(root.folder, 'project');
  root.write('project/01-planning/resume-context.md', text);
  const wanted = Array.from({ length: 20 }, (_, index) => `session-${index}`);
  const hooks = wanted.map((id) =>
    Bun.spawn(
      [process.execPath, ...isolatedBunFlags, join(checkoutRoot, 'src', 'hook-main.ts'), 'handover', 'pre-compact'],
      {
        cwd: root.folder,
        env: { PATH: process.env.PATH ?? '', CLAUDE_PROJECT_DIR: folder },
        stdin: Buffer.from(JSON.stringify({ session_id: id, hook_event_name: 'PreCompact', trigger: 'auto' })),
        stdout: 'pipe',
        stderr: 'pipe',
      },
    ),
  );
  const outputs = await Promise.all(
    hooks.map(async (hook) => [await new Response(hook.stdout).text(), await new Response(hook.stderr).text()]),
  );
  expect(await Promise.all(hooks.map((hook) => hook.exited))).toEqual(wanted.map(() => 0));
  expect(outputs.flat().join('')).toBe('');
  const after = root.read('project/01-planning/resume-context.md');
  const facts = readResumeFile(after);
  expect(facts.sessionIds.toSorted()).toEqual(wanted.toSorted());
  expect(wanted).toContain(facts.sessionId);
  expect(after.endsWith('note: "stays"\n---\nBody \u00e4\n')).toBe(true);
  expect(readdirSync(join(folder, '01-planning'))).toEqual(['resume-context.md']);
});

test('hooks killed at any time: each completed one is in the list, and no lock outlives its owner', async () => {
  const folder = join(root.folder, 'project');
  root.write('project/01-planning/resume-context.md', '---\nsession_ids: []\nnote: "stays"\n---\nBody\n');
  const script = join(checkoutRoot, 'src', 'hook-main.ts');
  const written: string[] = [];
  let killed = 0;
  for (let round = 0; round < 6; round += 1) {
    const hooks = Array.from({ length: 8 }, (_, index) => {
      const id = `session-${round}-${index}`;
      const child = Bun.spawn([process.execPath, ...isolatedBunFlags, script, 'handover', 'pre-compact'], {
        cwd: root.folder,
        env: { PATH: process.env.PATH ?? '', CLAUDE_PROJECT_DIR: folder },
        stdin: Buffer.from(JSON.stringify({ session_id: id, hook_event_name: 'PreCompact', trigger: 'auto' })),
        stdout: 'ignore',
        stderr: 'ignore',
      });
      return { id, child };
    });
    // Every second one is killed as soon as one of them writes.
    const fresh = join(folder, '01-planning', '.resume-context.md.new');
    for (let looks = 0; looks < 5_000 && diskFiles.entryKind(fresh) === null; looks += 1) await Bun.sleep(0);
    for (const { child } of hooks.filter((_, index) => index % 2 === 0)) child.kill('SIGKILL');
    for (const { id, child } of hooks) {
      await child.exited;
      if (child.exitCode === 0) written.push(id);
      else killed += 1;
    }
  }
  expect(killed).toBeGreaterThan(0);
  const text = root.read('project/01-planning/resume-context.md');
  expect(text.endsWith('note: "stays"\n---\nBody\n')).toBe(true);
  expect(readResumeFile(text).sessionIds).toEqual(expect.arrayContaining(written));
});
