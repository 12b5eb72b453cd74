/** `group graph`: who waits for whom. */
import { type Command, Option } from '@commander-js/extra-typings';
import { loadReferredGroup } from '../../../app/resolve.ts';
import { advise } from '../../../core/advice.ts';
import { fail, ok } from '../../../core/failure.ts';
import type { GroupState } from '../../../core/state.ts';
import { dotGraph, graphNodes, mermaidGraph, textGraph } from '../../../view/markdown.ts';
import { safeJson } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent group graph auth-refactor
  $ claude-code-agent group graph auth-refactor --format svg > graph.svg
  $ claude-code-agent group graph auth-refactor --format mermaid`;

const formats = ['text', 'mermaid', 'dot', 'svg'] as const;
type Format = (typeof formats)[number];

export function define(command: Command, context: Context): void {
  command
    .description('Prints the dependency graph of a group. Sessions of one wave can run at the same time.')
    .argument('<group>', 'id, unique prefix or slug')
    .addOption(new Option('--format <format>', 'how to print it').choices(formats).default('text' as const))
    .option('--json', 'one JSON document: an array of nodes with their dependencies')
    .addHelpText('after', example)
    .action((reference, { format, json }) => context.run(() => print(context, reference, format, json === true)));
}

async function print(context: Context, reference: string, format: Format, json: boolean): Promise<Work> {
  const group = loadReferredGroup(context, reference);
  if (!group.ok) return group;
  const { state } = group.value;
  const { stdout } = context;
  if (json) stdout.line(safeJson(graphNodes(state), 2));
  else if (format === 'mermaid') stdout.line(mermaidGraph(state).join('\n'));
  else if (format === 'dot') stdout.line(dotGraph(state).join('\n'));
  else if (format === 'svg') return await printPicture(context, state);
  else stdout.line(textGraph(state, stdout.style).join('\n'));
  return ok(exitCode.done);
}

/** A picture in a file of its own, coloured by status. */
async function printPicture(context: Context, state: GroupState): Promise<Work> {
  // Loaded only now: the layout of graphs is large.
  const { graphPicture } = await import('../../../view/html/graph-picture.ts');
  const drawn = graphPicture(state, { isFile: true });
  if (drawn === null) {
    const next = advise('Print it for Graphviz with', ['group', 'graph', state.group.id, '--format', 'dot']);
    return fail('usage', 'The graph is too large to be drawn.', next);
  }
  context.stdout.line(drawn.picture.text);
  return ok(exitCode.done);
}
