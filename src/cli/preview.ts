/** `group plan` and `--dry-run`: everything a run would do and need, gathered without starting or writing anything. */

import { type Abilities, checkAbilities } from '../claude/abilities.ts';
import { chooseLogin } from '../claude/launch/login.ts';
import { findClaude } from '../claude/launch/program.ts';
import { list, object } from '../claude/lenient.ts';
import { readSamples } from '../control/watch/history.ts';
import { resumeCostSentence } from '../control/watch/resume-cost.ts';
import { adviceText } from '../core/advice.ts';
import { ok, type Result } from '../core/failure.ts';
import type { SessionId } from '../core/group.ts';
import { historyOf } from '../core/plan/forecast.ts';
import { type Preview, previewOf } from '../core/plan/preview.ts';
import type { SessionRecord } from '../core/session-state.ts';
import type { GroupState } from '../core/state.ts';
import { type Missing, textPlan } from '../report/plan.ts';
import { safeJson, safeLine, safeText } from '../report/terminal-text.ts';
import { isolationWhy } from '../report/work-plan.ts';
import { checkLimits } from '../runner/attempt/limits.ts';
import { generatedConfig, permissionModeOf, type TemplateStore } from '../runner/place/generated-config.ts';
import { groupPaths } from '../store/paths.ts';
import type { ResolvedConfig } from '../template/config-layers.ts';
import { checkAccepted, judgeTrial } from '../trial/judge.ts';
import { abilitiesOf, type Tried, trialOf } from '../trial/remembered.ts';
import type { Context, Work } from './context.ts';
import { checkClaudeLogin } from './doctor/machine.ts';
import { exitCode } from './exit-code.ts';
import { checkProject } from './run-check.ts';

const sentenceColumnsMax = 600;

export interface PreviewWish {
  readonly json: boolean;
  /** Show what will be sent. */
  readonly prompts: boolean;
  /** No account is needed. */
  readonly rehearsal: boolean;
  /** The version of claude that this command names, to be used whatever its trial says. */
  readonly acceptClaude?: string | undefined;
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
  const configs = configsFor(context, state, preview, templates);
  const missing = await missingFor(context, root, { state, preview, configs }, wish);
  if (wish.json) context.stdout.line(safeJson(jsonPlan(state, preview, missing, configs), 2));
  else {
    const details = (id: SessionId) => (wish.prompts ? promptLines(state, id) : []);
    const goingOn = resumeCostSentence(context.world, groupPaths(root, state.group.id), state);
    const shown = { missing, details, modes: modesOf(state, configs), notes: powerNotes(state, configs), goingOn };
    for (const line of textPlan(state, preview, shown, context.stdout.style)) context.stdout.line(line);
  }
  return ok(missing.length === 0 ? exitCode.done : exitCode.failed);
}

type Configs = ReadonlyMap<SessionId, Result<ResolvedConfig>>;

/** What each session that is to run would get, or why that could not be used. */
function configsFor({ world }: Context, state: GroupState, { waves }: Preview, templates: TemplateStore): Configs {
  return new Map(
    waves.flat().map((id) => {
      const { definition } = state.sessions.get(id) as SessionRecord;
      return [id, generatedConfig(world, templates, state.group, definition)];
    }),
  );
}

function modesOf(state: GroupState, configs: Configs): ReadonlyMap<SessionId, string> {
  return new Map(
    [...configs].map(([id, config]) => {
      const { definition } = state.sessions.get(id) as SessionRecord;
      return [id, config.ok ? permissionModeOf(definition, config.value) : (definition.permissionMode ?? '')];
    }),
  );
}

/** What the config templates in use forbid, allow and start: nobody reads every template before every run. */
function powerNotes(state: GroupState, configs: Configs): string[] {
  const notes = new Map<string, string>();
  for (const [id, config] of configs) {
    const { configTemplate } = (state.sessions.get(id) as SessionRecord).definition;
    const reference = configTemplate ?? state.group.configTemplate;
    if (reference === undefined || !config.ok || notes.has(reference.digest)) continue;
    const { settings, mcp } = config.value;
    const rules = object(settings.permissions);
    const count = (kind: string) => list(rules[kind]).length;
    const programs = [
      ...Object.keys(object(settings.hooks)).map((event) => `${event} hooks`),
      ...Object.keys(object(mcp?.mcpServers)).map((name) => `the MCP server ${name}`),
    ];
    const starts = programs.length === 0 ? 'starts no programs' : `starts ${programs.join(', ')}`;
    const permissions = `allows ${count('allow')}, asks for ${count('ask')} and denies ${count('deny')} rules`;
    notes.set(reference.digest, `${reference.name} (${reference.origin}): ${permissions}, ${starts}`);
  }
  return [...notes.values()];
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
  { state, preview, configs }: { readonly state: GroupState; readonly preview: Preview; readonly configs: Configs },
  { rehearsal, acceptClaude }: PreviewWish,
): Promise<Missing[]> {
  const missing: Missing[] = [];
  const note = (result: Result<unknown>, sessionId?: SessionId) => {
    if (result.ok) return;
    const { message } = result.failure;
    const next = adviceText(result.failure.next);
    missing.push({ ...(sessionId === undefined ? {} : { sessionId }), message, next });
  };
  for (const id of preview.waves.flat()) {
    const { definition } = state.sessions.get(id) as SessionRecord;
    if (context.world.files.info(definition.projectPath)?.kind !== 'folder') {
      const message = `The project folder ${definition.projectPath} is gone.`;
      missing.push({ sessionId: id, message, next: 'Put it back, or remove the session.' });
    }
    note(configs.get(id) as Result<ResolvedConfig>, id);
    note(checkProject(context, root, state, id, rehearsal), id);
    note(checkLimits(definition, context.world.processes), id);
  }
  if (preview.waves.length === 0) return missing;
  const { world, env, packageRoot } = context;
  const claude = findClaude(world, env, { packageRoot, preferPinned: rehearsal });
  note(claude);
  if (!claude.ok || rehearsal) return missing;
  const tried = await trialOf(world, root, claude.value.program, env);
  if (tried !== undefined) {
    note(checkAccepted(tried.version, acceptClaude));
    note(judgeTrial(tried, chooseLogin(env).kind, state.group.config.acceptClaude));
  }
  for (const id of preview.waves.flat())
    note(checkAbilities((state.sessions.get(id) as SessionRecord).definition, foreseen(tried)), id);
  const { level, message, next } = await checkClaudeLogin(context, claude.value);
  if (level === 'broken') missing.push({ message, next });
  else if (level === 'warning') context.stderr.line(safeLine(`${message} ${next}`, sentenceColumnsMax));
  return missing;
}

/** What is new here the run tries first, all but what only `doctor --claude` tries. */
function foreseen(tried: Tried | undefined): Abilities {
  return tried === undefined ? { untrusted: true } : abilitiesOf(tried);
}

function jsonPlan(state: GroupState, preview: Preview, missing: readonly Missing[], configs: Configs): object {
  const waveOf = new Map(preview.waves.flatMap((wave, index) => wave.map((id) => [id, index + 1] as const)));
  const { config, ...group } = state.group;
  const modes = modesOf(state, configs);
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
