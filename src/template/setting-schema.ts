/** The zod schemas of settings in YAML; their output is what a definition stores. */
import type { z } from 'zod';
import { contextNames, type Setting, type Settings, type ValuesOf } from '../core/definitions.ts';
import {
  ageMs,
  bytesOf,
  durationPattern,
  hostNamePattern,
  keyOf,
  moneyUsd,
  permissionRules,
  settingProblem,
  wordListPattern,
  wordPattern,
} from '../core/setting-values.ts';
import { zod } from '../store/schema.ts';

type Shape = Record<string, z.ZodType>;

export function schemaShape(settings: Settings, isKnown: (setting: Setting) => boolean = () => true): Shape {
  const shape: Shape = {};
  for (const [name, setting] of Object.entries(settings)) {
    if (setting.key === false || !isKnown(setting)) continue;
    shape[keyOf(name, setting)] = schemaOf(setting).optional().describe(descriptionOf(setting));
  }
  return shape;
}

function descriptionOf({ help, default: standard }: Setting): string {
  const text = `${help[0]?.toUpperCase()}${help.slice(1)}`;
  return standard === undefined ? text : `${text}; default: ${standard}`;
}

/** The settings in a checked map, by name. */
export function settingsIn<T extends Settings>(settings: T, given: object): ValuesOf<T> {
  const values = new Map<string, unknown>(Object.entries(given));
  const named = Object.entries(settings).map(([name, setting]) => [name, values.get(keyOf(name, setting))] as const);
  return Object.fromEntries(named.filter(([, value]) => value !== undefined)) as ValuesOf<T>;
}

function schemaOf(setting: Setting): z.ZodType {
  const { kind, words = [], min = 0, max = 0, no } = setting;
  const z = zod();
  const rule = settingProblem(setting, null) ?? '';
  /** Accepts the result of `read` for the given value, if it is valid. */
  const checked = (base: z.ZodType, read: (given: never) => unknown) =>
    base.transform((given, context) => {
      const value = read(given as never);
      const problem = settingProblem(setting, value);
      if (problem !== null) context.addIssue({ code: 'custom', message: problem });
      return value;
    });
  switch (kind) {
    case 'word':
      return checked(z.string(rule).meta({ pattern: wordPattern.source }), (text) => text);
    case 'wordList':
      return checked(z.string(rule).meta({ pattern: wordListPattern.source }), (text) => text);
    case 'host':
      return checked(z.string(rule).meta({ pattern: hostNamePattern.source }), (text) => text);
    case 'duration':
      return checked(z.string(rule).meta({ pattern: durationPattern.source }), ageMs);
    case 'clock':
    case 'waveRule':
      return checked(z.string(rule), (text) => text);
    case 'answers':
      return z.strictObject({
        permission: z.enum(['allow', 'deny']).optional(),
        question: z.string().min(1).optional(),
      });
    case 'choice':
      return z.enum(words);
    case 'money':
      return z.number().min(moneyUsd.min).max(moneyUsd.max);
    case 'share':
      return z.number().gt(0).max(1);
    case 'count':
      return z.int().min(min).max(max);
    case 'megabytes':
      return z.int().min(min).max(max).transform(bytesOf);
    case 'flag':
      return z.boolean();
    case 'command':
      // Its variables are checked where they are known.
      if (no === undefined) return z.string();
      return z.union([z.string(), z.literal(false)], 'expected a shell command, or false for no command');
    case 'labels':
    case 'globs':
      return checked(z.array(z.string(), rule), (labels) => labels);
    case 'waves':
      return checked(z.array(z.union([z.string(), z.int().min(1).max(999_999)]), rule), (sizes: (string | number)[]) =>
        sizes.map(String),
      );
    case 'rules':
      return checked(z.union([z.string(), z.array(z.string())], rule), (rules: string | string[]) =>
        [rules].flat().flatMap((one) => permissionRules(one) ?? ''),
      );
    case 'systems':
      return z
        .union([z.literal('none'), z.array(z.enum(contextNames))], rule)
        .transform((systems) => (systems === 'none' ? [] : systems));
    case 'object':
      return z.record(z.string(), z.unknown());
    case 'text':
      return z.string().min(1);
    default:
      return z.string();
  }
}
