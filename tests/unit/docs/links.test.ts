/** Promises: every link between documents leads to an existing file and heading. */
import { expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { checkoutRoot } from '../../support/cli.ts';

const names = ['*.md', 'docs/**/*.md', 'examples/**/*.md'].flatMap((pattern) => [
  ...new Bun.Glob(pattern).scanSync({ cwd: checkoutRoot }),
]);

/** Without fenced blocks. */
function proseOf(name: string): string {
  return readFileSync(join(checkoutRoot, name), 'utf8').replace(/^ *```.*?^ *```/gms, '');
}

/** The anchor that GitHub makes of a heading. */
function anchorOf(heading: string): string {
  const text = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
  return text.replace(/[^\p{L}\p{N}\- _]/gu, '').replaceAll(' ', '-');
}

function problems(name: string, text: string): string[] {
  return [...text.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)].flatMap(([link, path = '', anchor]) => {
    const target = path === '' ? name : normalize(join(dirname(name), path));
    if (!existsSync(join(checkoutRoot, target))) return [`${name}: ${link} leads nowhere`];
    if (anchor === undefined || !target.endsWith('.md')) return [];
    const headings = [...proseOf(target).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => anchorOf(heading));
    return headings.includes(anchor) ? [] : [`${name}: ${link} leads to no heading of ${target}`];
  });
}

test('every link in the documents leads to an existing file and heading', () => {
  expect(names.length).toBeGreaterThan(20);
  expect(names.flatMap((name) => problems(name, proseOf(name)))).toEqual([]);
});

test('a broken link is found', () => {
  expect(problems('docs/README.md', '[a](gone.md) [b](fleet.md#gone) [c](#gone) [d](fleet.md)')).toHaveLength(3);
  expect(problems('docs/README.md', '[a](#start) [b](../README.md#install)')).toEqual([]);
});
