/**
 * A small disk for one test: a tmpfs in its own mount namespace. A process that ends with the test keeps the namespace
 * alive, so that a killed test leaves neither a mount nor used memory. Commands enter by `prefix`; the test itself
 * reaches the files through /proc.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Whether this machine allows mounts; without them tests that need a disk are reported as skipped. */
export function canMount(): boolean {
  if (['unshare', 'nsenter', 'mount'].some((program) => Bun.which(program) === null)) return false;
  const folder = mkdtempSync(join(tmpdir(), 'cca mount '));
  const script = 'mount -t tmpfs -o size=64k tmpfs "$1" && test -d "/proc/$$/root$1" && nsenter -t $$ -m true';
  const tried = Bun.spawnSync(['unshare', '-m', 'sh', '-c', script, 'sh', folder], { stderr: 'ignore' });
  rmSync(folder, { recursive: true, force: true });
  return tried.success;
}

export class PrivateDisk {
  readonly #holder: Bun.Subprocess<'pipe', 'pipe', 'inherit'>;

  private constructor(holder: Bun.Subprocess<'pipe', 'pipe', 'inherit'>) {
    this.#holder = holder;
  }

  /** Starts the namespace; nothing is mounted yet. */
  static async begin(): Promise<PrivateDisk> {
    const holder = Bun.spawn(['unshare', '-m', 'sh', '-c', 'echo ready; exec cat'], { stdin: 'pipe', stdout: 'pipe' });
    const { value } = await holder.stdout.getReader().read();
    if (value === undefined) throw new Error('unshare -m was allowed and now is not');
    return new PrivateDisk(holder);
  }

  get prefix(): readonly string[] {
    return ['nsenter', '-t', String(this.#holder.pid), '-m'];
  }

  /** The path under which this process finds the disk's `path`. */
  inside(path: string): string {
    return `/proc/${this.#holder.pid}/root${path}`;
  }

  /** Throws when mount(8) refuses, because nothing may be written to another disk. */
  mount(...args: readonly string[]): void {
    const { success, stderr } = Bun.spawnSync([...this.prefix, 'mount', ...args]);
    if (!success) throw new Error(`mount ${args.join(' ')}: ${stderr}`);
  }

  /** The mount goes when the last process in the namespace does. */
  end(): void {
    this.#holder.kill('SIGKILL');
  }
}
