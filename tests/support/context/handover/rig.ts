/** A root with handover projects on the real disk, and the calls of its hooks. */
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { handover } from '../../../../src/context/handover/hooks.ts';
import type { ContextFiles, HookAnswer, HookCall } from '../../../../src/context/hook-call.ts';
import { createRealWorld } from '../../../../src/system/real-world.ts';

export const diskFiles: ContextFiles = createRealWorld().files;
export const noon = Date.parse('2026-01-06T12:00:00.000Z');

export class Root {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'cca template ')));

  path(...parts: string[]): string {
    return join(this.folder, ...parts);
  }

  write(path: string, content: string | Uint8Array): string {
    const full = this.path(path);
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(full, content);
    return full;
  }

  read(path: string): string {
    return readFileSync(this.path(path), 'utf8');
  }

  /** Path of the resume file of a project in `02-projects`, below the root. */
  resume(id: string): string {
    return join('02-projects', id, '01-planning', 'resume-context.md');
  }

  /** Makes a project with these lines of front matter. */
  project(id: string, ...lines: string[]): string {
    return this.write(this.resume(id), `---\n${lines.map((line) => `${line}\n`).join('')}---\n\nNotes of ${id}.\n`);
  }

  answer(call: Partial<HookCall> & Pick<HookCall, 'event'>): Promise<HookAnswer> {
    return handover.answer({
      sessionId: 'aaa111',
      projectFolder: this.folder,
      isWorker: false,
      nowMs: noon,
      host: 'host',
      files: diskFiles,
      env: {},
      ...call,
    });
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
