/** `group plan` and `--dry-run`: everything a run would do and need, gathered without starting or writing anything. */
import { findClaude } from '../claude/program.ts';
import { ok, type Result } from '../core/failure.ts';
import { historyOf } from '../core/forecast.ts';
import type { SessionId } from '../core/group.ts';
import { type Preview, previewOf } from '../core/preview.ts';
import type { SessionRecord } from '../core/session-state.ts';
import type { GroupState } from '../core/state.ts';
import { type Missing, textPlan } from '../report/plan.ts';
import { safeJson, safeText } from '../report/terminal-text.ts';
import { generatedConfig, type TemplateStore } from '../runner/generated-config.ts';
import type { Context, Work } from './context.ts';
import { checkClaudeLogin } from './doctor/machine.ts';
import { exitCode } from './exit-code.ts';
import { readSamples } from './history.ts';

export interface PreviewWish {
  readonly json: boolean;
  /** Show what will be sent. */
  readonly prompts: boolean;
  /** No account is needed. */
  readonly rehearsal: boolean;
}

/** Prints the preview. The exit code is 1 when something is missing without which sessions would fail. */
export async function showPreview(
  context: Context,
  root: string,
  state: GroupState,
  templates: TemplateStore,
  wish: PreviewWish,
): Promise<Work> {
  const preview = previewOf(state, historyOf(readSamples(context.world, root)));
  const missing = await missingFor(context, root, state, preview, templates, wish.rehearsal);
  if (wish.json) context.stdout.line(safeJson(jsonPlan(state, preview, missing), 2));
  else {
    const details = (id: SessionId) => (wish.prompts ? promptLines(state, id) : []);
    for (const line of textPlan(state, preview, missing, details, context.stdout.style)) context.stdout.line(line);
  }
  return ok(missing.length === 0 ? exitCode.done : exitCode.failed);
}

function promptLines(state: GroupState, id: SessionId): string[] {
  const { prompt } = (state.sessions.get(id) as SessionRecord).definition;
  return safeText(prompt)
    .split('\n')
    .map((line) => `    ${line}`);
}

async function missingFor(
  context: Context,
  root: string,
  state: GroupState,
  preview: Preview,
  templates: TemplateStore,
  rehearsal: boolean,
): Promise<Missing[]> {
  const missing: Missing[] = [];
  const note = (result: Result<unknown>, sessionId?: SessionId) => {
    if (result.ok) return;
    const { message, next } = result.failure;
    missing.push({ ...(sessionId === undefined ? {} : { sessionId }), message, next });
  };
  for (const id of preview.waves.flat()) {
    const { definition } = state.sessions.get(id) as SessionRecord;
    if (context.world.files.info(definition.projectPath)?.kind !== 'folder') {
      const message = `The project folder ${definition.projectPath} is gone.`;
      missing.push({ sessionId: id, message, next: 'Put it back, or remove the session.' });
    }
    note(generatedConfig(context.world, templates, state.group, definition), id);
  }
  if (preview.waves.length === 0) return missing;
  const { world, env, packageRoot } = context;
  const claude = findClaude(world, env, { packageRoot, preferPinned: rehearsal });
  note(claude);
  if (!claude.ok || rehearsal) return missing;
  const login = await checkClaudeLogin(context, claude.value, root);
  if (login.level === 'broken') missing.push({ message: login.message, next: login.next });
  return missing;
}

function jsonPlan(state: GroupState, preview: Preview, missing: readonly Missing[]): object {
  const waveOf = new Map(preview.waves.flatMap((wave, index) => wave.map((id) => [id, index + 1] as const)));
  const { config, ...group } = state.group;
  return {
    group,
    config,
    waves: preview.waves,
    criticalPath: preview.criticalPath,
    sessions: [...waveOf].map(([id, wave]) => {
      const { definition } = state.sessions.get(id) as SessionRecord;
      return { ...definition, wave, forecast: preview.forecasts.get(id) ?? null };
    }),
    budget: {
      maxBudgetUsd: config.maxBudgetUsd ?? null,
      spentUsd: state.usage.costUsd,
      warnings: preview.budgetWarnings,
    },
    forecast: {
      costUsd: preview.costUsd,
      criticalMs: preview.criticalMs,
      withoutHistory: preview.withoutHistory,
    },
    missing,
  };
}
