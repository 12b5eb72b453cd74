/**
 * An sshd of the tests, on a free port of loopback by default, with its own keys; accounts have a home of the tests.
 * Where none is installed, tests that need one are skipped and counted.
 */
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, orFailure } from './redis-server.ts';

const program = Bun.which('sshd') ?? ['/usr/sbin/sshd'].find((path) => existsSync(path)) ?? null;
const client = Bun.which('ssh');

const isThere = program !== null && client !== null && Bun.which('ssh-keygen') !== null;
export const hasSshd = orFailure('sshd', isThere);

export interface SshServer {
  /** The value of `--ssh`. */
  readonly destination: string;
  /** Folder with an `ssh` that knows the server and has a key for it. */
  readonly bin: string;
  /** The ssh configuration block for this server. */
  readonly config: string;
  readonly home: string;
  stop(): Promise<void>;
}

export interface SshdOptions {
  readonly address?: string;
  readonly port?: number;
  /** A command prefix that starts a program elsewhere. */
  readonly within?: readonly string[];
}

/** `env`: of logged-in users. A second server in the same folder has the same keys. */
export async function startSshd(
  parent: string,
  env: Readonly<Record<string, string>>,
  { address = '127.0.0.1', port: given, within = [] }: SshdOptions = {},
): Promise<SshServer> {
  const folder = join(parent, 'sshd');
  const [home, bin] = [join(parent, 'there'), join(parent, 'ssh-bin')];
  for (const path of [folder, home, bin]) mkdirSync(path, { recursive: true });
  // Its own folder, which the package leaves to systemd to create.
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true });
  const [hostKey, userKey] = [newKey(join(folder, 'host')), newKey(join(folder, 'user'))];
  const port = given ?? (await freePort());
  const at = (name: string) => join(folder, name);
  writeFileSync(at('authorized_keys'), readFileSync(`${userKey}.pub`));
  const knownAs = port === 22 ? address : `[${address}]:${port}`;
  writeFileSync(at('known_hosts'), `${knownAs} ${readFileSync(`${hostKey}.pub`, 'utf8')}`);
  const variables = Object.entries({ ...env, HOME: home }).map(([name, value]) => `${name}="${value}"`);
  const settings = [
    `Port ${port}`,
    `ListenAddress ${address}`,
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
    `Host ${address}`,
    `Port ${port}`,
    `IdentityFile "${userKey}"`,
    'IdentitiesOnly yes',
    `UserKnownHostsFile "${at('known_hosts')}"`,
    'StrictHostKeyChecking yes',
  ];
  writeFileSync(at('ssh_config'), `${known.join('\n')}\n`);
  writeFileSync(join(bin, 'ssh'), `#!/bin/sh\nexec '${client}' -F '${at('ssh_config')}' "$@"\n`);
  chmodSync(join(bin, 'ssh'), 0o755);
  rmSync(at('log'), { force: true });
  const child = Bun.spawn([...within, program ?? 'sshd', '-D', '-e', '-f', at('sshd_config')], {
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: Bun.file(at('log')),
  });
  while (!/Server listening/.test(existsSync(at('log')) ? readFileSync(at('log'), 'utf8') : '')) {
    if (child.exitCode !== null) throw new Error(`sshd ended: ${readFileSync(at('log'), 'utf8')}`);
    await Bun.sleep(10);
  }
  return {
    destination: `${Bun.spawnSync(['id', '-un']).stdout.toString().trim()}@${address}`,
    bin,
    config: `${known.join('\n')}\n`,
    home,
    stop: async () => {
      child.kill();
      await child.exited;
    },
  };
}

function newKey(path: string): string {
  if (existsSync(path)) return path;
  const made = Bun.spawnSync(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', path]);
  if (!made.success) throw new Error(`ssh-keygen: ${made.stderr}`);
  return path;
}
