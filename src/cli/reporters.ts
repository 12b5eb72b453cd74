/** Which reporter `--output` asks for. */
import { createJsonReporter } from '../report/json-reporter.ts';
import type { Reporter } from '../report/reporter.ts';
import { createQuietReporter, createTextReporter } from '../report/text-reporter.ts';
import type { Context } from './context.ts';
import type { GroupReference } from './resolve.ts';

export const outputs = ['text', 'json', 'quiet'] as const;
export type OutputKind = (typeof outputs)[number];

export function createReporter(context: Context, group: GroupReference, kind: OutputKind): Reporter {
  const { stdout, world } = context;
  const write = (text: string): void => stdout.write(text);
  const now = (): number => world.clock.now();
  switch (kind) {
    case 'text':
      return createTextReporter({ write, style: stdout.style, now, groupFolder: group.paths.folder });
    case 'json':
      return createJsonReporter({ write, groupId: group.groupId, now });
    case 'quiet':
      return createQuietReporter(write);
  }
}
