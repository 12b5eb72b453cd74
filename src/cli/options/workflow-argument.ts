/** The workflow that a command line names: a path, the name of a template, or `-` for one on standard input. */
import type { NewGroup } from '../../app/create/new-group.ts';
import { readPipedWorkflow, readWorkflow } from '../../app/create/workflow-group.ts';
import type { Result } from '../../core/failure.ts';
import type { Context } from '../context.ts';
import { readPipedYaml, standardInput } from './prompt-source.ts';

/** `pairs` are the values of `--var`, `alsoKnown` names among them that are for others. */
export async function readNamedWorkflow(
  context: Context,
  reference: string,
  pairs: readonly string[],
  alsoKnown: readonly string[] = [],
): Promise<Result<NewGroup>> {
  if (reference !== standardInput) return readWorkflow(context, reference, pairs, alsoKnown);
  const text = await readPipedYaml(context);
  return text.ok ? readPipedWorkflow(context, text.value, pairs, alsoKnown) : text;
}
