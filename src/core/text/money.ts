/** Amounts of money in words. */

/** US dollars: cents as a rule, more digits below a cent. An estimate is marked by a tilde. */
export function formatMoney(usd: number, estimated = false): string {
  const mark = estimated ? '~' : '';
  if (usd !== 0 && Math.abs(usd) < 0.01) return `${mark}$${usd.toFixed(4)}`;
  return `${mark}$${usd.toFixed(2)}`;
}
