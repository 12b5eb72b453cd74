/** The zod schemas of settings as people write them in YAML; what comes out of them is what a definition stores. */
import type { z } from 'zod';
import { contextNames, type Setting, type Settings, type ValuesOf } from '../core/definitions.ts';
import { keyOf, labelsMax } from '../core/setting-values.ts';
import {
  durationMs,
  durationPattern,
  durationRule,
  hostNamePattern,
  hostNameRule,
  labelPattern,
  labelRule,
  moneyUsd,
  permissionRules,
  rulesRule,
  wordPattern,
  wordRule,
} from '../core/values.ts';
import { zod } from '../store/schema.ts';

type Shape = Record<string, z.ZodType>;

/** The schemas of these settings by their keys. */
export function shapeOf(settings: Settings, isKnown: (setting: Setting) => boolean = () => true): Shape {
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

/** What a checked map says, by the names of the settings. */
export function settingsIn<T extends Settings>(settings: T, given: object): ValuesOf<T> {
  const values = new Map<string, unknown>(Object.entries(given));
  const named = Object.entries(settings).map(([name, setting]) => [name, values.get(keyOf(name, setting))] as const);
  return Object.fromEntries(named.filter(([, value]) => value !== undefined)) as ValuesOf<T>;
}

function schemaOf({ kind, words = [], min = 0, max = 0, no }: Setting): z.ZodType {
  const z = zod();
  switch (kind) {
    case 'word':
      return z.string().regex(wordPattern, `expected ${wordRule}`);
    case 'host':
      return z.string().regex(hostNamePattern, `expected ${hostNameRule}`);
    case 'choice':
      return z.enum(words);
    case 'money':
      return z.number().min(moneyUsd.min).max(moneyUsd.max);
    case 'share':
      return z.number().gt(0).max(1);
    case 'count':
      return z.int().min(min).max(max);
    case 'megabytes':
      return z
        .int()
        .min(min)
        .max(max)
        .transform((megabytes) => megabytes * 1_000_000);
    case 'duration':
      return z
        .string(durationRule)
        .regex(durationPattern, durationRule)
        .refine((text) => durationMs(text) !== null, durationRule)
        .transform((text) => durationMs(text) ?? 0);
    case 'flag':
      return z.boolean();
    case 'command':
      // Its variables are checked where they are known.
      if (no === undefined) return z.string();
      return z.union([z.string(), z.literal(false)], 'expected a shell command, or false for none');
    case 'labels':
      return z.array(z.string().regex(labelPattern, `expected ${labelRule}`)).max(labelsMax);
    case 'rules':
      return z
        .union([z.string(), z.array(z.string())], rulesRule)
        .refine((rules) => [rules].flat().every((rule) => permissionRules(rule) !== null), rulesRule)
        .transform((rules) => [rules].flat().flatMap((rule) => permissionRules(rule) ?? []));
    case 'systems':
      return z
        .union(
          [z.literal('none'), z.array(z.enum(contextNames))],
          'expected a list of cpm, faber and handover, or none',
        )
        .transform((systems) => (systems === 'none' ? [] : systems));
    case 'object':
      return z.record(z.string(), z.unknown());
    case 'text':
      return z.string().min(1);
    default:
      return z.string();
  }
}
