/** A moment within a sentence: nobody reads milliseconds, and who shows the sentence may tell it as a local time. */
export function momentText(ms: number): string {
  if (Number.isNaN(ms)) return 'a time that nobody knows';
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}
