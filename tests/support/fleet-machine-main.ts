/** The agent (`agent`) or the guard (`guard`) of a host, as processes of their own: mode, data root. */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { serveHost } from '../../src/app/fleet/serve.ts';
import { findClaude, versionOf } from '../../src/claude/launch/program.ts';
import { fail, ok, type Result } from '../../src/core/failure.ts';
import { serveGuard } from '../../src/fleet/agent/guard.ts';
import type { ChosenProgram } from '../../src/fleet/agent/prepare.ts';
import { packageRoot } from '../../src/system/own-program.ts';
import { createRealWorld } from '../../src/system/real-world.ts';

const [mode, root = ''] = process.argv.slice(2);
const real = createRealWorld();
const freePath = join(root, 'free-bytes');
/** `free-bytes` in the root sets the reported free disk space. */
const freeBytes = (path: string) =>
  existsSync(freePath) ? Number(readFileSync(freePath, 'utf8')) : real.files.freeBytes(path);
const world = { ...real, files: { ...real.files, freeBytes } };
const tell = (line: string) => appendFileSync(join(root, `${mode}.log`), `${line}\n`);
const onSignal = (action: () => void) => void process.on('SIGTERM', action);
const startGuard = () => {
  if (process.env.TEST_NO_GUARD === '1') return;
  const command = [process.execPath, '--no-install', import.meta.path, 'guard', root];
  Bun.spawn(command, { stdio: ['ignore', 'ignore', 'ignore'], detached: true }).unref();
};

const saidPath = join(root, 'claude.json');

/** As the file itself reports, once per file; `claude.json` in the root overrides it. */
async function untried(): Promise<Result<ChosenProgram>> {
  if (existsSync(saidPath)) {
    const { refusal } = JSON.parse(readFileSync(saidPath, 'utf8'));
    if (refusal !== undefined) return fail('claude-unproven', refusal, '');
  }
  return asked;
}

async function ask(): Promise<Result<ChosenProgram>> {
  const found = findClaude(world, process.env, { packageRoot });
  if (!found.ok) return found;
  const { program } = found.value;
  const version = await versionOf(world, program, process.env);
  return version.ok ? ok({ program, version: version.value }) : version;
}

const asked = mode === 'guard' ? fail('usage', '', '') : ask();
const served =
  mode === 'guard'
    ? await serveGuard(world, { root, onSignal, tell, startShell: () => {} })
    : await serveHost(world, {
        ...{ root, packageRoot, onSignal, tell, startGuard, callerEnv: process.env },
        version: '0.0.0',
        claude: untried,
        claudeVersion: async () => '',
        checkLogin: async () => undefined,
      });
if (!served.ok) tell(served.failure.message);
process.exit(served.ok ? 0 : 1);
