/** Values that a workflow and a project's own file say in the same words. */
import { durationMs, durationPattern, durationRule } from '../../core/values.ts';
import { schema } from '../../store/schema.ts';

export const duration = schema((z) =>
  z
    .string(durationRule)
    .regex(durationPattern, durationRule)
    .refine((text) => durationMs(text) !== null, durationRule),
);

/** What it may be is checked where its variable is known. */
export const command = schema((z) =>
  z.union([z.string(), z.literal(false)], 'expected a shell command, or false for none'),
);
