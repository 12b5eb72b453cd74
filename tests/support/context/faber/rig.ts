/** A project with a run of FABER on the real disk, and hook calls in it. */

import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { faber } from '../../../../src/context/faber/hooks.ts';
import { type FaberProject, statePath } from '../../../../src/context/faber/project.ts';
import { newState, phasesDefault } from '../../../../src/context/faber/state.ts';
import type { ContextFiles, HookAnswer, HookCall, HookEvent } from '../../../../src/context/hook-call.ts';
import { defined } from '../../../../src/core/defined.ts';
import type { JsonObject } from '../../../../src/store/json.ts';
import { createRealWorld } from '../../../../src/system/real-world.ts';

export const { files } = createRealWorld();
/** The path in the specification. */
export const statePathOf = (id: string) => statePath({ runs: '.fractary/runs' }, id);
export const runId = 'fractary-faber-258-20260105-143022-a1b2c3';
/** 2026-01-05T14:30:22Z */
export const runStartMs = Date.UTC(2026, 0, 5, 14, 30, 22);
export const minute = 60_000;

export function fresh(more: JsonObject = {}): JsonObject {
  const run = { runId, workId: '258', workflowId: 'fractary-faber:default', phases: phasesDefault, nowMs: runStartMs };
  return { ...newState(run), ...more };
}

export interface CallOptions {
  readonly source?: string;
  readonly sessionId?: string;
  readonly nowMs?: number;
  readonly host?: string;
  readonly folder?: string;
  readonly transcriptPath?: string;
  readonly isWorker?: boolean;
  readonly isChosen?: boolean;
  /** Files that fail. */
  readonly altered?: Partial<ContextFiles>;
}

export class FaberGround {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'cca faber ')));
  readonly root = join(this.folder, 'project');

  constructor() {
    mkdirSync(join(this.root, '.git'), { recursive: true });
  }

  get project(): FaberProject {
    return { root: this.root, top: this.root, runs: '.fractary/runs' };
  }

  write(path: string, text: string | Uint8Array): string {
    const full = join(this.root, path);
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(full, text);
    return full;
  }

  /** A run in progress that is the active one. */
  begin(more: JsonObject = {}): void {
    this.write('.fractary/faber/.active-run-id', `${runId}\n`);
    this.write(statePathOf(runId), JSON.stringify(fresh(more)));
  }

  get state(): Readonly<Record<string, never>> {
    return JSON.parse(readFileSync(join(this.root, statePathOf(runId)), 'utf8'));
  }

  get sessions(): { current_session_id: string; total_sessions: number; session_history: Record<string, unknown>[] } {
    return this.state.sessions as never;
  }

  call(event: HookEvent, options: CallOptions = {}): HookAnswer {
    const {
      sessionId = 's1',
      nowMs = runStartMs,
      host = 'laptop',
      folder = this.root,
      altered,
      isWorker = false,
      ...more
    } = options;
    const call: HookCall = {
      event,
      ...defined(more),
      ...(sessionId === '' ? {} : { sessionId }),
      projectFolder: folder,
      isWorker,
      nowMs,
      host,
      platform: 'linux',
      files: { ...files, ...altered },
      env: {},
    };
    return faber.answer(call);
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
