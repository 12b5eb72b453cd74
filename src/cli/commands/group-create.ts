/** `group create`: a new, empty group; its id alone on stdout. */
import type { Command } from '@commander-js/extra-typings';
import { ok } from '../../core/failure.ts';
import { defaultGroupConfig, type GroupConfig } from '../../core/group.ts';
import { checkSlug, makeGroupId } from '../../core/id.ts';
import { createGroup } from '../../store/group-store.ts';
import type { Context, Work } from '../context.ts';
import { exitCode } from '../exit-code.ts';
import { configOf, options } from '../group-options.ts';
import { parseText } from '../option-values.ts';

const example = `
Example:
  $ claude-code-agent group create auth-refactor --name "Auth refactor" --max-budget-usd 10
  20260104-143022-auth-refactor`;

/** Groups of one slug made in the same second get the next free second in their id; more than this is no accident. */
const idTriesMax = 60;

export function define(command: Command, context: Context): void {
  command
    .description('Creates a session group and prints its id. Add sessions with: session add.')
    .argument('<slug>', 'short name in lower-case letters, digits and hyphens')
    .option('--name <text>', 'name for people (default: the slug)', parseText)
    .option('--description <text>', 'what the group is for', parseText)
    .addOption(options.model())
    .addOption(options.maxBudgetUsd())
    .addOption(options.onBudgetExceeded())
    .addOption(options.warningThreshold())
    .addOption(options.concurrent())
    .addOption(options.errorThreshold())
    .addOption(options.onLimit())
    .addOption(options.minFreeMemory())
    .addOption(options.pauseOnError())
    .addOption(options.noPauseOnError())
    .addHelpText('after', example)
    .action((slug, given) => {
      const { name, description } = given;
      return context.run(() => create(context, { slug, name, description, config: configOf(given) }));
    });
}

interface Wanted {
  readonly slug: string;
  readonly name: string | undefined;
  readonly description: string | undefined;
  readonly config: Partial<GroupConfig>;
}

function create(context: Context, wanted: Wanted): Work {
  const root = context.root();
  if (!root.ok) return root;
  const slug = checkSlug(wanted.slug);
  if (!slug.ok) return slug;
  const atMs = context.world.clock.now();
  for (let tries = 1; ; tries += 1) {
    const id = makeGroupId(atMs + (tries - 1) * 1000, slug.value);
    const created = createGroup(context.world, root.value, {
      id,
      name: wanted.name ?? slug.value,
      description: wanted.description ?? '',
      slug: slug.value,
      createdAt: new Date(atMs).toISOString(),
      config: { ...defaultGroupConfig, ...wanted.config },
    });
    if (created.ok) {
      context.stdout.line(id);
      return ok(exitCode.done);
    }
    if (created.failure.reason !== 'duplicate' || tries === idTriesMax) return created;
  }
}
