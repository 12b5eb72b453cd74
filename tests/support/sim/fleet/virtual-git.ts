/**
 * Git as far as a fleet uses it, over a virtual disk: commits are whole trees of small texts, and a repository has
 * those that were made there or pushed to it. git's own files survive a power cut; working files survive as git has
 * written them.
 */
import { createHash } from 'node:crypto';
import { basename, join } from 'node:path';
import type { CommandOptions, RunOutput } from '../../../../src/system/world.ts';
import type { Disk, FolderNode } from '../virtual-disk.ts';

type Tree = ReadonlyMap<string, string>;

interface Commit {
  readonly parent: string | null;
  readonly tree: Tree;
}

/** Every commit ever made, on any host. */
export type Objects = Map<string, Commit>;

interface Repository {
  /** The folder that all its worktrees share. */
  readonly folder: string;
  readonly has: Set<string>;
  readonly refs: Map<string, string>;
}

interface Worktree {
  readonly repository: Repository;
  readonly path: string;
  readonly gitDir: string;
  /** Full name of the checked-out ref. */
  ref: string;
  index: Tree;
}

const encoder = new TextEncoder();
const refused = (stderr: string, exitCode = 128): RunOutput => ({ exitCode, stdout: '', stderr: `fatal: ${stderr}` });
const said = (stdout = ''): RunOutput => ({ exitCode: 0, stdout, stderr: '' });

export function idOf({ parent, tree }: Commit): string {
  return digest([parent ?? '', ...[...tree].toSorted().flat()]);
}

function treeId(tree: Tree): string {
  return digest(['tree', ...[...tree].toSorted().flat()]);
}

function digest(parts: readonly string[]): string {
  return createHash('sha1').update(parts.join('\0')).digest('hex');
}

export class VirtualGit {
  readonly #disk: Disk;
  readonly #objects: Objects;
  readonly #trees = new Map<string, Tree>();
  readonly #repositories = new Map<string, Repository>();
  readonly #worktrees = new Map<string, Worktree>();

  constructor(disk: Disk, objects: Objects) {
    this.#disk = disk;
    this.#objects = objects;
  }

  /** A checkout with one commit. */
  found(top: string, tree: Tree): void {
    const repository = this.#init(join(top, '.git'));
    const commit = this.#keep({ parent: null, tree });
    repository.has.add(commit);
    repository.refs.set('refs/heads/main', commit);
    const worktree = { repository, path: top, gitDir: repository.folder, ref: 'refs/heads/main', index: tree };
    this.#worktrees.set(top, worktree);
    this.#fill(worktree, tree);
  }

  /** The commit of the ref in that checkout's repository. */
  treeOf(top: string, ref: string): Tree | undefined {
    const id = this.#worktrees.get(top)?.repository.refs.get(ref);
    return id === undefined ? undefined : this.#objects.get(id)?.tree;
  }

  refsOf(top: string): string[] {
    return [...(this.#worktrees.get(top)?.repository.refs.keys() ?? [])];
  }

  run({ args: all, cwd, input, env }: Pick<CommandOptions, 'args' | 'cwd' | 'input' | 'env'>): RunOutput {
    const args = [...all];
    while (args[0] === '-c' || args[0]?.startsWith('--')) args.splice(0, args[0] === '-c' ? 2 : 1);
    const [command = '', ...rest] = args;
    if (command === 'init') {
      this.#init(rest.at(-1) as string);
      return said();
    }
    const worktree = this.#worktreeAt(cwd);
    const repository = worktree?.repository ?? this.#repositories.get(cwd) ?? this.#repositories.get(join(cwd, '.git'));
    if (repository === undefined) return refused(`not a git repository: ${cwd}`);
    if (command === 'worktree') return this.#worktree(repository, rest);
    if (command === 'gc') return said();
    const answer =
      this.#ofRefs(repository, worktree, command, rest, input) ?? this.#ofFiles(worktree, command, rest, env);
    if (answer === null) throw new Error(`The virtual git does not know: git ${args.join(' ')}`);
    return answer;
  }

  #init(folder: string): Repository {
    const known = this.#repositories.get(folder);
    if (known !== undefined) return known;
    for (const name of ['objects', 'refs', 'worktrees']) this.#disk.makeFolder(join(folder, name), 0);
    this.#write(join(folder, 'HEAD'), 'ref: refs/heads/main\n');
    const made = { folder, has: new Set<string>(), refs: new Map<string, string>() };
    this.#repositories.set(folder, made);
    return made;
  }

  #worktreeAt(cwd: string): Worktree | undefined {
    const found = [...this.#worktrees.values()].find(({ path }) => cwd === path || cwd.startsWith(`${path}/`));
    return found !== undefined && this.#disk.find(join(found.path, '.git')) !== null ? found : undefined;
  }

  #keep(commit: Commit): string {
    const id = idOf(commit);
    this.#objects.set(id, commit);
    return id;
  }

  #resolve(repository: Repository, worktree: Worktree | undefined, revision: string): string | undefined {
    const name = revision.replace(/\^\{(?:commit|tree)\}$/, '');
    const id = name === 'HEAD' ? repository.refs.get(worktree?.ref ?? 'refs/heads/main') : repository.refs.get(name);
    if (id !== undefined) return id;
    return repository.has.has(name) ? name : undefined;
  }

  #isAncestor(commit: string, of: string): boolean {
    for (let at: string | null = of; at !== null; at = this.#objects.get(at)?.parent ?? null) {
      if (at === commit) return true;
    }
    return false;
  }

  #ofRefs(
    repository: Repository,
    worktree: Worktree | undefined,
    command: string,
    args: readonly string[],
    input: Uint8Array | undefined,
  ): RunOutput | null {
    const { refs } = repository;
    const resolve = (revision: string) => this.#resolve(repository, worktree, revision);
    const last = args.at(-1) ?? '';
    switch (command) {
      case 'rev-parse': {
        if (args.includes('--show-toplevel')) return said(`${worktree?.path ?? ''}\n`);
        const wanted = args
          .filter((arg) => !arg.startsWith('--'))
          .map((revision) => [revision, resolve(revision)] as const);
        if (wanted.some(([, id]) => id === undefined))
          return args.includes('--quiet') ? { ...said(), exitCode: 1 } : refused('Needed a single revision');
        const shown = wanted.map(([revision, id]) =>
          revision.endsWith('^{tree}') ? treeId(this.#objects.get(id as string)?.tree as Tree) : id,
        );
        const inside = args.includes('--is-inside-work-tree') ? ['true'] : [];
        return said(`${[...inside, ...shown].join('\n')}\n`);
      }
      case 'symbolic-ref':
        if (worktree === undefined) return refused('no worktree');
        if (args.includes('--quiet')) return said(`${worktree.ref}\n`);
        this.#attach(worktree, last);
        return said();
      case 'for-each-ref': {
        const hasIds = args.some((arg) => arg.includes('objectname'));
        const below = args.flatMap((arg) => (arg.startsWith('--') ? [] : [arg.replace(/\/$/, '')]));
        const isBelow = (ref: string) => below.some((folder) => ref === folder || ref.startsWith(`${folder}/`));
        const found = [...refs].filter(([ref]) => isBelow(ref)).toSorted();
        return said(found.map(([ref, id]) => (hasIds ? `${id} ${ref}\n` : `${ref}\n`)).join(''));
      }
      case 'update-ref':
        return this.#updateRefs(repository, args, input);
      case 'merge-base': {
        const [one, other] = [resolve(args[1] ?? ''), resolve(args[2] ?? '')];
        if (one === undefined || other === undefined) return refused('Not a valid object name');
        return { ...said(), exitCode: this.#isAncestor(one, other) ? 0 : 1 };
      }
      case 'rev-list': {
        const wanted = args.slice(0, args.indexOf('--not')).filter((arg) => !arg.startsWith('--'));
        const missing = args.includes('--objects') ? wanted.find((id) => !repository.has.has(id)) : undefined;
        return missing === undefined ? said('0\n') : refused(`bad object ${missing}`);
      }
      case 'config':
        return { ...said(), exitCode: 1 };
      default:
        return null;
    }
  }

  #updateRefs({ refs, has }: Repository, args: readonly string[], input: Uint8Array | undefined): RunOutput {
    if (args[0] === '--stdin') {
      const lines = Buffer.from(input ?? [])
        .toString()
        .split('\n')
        .filter((line) => line !== '');
      const changes = lines.map((line) => line.split(' ') as [string, string, string?]);
      const missing = changes.find(([what, , id]) => what === 'update' && !has.has(id as string));
      if (missing !== undefined) return refused(`trying to write ref with nonexistent object ${missing[2]}`);
      for (const [what, ref, id] of changes) {
        if (what === 'update') refs.set(ref, id as string);
        else refs.delete(ref);
      }
      return said();
    }
    const rest = args[0] === '-m' ? args.slice(2) : [...args];
    if (rest[0] === '-d') {
      refs.delete(rest[1] as string);
      return said();
    }
    const [ref, id, old] = rest as [string, string, string?];
    if (old === '' && refs.has(ref)) return refused(`cannot lock ref '${ref}': reference already exists`);
    if (!has.has(id)) return refused(`nonexistent object ${id}`);
    refs.set(ref, id);
    return said();
  }

  #worktree(repository: Repository, args: readonly string[]): RunOutput {
    const own = [...this.#worktrees.values()].filter((one) => one.repository === repository);
    if (args[0] === 'list') {
      const shown = own.map(
        ({ path, ref }) => `worktree ${path}\0HEAD ${repository.refs.get(ref) ?? '0'}\0branch ${ref}\0\0`,
      );
      return said(shown.join(''));
    }
    if (args[0] === 'remove') {
      const path = args.at(-1) as string;
      this.#worktrees.delete(path);
      const place = this.#disk.place(path);
      place?.folder.drop(place.name);
      return said();
    }
    const at = args.indexOf('-B');
    const names = args.slice(1).filter((arg, index) => !arg.startsWith('-') && index + 1 !== at + 1);
    const [path, commit] = names as [string, string];
    const branch = at < 0 ? commit : (args[at + 1] as string);
    const ref = `refs/heads/${branch}`;
    // Also one whose folder is gone, with any amount of force.
    if (at >= 0 && own.some((one) => one.ref === ref))
      return refused(`cannot force update the branch '${branch}' checked out at '${path}'`);
    if (at >= 0) repository.refs.set(ref, commit);
    const tip = repository.refs.get(ref);
    if (tip === undefined) return refused(`invalid reference: ${branch}`);
    if (this.#disk.find(path) !== null) return refused(`'${path}' already exists`);
    if (this.#worktrees.has(path)) return refused(`'${path}' is a missing but already registered worktree`);
    const gitDir = join(repository.folder, 'worktrees', digest([path]).slice(0, 8));
    this.#disk.makeFolder(gitDir, 0);
    this.#disk.makeFolder(path, 0);
    this.#write(join(path, '.git'), `gitdir: ${gitDir}\n`);
    this.#write(join(gitDir, 'commondir'), '../..\n');
    const made: Worktree = { repository, path, gitDir, ref, index: new Map() };
    this.#worktrees.set(path, made);
    this.#attach(made, ref);
    this.#fill(made, this.#objects.get(tip)?.tree as Tree);
    return said();
  }

  #attach(worktree: Worktree, ref: string): void {
    worktree.ref = ref;
    this.#write(join(worktree.gitDir, 'HEAD'), `ref: ${ref}\n`);
  }

  /** `git push` and `git fetch` of full refspecs; `other`: the git of the host that the URL names. */
  transfer({ args: all, cwd }: Pick<CommandOptions, 'args' | 'cwd'>, other: VirtualGit, path: string): RunOutput {
    const here = this.#worktreeAt(cwd)?.repository ?? this.#repositories.get(cwd);
    if (here === undefined) return refused(`not a git repository: ${cwd}`);
    const isPush = all.includes('push');
    const there = isPush ? other.#init(path) : other.#repositories.get(path);
    if (there === undefined) return refused(`'${path}' does not appear to be a git repository`);
    const [from, to] = isPush ? [here, there] : [there, here];
    const moves = all
      .filter((arg) => /^\+[^*]+:refs\//.test(arg))
      .map((refspec) => {
        const [source = '', ref = ''] = refspec.slice(1).split(':');
        return [from.refs.get(source) ?? source, ref] as const;
      });
    const missing = moves.find(([id]) => !from.has.has(id));
    if (missing !== undefined) return refused(`remote error: upload-pack: not our ref ${missing[0]}`);
    for (const [id, ref] of moves) {
      for (let at: string | null = id; at !== null; at = this.#objects.get(at)?.parent ?? null) to.has.add(at);
      to.refs.set(ref, id);
    }
    return said();
  }

  #ofFiles(
    worktree: Worktree | undefined,
    command: string,
    args: readonly string[],
    env: Readonly<Record<string, string>>,
  ): RunOutput | null {
    if (worktree === undefined) return refused('this operation must be run in a work tree');
    const { repository } = worktree;
    const head = repository.refs.get(worktree.ref) as string;
    const headTree = this.#objects.get(head)?.tree as Tree;
    const treeAt = (revision: string) => this.#objects.get(this.#resolve(repository, worktree, revision) ?? '')?.tree;
    const isAside = env.GIT_INDEX_FILE !== undefined;
    switch (command) {
      case 'status':
        return said(this.#status(worktree, head, headTree, args.includes('--branch')));
      case 'add':
        if (isAside) this.#write(env.GIT_INDEX_FILE as string, '');
        else worktree.index = this.#files(worktree);
        return said();
      case 'write-tree': {
        const tree = isAside ? this.#files(worktree) : worktree.index;
        this.#trees.set(treeId(tree), tree);
        return said(`${treeId(tree)}\n`);
      }
      case 'commit-tree': {
        const id = this.#keep({
          parent: args[args.indexOf('-p') + 1] as string,
          tree: this.#trees.get(args.at(-1) as string) as Tree,
        });
        repository.has.add(id);
        return said(`${id}\n`);
      }
      case 'commit': {
        const id = this.#keep({ parent: head, tree: worktree.index });
        repository.has.add(id);
        repository.refs.set(worktree.ref, id);
        return said();
      }
      case 'read-tree':
        if (args.includes('-u')) this.#fill(worktree, treeAt(args.at(-1) as string) as Tree);
        return said();
      case 'reset': {
        const revision = args.filter((arg) => !arg.startsWith('-')).at(-1) ?? 'HEAD';
        const id = this.#resolve(repository, worktree, revision);
        if (id === undefined) return refused(`unknown revision ${revision}`);
        repository.refs.set(worktree.ref, id);
        const tree = this.#objects.get(id)?.tree as Tree;
        if (args.includes('--hard')) this.#fill(worktree, tree);
        else worktree.index = tree;
        return said();
      }
      case 'clean':
        for (const name of this.#files(worktree).keys())
          if (!worktree.index.has(name)) this.#remove(join(worktree.path, name));
        return said();
      case 'diff': {
        if (args.includes('--quiet'))
          return { ...said(), exitCode: treeId(worktree.index) === treeId(headTree) ? 0 : 1 };
        return said();
      }
      case 'ls-files':
      case 'rm':
        return said();
      default:
        return null;
    }
  }

  #status(worktree: Worktree, head: string, headTree: Tree, hasBranch: boolean): string {
    const now = this.#files(worktree);
    const all = new Set([...now.keys(), ...headTree.keys()]);
    const names = [...all].filter((name) => now.get(name) !== headTree.get(name));
    const lines = names.map((name) =>
      headTree.has(name) ? `1 .M N... 100644 100644 100644 0 0 ${name}` : `? ${name}`,
    );
    const branch = hasBranch
      ? [`# branch.oid ${head}`, `# branch.head ${worktree.ref.slice('refs/heads/'.length)}`]
      : [];
    return [...branch, ...lines].map((line) => `${line}\0`).join('');
  }

  #files({ path }: Worktree): Tree {
    const found = new Map<string, string>();
    const look = (folder: FolderNode, below: string): void => {
      for (const [name, node] of folder.entries) {
        if (node.kind === 'file' && name !== '.git') found.set(`${below}${name}`, node.text());
        else if (node.kind === 'folder' && name !== '.git') look(node, `${below}${name}/`);
      }
    };
    const top = this.#disk.find(path);
    if (top?.kind === 'folder') look(top, '');
    return found;
  }

  #fill(worktree: Worktree, tree: Tree): void {
    const now = this.#files(worktree);
    for (const name of now.keys())
      if (worktree.index.has(name) && !tree.has(name)) this.#remove(join(worktree.path, name));
    for (const [name, text] of tree) if (now.get(name) !== text) this.#write(join(worktree.path, name), text);
    worktree.index = tree;
  }

  #write(path: string, text: string): void {
    this.#remove(path);
    const node = this.#disk.createFile(path, 0);
    node.append(encoder.encode(text), 0);
    node.durableSize = node.size;
    // Its parent names as well: git's new files survive a power cut.
    for (let at = path.slice(0, path.lastIndexOf('/')); at !== ''; at = at.slice(0, at.lastIndexOf('/'))) {
      const folder = this.#disk.find(at);
      if (folder?.kind === 'folder') folder.sync();
    }
  }

  #remove(path: string): void {
    const place = this.#disk.place(path);
    place?.folder.drop(basename(path));
  }
}
