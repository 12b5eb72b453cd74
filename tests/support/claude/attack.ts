/**
 * Tests of attacks. Each is tried bare, without our settings, where it must work for the test to mean something. When
 * a newer claude has stopped it by itself that is no failure: it is noted for the table of scripts/test-claude.ts.
 */
import { test } from 'bun:test';
import { appendFileSync } from 'node:fs';
import { basename } from 'node:path';
import { claimKey } from '../../../scripts/claude/table.ts';

/**
 * A test of the long run; `attack` tells whether the attack had any effect bare, and expects that it has none with our
 * settings. `path` is `import.meta.path` of the test file.
 */
export function attackTest(path: string, name: string, attack: () => Promise<boolean>): void {
  test(name, async () => {
    if (!(await attack())) noteStopped(claimKey(`tests/system/claude/${basename(path)}`, name));
  });
}

function noteStopped(claim: string): void {
  const notes = process.env.TEST_STOPPED ?? '';
  if (notes === '') console.info(`claude itself stops: ${claim}`);
  else appendFileSync(notes, `${claim}\n`);
}
