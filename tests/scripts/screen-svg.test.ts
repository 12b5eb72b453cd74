/** Promise: in the pictures of the README every text stands in its columns, in browsers that know nothing of blanks. */
import { expect, test } from 'bun:test';
import { screenSvg } from '../../scripts/pictures/screen-svg.ts';

test('texts begin where they stand and are as long as their columns; no blank is left to the browser', async () => {
  const bytes = '  \u001b[1mNAME\u001b[22m   a  b <c>\r\n\u001b[7m x \u001b[27m\r\n\r\n    日本  z';
  const svg = await screenSvg(bytes, { columns: 40, rows: 10 });
  const texts = [...svg.matchAll(/<text x="([\d.]+)" y="(\d+)" textLength="([\d.]+)"[^>]*>([^<]*)<\/text>/g)];
  // A column is 8.4 wide, a row 18 high, and the first begins at 16.
  const placed = texts.map(([, x, y, length, text]) => {
    const [column, columns] = [Number(x) - 16, Number(length)].map((value) => Math.round((value * 10) / 8.4) / 10);
    return { text, column, columns, row: Math.floor((Number(y) - 16) / 18) };
  });
  expect(placed).toEqual([
    { text: 'NAME', column: 2, columns: 4, row: 0 },
    { text: 'a\u00a0\u00a0b\u00a0&lt;c&gt;', column: 9, columns: 8, row: 0 },
    { text: 'x', column: 1, columns: 1, row: 1 },
    { text: '日本\u00a0\u00a0z', column: 4, columns: 7, row: 3 },
  ]);
});
