/** Which claude the tests run: the one this package pins, or the one whose path is in TEST_CLAUDE. */
import { resolve } from 'node:path';
import { findClaude } from '../../src/claude/launch/program.ts';
import { createRealWorld } from '../../src/system/real-world.ts';

const packageRoot = resolve(import.meta.dir, '../..');
const named = process.env.TEST_CLAUDE ?? '';
const found = findClaude(createRealWorld(), named === '' ? {} : { CLAUDE_CODE_AGENT_CLAUDE: named }, {
  packageRoot,
  preferPinned: true,
});
// Without the pinned claude tests are skipped; a requested one must exist.
if (!found.ok && named !== '') throw new Error(`TEST_CLAUDE: there is no file ${named}`);

/** Absolute path; undefined when no claude is installed. */
export const claudeBinary: string | undefined = found.ok ? found.value.program : undefined;
