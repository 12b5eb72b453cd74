/**
 * Reads fields of external JSON: a wrong type is no value, and an implausibly large figure is the highest valid one.
 */

import { sanityLimits } from '../core/group.ts';
import { isObject, type JsonObject } from '../store/json.ts';

export function object(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function objects(value: unknown): readonly JsonObject[] {
  return list(value).filter(isObject);
}

export function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

export function number(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

/** A non-negative finite integer. */
export function count(value: unknown): number {
  return Math.trunc(within(value, sanityLimits.count));
}

export function usd(value: unknown): number {
  return within(value, sanityLimits.usd);
}

/** JSON numbers can become infinite when parsed. */
function within(value: unknown, max: number): number {
  return typeof value === 'number' ? Math.min(max, Math.max(0, value)) : 0;
}

/** Seconds since 1970 as milliseconds, within the range of Date. */
export function secondsAsMs(value: unknown): number | undefined {
  const ms = (number(value) ?? Number.NaN) * 1000;
  return Math.abs(ms) <= 8.64e15 ? ms : undefined;
}

export function mapped<T, U>(value: T | undefined, change: (value: T) => U): U | undefined {
  return value === undefined ? undefined : change(value);
}

export function optional<K extends string, T>(key: K, value: T | undefined): { [P in K]?: T } {
  return (value === undefined ? {} : { [key]: value }) as { [P in K]?: T };
}
