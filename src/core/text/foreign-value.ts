/** A value of somebody's JSON as text. `String` throws for an object that has a field `toString`. */
export function foreignText(value: unknown): string {
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value);
}
