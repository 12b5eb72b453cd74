/**
 * A fake tree of control groups in a folder that behaves like the kernel (cgroups(7), version 2), without processes.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { CgroupSystem } from '../../src/system/processes/cgroup.ts';

const files: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  memory: { 'memory.max': 'max', 'memory.swap.max': 'max', 'memory.events.local': 'oom 0\noom_kill 0\n' },
  pids: { 'pids.max': 'max', 'pids.events': 'max 0\n' },
};

/** With the kernel's rules for moving processes, enabling controllers and removing groups. */
export class MadeUpCgroups implements CgroupSystem {
  /** The initial group; not the root of the hierarchy, but the root of the visible part. */
  readonly own: string;
  /** Everything that was written, with the file and its group's name. */
  readonly written: string[] = [];

  /** `controllers`: what is delegated; `pids`: of the processes in the first group. */
  constructor(own: string, controllers: readonly string[], pids: readonly number[]) {
    this.own = own;
    mkdirSync(own, { recursive: true });
    this.#furnish(own, controllers, pids);
  }

  makeFolder(path: string): void {
    const parent = dirname(path);
    mkdirSync(path);
    this.#furnish(path, words(join(parent, 'cgroup.subtree_control')), []);
  }

  removeFolder(path: string): void {
    if (foldersIn(path).length > 0 || this.#isPopulated(path)) throw systemError('EBUSY');
    rmSync(path, { recursive: true });
  }

  write(path: string, text: string): void {
    const group = dirname(path);
    if (!existsSync(path)) throw systemError('EACCES');
    this.written.push(`${basename(group)}/${basename(path)}: ${text}`);
    const name = basename(path);
    if (name === 'cgroup.procs') this.#move(group, Number(text));
    else if (name === 'cgroup.subtree_control') this.#enable(group, text.slice(1));
    else if (name === 'cgroup.kill') this.#kill(group);
    else writeFileSync(path, `${text}\n`);
  }

  /** As if processes were started in that group. */
  start(group: string, ...pids: readonly number[]): void {
    const before = readFileSync(join(group, 'cgroup.procs'), 'utf8');
    writeFileSync(join(group, 'cgroup.procs'), `${before}${pids.map((pid) => `${pid}\n`).join('')}`);
    this.#noteEvents();
  }

  #kill(group: string): void {
    for (const folder of treeOf(group)) writeFileSync(join(folder, 'cgroup.procs'), '');
    this.#noteEvents();
  }

  #furnish(group: string, controllers: readonly string[], pids: readonly number[]): void {
    const basic = { 'cgroup.type': 'domain\n', 'cgroup.kill': '', 'cgroup.subtree_control': '', 'cgroup.events': '' };
    for (const [name, text] of Object.entries(basic)) writeFileSync(join(group, name), text);
    writeFileSync(join(group, 'cgroup.controllers'), `${controllers.join(' ')}\n`);
    writeFileSync(join(group, 'cgroup.procs'), pids.map((pid) => `${pid}\n`).join(''));
    for (const one of controllers) this.#furnishFor(group, one);
    this.#noteEvents();
  }

  #furnishFor(group: string, controller: string): void {
    for (const [name, text] of Object.entries(files[controller] ?? {})) writeFileSync(join(group, name), `${text}\n`);
  }

  /** A group with limited child groups may contain no process itself. */
  #move(group: string, pid: number): void {
    if (words(join(group, 'cgroup.subtree_control')).length > 0) throw systemError('EBUSY');
    for (const folder of treeOf(this.own)) {
      const rest = words(join(folder, 'cgroup.procs')).filter((one) => one !== String(pid));
      writeFileSync(join(folder, 'cgroup.procs'), rest.map((one) => `${one}\n`).join(''));
    }
    this.start(group, pid);
  }

  #enable(group: string, controller: string): void {
    if (!words(join(group, 'cgroup.controllers')).includes(controller)) throw systemError('ENOENT');
    if (words(join(group, 'cgroup.procs')).length > 0) throw systemError('EBUSY');
    const control = join(group, 'cgroup.subtree_control');
    writeFileSync(control, `${[...words(control), controller].join(' ')}\n`);
    for (const folder of foldersIn(group)) {
      writeFileSync(join(folder, 'cgroup.controllers'), readFileSync(control));
      this.#furnishFor(folder, controller);
    }
  }

  #isPopulated(group: string): boolean {
    return treeOf(group).some((folder) => words(join(folder, 'cgroup.procs')).length > 0);
  }

  #noteEvents(): void {
    for (const folder of treeOf(this.own)) {
      writeFileSync(join(folder, 'cgroup.events'), `populated ${this.#isPopulated(folder) ? 1 : 0}\nfrozen 0\n`);
    }
  }
}

function words(path: string): string[] {
  return existsSync(path) ? readFileSync(path, 'utf8').split(/\s+/).filter(Boolean) : [];
}

function foldersIn(folder: string): string[] {
  const entries = readdirSync(folder, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(folder, name));
}

function treeOf(folder: string): string[] {
  return [folder, ...foldersIn(folder).flatMap(treeOf)];
}

function systemError(code: string): Error {
  return Object.assign(new Error(code), { code });
}
