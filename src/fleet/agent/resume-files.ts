/**
 * Resume files of the handover system that git ignores: no snapshot has them, so they go between machines as files, and
 * nothing else of the worktree does.
 */
import { basename } from 'node:path';
import { resumeFileName, resumeFilesIn } from '../../context/handover/projects.ts';
import type { Git } from '../../git/git.ts';
import { askOwn, runOwn } from '../../git/run-git.ts';
import type { ParcelFile } from '../wire.ts';
import { obstacleTo } from './lay-out.ts';

/** What is larger is no resume file. */
const bytesMax = 1024 * 1024;
/** Arguments of one command are limited by the system. */
const filesMax = 200;

/** In orders: what the machine may have of it is older. The worktree itself holds what a machine has already. */
const sentFolder = 'handover/';
const worktreeFolder = 'worktree/';

/** Paths from `top`, the root of the worktree; `folder`: where the session works in it. */
export async function ignoredResumeFiles(git: Git, top: string, folder: string): Promise<readonly string[]> {
  const { files } = git.world;
  const root = files.realPath(top) ?? top;
  const own = resumeFilesIn(files, folder).filter((file) => file.startsWith(`${root}/`));
  const small = own.filter((file) => (files.info(file)?.size ?? bytesMax + 1) <= bytesMax).slice(0, filesMax);
  if (small.length === 0) return [];
  const paths = small.map((file) => file.slice(root.length + 1));
  const args = ['--literal-pathspecs', 'ls-files', '-z', '--others', '--ignored', '--exclude-standard', '--'];
  const named = await runOwn(git, root, [...args, ...paths]);
  // What git does not answer for now comes with the next checkpoint.
  return named.ok ? named.value.split('\0').filter((path) => path !== '') : [];
}

/** As they go with an order. */
export function sentResumeFiles(paths: readonly string[], read: (path: string) => Uint8Array): ParcelFile[] {
  return paths.map((path) => {
    const data = Buffer.from(read(path)).toString('base64');
    return { path: `${sentFolder}${path}`, mode: 0o600, isText: false, data };
  });
}

/** Those of an order, with the paths that they get here. */
export function takeSent(files: readonly ParcelFile[]): ParcelFile[] {
  return files.flatMap((file) => {
    if (!isResumeFile(file, sentFolder)) return [];
    return [{ ...file, path: `${worktreeFolder}${file.path.slice(sentFolder.length)}` }];
  });
}

export function isSent({ path }: ParcelFile): boolean {
  return path.startsWith(sentFolder);
}

/**
 * Of a checkpoint. A machine may be stolen: what git knows comes as commits, and no such file is put over it. Nor where
 * it cannot lie before the commits of the session are taken in, or the checkpoint would be tried for ever.
 */
export async function comeBack(git: Git, top: string, files: readonly ParcelFile[]): Promise<readonly ParcelFile[]> {
  const taken: ParcelFile[] = [];
  for (const file of files.filter((one) => isResumeFile(one, worktreeFolder)).slice(0, filesMax)) {
    const path = file.path.slice(worktreeFolder.length);
    if (obstacleTo(git.world.files, top, path) !== null) continue;
    const args = ['check-ignore', '--quiet', '--', path];
    const asked = await askOwn(git, top, args);
    if (asked.ok && asked.value.exitCode === 0) taken.push(file);
  }
  return taken;
}

function isResumeFile({ path, data, offset, isText }: ParcelFile, below: string): boolean {
  const isWhole = offset === undefined && !isText && data.length <= 2 * bytesMax;
  return path.startsWith(below) && basename(path) === resumeFileName && isWhole;
}

/** In the folder of its session. */
export function inWorktree(path: string): string {
  return `${worktreeFolder}${path}`;
}
