/** For optional fields, which are absent and never undefined: `{ id, ...defined({ model, cwd }) }`. */

/** The fields that have a value, in order. */
export function defined<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const kept: { [K in keyof T]?: Exclude<T[K], undefined> } = {};
  for (const name in fields) {
    const value = fields[name];
    if (value !== undefined) kept[name] = value as Exclude<T[typeof name], undefined>;
  }
  return kept;
}
