/**
 * Groups as an earlier program left them, each in one file of text: first what they are, then one line for every file
 * and folder. What differs from machine to machine is replaced by names, which `unpack` fills in again.
 */
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { createRealWorld } from '../../src/system/real-world.ts';
import { packageRoot } from '../support/cli.ts';

const homes = join(packageRoot, 'tests', 'fixtures', 'homes');

/** A worker that was alive. */
export interface KeptWorker {
  readonly name: string;
  readonly pid: number;
  readonly startTime: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** The first line of a file. */
export interface KeptGroup {
  readonly groupId: string;
  /** Session ids by name. */
  readonly sessions: Readonly<Record<string, string>>;
  readonly workers: readonly KeptWorker[];
  /** What `group show --json` and `group budget --json` of the program that wrote it said. */
  readonly shown: Readonly<Record<string, unknown>>;
  readonly budget: Readonly<Record<string, unknown>>;
}

interface FileEntry {
  readonly executable?: true;
  /** When it was changed, ms since 1970: which of two files is newer decides what is believed. */
  readonly changedMs: number;
}

type Entry = { readonly path: string } & (
  | (FileEntry & { readonly text: string })
  | (FileEntry & { readonly base64: string })
  | { readonly link: string }
  | { readonly folder: true }
);

/** Where a machine lies and what it is called. */
interface Place {
  /** The folder with `data` and `projects`. */
  readonly folder: string;
  readonly packageRoot: string;
}

const { machine, processes, fifos } = createRealWorld();
/** How claude names the folder of a project's conversations. */
const dashed = (path: string) => path.replace(/[^a-zA-Z0-9]/g, '-');

/** Longer ones first: a name may be the beginning of another. */
function names({ folder, packageRoot: ofPackage }: Place): readonly (readonly [string, string])[] {
  return [
    ['@FOLDER@', folder],
    ['@DASHED@', dashed(folder)],
    ['@PACKAGE@', ofPackage],
    ['@BOOT@', machine.bootId],
    ['"host":"@HOST@"', `"host":"${machine.self.host}"`],
    ['"host": "@HOST@"', `"host": "${machine.self.host}"`],
  ];
}

/** The log counts its bytes, so what replaces a path there is as long, and stays. */
const isCounted = (path: string) => basename(path) === 'transcript.jsonl';
/** Where claude listens for others; the number is that of a user. */
const socket = /\/tmp(?=\/cc-socks-\d+\/)/g;

function masked(text: string, path: string, place: Place, workers: readonly KeptWorker[]): string {
  if (isCounted(path)) {
    const folder = '@FOLDER@'.padEnd(place.folder.length, '~');
    return text.replaceAll(place.folder, folder).replaceAll(socket, '~tmp');
  }
  let kept = text;
  for (const [name, value] of names(place)) kept = kept.replaceAll(value, name);
  for (const { name, pid, startTime } of workers) {
    kept = kept.replaceAll(
      `"pid":${pid},"startTime":"${startTime}"`,
      `"pid":@PID:${name}@,"startTime":"@START:${name}@"`,
    );
  }
  return kept;
}

/** Made anew at every start, or the machine's own. */
const leftOut = [
  /^home$|\/subreaper$|\/stdin\.fifo$|\/tmp\/|\.sample$/,
  /\/claude-config\/(?:\.claude\.json|backups|plugins|sessions|session-env|shell-snapshots)$/,
];
const isLeftOut = (path: string) => leftOut.some((pattern) => pattern.test(path));

function* entries(folder: string, below = ''): Generator<string> {
  for (const name of readdirSync(join(folder, below)).sort()) {
    const path = join(below, name);
    if (isLeftOut(path)) continue;
    yield path;
    if (lstatSync(join(folder, path)).isDirectory()) yield* entries(folder, path);
  }
}

function entryOf(place: Place, path: string, workers: readonly KeptWorker[]): Entry | null {
  const full = join(place.folder, path);
  const info = lstatSync(full);
  const name = masked(path, '', place, []);
  if (info.isDirectory()) return readdirSync(full).length === 0 ? { path: name, folder: true } : null;
  if (info.isSymbolicLink()) return { path: name, link: masked(readlinkSync(full), '', place, []) };
  const bytes = readFileSync(full);
  const isExecutable = (info.mode & 0o100) !== 0;
  const file: FileEntry = { ...(isExecutable ? { executable: true } : {}), changedMs: Math.floor(info.mtimeMs) };
  const text = bytes.toString();
  if (!Buffer.from(text).equals(bytes)) return { path: name, base64: bytes.toString('base64'), ...file };
  return { path: name, text: masked(text, path, place, workers), ...file };
}

/** The text of such a file. */
export function pack(place: Place, group: KeptGroup): string {
  const head = JSON.parse(masked(JSON.stringify(group), '', place, [])) as KeptGroup;
  const files = [...entries(place.folder)].flatMap((path) => entryOf(place, path, group.workers) ?? []);
  return [head, ...files].map((line) => `${JSON.stringify(line)}\n`).join('');
}

export function writeKept(commit: string, slug: string, text: string): void {
  mkdirSync(join(homes, commit), { recursive: true });
  writeFileSync(join(homes, commit, `${slug}.jsonl`), text);
}

/** Every commit of which there are groups, and their slugs. */
export function keptGroups(): KeptName[] {
  return readdirSync(homes)
    .sort()
    .flatMap((commit) =>
      readdirSync(join(homes, commit))
        .filter((name) => name.endsWith('.jsonl'))
        .sort()
        .map((name) => ({ commit, slug: basename(name, '.jsonl') })),
    );
}

/** Stands in for the program of a worker that was alive. */
export interface StandIn {
  readonly program: string;
  readonly env: Readonly<Record<string, string>>;
}

export interface KeptName {
  readonly commit: string;
  readonly slug: string;
}

export interface Unpacking {
  /** Workers that were alive live again as this; without it they are as after a power cut: their pids are nobody's. */
  readonly standIn?: StandIn;
  /** Changes the texts of files. */
  readonly alter?: (text: string) => string;
}

/** Puts a group where the machine in `folder` has its groups and projects. */
export function unpack(folder: string, kept: KeptName, { standIn, alter = (text) => text }: Unpacking = {}): KeptGroup {
  const place = { folder, packageRoot };
  const fill = (text: string) => names(place).reduce((done, [name, value]) => done.replaceAll(name, value), text);
  const [head = '', ...lines] = readFileSync(join(homes, kept.commit, `${kept.slug}.jsonl`), 'utf8')
    .trim()
    .split('\n');
  const group = JSON.parse(fill(head)) as KeptGroup;
  const workers = standIn === undefined ? [] : group.workers.map((worker) => revived(folder, group, worker, standIn));
  for (const line of lines) {
    const entry = JSON.parse(line) as Entry;
    const path = join(folder, fill(entry.path));
    mkdirSync('folder' in entry ? path : dirname(path), { recursive: true });
    if ('link' in entry) symlinkSync(fill(entry.link), path);
    if (!('changedMs' in entry)) continue;
    if ('base64' in entry) writeFileSync(path, Buffer.from(entry.base64, 'base64'));
    else writeFileSync(path, alter(isCounted(path) ? entry.text : withPids(fill(entry.text), workers)));
    if (entry.executable) chmodSync(path, 0o755);
    utimesSync(path, entry.changedMs / 1_000, entry.changedMs / 1_000);
  }
  return { ...group, workers };
}

function withPids(text: string, workers: readonly KeptWorker[]): string {
  let filled = text;
  for (const { name, pid, startTime } of workers) {
    filled = filled.replaceAll(`@PID:${name}@`, String(pid)).replaceAll(`@START:${name}@`, startTime);
  }
  return filled.replaceAll(/@PID:[^@]+@/g, '4194305').replaceAll(/@START:[^@]+@/g, '1');
}

/** Started as it was then. What it would say now is what stands in its transcript. */
function revived(folder: string, group: KeptGroup, worker: KeptWorker, { program, env }: StandIn): KeptWorker {
  const session = join(folder, 'data', 'session-groups', group.groupId, 'sessions', group.sessions[worker.name] ?? '');
  for (const path of [join(session, 'tmp'), worker.cwd]) mkdirSync(path, { recursive: true });
  const stdinFifo = join(session, 'stdin.fifo');
  fifos.create(stdinFifo);
  const spawned = processes.spawn({
    program,
    args: worker.args,
    cwd: worker.cwd,
    env: { ...worker.env, ...env, PATH: process.env.PATH ?? '' },
    stdinFifo,
    stdoutFile: join(session, 'transcript.jsonl'),
    stderrFile: join(session, 'stderr.log'),
  });
  if (!spawned.ok) throw new Error(spawned.failure.message);
  const { pid, startTime } = spawned.value.identity;
  return { ...worker, pid, startTime };
}
