/** `group plan` and `--dry-run`: what a run would do and need, for people and as a document. */

import { type PreviewOptions, type PreviewTemplates, previewRun, type RunPreview } from '../app/run/preview.ts';
import { object } from '../claude/lenient.ts';
import { ok } from '../core/failure.ts';
import type { SessionId } from '../core/group.ts';
import type { SessionRecord } from '../core/session-state.ts';
import type { GroupState } from '../core/state.ts';
import { isolationWhy, textPlan } from '../view/plan.ts';
import { safeJson, safeText } from '../view/terminal-text.ts';
import type { Context, Work } from './context.ts';
import { exitCode } from './exit-code.ts';

export interface PlanOptions extends PreviewOptions {
  readonly json: boolean;
  /** Show what will be sent. */
  readonly prompts: boolean;
}

/** Prints the preview. The exit code is 1 when something is missing without which sessions would fail. */
export async function showPreview(
  context: Context,
  root: string,
  state: GroupState,
  templates: PreviewTemplates,
  options: PlanOptions,
): Promise<Work> {
  const shown = await previewRun(context, root, state, templates, options);
  if (options.json) context.stdout.line(safeJson(jsonPlan(state, shown), 2));
  else {
    const details = (id: SessionId) => (options.prompts ? promptLines(state, id) : []);
    const lines = textPlan(state, shown.preview, { ...shown, details }, context.stdout.style);
    for (const line of lines) context.stdout.line(line);
  }
  return ok(shown.missing.length === 0 ? exitCode.done : exitCode.failed);
}

function promptLines(state: GroupState, id: SessionId): string[] {
  const { prompt } = (state.sessions.get(id) as SessionRecord).definition;
  return safeText(prompt)
    .split('\n')
    .map((line) => `    ${line}`);
}

function jsonPlan(state: GroupState, { preview, spentUsd, missing, configs, modes, warnings }: RunPreview): object {
  const waveOf = new Map(preview.waves.flatMap((wave, index) => wave.map((id) => [id, index + 1] as const)));
  const { config, ...group } = state.group;
  return {
    group,
    config,
    waves: preview.waves,
    criticalPath: preview.criticalPath,
    warmUps: preview.warmUps,
    sessions: [...waveOf].map(([id, wave]) => {
      const { definition } = state.sessions.get(id) as SessionRecord;
      const config = configs.get(id);
      const settings = config?.ok ? config.value.settings : {};
      const permissions = { mode: modes.get(id), ...object(settings.permissions) };
      return {
        ...definition,
        wave,
        permissions,
        isolation: isolationWhy(state, id),
        forecast: preview.forecasts.get(id) ?? null,
      };
    }),
    budget: {
      maxBudgetUsd: config.maxBudgetUsd ?? null,
      spentUsd,
      warnings: preview.budgetWarnings,
    },
    forecast: {
      costUsd: preview.costUsd,
      criticalMs: preview.criticalMs,
      withoutHistory: preview.withoutHistory,
    },
    missing,
    warnings,
  };
}
