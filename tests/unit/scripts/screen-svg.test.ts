/**
 * Promises: text in the pictures of the documents keeps its columns in any browser, animations need no script and
 * show a chosen picture where nothing moves, and each document shows only existing pictures.
 */
import { expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { castSvg, screenSvg } from '../../../scripts/pictures/screen-svg.ts';
import { checkoutRoot } from '../../support/cli.ts';

test('texts begin at their column, are as long as their columns, and leave no spaces to the browser', async () => {
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

test('an animation shows its pictures in turn, and a chosen one where nothing moves', async () => {
  const frames = ['one', 'two', 'three'].map((bytes, at) => ({ bytes, seconds: [1, 2, 1][at] ?? 0 }));
  const svg = await castSvg(frames, { columns: 10, rows: 5 }, 1);
  expect(svg).not.toContain('<script');
  expect(svg).toContain('.f{visibility:hidden;animation:4s step-end infinite}#f1{visibility:visible}');
  expect(svg).toContain('@media(prefers-reduced-motion:reduce){.f{animation:none}}');
  const shown = [...svg.matchAll(/@keyframes (f\d)\{(.*?\})\}#/g)].map(([, name, steps]) => [name, steps]);
  expect(shown).toEqual([
    ['f0', '0%{visibility:visible}25%{visibility:hidden}'],
    ['f1', '0%{visibility:hidden}25%{visibility:visible}75%{visibility:hidden}'],
    ['f2', '0%{visibility:hidden}75%{visibility:visible}'],
  ]);
  const groups = [...svg.matchAll(/<g class="f" id="(f\d)">\n<text[^>]*>(\w+)</g)].map(([, name, text]) => [
    name,
    text,
  ]);
  expect(groups).toEqual([
    ['f0', 'one'],
    ['f1', 'two'],
    ['f2', 'three'],
  ]);
});

test('every picture of the documents exists, is small, and is used', () => {
  const documents = ['README.md', ...readdirSync(join(checkoutRoot, 'docs')).map((name) => join('docs', name))];
  const shown = documents
    .filter((name) => name.endsWith('.md'))
    .flatMap((name) => {
      const text = readFileSync(join(checkoutRoot, name), 'utf8');
      return [...text.matchAll(/!\[[^\]]*\]\(([^)]+)\)/g)].map(([, path = '']) => join(dirname(name), path));
    });
  expect(shown.filter((path) => !existsSync(join(checkoutRoot, path)))).toEqual([]);
  const made = readdirSync(join(checkoutRoot, 'docs', 'pictures')).map((name) => join('docs', 'pictures', name));
  expect(made.filter((path) => !shown.includes(path))).toEqual([]);
  for (const path of made) expect(statSync(join(checkoutRoot, path)).size).toBeLessThan(400_000);
});
