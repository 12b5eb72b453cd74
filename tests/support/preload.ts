/**
 * Runs before any test file: no test can see the developer's HOME, logins, config folders or keys. A test sets what it
 * needs for the processes it starts, never for this one.
 */
import { afterAll } from 'bun:test';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const home = mkdtempSync(join(tmpdir(), 'cca-test-home-'));
mkdirSync(join(home, '.config'));
for (const name of Object.keys(process.env)) {
  if (/^(ANTHROPIC|CLAUDE|AWS|GOOGLE|AZURE|XDG|OTEL)|_API_KEY$|_TOKEN$|PROXY$/i.test(name)) delete process.env[name];
}
process.env.HOME = home;
process.env.XDG_CONFIG_HOME = join(home, '.config');
process.env.CLAUDE_CODE_AGENT_HOME = join(home, 'data');
afterAll(() => rmSync(home, { recursive: true, force: true }));
