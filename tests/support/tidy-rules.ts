/**
 * The rules of docs/architecture.md and of our style, as functions from files to sentences. Each sentence names the
 * file, the line where there is one, and what to do instead. Exceptions are listed here, each with its reason.
 */
import { posix } from 'node:path';
import {
  blankComments,
  blankOut,
  commentsOf,
  functionsOf,
  type Import,
  readImports,
  type SourceFile,
} from './tidy-source.ts';

export const limits = { fileLines: 700, functionLines: 70, lineLength: 120 };

/** Which folders of src a folder may import from, besides itself. Those with a dot are files of src itself. */
export const layers: Readonly<Record<string, readonly string[]>> = {
  core: [],
  system: ['core'],
  store: ['core', 'system'],
  git: ['core', 'system', 'store'],
  claude: ['core', 'system', 'store'],
  template: ['core', 'system', 'store'],
  context: ['core', 'system', 'store'],
  rehearsal: ['core', 'system', 'store', 'claude'],
  worker: ['core', 'system', 'store', 'git', 'claude', 'template', 'context'],
  fleet: ['core', 'system', 'store', 'git', 'claude', 'context', 'worker'],
  runner: ['core', 'system', 'store', 'git', 'claude', 'template', 'context', 'worker', 'fleet'],
  view: ['core'],
  app: [
    ...['core', 'system', 'store', 'git', 'claude', 'template', 'context', 'rehearsal', 'worker', 'fleet'],
    ...['runner', 'view'],
  ],
  tui: ['core', 'view', 'app'],
  library: ['core', 'app'],
  'index.ts': ['core', 'library'],
  cli: ['core', 'system', 'store', 'git', 'claude', 'template', 'context', 'rehearsal', 'view', 'app', 'tui'],
  'main.ts': ['core', 'system', 'cli', 'hook-main.ts'],
  'hook-main.ts': ['core', 'system', 'store', 'claude', 'context'],
};

interface LayerException {
  readonly from: string;
  readonly target: string;
  readonly why: string;
}

export const layerExceptions: readonly LayerException[] = [
  {
    from: 'runner',
    target: 'src/view/reporter.ts',
    why: 'only the type: the runner is handed a Reporter and never sees one of its makes',
  },
];

/** Front ends: they learn about groups through app only. */
const frontEnds: readonly string[] = ['cli', 'tui', 'library', 'index.ts'];

/** What a front end may import from the store all the same. */
export const frontEndExceptions: readonly { readonly target: RegExp; readonly why: string }[] = [
  {
    target: /^src\/store\/(?:system-failure|yaml-text|json|json-positions|log-lost)\.ts$/,
    why: 'no file of a group: what the system or a file that a person wrote has against it, as a failure',
  },
];

/** Front ends import app, view and core, never worker, fleet, runner or store. */
export function checkFrontEnds(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path }) => frontEnds.includes(layerOf(path)))
    .flatMap((file) =>
      readImports(file)
        .filter(({ target }) => /^src\/(?:worker|fleet|runner|store)\//.test(target))
        .filter(({ target }) => !frontEndExceptions.some((known) => known.target.test(target)))
        .map(({ target }) => `${file.path}: imports ${target}; let app give it what it needs`),
    );
}

/** Packages that a layer may use, where not every package is welcome. */
const packages: Readonly<Record<string, RegExp>> = {
  core: /^@dagrejs\/graphlib$/,
};

/** Modules of the runtime that only compute. All others reach the system and belong to src/system. */
const pureModules = /^node:(path|util|tty|url|crypto)$/;

/** What makes a hook slow to start, and a runner large that needs none of it. */
const heavyPackages = /^(zod|ajv|commander|@commander-js\/.*|ink|react|yaml)$/;

export interface BannedCall {
  readonly name: string;
  readonly pattern: RegExp;
  readonly instead: string;
}

/** Named one by one, because `process` is also a good name for a value that describes one. */
const processMembers = [
  ...['env', 'argv', 'exit', 'exitCode', 'stdin', 'stdout', 'stderr', 'cwd', 'chdir', 'on', 'once', 'off', 'kill'],
  ...['ppid', 'platform', 'execPath', 'hrtime', 'umask', 'nextTick', 'emitWarning', 'memoryUsage', 'abort'],
];

export const bannedCalls: readonly BannedCall[] = [
  { name: 'wall clock', pattern: /\bDate\.now\b|\bnew Date\(\s*\)|\bperformance\.now\b/, instead: 'world.clock.now()' },
  {
    name: 'timer',
    pattern: /\b(?:setTimeout|setInterval|setImmediate)\b|\bBun\.sleep(?:Sync)?\b/,
    instead: 'world.clock.after()',
  },
  {
    name: 'randomness',
    pattern: /\bMath\.random\b|\brandomUUID\b|\bgetRandomValues\b|\brandomBytes\b|\bBun\.randomUUIDv7\b/,
    instead: 'world.random',
  },
  { name: 'file', pattern: /\bBun\.(?:file|write)\b|\.scan(?:Sync)?\(/, instead: 'world.files' },
  { name: 'process start', pattern: /\bBun\.(?:spawn|spawnSync|\$|which)(?![\w$])/, instead: 'world.processes' },
  {
    name: 'process state',
    pattern: new RegExp(`\\bprocess\\.(?:${processMembers.join('|')})\\b`),
    instead: 'World, or the Context of a command',
  },
  { name: 'console', pattern: /\bconsole\.\w/, instead: 'a Reporter, or the output of a command' },
  { name: 'server', pattern: /\bBun\.(?:serve|listen|connect)\b/, instead: 'rehearsal/scripted-api.ts' },
];

/** Files outside src/system that may reach the system themselves, each with the calls it needs and why. */
export const callExceptions: readonly {
  readonly path: RegExp;
  readonly calls: readonly string[];
  readonly why: string;
}[] = [
  { path: /^src\/main\.ts$/, calls: ['process state'], why: 'it hands argv in and the exit code out' },
  { path: /^src\/hook-main\.ts$/, calls: ['process state', 'wall clock'], why: 'a hook starts without a World' },
  { path: /^src\/cli\//, calls: ['process state'], why: 'its streams and its own program' },
  { path: /^src\/library\//, calls: ['process state'], why: 'environment and folder are those of its process' },
  { path: /^src\/app\/signals\.ts$/, calls: ['process state'], why: 'signals of this process' },
  {
    path: /^src\/rehearsal\/scripted-api\.ts$/,
    calls: ['server', 'timer', 'randomness'],
    why: 'it plays an external server, which has its own clock and ids',
  },
];

const leftovers: readonly { readonly pattern: RegExp; readonly instead: string }[] = [
  { pattern: /\b(?:TO[D]O|FIX[M]E|XX[X]|HA[C]K)\b/, instead: 'do it now, or write it down where work is planned' },
  {
    pattern: /\bplace[h]older (?:for|until|implementation)\b|\bnot (?:yet )?imple[m]ented\b|\bcoming so[o]n\b/i,
    instead: 'write the real thing',
  },
  { pattern: /@ts-ign[o]re|@ts-noch[e]ck/, instead: '@ts-expect-error, which expires' },
];

/** Folders of people who do not exist (`/home/user/`, `/home/u/`) are fine in tests. */
const machinePath = /(?<![\w.~}])\/(?:work|root)\/|\/(?:home|Users)\/(?!(?:user|me|someone|\w)\b)\w+\/|\/tmp\/\w/;

export function checkLayers(files: readonly SourceFile[]): string[] {
  return files.flatMap((file) => {
    const layer = layerOf(file.path);
    const allowed = layers[layer];
    if (allowed === undefined) return [`${file.path}: ${layer} is no module of docs/architecture.md`];
    return readImports(file).flatMap(({ target, isFile, typeOnly }) => {
      if (!isFile) return packageProblem(file.path, layer, target);
      if (!target.startsWith('src/')) return file.path === 'src/main.ts' ? [] : [`${file.path}: imports ${target}`];
      const other = layerOf(target);
      if (other === layer || allowed.includes(other)) return [];
      if (typeOnly && layerExceptions.some((known) => known.from === layer && known.target === target)) return [];
      return [`${file.path}: ${layer} must not import ${target}; it knows only ${allowed.join(', ') || 'itself'}`];
    });
  });
}

/** Files that import each other in a loop, even for types alone; each loop is named once, by a shortest way round. */
export function checkCircles(files: readonly SourceFile[]): string[] {
  const known = new Set(files.map(({ path }) => path));
  const edges = new Map(
    files.map((file) => {
      const targets = readImports(file).flatMap(({ target, isFile }) => (isFile && known.has(target) ? [target] : []));
      return [file.path, targets] as const;
    }),
  );
  const told = new Set<string>();
  return [...edges.keys()].flatMap((start) => {
    const way = told.has(start) ? null : wayRound(start, edges);
    if (way === null) return [];
    for (const path of way) told.add(path);
    return [`${[...way, start].join(' -> ')}: a circle of imports; what both need goes into a file of its own`];
  });
}

/** The shortest way from a file back to it; null when there is none. */
function wayRound(start: string, edges: ReadonlyMap<string, readonly string[]>): string[] | null {
  const seen = new Set<string>();
  let ways = [[start]];
  while (ways.length > 0) {
    const next: string[][] = [];
    for (const way of ways) {
      for (const target of edges.get(way.at(-1) as string) ?? []) {
        if (target === start) return way;
        if (seen.has(target)) continue;
        seen.add(target);
        next.push([...way, target]);
      }
    }
    ways = next;
  }
  return null;
}

function layerOf(path: string): string {
  return path.split('/')[1] as string;
}

function packageProblem(path: string, layer: string, target: string): string[] {
  const own = packages[layer];
  if (own !== undefined) return own.test(target) ? [] : [`${path}: ${layer} must not use ${target}`];
  if (layer === 'system' || !/^(node|bun):|^bun$/.test(target) || pureModules.test(target)) return [];
  return [`${path}: ${target} belongs to src/system; use World`];
}

export function checkBannedCalls(files: readonly SourceFile[]): string[] {
  return files.flatMap((file) => {
    if (file.path.startsWith('src/system/')) return [];
    const lines = blankOut(file.text).split('\n');
    const excused = callExceptions.filter(({ path }) => path.test(file.path)).flatMap(({ calls }) => calls);
    return bannedCalls
      .filter(({ name }) => !excused.includes(name))
      .flatMap(({ pattern, instead }) =>
        lines.flatMap((line, index) => {
          const found = line.match(pattern)?.[0];
          return found === undefined ? [] : [`${file.path}:${index + 1}: use ${instead} instead of ${found}`];
        }),
      );
  });
}

export function checkSizes(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, text }) => {
    const lines = text.trimEnd().split('\n');
    const long = lines.flatMap((line, index) =>
      line.length > limits.lineLength ? [`${path}:${index + 1}: ${line.length} characters, split the line`] : [],
    );
    // Comments and blank lines are free, so that reasons are never left out to save lines.
    const code = blankComments(text)
      .split('\n')
      .filter((line) => line.trim() !== '').length;
    const large = code > limits.fileLines ? [`${path}: ${code} lines of code, split the file`] : [];
    const deep = functionsOf(text)
      .filter(({ length, head }) => length > limits.functionLines && !/^(?:describe|function \w+Tests)\b/.test(head))
      .map(({ line, length, head }) => `${path}:${line}: ${length} lines, split the function ${head}`);
    return [...large, ...deep, ...long];
  });
}

const shareMax = 0.18;

/** Modules that hold a larger share of all lines. */
export function checkShares(files: readonly SourceFile[]): string[] {
  const lines = Map.groupBy(files, ({ path }) => path.split('/')[1] ?? '');
  const count = (some: readonly SourceFile[]) => some.reduce((sum, { text }) => sum + text.split('\n').length, 0);
  const all = count(files);
  return [...lines].flatMap(([module, some]) => {
    const share = count(some) / all;
    return share > shareMax
      ? [`src/${module}: ${Math.round(share * 100)} % of src; move what does not belong there`]
      : [];
  });
}

/**
 * Packages that would slow down a start, over any number of imports. A hook loads none of them at all; a runner and the
 * short commands load one only when it is needed.
 */
export function checkWeight(files: readonly SourceFile[]): string[] {
  const commands = ['run', 'show'].map((name) => `src/cli/commands/group/${name}.ts`);
  const atOnce = ['src/runner/run-group.ts', 'src/main.ts', ...commands];
  return [
    ...heavyBehind('src/hook-main.ts', files, () => true),
    ...atOnce.flatMap((entry) => heavyBehind(entry, files, ({ isLater }) => !isLater)),
  ];
}

function heavyBehind(entry: string, files: readonly SourceFile[], counts: (one: Import) => boolean): string[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const seen = new Set<string>();
  const problems: string[] = [];
  const open = [entry];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    const file = byPath.get(path);
    if (file === undefined || seen.has(path)) continue;
    seen.add(path);
    for (const { target, isFile } of readImports(file).filter((one) => !one.typeOnly && counts(one))) {
      if (isFile) open.push(target);
      else if (heavyPackages.test(target) && !isCommandLine(entry, target))
        problems.push(`${path}: ${target} is too heavy for ${entry}`);
    }
  }
  return problems;
}

/** What reads a command line needs the parser of command lines. */
function isCommandLine(entry: string, target: string): boolean {
  return entry !== 'src/hook-main.ts' && entry !== 'src/runner/run-group.ts' && /commander/.test(target);
}

export function checkHeaders(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ text }) => !text.replace(/^#!.*\n/, '').startsWith('/**'))
    .map(({ path }) => `${path}: begin with a doc comment that says what this file is`);
}

/** One row: folder, the file in which it begins, what it may import. */
const architectureRow = /^\| `(\w+)\/`[^|]*\| `([\w.-]+)` \| ([^|]+) \|/gm;

/** The table of folders in docs/architecture.md says what the rules here say. */
export function checkArchitecture(files: readonly SourceFile[], doc: string): string[] {
  const rows = [...doc.matchAll(architectureRow)].map(([, folder = '', begins = '', words = '']) => ({
    folder,
    begins,
    words: words.trim(),
  }));
  const folders = rows.map(({ folder }) => folder);
  const missing = Object.keys(layers).filter((layer) => !layer.endsWith('.ts') && !folders.includes(layer));
  return [
    ...missing.map((folder) => `docs/architecture.md: no row for ${folder}/`),
    ...rows.flatMap(({ folder, begins, words }, index) => {
      const main = files.find(({ path }) => path === `src/${folder}/${begins}`);
      const told = main?.text.replace(/^\/\*\*[\s*]*/, '').startsWith(`${folder}/: `);
      const said = words.startsWith('nothing') ? [] : words.split(', ');
      const meant = words.startsWith('all above') ? folders.slice(0, index) : said;
      const allowed = layers[folder] ?? [];
      return [
        ...(told === true ? [] : [`docs/architecture.md: ${folder}/ does not begin in ${begins}`]),
        ...(meant.toSorted().join() === allowed.toSorted().join()
          ? []
          : [`docs/architecture.md: ${folder}/ may import ${allowed.join(', ')}`]),
      ];
    }),
  ];
}

export function checkLeftovers(files: readonly SourceFile[]): string[] {
  return eachLine(files, (line) =>
    leftovers.flatMap(({ pattern, instead }) => {
      const found = line.match(pattern)?.[0];
      return found === undefined ? [] : [`instead of ${found}: ${instead}`];
    }),
  );
}

/** Files that docs and comments name, with their folders; a name without an ending is no path here. */
const namedFile = /(?<![\w/.@~:-])((?:src|tests|docs|bench|scripts|[a-z]+)\/[\w./-]*\w\.(?:tsx?|sh|md))(?![\w/])/g;
/** Paths below a user's project that docs and examples name, and files that a run of the benchmarks writes. */
const notOurs = /^(?:docs\/(?:plans|epics|state|x|\d)|bench\/results|src\/(?:api|web|auth))/;
/** Papers that a reader of the repository does not have. */
const absentPaper = /\bDESIGN(?:\.md)?\b|\bCLI\.md\b/;

/** Every file that a comment or document names exists, seen from the root, `src/`, `tests/` or its own folder. */
export function checkNamedFiles(files: readonly SourceFile[], paths: ReadonlySet<string>): string[] {
  const folders = new Set([...paths].map((path) => path.split('/').slice(0, 2).join('/')));
  const exists = (name: string, from: string) =>
    [name, `src/${name}`, `tests/${name}`, posix.join(posix.dirname(from), name)].some((path) => paths.has(path));
  return files.flatMap(({ path, text }) => {
    const lines = (/\.tsx?$/.test(path) ? commentsOf(text) : text).split('\n');
    return lines.flatMap((line, index) => {
      const gone = [...line.matchAll(namedFile)]
        .map(([, name = '']) => name)
        .filter((name) => folders.has(`src/${name.split('/')[0]}`) || /^(?:src|tests|docs|bench|scripts)\//.test(name))
        .filter((name) => !notOurs.test(name) && !exists(name, path));
      const paper = line.match(absentPaper)?.[0];
      return [...gone, ...(paper === undefined ? [] : [paper])].map(
        (name) => `${path}:${index + 1}: ${name} is not here`,
      );
    });
  });
}

export function checkMachinePaths(files: readonly SourceFile[]): string[] {
  return eachLine(files, (line) => {
    const found = line.match(machinePath)?.[0];
    return found === undefined ? [] : [`${found} exists on one machine only, use a temporary or a relative path`];
  });
}

/** Tests that were switched off, or that switch off all others. `skipIf` says its condition and stays. */
export function checkTestSwitches(files: readonly SourceFile[]): string[] {
  const code = files.map(({ path, text }) => ({ path, text: blankOut(text) }));
  return eachLine(code, (line) => {
    const found = line.match(/\b(?:test|it|describe)\.(?:only|skip|todo|failing)\b/)?.[0];
    return found === undefined ? [] : [`${found} hides tests, remove it`];
  });
}

function eachLine(files: readonly SourceFile[], check: (line: string) => string[]): string[] {
  return files.flatMap(({ path, text }) =>
    text.split('\n').flatMap((line, index) => check(line).map((problem) => `${path}:${index + 1}: ${problem}`)),
  );
}

const sentenceWordsMax = 40;

/**
 * Sentences of more than 40 words in Markdown. Paragraphs, list items, headings and table cells end a sentence. Inline
 * code, or a list of it, is one word. Fenced code, comments and the targets of links do not count. In docs/reference/,
 * blocks of `text` are the prose of help texts.
 */
export function checkSentences(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, text }) => {
    const isHelp = path.startsWith('docs/reference/');
    return blocksOfProse(text, isHelp).flatMap(({ line, prose }) =>
      prose
        .split(/(?<=[.!?][*)"’]*)\s+(?=["(‘“[*]*(?:[\p{Lu}\d]|claude\b|npm\b))/u)
        .map((sentence) => ({ sentence, words: sentence.split(/\s+/).filter((word) => /[\p{L}\d]/u.test(word)) }))
        .filter(({ words }) => words.length > sentenceWordsMax)
        .map(({ words }) => `${path}:${line}: split the sentence "${words.slice(0, 6).join(' ')} …"`),
    );
  });
}

/** The first line and the text of each paragraph, list item, heading and table cell. */
function blocksOfProse(text: string, isHelp: boolean): { readonly line: number; readonly prose: string }[] {
  const plain = text
    .replace(/<!--.*?-->/gs, blankLines)
    .replace(/^ *```(\w*)\n(.*?)^ *```$/gms, (block, kind: string, body: string) =>
      isHelp && kind === 'text' ? `\n${body.replace(/^ *\$ .*$/gm, '')}\n` : blankLines(block),
    )
    .replace(/`[^`\n]+`(?:, `[^`\n]+`)*/g, 'Code')
    .replace(/\]\([^)\s]*\)/g, ']');
  const blocks: { line: number; prose: string }[] = [];
  let isOpen = false;
  for (const [index, line] of plain.split('\n').entries()) {
    const starts = /^\s*(?:[-*] |\d+\. |#|\||$)/.test(line);
    if (line.startsWith('|')) blocks.push(...line.split(/(?<!\\)\|/).map((prose) => ({ line: index + 1, prose })));
    else if (starts || !isOpen) blocks.push({ line: index + 1, prose: line });
    else (blocks.at(-1) as { prose: string }).prose += ` ${line}`;
    isOpen = !/^\s*(?:#|\||$)/.test(line);
  }
  return blocks;
}

function blankLines(text: string): string {
  return text.replace(/[^\n]/g, '');
}

/** Words that english.md replaces: persons for programs, and words of a private dialect. */
const dialect = /\b(?:nobody|somebody|whoever|everybody|dearest|anew|be it)\b/i;

/** Names in tests, and the system user of that name. */
const madeUpName = /['"{/.][\w ]*nobody|nobody = |\{nobody\}|chown to nobody|nobody reads/;

/** Comments, messages and documents use the words of the field. */
export function checkWords(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path }) => !/tidy/.test(path))
    .flatMap((file) =>
      eachLine([file], (line) => {
        const found = line.match(dialect)?.[0];
        const isFine = file.path.startsWith('tests/') && madeUpName.test(line);
        return found === undefined || isFine ? [] : [`name the program or the role instead of "${found}"`];
      }),
    );
}

/** Exported names, apart from `define`, which each command has. */
const exportedName =
  /^export (?:declare |abstract |async )*(?:const|let|function\*?|class|interface|type|enum) (\w+)/gm;

/** An exported name is declared in one file, so that a search for it finds one meaning. */
export function checkNames(files: readonly SourceFile[]): string[] {
  const homes = new Map<string, Set<string>>();
  for (const { path, text } of files)
    for (const [, name = ''] of text.matchAll(exportedName)) homes.set(name, (homes.get(name) ?? new Set()).add(path));
  return [...homes]
    .filter(([name, paths]) => paths.size > 1 && name !== 'define')
    .map(([name, paths]) => `${name} is declared in ${[...paths].join(' and ')}, rename one of them`);
}
