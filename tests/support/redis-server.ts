/**
 * A redis-server of the tests' own, on a free port of loopback with its files in a folder of the tests. Where none is
 * installed, tests that need one are skipped, and so counted.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';

const program = Bun.which('redis-server');

export const hasRedis = orFailure('redis-server', program !== null);

/** Where fleet tests must run, their programs are required. */
export function orFailure(name: string, isThere: boolean): boolean {
  if (!isThere && process.env.TEST_FLEET === '1')
    throw new Error(`There is no ${name}, which the tests of a fleet need`);
  return isThere;
}

export interface RedisServer {
  readonly url: string;
  readonly port: number;
  readonly folder: string;
  readonly pid: number;
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Restarts it with what it had written by then. */
  restart(): Promise<void>;
}

export async function startRedis(parent: string, options: readonly string[] = []): Promise<RedisServer> {
  const folder = join(parent, 'redis');
  mkdirSync(folder, { recursive: true });
  const port = await freePort();
  // Relative, because a path in its configuration must contain no quotes.
  const config = 'redis.conf';
  const lines = [`port ${port}`, 'bind 127.0.0.1', 'save ""', 'maxmemory-policy noeviction', ...options];
  writeFileSync(join(folder, config), `${lines.join('\n')}\n`);
  let child = await start(config, folder, port);
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    folder,
    get pid() {
      return child.pid;
    },
    kill: async (signal = 'SIGKILL') => {
      child.kill(signal);
      await child.exited;
    },
    restart: async () => {
      child = await start(config, folder, port);
    },
  };
}

async function start(config: string, folder: string, port: number): Promise<Bun.Subprocess> {
  const log = join(folder, 'log');
  const child = Bun.spawn([program ?? 'redis-server', config], {
    cwd: folder,
    stdin: 'ignore',
    stdout: Bun.file(log),
    stderr: 'ignore',
  });
  while (!(await answers(port))) {
    if (child.exitCode !== null) throw new Error(`redis-server ended: ${readFileSync(log, 'utf8')}`);
    await Bun.sleep(10);
  }
  return child;
}

/** A server with its own configuration and TLS only; returns the function that ends it. */
export async function startRedisWith(folder: string, config: string): Promise<() => Promise<void>> {
  const log = join(folder, 'log');
  const child = Bun.spawn([program ?? 'redis-server', config], {
    cwd: folder,
    stdin: 'ignore',
    stdout: Bun.file(log),
    stderr: 'ignore',
  });
  while (!readFileSync(log, 'utf8').includes('Ready to accept connections')) {
    if (child.exitCode !== null) throw new Error(`redis-server ended: ${readFileSync(log, 'utf8')}`);
    await Bun.sleep(10);
  }
  return async () => {
    child.kill('SIGKILL');
    await child.exited;
  };
}

/** A server that requires a password answers too. */
async function answers(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  try {
    const socket = await Bun.connect({
      hostname: '127.0.0.1',
      port,
      socket: {
        open: (opened) => void opened.write('PING\r\n'),
        data: (_, bytes) => resolve(/PONG|NOAUTH/.test(bytes.toString())),
        close: () => resolve(false),
        error: () => resolve(false),
      },
    });
    const isThere = await promise;
    socket.end();
    return isThere;
  } catch {
    return false;
  }
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
