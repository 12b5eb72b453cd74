/**
 * An sshd of the tests' own, on a free port of loopback with keys of its own, in which whoever logs in has a home of
 * the tests. Where none is installed, tests that need one are skipped, and so counted.
 */
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, orFailure } from './redis-server.ts';

const program = Bun.which('sshd') ?? ['/usr/sbin/sshd'].find((path) => existsSync(path)) ?? null;
const client = Bun.which('ssh');

const isThere = program !== null && client !== null && Bun.which('ssh-keygen') !== null;
export const hasSshd = orFailure('sshd', isThere);

export interface SshServer {
  /** What `--ssh` takes. */
  readonly destination: string;
  /** Folder with an `ssh` that knows the server and has a key for it. */
  readonly bin: string;
  readonly home: string;
  stop(): Promise<void>;
}

/** `env`: of whoever logs in. */
export async function startSshd(parent: string, env: Readonly<Record<string, string>>): Promise<SshServer> {
  const folder = join(parent, 'sshd');
  const [home, bin] = [join(parent, 'there'), join(parent, 'ssh-bin')];
  for (const path of [folder, home, bin]) mkdirSync(path, { recursive: true });
  // Its own, which the package leaves to systemd to make.
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true });
  const [hostKey, userKey] = [newKey(join(folder, 'host')), newKey(join(folder, 'user'))];
  const port = await freePort();
  const at = (name: string) => join(folder, name);
  writeFileSync(at('authorized_keys'), readFileSync(`${userKey}.pub`));
  writeFileSync(at('known_hosts'), `[127.0.0.1]:${port} ${readFileSync(`${hostKey}.pub`, 'utf8')}`);
  const variables = Object.entries({ ...env, HOME: home }).map(([name, value]) => `${name}="${value}"`);
  const settings = [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey "${hostKey}"`,
    `AuthorizedKeysFile "${at('authorized_keys')}"`,
    'StrictModes no',
    'UsePAM no',
    'PasswordAuthentication no',
    'PermitRootLogin prohibit-password',
    'PidFile none',
    `SetEnv ${variables.join(' ')}`,
  ];
  writeFileSync(at('sshd_config'), `${settings.join('\n')}\n`);
  const known = [
    `Port ${port}`,
    `IdentityFile "${userKey}"`,
    'IdentitiesOnly yes',
    `UserKnownHostsFile "${at('known_hosts')}"`,
    'StrictHostKeyChecking yes',
  ];
  writeFileSync(at('ssh_config'), `${known.join('\n')}\n`);
  writeFileSync(join(bin, 'ssh'), `#!/bin/sh\nexec '${client}' -F '${at('ssh_config')}' "$@"\n`);
  chmodSync(join(bin, 'ssh'), 0o755);
  const child = Bun.spawn([program ?? 'sshd', '-D', '-e', '-f', at('sshd_config')], {
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: Bun.file(at('log')),
  });
  while (!/Server listening/.test(existsSync(at('log')) ? readFileSync(at('log'), 'utf8') : '')) {
    if (child.exitCode !== null) throw new Error(`sshd ended: ${readFileSync(at('log'), 'utf8')}`);
    await Bun.sleep(10);
  }
  return {
    destination: `${Bun.spawnSync(['id', '-un']).stdout.toString().trim()}@127.0.0.1`,
    bin,
    home,
    stop: async () => {
      child.kill();
      await child.exited;
    },
  };
}

function newKey(path: string): string {
  const made = Bun.spawnSync(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', path]);
  if (!made.success) throw new Error(`ssh-keygen: ${made.stderr}`);
  return path;
}
