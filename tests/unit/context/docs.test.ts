/**
 * Promises: commands, files and folders named in docs/context.md exist. Other statements are covered by the tests of
 * each system.
 */
import { expect, test } from 'bun:test';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { projectAt } from '../../../src/context/faber/project.ts';
import { loadWorkflowConfig } from '../../../src/context/faber/workflow-config.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { checkoutRoot } from '../../support/cli.ts';

const text = readFileSync(join(checkoutRoot, 'docs', 'context.md'), 'utf8');

test('every command in docs/context.md exists', () => {
  const groups = ['session', 'cpm', 'hook', 'handover', 'faber'];
  const named = [...text.matchAll(/cca ([a-z]+) ([a-z-]+)/g)].filter(([, group = '']) => groups.includes(group));
  expect(new Set(named.map(([, group]) => group))).toEqual(new Set(groups));
  const program = readFileSync(join(checkoutRoot, 'src/cli/entries.ts'), 'utf8');
  const commands = new Set([...program.matchAll(/(?:\[|^ {4})'([a-z]+ [a-z-]+)',/gm)].map(([, path]) => path));
  for (const [, group, name] of named) expect(commands).toContain(`${group} ${name}`);
});

test('every package file and slash command in docs/context.md exists', () => {
  for (const [, path = ''] of text.matchAll(/((?:examples|templates)\/[\w./-]+\.(?:sh|json|yaml))/g)) {
    expect([path, existsSync(join(checkoutRoot, path))]).toEqual([path, true]);
  }
  for (const prefix of ['`/fractary-faber:`', '`/cpm:`']) expect(text).toContain(prefix);
  for (const name of ['prime-context', 'session-end', 'workflow-run']) {
    expect(text).toContain(`\`/${name}\``);
    for (const folder of ['configs/faber/commands', 'plugin/commands']) {
      expect(existsSync(join(checkoutRoot, 'templates', folder, `${name}.md`))).toBe(true);
    }
  }
});

test('a project’s own workflow is read from the path in docs/context.md', () => {
  const folder = mkdtempSync(join(tmpdir(), 'cca docs '));
  try {
    const place = /`(\.fractary\/faber\/workflows\/<name>\.json)`/.exec(text)?.[1]?.replace('<name>', 'default') ?? '';
    const path = join(folder, place);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, '{"phases": {"only": {}}}');
    const { files } = createRealWorld();
    const config = loadWorkflowConfig(files, projectAt(files, folder, folder), 'default');
    expect(config).toMatchObject({ ok: true, value: { file: place, phases: ['only'] } });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
