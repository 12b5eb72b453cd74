/** The agent (`agent`) or the guard (`guard`) of a machine, as processes of their own: mode, data root. */
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { serveGuard } from '../../src/hosts/agent/guard.ts';
import { serveHost } from '../../src/hosts/agent/serve.ts';
import { packageRoot } from '../../src/world/own-program.ts';
import { createRealWorld } from '../../src/world/real-world.ts';

const [mode, root = ''] = process.argv.slice(2);
const world = createRealWorld();
const tell = (line: string) => appendFileSync(join(root, `${mode}.log`), `${line}\n`);
const onSignal = (action: () => void) => void process.on('SIGTERM', action);
const startGuard = () => {
  if (process.env.TEST_NO_GUARD === '1') return;
  const command = [process.execPath, '--no-install', import.meta.path, 'guard', root];
  Bun.spawn(command, { stdio: ['ignore', 'ignore', 'ignore'], detached: true }).unref();
};

const served =
  mode === 'guard'
    ? await serveGuard(world, { root, onSignal, tell })
    : await serveHost(world, {
        ...{ root, packageRoot, onSignal, tell, startGuard, callerEnv: process.env },
        version: '0.0.0',
      });
if (!served.ok) tell(served.failure.message);
process.exit(served.ok ? 0 : 1);
