/**
 * Hosts as namespaces of this machine: each has its own network, processes, mounts and name, an sshd, and a home of the
 * tests. Killing, disconnecting or filling one affects only that host. Needs root.
 */
import { mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { type SshServer, startSshd } from '../ssh-server.ts';

/** Whether hosts are possible here; without them tests that need some are reported as skipped. */
export function canMakeHosts(): boolean {
  if (['ip', 'unshare', 'nsenter', 'mount'].some((program) => Bun.which(program) === null)) return false;
  const tried = Bun.spawnSync(['unshare', ...unshared, 'ip', 'link', 'add', 'cca-try', 'type', 'bridge'], {
    stderr: 'ignore',
  });
  return tried.success;
}

const unshared = ['--net', '--mount', '--pid', '--uts', '--fork', '--kill-child', '--mount-proc'];

/** The first process of a host: it ends with the test, and all of the host with it. Orphans become its children. */
const init = 'hostname "$1"; exec 3<&0; cat <&3 & echo ready; wait $!';

function run(...command: readonly string[]): string {
  const { success, stdout, stderr } = Bun.spawnSync([...command]);
  if (!success) throw new Error(`${command.join(' ')}: ${stderr.toString().trim()}`);
  return stdout.toString();
}

/** A bridge between this machine and its hosts. */
export class HostNetwork {
  readonly #bridge = `cca-${process.pid.toString(36)}-${Math.floor(Math.random() * 36 ** 3).toString(36)}`;
  readonly #prefix: string;
  #hosts = 0;

  constructor() {
    const taken = Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address));
    const prefixes = Array.from({ length: 200 }, () => `10.213.${Math.floor(Math.random() * 256)}`);
    this.#prefix = prefixes.find((one) => !taken.some((address) => address.startsWith(`${one}.`))) ?? '10.213.0';
    run('ip', 'link', 'add', this.#bridge, 'type', 'bridge');
    run('ip', 'address', 'add', `${this.address}/24`, 'dev', this.#bridge);
    run('ip', 'link', 'set', this.#bridge, 'up');
  }

  /** Of this machine, as its hosts reach it. */
  get address(): string {
    return `${this.#prefix}.1`;
  }

  /** Connects the namespace of that process. */
  plug(pid: number): { readonly address: string; readonly link: string } {
    this.#hosts += 1;
    const [link, address] = [`${this.#bridge}${this.#hosts}`, `${this.#prefix}.${this.#hosts + 1}`];
    this.replug(link, address, pid);
    return { link, address };
  }

  replug(link: string, address: string, pid: number): void {
    const there = ['nsenter', '-t', String(pid), '-n', 'ip'];
    run('ip', 'link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(pid));
    run('ip', 'link', 'set', link, 'master', this.#bridge, 'up');
    // Others remember it: a machine that was switched off keeps its hardware address, too.
    const bytes = address.split('.').map((part) => Number(part).toString(16).padStart(2, '0'));
    const hardware = ['02', '00', ...bytes].join(':');
    run(...there, 'link', 'set', 'eth0', 'address', hardware);
    run(...there, 'address', 'add', `${address}/24`, 'dev', 'eth0');
    for (const device of ['lo', 'eth0']) run(...there, 'link', 'set', device, 'up');
    // While it was off, it may have been looked for in vain, which would be remembered for a moment.
    run('ip', 'neighbour', 'replace', address, 'lladdr', hardware, 'dev', this.#bridge, 'nud', 'stale');
  }

  remove(): void {
    run('ip', 'link', 'delete', this.#bridge);
  }
}

export interface NamespacedHostOptions {
  /** Programs by their names on its PATH, besides those of the system. */
  readonly programs: Readonly<Record<string, string>>;
  /** A disk for its data folder alone; absent = it shares that of the tests. */
  readonly diskBytes?: number;
}

export class NamespacedHost {
  readonly name: string;
  readonly #network: HostNetwork;
  readonly #folder: string;
  readonly #path: string;
  readonly #diskBytes: number | undefined;
  #plug: ReturnType<HostNetwork['plug']> | null = null;
  #shell: Bun.Subprocess<'pipe', 'pipe', 'inherit'> | null = null;
  #sshd: SshServer | null = null;

  /** It is switched off. `parent`: the folder of all its files. */
  constructor(name: string, parent: string, network: HostNetwork, { programs, diskBytes }: NamespacedHostOptions) {
    [this.name, this.#network, this.#folder] = [name, network, join(parent, name)];
    this.#diskBytes = diskBytes;
    const bin = join(this.#folder, 'bin');
    mkdirSync(bin, { recursive: true });
    for (const [program, path] of Object.entries(programs)) symlinkSync(path, join(bin, program));
    this.#path = `${bin}:/usr/bin:/bin`;
  }

  get sshd(): SshServer {
    if (this.#sshd === null) throw new Error(`${this.name} is switched off`);
    return this.#sshd;
  }

  /** Its data folder, as seen there. */
  get root(): string {
    return join(this.sshd.home, '.local', 'claude-code-agent');
  }

  /** The path under which this process finds the host's `path`. */
  inside(path: string): string {
    return `/proc/${this.#pid}/root${path}`;
  }

  /** A command prefix that starts a program there. */
  get within(): readonly string[] {
    return ['nsenter', '-t', String(this.#pid), '-n', '-m', '-p', '-u'];
  }

  get #pid(): number {
    const shell = this.#shell?.pid;
    const pid = Number(readFileSync(`/proc/${shell}/task/${shell}/children`, 'utf8').trim());
    if (!(pid > 0)) throw new Error(`${this.name} is switched off`);
    return pid;
  }

  async switchOn(): Promise<void> {
    const command = ['unshare', ...unshared, 'sh', '-c', init, 'sh', this.name];
    this.#shell = Bun.spawn(command, { stdin: 'pipe', stdout: 'pipe' });
    const { value } = await this.#shell.stdout.getReader().read();
    if (value === undefined) throw new Error(`${this.name} cannot be switched on`);
    if (this.#plug === null) this.#plug = this.#network.plug(this.#pid);
    else this.#network.replug(this.#plug.link, this.#plug.address, this.#pid);
    const { address } = this.#plug;
    const { within } = this;
    this.#sshd = await startSshd(this.#folder, { PATH: this.#path }, { address, port: 22, within });
    if (this.#diskBytes === undefined) return;
    mkdirSync(this.root, { recursive: true });
    run(...within, 'mount', '-t', 'tmpfs', '-o', `size=${this.#diskBytes}`, 'tmpfs', this.root);
  }

  /** At once, as at a power loss: no process of it is left. */
  async switchOff(): Promise<void> {
    const shell = this.#shell;
    if (shell === null) return;
    this.#shell = null;
    // First, because its processes would close their connections as they end.
    if (this.#plug !== null) run('ip', 'link', 'delete', this.#plug.link);
    shell.kill('SIGKILL');
    await shell.exited;
  }

  /** The cable is pulled; connections are not notified. */
  cut(): void {
    run('ip', 'link', 'set', this.#plug?.link ?? '', 'down');
  }

  heal(): void {
    run('ip', 'link', 'set', this.#plug?.link ?? '', 'up');
  }

  /** Its processes with a matching command line, by their pids there. */
  pids(pattern: RegExp): readonly number[] {
    const proc = this.inside('/proc');
    return readdirSync(proc)
      .map(Number)
      .filter((pid) => pid > 0 && pattern.test(commandOf(join(proc, String(pid)))));
  }

  kill(pid: number, signal: NodeJS.Signals = 'SIGKILL'): void {
    run(...this.within, 'kill', '-s', signal.slice('SIG'.length), String(pid));
  }

  get isOff(): boolean {
    return this.#shell === null;
  }

  /** Fills the disk of its data folder. */
  fillDisk(): void {
    Bun.spawnSync([...this.within, 'dd', 'if=/dev/zero', `of=${join(this.root, 'filler')}`, 'bs=1M'], {
      stderr: 'ignore',
    });
  }

  emptyDisk(): void {
    run(...this.within, 'rm', '-f', join(this.root, 'filler'));
  }

  /** Starts a detached program there. */
  start(...command: readonly string[]): void {
    const env = { PATH: this.#path, HOME: this.sshd.home };
    Bun.spawn([...this.within, ...command], { env, stdio: ['ignore', 'ignore', 'ignore'] }).unref();
  }
}

function commandOf(folder: string): string {
  try {
    return readFileSync(join(folder, 'cmdline'), 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    return '';
  }
}
