/** `faber prime-context`: prints the critical artifacts of a run and records that this session has them. */
import { type Command, InvalidArgumentError } from '@commander-js/extra-typings';
import {
  danglingRun,
  type FoundRun,
  noRunHere,
  projectHere,
  runHere,
  soundConfig,
  whoAsks,
} from '../../../app/faber/here.ts';
import { bashCharactersMax } from '../../../app/faber/start-run.ts';
import { type Primed, primeContext } from '../../../context/faber/prime.ts';
import { inProgress, isCompactionDue } from '../../../context/faber/state.ts';
import { isTrigger, workflowName } from '../../../context/faber/workflow-config.ts';
import { harmless } from '../../../context/hook-call.ts';
import { defined } from '../../../core/defined.ts';
import { fail, ok, type Result } from '../../../core/failure.ts';
import { nearest } from '../../../template/nearest.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent faber prime-context
  $ claude-code-agent faber prime-context --artifacts workflow-state,specification
  $ claude-code-agent faber prime-context --dry-run`;

export function define(command: Command, context: Context): void {
  command
    .description(
      'Prints the critical artifacts of the active FABER run. What this session loaded within the last five minutes ' +
        'is not repeated.',
    )
    .option('--run-id <id>', 'the run (default: the active one)')
    .option('--artifacts <ids>', 'only these, separated by commas', parseIds)
    .option('--force', 'all of them, also those loaded just now')
    .option('--dry-run', 'say what would be loaded, write nothing')
    .option('--trigger <trigger>', 'session_start, manual or phase_transition:a->b', parseTrigger, 'manual')
    .option('--project <dir>', 'the project (default: the current folder)')
    .option('--json', 'one JSON document: the session and each artifact')
    .addHelpText('after', example)
    .action((given) => context.run(() => prime(context, given)));
}

interface Given {
  readonly runId?: string | undefined;
  readonly artifacts?: readonly string[] | undefined;
  readonly force?: true | undefined;
  readonly dryRun?: true | undefined;
  readonly trigger: string;
  readonly project?: string | undefined;
  readonly json?: true | undefined;
}

function parseIds(text: string): readonly string[] {
  const ids = text
    .split(',')
    .map((id) => id.trim())
    .filter((id) => id !== '');
  if (ids.length > 0) return ids;
  throw new InvalidArgumentError('It must be a list of artifacts such as workflow-state,specification.');
}

function parseTrigger(text: string): string {
  if (isTrigger(text)) return text;
  throw new InvalidArgumentError('It must be session_start, manual or phase_transition:a->b.');
}

function prime(context: Context, given: Given): Work {
  const project = projectHere(context, given.project);
  if (!project.ok) return project;
  const run = runHere(context, project.value, given.runId);
  if (!run.ok) return run;
  const isHook = given.trigger === 'session_start';
  // Called by a hook of the user's own it must not make every session of the project begin with an error.
  const isOver = isHook && run.value?.state.status !== inProgress;
  if (run.value === null || isOver) {
    const none = noRunHere(context, project.value);
    if (!isHook) return none;
    context.stdout.line('No active workflow found, skipping prime-context');
    if (run.value === null && danglingRun(context, project.value) !== null) context.stderr.line(none.failure.message);
    return ok(exitCode.done);
  }
  const checked = checkIds(context, project.value, run.value, given.artifacts);
  if (!checked.ok) return checked;
  const primed = primeContext(context.world.files, {
    project: project.value,
    runId: run.value.runId,
    who: whoAsks(context, project.value),
    trigger: given.trigger,
    ...defined({ only: given.artifacts }),
    force: given.force === true,
    dryRun: given.dryRun === true,
    isCompacted: isHook && isCompactionDue(run.value.state),
    charactersMax: bashCharactersMax,
  });
  if (!primed.ok) return primed;
  show(context, run.value.runId, primed.value, given);
  return conclude(primed.value);
}

/** Problems of the configuration, and ids that it does not know. */
function checkIds(
  context: Context,
  project: Parameters<typeof soundConfig>[1],
  { state }: FoundRun,
  ids: readonly string[] = [],
): Result<void> {
  const config = soundConfig(context, project, workflowName(state.workflow_id));
  if (!config.ok) return config;
  const known = config.value.artifacts.map(({ id }) => id);
  const unknown = ids.filter((id) => !known.includes(id));
  if (unknown.length === 0) return ok(undefined);
  const said = unknown.map((id) => {
    const near = nearest(id, known);
    return `${JSON.stringify(id.slice(0, 100))}${near === undefined ? '' : ` (did you mean ${near}?)`}`;
  });
  return fail('usage', `There is no artifact ${said.join(' and no ')}.`, `There are: ${known.join(', ') || 'none'}.`);
}

function show(context: Context, runId: string, primed: Primed, { json, dryRun, trigger }: Given): void {
  const { stdout, stderr } = context;
  if (json === true) {
    stdout.line(safeJson(documentOf(runId, primed, trigger), 2));
    return;
  }
  if (dryRun === true) {
    stdout.line(safeLine(`Would load for run ${runId} at ${trigger}:`, 400));
    for (const { artifact, due, content } of primed.artifacts) {
      const what =
        due.action !== 'load'
          ? `${due.action}: ${due.why}`
          : content?.kind === 'missing'
            ? `missing: ${content.source} ${content.trouble}`
            : `${content?.source}${content?.kind === 'text' ? ` (${content.sizeBytes} bytes)` : ''}`;
      stdout.line(`  ${safeLine(`${artifact.id} (${artifact.type}) ${what}`, 400)}`);
    }
    return;
  }
  stdout.line(harmless(primed.text));
  for (const { artifact, due } of primed.artifacts) {
    if (due.action === 'cached') stderr.line(safeLine(`${artifact.id} ${due.why}`, 400));
  }
}

function documentOf(runId: string, primed: Primed, trigger: string): object {
  return {
    run_id: runId,
    trigger,
    session_id: primed.sessionId,
    is_new_session: primed.isNewSession,
    artifacts: primed.artifacts.map(({ artifact, due, content }) => ({
      id: artifact.id,
      type: artifact.type,
      required: artifact.required,
      action: content?.kind === 'missing' ? 'missing' : due.action,
      ...(due.action === 'load' ? {} : { why: due.why }),
      ...(content === undefined ? {} : { source: content.source }),
      ...(content?.kind === 'missing' ? { why: content.trouble } : {}),
      ...(content?.kind === 'text' ? { size_bytes: content.sizeBytes } : {}),
    })),
    text: primed.text,
  };
}

function conclude({ missing, trouble }: Primed): Work {
  if (missing.length > 0) {
    const message = `Required artifacts are missing: ${missing.join(', ')}.`;
    return fail(
      'corrupt-file',
      message,
      'The work cannot go on without them; the lines above say where they should be.',
    );
  }
  if (trouble !== undefined) return fail('write-failed', `The context was loaded but not recorded: ${trouble}`, '');
  return ok(exitCode.done);
}
