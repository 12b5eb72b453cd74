/** Promises: of all ignored files only resume files travel between hosts, and a host cannot send any other. */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { comeBack, ignoredResumeFiles, sentResumeFiles, takeSent } from '../../../src/fleet/agent/checkpoint.ts';
import type { ParcelFile } from '../../../src/fleet/wire.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { Repository } from '../../support/git/repository.ts';
import { basePath, makeTempFolder } from '../../support/system/rig.ts';

const git = { world: createRealWorld(), env: { PATH: basePath } };
let temp: ReturnType<typeof makeTempFolder>;
let top: string;

const [known, ignored, further] = ['1-known', '2-ignored', '3-further'].map(
  (id) => `02-projects/${id}/01-planning/resume-context.md`,
) as [string, string, string];
const text = '---\nnext_action: "plan"\n---\n';

beforeEach(() => {
  temp = makeTempFolder();
  top = join(temp.path, 'app');
  new Repository(top).commit({ '.gitignore': '2-*\n3-*\nnotes.md\nresume-context.md.bak\n', [known]: text });
  for (const path of [ignored, 'notes.md', '02-projects/2-ignored/01-planning/plan.md']) write(path);
});
afterEach(() => temp.remove());

function write(path: string, content = text): void {
  mkdirSync(dirname(join(top, path)), { recursive: true });
  writeFileSync(join(top, path), content);
}

const file = (path: string, more: Partial<ParcelFile> = {}): ParcelFile => ({
  ...{ path: `worktree/${path}`, isText: false, data: Buffer.from('x').toString('base64') },
  ...more,
});

test('ignored resume files are found, except unchanged, too large and outside ones', async () => {
  write(further, 'x'.repeat(1024 * 1024 + 1));
  mkdirSync(join(temp.path, 'elsewhere'));
  writeFileSync(join(temp.path, 'elsewhere', 'resume-context.md'), text);
  mkdirSync(join(top, '02-projects/2-link'), { recursive: true });
  symlinkSync(join(temp.path, 'elsewhere'), join(top, '02-projects/2-link/01-planning'));
  expect(await ignoredResumeFiles(git, top, top)).toEqual([ignored]);
});

test('resume files travel with an order to the same place, and no other file does', () => {
  const sent = sentResumeFiles([ignored], () => Buffer.from('text'));
  expect(takeSent([...sent, file(known), { ...file('x'), path: 'handover/tool.sh' }])).toMatchObject([
    { path: `worktree/${ignored}`, data: Buffer.from('text').toString('base64') },
  ]);
});

test('tracked files and other paths that a host sends as resume files are refused', async () => {
  const others = [file('notes.md'), file(known), file(`${ignored}.bak`), file('../resume-context.md')];
  const odd = [file(ignored, { offset: 3 }), file(ignored, { isText: true })];
  const taken = await comeBack(git, top, [...others, ...odd, file(ignored), file(further)]);
  expect(taken.map(({ path }) => path)).toEqual([`worktree/${ignored}`, `worktree/${further}`]);
});

test('resume files are not stored over a file, symlink or folder before the work has arrived', async () => {
  mkdirSync(join(temp.path, 'elsewhere'));
  mkdirSync(join(top, further), { recursive: true });
  write('3-file');
  symlinkSync(join(temp.path, 'elsewhere'), join(top, '3-link'));
  const ways = ['3-file', '3-link'].map((name) => file(`${name}/resume-context.md`));
  expect(await comeBack(git, top, [...ways, file(further)])).toEqual([]);
});
