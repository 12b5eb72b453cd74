/** What a workflow wants done before a phase begins: done for the session of claude that begins it, or told to it. */
import { primeContext } from '../../context/faber/prime.ts';
import type { FaberProject } from '../../context/faber/project.ts';
import { shippedFaber } from '../../context/faber/shipped.ts';
import type { WorkflowConfig } from '../../context/faber/workflow-config.ts';
import { harmless } from '../../context/hook-call.ts';
import { safeLine } from '../../view/terminal-text.ts';
import type { Place } from '../place.ts';
import { whoAsks } from './here.ts';

/** claude's Bash tool hands on 30,000 characters of what a command prints. */
export const bashCharactersMax = 25_000;

/** `/prime-context`, under whatever name of a plugin. */
const primes = /^\/(?:[\w-]+:)?prime-context\s*$/;

/** A person at a terminal has no conversation to load anything into: their session does it at its start. */
export function beginPhase(
  place: Place,
  project: FaberProject,
  { runId, phase, config }: { readonly runId: string; readonly phase: string; readonly config: WorkflowConfig },
): void {
  const who = whoAsks(place, project);
  if (who.sessionId === undefined) return;
  const { notes } = place;
  for (const { id, prompt } of config.preSteps.filter((step) => step.phase === phase)) {
    if (!primes.test(prompt)) {
      notes.line(safeLine(`Before the phase ${phase} (${id}): ${prompt}`, 4_000));
      continue;
    }
    const primed = primeContext(place.world.files, {
      project,
      runId,
      who,
      trigger: 'manual',
      force: false,
      dryRun: false,
      isCompacted: false,
      shipped: shippedFaber,
      charactersMax: bashCharactersMax,
    });
    // Not on stdout, which scripts read: claude gets both.
    if (primed.ok) notes.line(harmless(primed.value.text));
    else notes.line(safeLine(`WARNING: The context could not be loaded (${id}): ${primed.failure.message}`, 600));
  }
}
