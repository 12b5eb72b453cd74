/** A project with progress files, and calls of hooks on it: in this process, or by the program that claude runs. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { cpm } from '../../../../src/context/cpm/hooks.ts';
import type { ContextFiles, HookAnswer, HookCall } from '../../../../src/context/hook-call.ts';
import { createFiles } from '../../../../src/system/files.ts';
import { isolatedBunFlags } from '../../../../src/system/own-program.ts';

export const realFiles: ContextFiles = createFiles();

/** Ids of the form that claude uses. */
export const cpmSessionIds = [1, 2, 3, 4, 5].map((number) => `0000000${number}-0000-4000-8000-000000000000`) as [
  string,
  string,
  string,
  string,
  string,
];
export const [own, other] = cpmSessionIds;

const hourMs = 60 * 60 * 1000;

export interface HookResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

const hookMain = resolve(import.meta.dir, '../../../../src/hook-main.ts');

export class Project {
  /** A space in the path, so that missing quotes show. */
  readonly top = realpathSync(mkdtempSync(join(tmpdir(), 'cca cpm ')));
  readonly folder = join(this.top, 'project');
  readonly plans = join(this.folder, 'docs', 'plans');
  /** The hooks' present time: a whole second, which every file system can store. */
  readonly nowMs = Math.floor(Date.now() / 1000) * 1000;

  constructor() {
    mkdirSync(this.plans, { recursive: true });
  }

  path(id: string): string {
    return join(this.plans, `.cpm-progress-${id}.md`);
  }

  /** Writes the progress file of a session, `hoursOld` at the project's now. */
  write(id: string, text: string, hoursOld = 0): string {
    return this.writeFile(`.cpm-progress-${id}.md`, text, hoursOld);
  }

  writeFile(name: string, text: string, hoursOld = 0): string {
    const path = join(this.plans, name);
    writeFileSync(path, text);
    const at = (this.nowMs - hoursOld * hourMs) / 1000;
    utimesSync(path, at, at);
    return path;
  }

  call(event: HookCall['event'], more: Partial<HookCall> = {}): HookAnswer {
    return cpm.answer({
      event,
      projectFolder: this.folder,
      isWorker: false,
      nowMs: this.nowMs,
      host: 'here',
      files: realFiles,
      env: {},
      ...more,
    });
  }

  start(more: Partial<HookCall> = {}): string {
    return this.call('session-start', { source: 'startup', sessionId: own, ...more }).text;
  }

  compact(more: Partial<HookCall> = {}): string {
    return this.start({ source: 'compact', ...more });
  }

  /** The whole hook process, as claude starts it; `stdin` null = none. */
  run(
    event: string,
    stdin: string | null,
    env: Readonly<Record<string, string>> = {},
    ...options: string[]
  ): HookResult {
    const child = Bun.spawnSync([process.execPath, ...isolatedBunFlags, hookMain, 'cpm', event, ...options], {
      cwd: this.top,
      env: { PATH: process.env.PATH ?? '', HOME: this.top, CLAUDE_PROJECT_DIR: this.folder, ...env },
      stdin: stdin === null ? 'ignore' : Buffer.from(stdin),
      timeout: 60_000,
    });
    return { exitCode: child.exitCode, stdout: child.stdout.toString(), stderr: child.stderr.toString() };
  }

  remove(): void {
    rmSync(this.top, { recursive: true, force: true });
  }
}

/** A progress file as a skill writes it. */
export function progress(skill: string, phase: string, body = 'Decided: use SQLite.'): string {
  return `# CPM Session State

**Skill**: ${skill}
**Phase**: ${phase}
**Output target**: docs/specifications/07-spec-${skill.replace(/\W/g, '-')}.md

## Completed Phases

### Phase 1: Problem
${body}

## Next Action
Ask about the second part of ${skill}.
`;
}
