/** view/review/: judges what a session changed, from the difference alone. This file: the difference as values. */

export interface ChangedFile {
  /** From the top of the repository. */
  readonly path: string;
  /** Where it was before, if it was renamed or copied. */
  readonly from?: string;
  readonly kind: 'added' | 'changed' | 'deleted' | 'renamed';
  /** As git writes them: `100644`, `120000` is a symlink, `160000` a commit of a submodule, `000000` no file. */
  readonly oldMode: string;
  readonly newMode: string;
  /** Full ids; only zeros = no file, or one in a worktree that git has not stored. */
  readonly oldBlob: string;
  readonly newBlob: string;
  readonly isBinary: boolean;
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Its part of the patch. */
  readonly text: string;
}

export const symlinkMode = '120000';
export const submoduleMode = '160000';

const kinds: Readonly<Record<string, ChangedFile['kind']>> = { A: 'added', C: 'added', D: 'deleted', R: 'renamed' };

/** `raw`: what `git diff --raw --numstat -z --no-abbrev` prints; `patch`: the patch of the same difference. */
export function filesOfPatch(raw: string, patch: string): ChangedFile[] {
  const sections = patch.split(/^(?=diff --git )/m).filter((text) => text !== '');
  const fields = raw.split('\0');
  const binaries = new Set<string>();
  const entries: Omit<ChangedFile, 'isBinary' | 'added' | 'removed' | 'text'>[] = [];
  const types: string[] = [];
  for (let at = 0; at < fields.length; at += 1) {
    const field = fields[at] ?? '';
    const entry = /^:(\d+) (\d+) ([0-9a-f]+) ([0-9a-f]+) ([A-Z])/.exec(field);
    if (entry === null) {
      const [, deleted, path] = /^-\t(-)\t([\s\S]*)$/.exec(field) ?? [];
      // Of a rename, both names follow.
      if (deleted !== undefined) binaries.add(path === '' ? (fields[at + 2] ?? '') : (path ?? ''));
      continue;
    }
    const [, oldMode = '', newMode = '', oldBlob = '', newBlob = '', type = ''] = entry;
    const isPair = type === 'R' || type === 'C';
    const [first = '', second = ''] = fields.slice(at + 1, at + 3);
    at += isPair ? 2 : 1;
    types.push(type);
    entries.push({
      path: isPair ? second : first,
      ...(isPair ? { from: first } : {}),
      kind: kinds[type] ?? 'changed',
      ...{ oldMode, newMode, oldBlob, newBlob },
    });
  }
  let next = 0;
  return entries.map((entry, index) => {
    // A file that became a symlink is removed and added.
    const count = types[index] === 'T' ? 2 : 1;
    const own = sections.slice(next, next + count);
    next += count;
    const lines = own.flatMap(contentLines);
    const those = (sign: string) => lines.filter((line) => line.startsWith(sign)).map((line) => line.slice(1));
    return {
      ...entry,
      isBinary: binaries.has(entry.path),
      added: those('+'),
      removed: those('-'),
      text: own.join(''),
    };
  });
}

function contentLines(section: string): string[] {
  const lines = section.split('\n');
  const begin = lines.findIndex((line) => line.startsWith('@@ '));
  return begin < 0 ? [] : lines.slice(begin + 1);
}

// What kind of file a path names.

/** What one of the forms fits; the flags are those of the first. */
export function oneOf(...forms: readonly RegExp[]): RegExp {
  return new RegExp(forms.map(({ source }) => source).join('|'), forms[0]?.flags);
}

export function fileNamed(...forms: readonly RegExp[]): RegExp {
  return new RegExp(`(?:^|/)(?:${oneOf(...forms).source})$`);
}

const testPath = oneOf(
  /(?:^|\/)(?:(?:[^/]+\.)?(?:unit|integration)?tests?|__tests__|specs?|e2e|testing)\/|[._-](?:tests?|specs?)\.\w+$/i,
  /(?:^|\/)test_[^/]+\.py$|(?:Tests?|Spec)\.(?:java|kt|scala|groovy|php|cs|swift|hs)$/i,
);
const ciPath = oneOf(
  /^\.github\/(?:workflows|actions)\/|^\.(?:circleci|buildkite|woodpecker|ci)\//,
  fileNamed(/\.(?:gitlab-ci|travis|drone)\.ya?ml|Jenkinsfile|(?:azure|bitbucket)-pipelines[^/]*\.ya?ml/),
);
const lockPath = fileNamed(
  /package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|bun\.lock|Cargo\.lock|poetry\.lock|uv\.lock/,
  /Pipfile\.lock|Gemfile\.lock|composer\.lock|go\.sum/,
);
const manifestPath = fileNamed(
  /package\.json|Cargo\.toml|pyproject\.toml|Pipfile|Gemfile|composer\.json|go\.mod|setup\.(?:py|cfg)/,
  /requirements[^/]*\.txt|pom\.xml|build\.gradle(?:\.kts)?/,
);
const generatedPath = oneOf(
  /\.(?:snap|map|min\.\w+|golden|approved\.\w+)$|[._]generated\.|\.pb\.\w+$|\.g\.dart$/i,
  /(?:^|\/)(?:__snapshots__|snapshots|dist|generated|goldens?)\//i,
);
const dataInTests = /\.(?:json|txt|svg|html|xml|csv|ya?ml|out)$/i;

export const isTest = (path: string): boolean => testPath.test(path) && !dataInTests.test(path);
export const isCi = (path: string): boolean => ciPath.test(path);
export const isLock = (path: string): boolean => lockPath.test(path);
export const isManifest = (path: string): boolean => manifestPath.test(path);
export const isDocument = (path: string): boolean =>
  /\.(?:md|mdx|rst|adoc|txt)$|(?:^|\/)(?:docs?|CHANGELOG|README|LICENSE)(?:\/|$)/i.test(path) && !isManifest(path);
/** Its size says nothing about the work that it takes to review it. */
export const isGenerated = (path: string): boolean =>
  isLock(path) || generatedPath.test(path) || (testPath.test(path) && dataInTests.test(path));

// Texts as far as they mean the same.

/** Without what a formatter changes. */
export function formless(line: string): string {
  return line.replace(/[\s;,()]/g, '').replace(/[`"]/g, "'");
}

/** Only the layout of the file differs. */
export function isCosmetic({ added, removed, isBinary, oldMode, newMode }: ChangedFile): boolean {
  const same = formless(added.join('')) === formless(removed.join(''));
  return same && !isBinary && oldMode === newMode && oldMode !== submoduleMode;
}

const generic = new Set(
  (
    'the and for with from into that this all any are not but use used using make made add added new old fix fixed ' +
    'change update remove delete drop set get run file files code line lines test tests spec src lib app index main ' +
    'util utils helper helpers common core function method class module packages types type value values name ' +
    'data list item error errors return returns default should must when then also only each every more less please ' +
    'ensure keep support refactor improve write read create option options string number boolean true false ' +
    'null undefined const let var import export require async await let def self int public private static void ' +
    'readme docs doc json yaml yml toml there their where which what will have has its can been instead without'
  ).split(' '),
);

const stem = (word: string): string => word.replace(/(?:ing|ed|es|s|e)$/, '');

/** Words that say what a text or a path is about, without their endings. */
export function topicWords(text: string): Set<string> {
  const words = text
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z\d]+/);
  return new Set(words.flatMap((word) => (word.length < 3 || generic.has(word) ? [] : [stem(word)])));
}

/** Of languages and their libraries. */
const builtIn = oneOf(
  /^(?:to[A-Z]\w+|parse(?:Int|Float|Args)|forEach|indexOf|is[A-Z][a-z]+|(?:read|write)File\w*)$/,
  /^(?:use(?:State|Effect)|set(?:Timeout|Interval)|addEventListener|querySelector|get(?:Element|Attribute)\w*)$/,
);

/** Names that are made of several words, so that two texts hardly have one by chance. */
export function compoundNames(text: string): Set<string> {
  const form = /\b(?:[A-Za-z][a-z\d]*(?:[A-Z][a-z\d]+)+|[A-Za-z]+(?:_[A-Za-z\d]+)+)\b/g;
  return new Set((text.match(form) ?? []).filter((name) => !builtIn.test(name)));
}
