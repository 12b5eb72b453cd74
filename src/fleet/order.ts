/** All that another machine needs to start an attempt which was prepared here as if it were to run here. */
import { basename, join, relative } from 'node:path';
import { takesPart } from '../context/handover/projects.ts';
import { defined } from '../core/defined.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import { defaultCommandTimeoutMs } from '../core/group.ts';
import { namedByProject } from '../git/include.ts';
import { ownCommand } from '../system/own-program.ts';
import type { Files, SpawnOptions } from '../system/world.ts';
import { type Places, takeOut } from './agent/lay-out.ts';
import { ignoredResumeFiles, sentResumeFiles } from './agent/resume-files.ts';
import { packSession } from './pack.ts';
import type { RemoteSubject } from './remote-subject.ts';
import { type Order, projectSlug } from './wire.ts';

/** Fails with `worktree-failed`, and as `BlobStore` does. */
export async function makeOrder(subject: RemoteSubject, spawn: SpawnOptions): Promise<Result<Order>> {
  const { git, blobs, paths, definition, shipper } = subject;
  const { files, random } = git.world;
  const workspace = subject.workspace();
  if (workspace === undefined) {
    return fail('worktree-failed', 'The session has no worktree that could be sent.', 'Retry the session.');
  }
  const places = placesHere(files, subject, spawn.cwd);
  const included = await namedByProject(git, workspace.path);
  if (!included.ok) return included;
  const work = await shipper.ship(subject.sessionId, workspace, paths.tmp);
  if (!work.ok) return work;
  const hasHandover = takesPart(definition);
  const resumeFiles = hasHandover ? await ignoredResumeFiles(git, workspace.path, spawn.cwd) : [];
  const read = (path: string): Uint8Array => {
    const full = join(workspace.path, path);
    return files.readBytes(full, 0, files.info(full)?.size ?? 0);
  };
  const parcel = {
    files: [...packSession(files, paths, places, included.value).files, ...sentResumeFiles(resumeFiles, read)],
  };
  const sent = await blobs.putBlob(random.uuid(), Buffer.from(JSON.stringify(parcel)));
  if (!sent.ok) return sent;
  const { setup, setupTimeoutMs = defaultCommandTimeoutMs, untrusted = false, memoryBytes, maxProcesses } = definition;
  return ok({
    attemptId: subject.attemptId,
    attempt: subject.number,
    groupId: subject.groupId,
    sessionId: subject.sessionId,
    args: spawn.args.map((arg) => takeOut(arg, places)),
    cwd: relative(places.session, files.realPath(spawn.cwd) ?? spawn.cwd),
    files: sent.value,
    work: work.value,
    ...(setup === undefined ? {} : { setup: { command: setup, timeoutMs: setupTimeoutMs } }),
    untrusted,
    ...defined({ memoryBytes, processesMax: maxProcesses }),
    ...(subject.waits ? { waits: true } : {}),
    ...(hasHandover ? { handover: true } : {}),
  });
}

/** `cwd`: claude's working directory here. */
export function placesHere(files: Files, subject: Pick<RemoteSubject, 'paths' | 'packageRoot'>, cwd: string): Places {
  const { folder } = subject.paths;
  return {
    session: files.realPath(folder) ?? folder,
    package: subject.packageRoot,
    bun: ownCommand('main').program,
    slug: projectSlug(files.realPath(cwd) ?? join(folder, basename(cwd))),
  };
}
