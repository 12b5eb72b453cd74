/** Files that decide what an acceptance command finds: which of them a session changed, and putting them back. */
import { dirname, join, normalize } from 'node:path';
import { changeKind, type GuardedChange } from '../core/evidence.ts';
import { ok, type Result } from '../core/failure.ts';
import { parseOwn } from '../store/json.ts';
import { systemFailure } from '../store/system-failure.ts';
import { type DiffOptions, printDiff } from './diff.ts';
import type { Git } from './git.ts';
import { askOwn, longTimeoutMs, runOwn } from './run-git.ts';

/** Folders of tests, in upper or lower case: `Tests` in Swift, `Shop.Tests` in .NET. */
const testFolders = [
  '{test,tests,spec,specs,e2e,testdata,__tests__,__snapshots__}',
  '*.{test,unittest,integrationtest,tests,unittests,integrationtests}',
];
/** Tests, configuration of test runners and checkers, and what starts programs during a check. */
const standardGlobs = [
  ...['*.test.*', '*.spec.*', '*.cy.{js,jsx,ts,tsx}', '*_test.*', '*_spec.*', 'test_*', '*.snap', '*.bats', '*IT.java'],
  ...['{test,tests}.rs', '{test,tests}.py', '*.feature'],
  ...['*Test.{java,kt,scala,groovy,php,cs,swift}', '*Tests.{java,kt,cs,swift}', '*Spec.{scala,groovy,kt,hs}'],
  ...['conftest.py', 'pytest.ini', 'tox.ini', 'noxfile.py', '.coveragerc', 'sitecustomize.py', 'usercustomize.py'],
  ...['{jest,vitest,vite,playwright,cypress,karma,ava,mocha,wdio}.config.*', '.mocharc*', '.nycrc*', '.taprc'],
  ...['phpunit.xml*', '.rspec', 'tsconfig*.json', 'biome.json*', 'eslint.config.*', '.eslintrc*', '.eslintignore'],
  ...['.prettierignore', 'ruff.toml', '.ruff.toml', 'mypy.ini', '.flake8', '.pylintrc', 'pyrightconfig.json'],
  ...[
    'clippy.toml',
    '.cargo',
    '.mvn',
    '.golangci.*',
    '.npmrc',
    '.yarnrc*',
    'bunfig.toml',
    '.pnpmfile.cjs',
    '.envrc',
    'node_modules',
  ],
  ...['.husky', '.githooks', '.pre-commit-config.yaml', 'lefthook.y*ml', '.github/workflows', '.github/actions'],
  ...['.gitlab-ci.yml', '.circleci', '.buildkite', '.travis.yml', 'Jenkinsfile', 'azure-pipelines.yml'],
  ...['bitbucket-pipelines.yml', '.drone.yml', '.woodpecker*', 'codecov.yml', '.codecov.yml'],
];
/** The name of a test. */
const plainTest = new RegExp(
  [
    String.raw`(?:[._-](?:test|spec)s?\.[^/]+|(?:^|/)(?:test_[^/]+|tests?\.(?:rs|py)))$`,
    String.raw`\.(?:snap|bats|feature|cy\.[jt]sx?)$`,
    String.raw`(?:Tests?|Spec|IT)\.(?:java|kt|scala|groovy|php|cs|swift|hs)$`,
  ].join('|'),
);
const testFolder = /(?:^|\/)(?:__tests__|(?:[^/]+\.)?(?:unit|integration)?tests?|specs?|e2e|testdata|__snapshots__)\//i;
const noneWord = 'none';

/** Pathspecs; a name without a slash is looked for in every folder, and a folder means all that is in it. */
function pathspecs(globs: readonly string[], magic = 'top,glob'): string[] {
  const expanded = globs.flatMap((glob) => {
    const [, open = '', words, close = ''] = /^(.*)\{(.*)\}(.*)$/.exec(glob) ?? [];
    return words === undefined ? [glob] : words.split(',').map((word) => `${open}${word}${close}`);
  });
  return expanded.flatMap((glob) => {
    const name = glob.replace(/\/+$/, '');
    const path = name.includes('/') ? name : `**/${name}`;
    return [`:(${magic})${path}`, `:(${magic})${path}/**`];
  });
}

interface GuardRules {
  /** Absent = the standard ones, and what the commands run. */
  readonly globs?: readonly string[] | undefined;
  /** The acceptance command, and the setup command. */
  readonly commands: readonly string[];
  /** The folder from the top in which they run. */
  readonly inside: string;
}

type Range = Pick<DiffOptions, 'from' | 'to' | 'without'>;

export interface Guard {
  readonly changes: readonly GuardedChange[];
  /** Old and new paths; undefined where there is no such file. */
  readonly files: readonly { readonly before: string | undefined; readonly after: string | undefined }[];
  readonly manifests: readonly string[];
  readonly isReached: (name: string) => boolean;
  /** What setup makes may differ. */
  readonly affectsSetup: boolean;
}

/** What the session changed of the files that guard its result. Fails with `worktree-failed`. */
export async function guardedChanges(git: Git, top: string, range: Range, rules: GuardRules): Promise<Result<Guard>> {
  const own = rules.globs?.filter((glob) => glob !== noneWord);
  const reached = own === undefined ? await reachedBy(git, top, range, rules) : ok(nothingReached);
  if (!reached.ok) return reached;
  const { scripts, manifests, isReached } = reached.value;
  const standard = [...pathspecs(standardGlobs), ...pathspecs(testFolders, 'top,glob,icase')];
  const specs = [...(own === undefined ? standard : pathspecs(own)), ...scripts.map((path) => `:(top,literal)${path}`)];
  const files = specs.length === 0 ? ok([]) : await changedIn(git, top, range, specs);
  if (!files.ok) return files;
  const changes: GuardedChange[] = [];
  for (const [index, file] of files.value.entries()) {
    const kind = index < comparedMax ? await kindOf(git, top, range, file) : ok('changed' as const);
    if (!kind.ok) return kind;
    const path = kind.value === 'removed' ? (file.before ?? file.after) : (file.after ?? file.before);
    changes.push({ path: path ?? '', change: kind.value });
  }
  const changedManifests: string[] = [];
  for (const path of manifests) {
    const [before, after] = [await textAt(git, top, range.from, path), await textAt(git, top, range.to, path)];
    const found = before === null ? [] : entryChanges(path, before, after ?? '', isReached);
    if (found.length > 0) changedManifests.push(path);
    changes.push(...found);
  }
  const isTest = (path: string) => plainTest.test(path) || testFolder.test(path);
  const affectsSetup =
    changedManifests.some((path) => !path.endsWith('.rs')) ||
    files.value.some(({ before, after }) => !isTest(after ?? before ?? ''));
  return ok({ changes, files: files.value, manifests: changedManifests, isReached, affectsSetup });
}

/** Files whose changed lines are read. */
const comparedMax = 100;

type ChangedFile = Guard['files'][number];

async function changedIn(
  git: Git,
  top: string,
  range: Range,
  specs: readonly string[],
): Promise<Result<ChangedFile[]>> {
  const printed = await printDiff(git, top, range, ['--name-status', '-z'], specs);
  if (!printed.ok) return printed;
  const fields = printed.value.split('\0');
  const found: ChangedFile[] = [];
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const [status = '', path] = [fields[index], fields[index + 1]];
    if (/^[RC]/.test(status)) {
      found.push({ before: status.startsWith('R') ? path : undefined, after: fields[index + 2] });
      index += 1;
    } else found.push({ before: status === 'A' ? undefined : path, after: status === 'D' ? undefined : path });
  }
  return ok(found);
}

async function kindOf(
  git: Git,
  top: string,
  range: Range,
  { before, after }: ChangedFile,
): Promise<Result<GuardedChange['change']>> {
  if (after === undefined) return ok('removed');
  if (before === undefined) return ok('added');
  // Under another kind of name no test runner finds it.
  if (plainTest.test(before) && !plainTest.test(after)) return ok('removed');
  const specs = [...new Set([before, after])].map((path) => `:(top,literal)${path}`);
  const printed = await printDiff(git, top, range, ['--unified=0'], specs);
  if (!printed.ok) return printed;
  const lines = printed.value.split('\n').filter((line) => !/^(?:---|\+\+\+) /.test(line));
  const of = (sign: string) => lines.filter((line) => line.startsWith(sign)).map((line) => line.slice(1));
  return ok(changeKind(of('-'), of('+')));
}

/** Null when there is no such regular file; `revision` absent = the file in the folder. */
async function textAt(git: Git, top: string, revision: string | undefined, path: string): Promise<string | null> {
  if (revision === undefined) {
    const { files } = git.world;
    return files.entryKind(join(top, path)) === 'file' ? files.readText(join(top, path)) : null;
  }
  const asked = await askOwn(git, top, ['show', `${revision}:${path}`]);
  return asked.ok && asked.value.exitCode === 0 ? asked.value.stdout : null;
}

// Entries of manifests and sources: a session may add dependencies, or code, to the same file.

/** Keys of package.json that configure what tests and checks do. */
const toolKeys = ['jest', 'vitest', 'mocha', 'ava', 'nyc', 'c8', 'tap', 'eslintConfig', 'babel'];
const pythonTools = [
  ...['pytest', 'coverage', 'mypy', 'ruff', 'tox', 'nox', 'pyright', 'pylint', 'black'],
  ...[String.raw`hatch\.envs`, 'poe', 'taskipy', String.raw`pdm\.scripts`],
];
const pythonSection = new RegExp(String.raw`^\[tool[.:](?:${pythonTools.join('|')})[^\n]*\n(?:(?!\[).*\n?)*`, 'gm');
/** As rustfmt lays out the tests of a module. */
const rustTests = new RegExp(
  [
    String.raw`^(?:(?:#\[|///).*\n)*#\[cfg\((?:all\()?test\b[^\]\n]*\]\n(?:#\[.*\n)*`,
    String.raw`(?:pub(?:\(.*\))? )?mod \w+(?:;| \{\n(?:(?!\}).*\n)*\})\n?`,
  ].join(''),
  'gm',
);
/** The same by the names of other files: sections that can stand anywhere in them. */
const guardedSections: readonly (readonly [name: RegExp, section: RegExp])[] = [
  [/\.(?:toml|cfg)$/, pythonSection],
  [/Cargo\.toml$/, /^\[\[?(?:test|lints[^\]]*|profile\.test)\]\]?[^\n]*\n(?:(?!\[).*\n?)*/gm],
  // Of what is built, only whether it is tested.
  [
    /Cargo\.toml$/,
    /^(?=(?:test|doctest|autotests)\s*=\s*false)(?<=^\[(?:lib|package|\[bin\])\](?:(?!\n\[)[\s\S])*).*\n?/gm,
  ],
  [/\.rs$/, rustTests],
  [/pom\.xml$/, /^.*<(?:skipTests|skipITs|maven\.test\.skip|testFailureIgnore)>\s*true.*\n?/gm],
  [/\.gradle(?:\.kts)?$/, /^.*\b(?:isIgnoreFailures|ignoreFailures)\s*=?\s*true.*\n?/gm],
  // Of a task of tests: builds of several modules disable `bootJar` and others.
  [/\.gradle(?:\.kts)?$/, /^.*(?<=[tT]est\w*(?:\.|\b[^{}]*\{[^{}]*))\benabled\s*=\s*false.*\n?/gm],
];

/** Each section is replaced by what `change` returns; null removes it. */
function changeSections(path: string, text: string, change: (title: string, section: string) => string | null): string {
  const seen = new Map<string, number>();
  const forms = guardedSections.flatMap(([name, section]) => (name.test(path) ? section : []));
  const changed = forms.reduce((rest, form) => {
    return rest.replace(form, (match) => {
      const section = match.trim();
      const title = titleOf(section).trim();
      const number = (seen.get(title) ?? 0) + 1;
      seen.set(title, number);
      const now = change(number === 1 ? title : `${title} (${number})`, section);
      return now === null ? removed : match.replace(section, () => now);
    });
  }, text);
  // A check of the layout allows one empty line, and none at the end.
  return changed.replace(/\n*\0[\n\0]*/g, (gap, at: number) => {
    if (at === 0) return '';
    const isWide = gap.replaceAll(removed, '').length > 1;
    return isWide && at + gap.length < changed.length ? '\n\n' : '\n';
  });
}

const removed = '\0';

/** The line that names a section. */
function titleOf(section: string): string {
  const [first = '', second = ''] = section.split('\n', 2);
  return /^(?:pub\S* )?mod \w+/m.exec(section)?.[0] ?? (first.startsWith('[[') ? `${first} ${second}` : first);
}

type Entries = ReadonlyMap<string, unknown>;

/** The key of the commands in a JSON manifest. */
const tableIn = (path: string): string => (path.endsWith('deno.json') ? 'tasks' : 'scripts');

function entriesOf(path: string, text: string, isReached: (name: string) => boolean): Entries {
  if (!path.endsWith('.json')) {
    const sections = new Map<string, string>();
    changeSections(path, text, (title, section) => {
      sections.set(title, section);
      return section;
    });
    return sections;
  }
  const manifest = parseOwn<Record<string, unknown>>(text) ?? {};
  const scripts = Object.entries((manifest[tableIn(path)] ?? {}) as object).filter(([name]) => isReached(name));
  return new Map([
    ...scripts.map(([name, value]): [string, unknown] => [`${tableIn(path)}.${name}`, value]),
    ...toolKeys.flatMap((key): [string, unknown][] => (key in manifest ? [[key, manifest[key]]] : [])),
  ]);
}

function entryChanges(
  path: string,
  before: string,
  after: string,
  isReached: (name: string) => boolean,
): GuardedChange[] {
  const [old, now] = [entriesOf(path, before, isReached), entriesOf(path, after, isReached)];
  return [...new Set([...old.keys(), ...now.keys()])].flatMap((key): GuardedChange[] => {
    const [was = '', is = ''] = [old, now].map((entries) => (entries.has(key) ? textOf(entries.get(key)) : ''));
    if (was === is) return [];
    const kind = changeKind(was.split('\n'), is.split('\n'), path.endsWith('.rs'));
    const change = is === '' ? 'removed' : was === '' && kind === 'changed' ? 'added' : kind;
    return [{ path: `${path}: ${key}`, change }];
  });
}

const textOf = (entry: unknown): string => (typeof entry === 'string' ? entry : JSON.stringify(entry, null, 1));

function withEntries(path: string, text: string, entries: Entries, isReached: (name: string) => boolean): string {
  if (!path.endsWith('.json')) {
    const absent = new Map(entries);
    const put = changeSections(path, text, (title) => {
      absent.delete(title);
      return entries.has(title) ? textOf(entries.get(title)) : null;
    });
    // A single line has no meaning at another place.
    const whole = [...absent.values()].map(textOf).filter((section) => /^(?:\[|#\[|\/\/\/)/.test(section));
    return whole.length === 0 ? put : `${[put.trimEnd(), ...whole].join('\n\n')}\n`;
  }
  const manifest = parseOwn<Record<string, unknown>>(text) ?? {};
  const table = tableIn(path);
  const scripts = { ...(manifest[table] as object) } as Record<string, unknown>;
  for (const name of Object.keys(scripts)) if (isReached(name)) delete scripts[name];
  for (const key of toolKeys) delete manifest[key];
  for (const [key, value] of entries) {
    if (key.startsWith(`${table}.`)) scripts[key.slice(table.length + 1)] = value;
    else manifest[key] = value;
  }
  return `${JSON.stringify({ ...manifest, [table]: scripts }, null, 2)}\n`;
}

/**
 * Puts the guarded files of the checkout at `path` as they were at one end of the range; everything else there stays.
 * Fails with `worktree-failed` or `write-failed`.
 */
export async function putGuarded(
  git: Git,
  path: string,
  { files, manifests, isReached }: Guard,
  { from, to, end }: { readonly from: string; readonly to: string; readonly end: 'from' | 'to' },
): Promise<Result<void>> {
  const revision = end === 'from' ? from : to;
  const [wanted, unwanted] = end === 'from' ? (['before', 'after'] as const) : (['after', 'before'] as const);
  const there = new Set(files.flatMap((file) => file[wanted] ?? []));
  const disk = git.world.files;
  try {
    for (const file of files.flatMap((one) => one[unwanted] ?? [])) if (!there.has(file)) disk.remove(join(path, file));
    for (const manifest of manifests) {
      const texts = [await textAt(git, path, revision, manifest), await textAt(git, path, undefined, manifest)];
      const [guarded, text] = texts;
      if (guarded == null || text == null) continue;
      const entries = entriesOf(manifest, guarded, isReached);
      disk.writeAtomic(join(path, manifest), withEntries(manifest, text, entries, isReached));
    }
  } catch (error) {
    return { ok: false, failure: systemFailure(path, error) };
  }
  const names = [...there];
  for (let at = 0; at < names.length; at += pathsAtOnce) {
    const args = ['--literal-pathspecs', 'checkout', '--quiet', revision, '--', ...names.slice(at, at + pathsAtOnce)];
    const done = await runOwn(git, path, args, { timeoutMs: longTimeoutMs });
    if (!done.ok) return done;
  }
  return ok(undefined);
}

const pathsAtOnce = 200;

// What the commands reach: script files that they run, and scripts of manifests that they name.

interface Reached {
  /** Paths from the top. */
  readonly scripts: readonly string[];
  /** Changed manifests, by paths from the top. */
  readonly manifests: readonly string[];
  readonly isReached: (name: string) => boolean;
}

const nothingReached: Reached = { scripts: [], manifests: [], isReached: () => false };
const manifestSpecs = pathspecs([
  'package.json',
  'composer.json',
  'deno.json',
  'pyproject.toml',
  'setup.cfg',
  'Cargo.toml',
  '*.rs',
  'pom.xml',
  '*.gradle',
  '*.gradle.kts',
]);
/** A script that runs others, which run others: no deeper. */
const depthMax = 3;
const scriptBytesMax = 64 * 1024;

async function reachedBy(
  git: Git,
  top: string,
  range: Range,
  { commands, inside }: GuardRules,
): Promise<Result<Reached>> {
  const changed = await changedIn(git, top, range, manifestSpecs);
  if (!changed.ok) return changed;
  const manifests = changed.value.flatMap(({ before, after }) => (before === after && before ? [before] : []));
  const tables: object[] = [];
  for (const path of new Set([join(inside, 'package.json'), 'package.json', ...manifests])) {
    for (const revision of [range.from, range.to]) {
      const text = path.endsWith('.json') ? await textAt(git, top, revision, path) : null;
      const scripts = text === null ? undefined : parseOwn<Record<string, unknown>>(text)?.[tableIn(path)];
      if (typeof scripts === 'object' && scripts !== null) tables.push(scripts);
    }
  }
  const texts = [...commands];
  const names = new Set<string>();
  const addScripts = (): void => {
    for (let known = -1; known < names.size; ) {
      known = names.size;
      for (const [name, script] of tables.flatMap((table) => Object.entries(table))) {
        if (!isNamed(name, texts, names)) continue;
        names.add(name);
        const text = textOf(script);
        if (!texts.includes(text)) texts.push(text);
      }
    }
  };
  addScripts();
  const scripts = new Set<string>();
  let fresh: readonly string[] = texts;
  for (let depth = 0; depth < depthMax && fresh.length > 0; depth += 1) {
    const folders = [inside, '', ...[...scripts].map(dirname)];
    const candidates = fresh
      .flatMap(executedIn)
      .flatMap((word) => folders.map((folder) => normalize(join(folder, word))));
    const wanted = [...new Set(candidates)].filter((path) => !path.startsWith('..') && !path.startsWith('/'));
    const found = await filesAt(git, top, range.from, wanted.slice(0, pathsAtOnce));
    if (!found.ok) return found;
    const before = texts.length;
    for (const path of found.value.filter((one) => !scripts.has(one))) {
      scripts.add(path);
      const text = followed.test(path) ? await textAt(git, top, range.from, path) : null;
      if (text !== null && text.length <= scriptBytesMax) texts.push(text);
    }
    addScripts();
    fresh = texts.slice(before);
  }
  return ok({ scripts: [...scripts], manifests, isReached: (name) => names.has(name) });
}

const lifecycle = /^(?:(?:pre|post)?install|prepare|prepublish)$/;
const installs = /\b(?:npm|pnpm|yarn|bun)\b[^\n;&|]*\b(?:ci|i|install)\b|\byarn\s*(?:$|[;&|\n])/;

/** Also what runs before and after a script, and by itself at an installation. */
function isNamed(name: string, texts: readonly string[], names: ReadonlySet<string>): boolean {
  if (names.has(name)) return true;
  const main = /^(?:pre|post)(.+)$/.exec(name)?.[1];
  if (main !== undefined && names.has(main)) return true;
  if (lifecycle.test(name)) return texts.some((text) => installs.test(text));
  const word = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const pattern = new RegExp(String.raw`(?:^|[\s'"=;&|(@])${word}(?=$|[\s'";&|)])`, 'm');
  return texts.some((text) => pattern.test(text)) || (name === 'test' && texts.some((text) => /\bnpm t\b/.test(text)));
}

const followed = /(?:^|\/)(?:[^./]+|[^/]*\.(?:sh|bash|zsh|bats|mk))$/;
const wrapper = /^(?:\w+=.*|exec|env|time|nice|sudo|xargs|if|while|until|then|do|else|!|\{|command)$/;
const shell = /^(?:.*\/)?(?:sh|bash|dash|zsh|ksh|bats)$|^(?:source|\.)$/;
const interpreter = /^(?:.*\/)?(?:node|bun|deno|tsx|ts-node|python[\d.]*|ruby|perl|php)$/;
/** What another interpreter runs is more often the product than a check. */
const checkName = /(?:^|\/)(?:scripts?|bin|tools?|ci|checks?)\/|test|check|verify|spec|lint/i;
const buildFiles: Readonly<Record<string, readonly string[]>> = {
  make: ['Makefile', 'makefile', 'GNUmakefile'],
  just: ['justfile', 'Justfile', '.justfile'],
  task: ['Taskfile.yml', 'Taskfile.yaml'],
  rake: ['Rakefile'],
};

/** Paths of the files that a shell text runs, as it names them. */
function executedIn(text: string): string[] {
  return text.split(/[;&|()\n`]+/).flatMap((command) => {
    const words = command
      .trim()
      .split(/\s+/)
      .map((word) => word.replace(/^[@-]?["']?|["']$/g, ''));
    const at = words.findIndex((word) => word !== '' && !wrapper.test(word));
    const [program = '', ...given] = at < 0 ? [] : words.slice(at);
    const file = given.find((word) => word !== '' && word !== 'run' && !/^[-\d]/.test(word));
    if (shell.test(program)) return file === undefined ? [] : [file];
    if (interpreter.test(program)) return file !== undefined && checkName.test(file) ? [file] : [];
    return buildFiles[program] ?? (/\/|\.(?:sh|bash|bats)$/.test(program) ? [program] : []);
  });
}

async function filesAt(git: Git, top: string, revision: string, paths: readonly string[]): Promise<Result<string[]>> {
  if (paths.length === 0) return ok([]);
  const args = ['--literal-pathspecs', 'ls-tree', '-z', '--full-tree', revision, '--', ...paths];
  const listed = await runOwn(git, top, args);
  if (!listed.ok) return listed;
  const files = listed.value.split('\0').flatMap((line) => /^\d+ blob \w+\t(.+)$/s.exec(line)?.[1] ?? []);
  return ok(files);
}
