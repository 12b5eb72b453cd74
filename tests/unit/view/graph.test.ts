/** Promises: graphs are drawn in dependency order, and names and paths are escaped in Mermaid and DOT. */
import { expect, test } from 'bun:test';
import { plainStyle } from '../../../src/view/format.ts';
import { dotGraph, mermaidGraph, textGraph } from '../../../src/view/markdown.ts';
import type { Reporter } from '../../../src/view/reporter.ts';
import { creation, ids, play, session } from '../../support/view/sample-run.ts';

const deaf: Reporter = { event() {}, progress() {}, waiting() {}, summarize() {} };

const state = play(deaf, [
  ...creation({}, [
    session(ids.api, { name: 'api' }),
    session(ids.web, { name: 'web', dependsOn: [ids.api] }),
    session(ids.docs, { dependsOn: [ids.web, ids.api], projectPath: '/p/a"];\\x<b>&\u001b[31m\n' }),
  ]),
]);

test('a text graph lists sessions wave by wave', () => {
  expect(textGraph(state, plainStyle)).toEqual([
    'Wave 1',
    '  001 api  pending    shop',
    'Wave 2',
    '  002 web  pending    shop  after 001 api',
    'Wave 3',
    '  003      pending    a"];\\x<b>&  after 002 web, 001 api',
  ]);
});

test('a Mermaid graph escapes special characters as entities', () => {
  expect(mermaidGraph(state)).toEqual([
    'graph TD',
    '  s1["001 api<br/>shop"]',
    '  s2["002 web<br/>shop"]',
    '  s3["003<br/>a&quot;];\\x&lt;b>&amp;"]',
    '  s1 --> s2',
    '  s2 --> s3',
    '  s1 --> s3',
  ]);
});

test('a DOT graph escapes special characters', () => {
  expect(dotGraph(state)).toEqual([
    'digraph "auth" {',
    '  node [shape=box];',
    `  "${ids.api}" [label="001 api\\nshop"];`,
    `  "${ids.web}" [label="002 web\\nshop"];`,
    `  "${ids.docs}" [label="003\\na\\"];\\\\x<b>&"];`,
    `  "${ids.api}" -> "${ids.web}";`,
    `  "${ids.web}" -> "${ids.docs}";`,
    `  "${ids.api}" -> "${ids.docs}";`,
    '}',
  ]);
});
