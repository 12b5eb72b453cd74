/** The schema of config.yaml. */
import { isAbsolute, join } from 'node:path';
import type { z as Z } from 'zod';
import { ok, type Result } from '../../core/failure.ts';
import { moneyUsd } from '../../core/setting-values.ts';
import { zod } from '../../store/schema.ts';
import { checkYaml, problemsFailure, readYaml } from '../../store/yaml-text.ts';
import { checkedCommand } from '../../template/workflow/work-settings.ts';

const z = zod();

/** US dollars per million tokens. */
const usd = z.number().min(0).max(100_000);

const price = z
  .strictObject({ input: usd, output: usd, cacheCreation: usd.optional(), cacheRead: usd.optional() })
  // Anthropic's cache prices: a write costs 1.25 times the input, a read 0.1 times.
  .transform(({ input, output, cacheCreation = input * 1.25, cacheRead = input / 10 }) => ({
    input,
    output,
    cacheCreation,
    cacheRead,
  }));

const userConfig = z.strictObject({
  /** By a word in the ids of the models. */
  prices: z.record(z.string().min(1).max(100), price).optional(),
  budget: z
    .strictObject({
      /** Cap of all groups together per calendar day, US dollars. */
      day: z.number().min(moneyUsd.min).max(moneyUsd.max).optional(),
    })
    .optional(),
  worktrees: z
    .string()
    .refine(isAbsolute, 'it must be an absolute path')
    .transform((path) => join(path))
    .optional(),
  /** Shell command that runs when a group completes, fails, is paused or reaches a limit. */
  onEvent: z
    .string()
    .transform((text, context) => {
      const found = checkedCommand(text);
      if (found.ok) return found.command;
      context.addIssue({ code: 'custom', message: found.problem });
      return z.NEVER;
    })
    .optional(),
});

export type UserConfig = Z.output<typeof userConfig>;

/** Fails with `usage` and all problems with line and column. An empty file is valid. */
export function parseUserConfig(text: string, file: string): Result<UserConfig> {
  const yaml = readYaml({ text, file });
  if (yaml.ok && (yaml.value.value ?? null) === null) return ok({});
  const checked = yaml.ok ? checkYaml(yaml.value, userConfig, 'config.yaml') : yaml;
  return checked.ok
    ? ok(checked.value)
    : problemsFailure('The user’s config', checked.problems, 'Correct it and try again.');
}
