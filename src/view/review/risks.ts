/** What in a session's work a person should look at first: a list of risks with weights, and the order they give. */
import { posix } from 'node:path';
import type { Warning } from '../../core/event.ts';
import {
  assertion,
  type Evidence,
  guardedText,
  ignoredFailure,
  skippedTest,
  switchedOffTests,
  testCase,
} from '../../core/evidence.ts';
import { listNames } from '../../core/text.ts';
import { compareLocks, comparePackageVersions } from './lockfile.ts';
import {
  type ChangedFile,
  compoundNames,
  fileNamed,
  formless,
  isCi,
  isCosmetic,
  isDocument,
  isGenerated,
  isLock,
  isManifest,
  isTest,
  oneOf,
  submoduleMode,
  symlinkMode,
  topicWords,
} from './patch.ts';

export type RiskLevel = 'high' | 'medium' | 'low';

export interface Risk {
  /** Names the rule that found it. */
  readonly code: string;
  readonly level: RiskLevel;
  /** 0 to 100: orders the risks of all sessions. */
  readonly weight: number;
  /** A full sentence. */
  readonly text: string;
}

/** A commit of the target's history, newest first, as far as it changed files that the session changed. */
export interface RecentCommit {
  readonly id: string;
  readonly title: string;
  readonly files: readonly ChangedFile[];
}

export interface OutcomeFacts {
  readonly prompt: string;
  /** The project, from the top of the repository; empty = the top itself. */
  readonly folder: string;
  readonly files: readonly ChangedFile[];
  /** How many files the base has. */
  readonly baseFiles: number;
  readonly recent: readonly RecentCommit[];
  /** Both texts of each lockfile that changed. */
  readonly locks: readonly { readonly path: string; readonly before: string; readonly after: string }[];
  /** By path: the first bytes of changed binary files, one character for each, and their sizes. */
  readonly binaries: ReadonlyMap<string, { readonly head: string; readonly bytes: number }>;
  readonly warnings: readonly Warning[];
  readonly hasAcceptance: boolean;
  readonly evidence?: Evidence;
}

export function makeRisk(code: string, weight: number, text: string): Risk {
  return { code, weight, level: weight >= 60 ? 'high' : weight >= 30 ? 'medium' : 'low', text };
}

function riskIf(isFound: boolean, code: string, weight: number, text: string): Risk[] {
  return isFound ? [makeRisk(code, weight, text)] : [];
}

const list = (words: readonly string[]): string => listNames(words, 4);
const names = (files: readonly { readonly path: string }[]): string => list(files.map(({ path }) => path));

/** The most important one first. */
export function risksOf(facts: OutcomeFacts): Risk[] {
  const rules = [secrets, ciRisks, hooks, links, lockRisks, reverts, testRisks, deletions, binaryRisks, outsideTask];
  return sortRisks([...rules, sizeRisks, runRisks].flatMap((rule) => rule(facts)));
}

export function sortRisks(risks: readonly Risk[]): Risk[] {
  return risks.toSorted((a, b) => b.weight - a.weight);
}

/** Less than 0: the first list is to be looked at first. */
export function compareRisks(a: readonly Risk[], b: readonly Risk[]): number {
  const highest = (risks: readonly Risk[]) => risks[0]?.weight ?? 0;
  const sum = (risks: readonly Risk[]) => risks.reduce((total, { weight }) => total + weight, 0);
  return highest(b) - highest(a) || sum(b) - sum(a);
}

/** A person may merge it without a closer look. */
export function isSafe(risks: readonly Risk[]): boolean {
  return risks.every(({ level }) => level === 'low');
}

// What the user asked for in the prompt is still named, with a lower weight.

function fresh({ added, removed }: ChangedFile, form: RegExp): string | undefined {
  const before = new Set(removed.map(formless));
  return added.find((line) => form.test(line) && !before.has(formless(line)));
}

const count = (lines: readonly string[], form: RegExp): number => lines.filter((line) => form.test(line)).length;
/** How many such lines are gone. */
const lost = ({ added, removed }: Pick<ChangedFile, 'added' | 'removed'>, form: RegExp): number =>
  count(removed, form) - count(added, form);

// Secrets, and characters that hide what a text says.

const wellKnown: readonly (readonly [what: string, form: RegExp])[] = [
  ['a private key', /-----BEGIN [A-Z ]*PRIVATE KEY/],
  ['an AWS access key', /\b(?:AKIA|ASIA)[A-Z\d]{16}\b/],
  ['a GitHub or GitLab token', /\b(?:gh[pousr]_\w{30,}|github_pat_\w{20,}|glpat-[\w-]{20,})/],
  ['an API key', /\bsk-(?:ant-|proj-|live-)?[\w-]{20,}|\b[rs]k_(?:live|test)_\w{16,}|\bAIza[\w-]{35}/],
  ['a Slack token', /\bxox[abeoprs]-[\w-]{10,}|hooks\.slack\.com\/services\/T\w+\/B\w+/],
  ['an npm token', /\bnpm_\w{36}\b|_authToken\s*=\s*[\w-]{16,}/],
  ['a token', /\bSG\.[\w-]{16,}\.[\w-]{16,}|\bhf_\w{30,}|\beyJ[\w-]{15,}\.eyJ[\w-]{15,}\.[\w-]{10,}/],
  [
    'a password in an address',
    /:\/\/[^\s:/@"']+:(?!\$|<|\{|pass|secret|postgres|root|user|example)[^\s:/@"']{4,}@(?!localhost|127\.)/i,
  ],
];
const secretFile = fileNamed(
  /[^/]*\.env(?:\.\w+)*|id_(?:rsa|ed25519|ecdsa)|[^/]+\.(?:pem|p12|pfx|key|keystore)/,
  /\.netrc|\.pgpass/,
  /credentials(?:\.json)?/,
);
const assignment =
  /(?:secret|token|passw(?:or)?d|pwd|(?:api|access|private)_?key|credential)\w*["']?\s*[:=]\s*["']?([^\s"'`;,]{8,})/i;
const placeholder = oneOf(
  /x{4}|\*{3}|your|change|example|dummy|sample|fake|placeholder|process\.|env[.[(]|os\.|[$<>{}()[\]]|:\/\//i,
  /^[a-z]+(?:[-_./:][a-z\d]+)*$/,
);

function secrets({ files }: OutcomeFacts): Risk[] {
  return files.flatMap((file) => {
    const { path, added, removed, kind } = file;
    const before = removed.join('\n');
    const isNew = (text: string | undefined) => text !== undefined && !before.includes(text);
    const isExample = /example|sample|template|dist$/i.test(path);
    const known = wellKnown.find(([, form]) => added.some((line) => isNew(form.exec(line)?.[0])));
    if (known !== undefined) return [makeRisk('secret', 100, `${path} holds what looks like ${known[0]}.`)];
    const isMade = kind === 'added' && secretFile.test(path) && !isExample;
    const values = isGenerated(path) || isExample ? [] : added.map((line) => assignment.exec(line)?.[1] ?? '');
    const isFound = values.some((text) => isSecretValue(text) && isNew(text));
    const weight = isTest(path) || isDocument(path) ? 25 : 92;
    const isHidden = added.some((line) => /[\u202a-\u202e\u2066-\u2069\u200b\u2060]/.test(line) && isNew(line));
    return [
      ...riskIf(isMade, 'secret', 95, `${path} is a file that usually holds secrets.`),
      ...riskIf(isFound, 'secret', weight, `${path} holds what looks like a password or a key.`),
      ...riskIf(isHidden, 'hidden-text', 75, `${path} holds characters that hide what its text says.`),
    ];
  });
}

/** Random to the eye: not a name, a word or a path. */
function isSecretValue(text: string): boolean {
  const kinds = [/[a-z]/, /[A-Z]/, /\d/, /[^\w]/].filter((form) => form.test(text)).length;
  return !placeholder.test(text) && /\d.*\D|\D.*\d/.test(text) && kinds >= (text.length >= 20 ? 2 : 3);
}

// CI: what checks all work, with rights of its own.

const ciDangers: readonly (readonly [what: string, form: RegExp])[] = [
  ['gives CI the right to write', /write-all|^\s*[\w-]+:\s*write\b/],
  ['runs CI with its rights on code of strangers', /pull_request_target|workflow_run/],
  ['lets CI pass after a failure', /continue-on-error:\s*true|allow_failure:\s*true|\|\|\s*(?:true|:|exit 0)|set \+e/],
  ['switches a part of CI off', /\bif:\s*(?:false|\$\{\{\s*false)|--no-verify|\bexit 0\b|--passWithNoTests/],
  ['hands secrets on', /secrets:\s*inherit|toJSON\(secrets\)|(?:curl|wget)[^|]*secrets\./],
  ['runs a downloaded script', /(?:curl|wget)[^|]*\|\s*(?:ba|z)?sh/],
];

function ciRisks({ files, prompt }: OutcomeFacts): Risk[] {
  const changed = files.filter((file) => isCi(file.path) && !isCosmetic(file));
  const risks = changed.flatMap((file) => {
    const { path } = file;
    if (file.kind === 'deleted') return [makeRisk('ci', 90, `It deletes the CI file ${path}.`)];
    const has = (form: RegExp) => lost(file, form) > 0;
    const limits = has(/^\s*(?:-\s*)?(?:permissions:|[\w-]+:\s*(?:read|none)\b)/);
    const steps = has(/^\s*(?:-\s*)?(?:run|uses|script|needs):|^\s*-\s+\S/);
    return [
      ...ciDangers.flatMap(([what, form]) => riskIf(fresh(file, form) !== undefined, 'ci', 90, `${path} ${what}.`)),
      ...riskIf(limits, 'ci', 90, `${path} no longer limits the rights of CI.`),
      ...riskIf(steps, 'ci', 88, `${path} has fewer steps than before.`),
      ...riskIf(has(/uses:.*@[0-9a-f]{40}/), 'ci', 85, `${path} no longer pins an action to a commit.`),
    ];
  });
  if (risks.length > 0) return risks;
  const all = [...changed, ...files.filter(({ path }) => /(?:^|\/)CODEOWNERS$/.test(path))];
  const isAsked = /\bci\b|workflow|pipeline|actions?\b|codeowners/i.test(prompt);
  return riskIf(all.length > 0, 'ci', isAsked ? 20 : 55, `It changes CI: ${names(all)}.`);
}

// What starts a program later, on a person's machine or in another session.

const hookPath = oneOf(
  /(?:^|\/)(?:\.husky|\.?git-?hooks|\.claude|\.claude-code-agent|\.devcontainer)\//,
  fileNamed(/\.?lefthook[^/]*\.ya?ml|\.pre-commit-config\.yaml|\.envrc|\.npmrc|\.yarnrc(?:\.yml)?|\.pypirc|pip\.conf/),
  fileNamed(/\.mcp\.json|\.vscode\/tasks\.json|hooks\/(?:pre|post|commit)-\w+/),
);
const hookLine = oneOf(
  /"(?:pre|post)?(?:install|pack|publish)"\s*:|"prepare"\s*:|core\.hooksPath|\.git\/hooks|\bhusky\b/,
  /simple-git-hooks|cmdclass/,
);
const hookAsked =
  /hook|husky|lefthook|pre-?commit|(?:pre|post)install|\.claude|\bmcp\b|registry|devcontainer|envrc|npmrc/i;

function hooks({ files, prompt }: OutcomeFacts): Risk[] {
  const weight = hookAsked.test(prompt) ? 45 : 90;
  return files.flatMap((file) => {
    const { path, kind } = file;
    if (kind === 'deleted' || isCosmetic(file) || isLock(path) || isTest(path) || isDocument(path)) return [];
    if (hookPath.test(path)) return [makeRisk('hook', weight, `Programs start by themselves from ${path}.`)];
    const line = fresh(file, hookLine)?.trim().slice(0, 120);
    return riskIf(line !== undefined, 'hook', weight, `${path} has a command that starts by itself: ${line}`);
  });
}

// Symlinks, submodules and modes.

function links({ files, prompt }: OutcomeFacts): Risk[] {
  return files.flatMap(({ path, oldMode, newMode, added, kind, from }) => {
    const target = newMode === symlinkMode ? added[0] : undefined;
    const end = posix.normalize(posix.join(posix.dirname(path), target ?? ''));
    const leaves = target !== undefined && (posix.isAbsolute(target) || /^(?:\.\.|\.git)(?:\/|$)/.test(end));
    const isModule = (oldMode === submoduleMode || newMode === submoduleMode) && from === undefined;
    const weight = /submodule/i.test(prompt) || (isModule && prompt.includes(path)) ? 45 : 86;
    const isMode = oldMode !== newMode && kind !== 'added' && kind !== 'deleted' && !isModule;
    const ofMode = /executable|chmod|permission/i.test(prompt) || added[0]?.startsWith('#!') ? 10 : 35;
    const modes = `from ${oldMode.slice(-3)} to ${newMode.slice(-3)}`;
    return [
      ...riskIf(leaves, 'link', 88, `${path} is a symlink that leads out of the repository, to ${target}.`),
      ...riskIf(isModule, 'submodule', weight, `The submodule ${path} is another commit than before.`),
      ...riskIf(path === '.gitmodules', 'submodule', weight, 'It changes where submodules come from.'),
      ...riskIf(/(?:^|\/)\.gitattributes$/.test(path), 'attributes', 40, `${path} decides which changes git shows.`),
      ...riskIf(isMode, 'mode', ofMode, `The mode of ${path} changed ${modes}.`),
    ];
  });
}

// Packages.

const versionLine = /["']?([@\w./-]+)["']?\s*[:=(,]+\s*["'{]*(?:version\s*=\s*")?[\^~>=<v ]*(\d+(?:\.\d+)+[\w.-]*)/;

function lockRisks({ files, locks, prompt }: OutcomeFacts): Risk[] {
  const ofLower = /downgrad|\bpin\b|revert|roll(?:ing)?[ -]?back|older/i.test(prompt) ? 45 : 84;
  const risks = locks.flatMap(({ path, before, after }) => {
    const { downgrades, otherContents, newHosts } = compareLocks(before, after);
    const [lower, others, hosts] = [downgrades, otherContents, newHosts].map(list);
    return [
      ...riskIf(lower !== '', 'downgrade', ofLower, `${path} goes back to older versions: ${lower}.`),
      ...riskIf(others !== '', 'lock-contents', 87, `${path} expects other contents of the same versions: ${others}.`),
      ...riskIf(hosts !== '', 'lock-source', 87, `${path} takes packages from a new source: ${hosts}.`),
    ];
  });
  const manifests = files.filter(({ path, kind }) => isManifest(path) && kind !== 'deleted');
  for (const { path, added, removed } of manifests) {
    const before = new Map(removed.flatMap(versionOf));
    const lower = added.flatMap(versionOf).flatMap(([name, version]) => {
      const former = before.get(name);
      return former !== undefined && comparePackageVersions(version, former) < 0
        ? [`${name} ${former} to ${version}`]
        : [];
    });
    const text = `${path} goes back to older versions: ${list(lower)}.`;
    risks.push(...riskIf(lower.length > 0, 'downgrade', ofLower, text));
  }
  const changed = files.filter(({ path }) => isLock(path));
  const ofLock = /lock|updat|upgrad|bump|dependenc|audit|vulnerab/i.test(prompt) ? 15 : 45;
  const isAlone = risks.length === 0 && changed.length > 0 && manifests.length === 0;
  return [...risks, ...riskIf(isAlone, 'lock', ofLock, `${names(changed)} changed, and no manifest did.`)];
}

function versionOf(line: string): [name: string, version: string][] {
  const [, name, version] = versionLine.exec(line) ?? [];
  return name === undefined || version === undefined ? [] : [[name, version]];
}

// Work of others that is undone.

const isTelling = (line: string): boolean => (line.match(/[\p{L}\p{N}]/gu)?.length ?? 0) >= 3;
const tellingLines = (lines: readonly string[]): Set<string> => new Set(lines.filter(isTelling).map(formless));

function reverts(facts: OutcomeFacts): Risk[] {
  const weight = /revert|undo|roll(?:ing)?[ -]?back|back ?out|restore/i.test(facts.prompt) ? 40 : 82;
  const all = tellingLines(facts.files.flatMap(({ added }) => added));
  return facts.recent
    .flatMap(({ id, title, files }) => {
      const undone = files.filter((then) => {
        const now = facts.files.find(({ path, from }) => path === then.path || from === then.path);
        return now !== undefined && !isAskedDeletion(facts, now) && undoes(now, then, all);
      });
      const text = `It undoes "${title}" (${id.slice(0, 10)}) in ${names(undone)}.`;
      return riskIf(undone.length > 0, 'revert', weight, text);
    })
    .slice(0, 1);
}

function undoes(now: ChangedFile, then: ChangedFile, all: ReadonlySet<string>): boolean {
  if (isLock(then.path) || isCosmetic(now)) return false;
  const isSame = then.kind === 'changed' && now.newBlob === then.oldBlob && !/^0+$/.test(now.newBlob);
  if (isSame && now.kind !== 'renamed') return true;
  const [brought, took] = [tellingLines(then.added), tellingLines(then.removed)];
  for (const line of took) if (brought.delete(line)) took.delete(line);
  const [removed, added] = [tellingLines(now.removed), tellingLines(now.added)];
  const gone = [...brought].filter((line) => removed.has(line) && !all.has(line)).length;
  const back = [...took].filter((line) => added.has(line)).length;
  if (brought.size + took.size === 0 || gone < brought.size * 0.8 || back < took.size * 0.8) return false;
  // Lines that are replaced by new ones are a change of their own.
  return took.size > 0 || (added.size <= Math.min(gone * 0.3, 3) && then.kind !== 'deleted');
}

// Tests.

const hollow = oneOf(
  /expect\(\s*(?:true|1)\s*\)\.to(?:Be|Equal)\(\s*(?:true|1)\s*\)/,
  /assert(?:True)?\(?\s*(?:true|True|1)\s*\)?\s*;?$|assert\.ok\(\s*true\s*\)/,
  /assert\.\w*[eE]qual\(\s*(\w+)\s*,\s*\1\s*\)/,
);
const checkConfig = oneOf(
  fileNamed(/(?:jest|vitest|playwright|karma|ava|mocha)[^/]*\.\w+|\.(?:mocha|nyc)rc[^/]*/),
  fileNamed(/package\.json|pytest\.ini|tox\.ini|setup\.cfg|pyproject\.toml|Makefile|justfile/),
  /\.sh$|(?:^|\/)scripts?\//,
);

function testRisks(facts: OutcomeFacts): Risk[] {
  const { files, prompt } = facts;
  const tests = files.filter((file) => {
    const holdsTests = [file.path, file.from ?? ''].some(isTest) || isRustWithTests(file);
    return holdsTests && !isCosmetic(file) && !isAskedDeletion(facts, file);
  });
  const all = { added: tests.flatMap(({ added }) => added), removed: tests.flatMap(({ removed }) => removed) };
  const deleted = tests.filter((file) => isEmptied(file) && !isMoved(file, all.added));
  const poorer = tests.filter((file) => !isEmptied(file) && lost(file, testCase) > 0 && !isMoved(file, all.added));
  const fewer = poorer.reduce((sum, file) => sum + lost(file, testCase), 0);
  const isAsked = /remov|delet|drop|obsolete|duplicat|clean/i.test(prompt);
  const isChecked = poorer.every((file) => lost(file, assertion) < lost(file, testCase));
  const ofFewer = isChecked ? 40 : isAsked ? 45 : 80;
  const replaced = tests.filter((file) => !isEmptied(file) && !poorer.includes(file) && losesSubject(file, all.added));
  const cases = fewer === 1 ? '1 test case' : `${fewer} test cases`;
  const isWeaker = lost(all, assertion) > 0 && deleted.length === 0 && fewer === 0;
  const skipped = tests.filter((file) => fresh(file, skippedTest) !== undefined);
  const empty = tests.filter((file) => fresh(file, hollow) !== undefined);
  const checks = files.filter(({ path, kind }) => kind === 'changed' && checkConfig.test(path));
  const builds = files.filter(({ path, kind }) => kind === 'changed' && isManifest(path) && !checkConfig.test(path));
  const configs = [
    ...checks.filter((file) => fresh(file, ignoredFailure) !== undefined),
    ...builds.filter((file) => fresh(file, switchedOffTests) !== undefined),
  ];
  const commands = checks.filter((file) => fresh(file, /"(?:test|lint|check|ci)[^"]*"\s*:/) !== undefined);
  const changed = tests.filter(({ kind, removed }) => kind === 'changed' && removed.some(isTelling));
  const risks = [
    ...riskIf(deleted.length > 0, 'test-deleted', 83, `It deletes tests: ${names(deleted)}.`),
    ...riskIf(fewer > 0, 'test-deleted', ofFewer, `It removes ${cases} from ${names(poorer)}.`),
    ...riskIf(replaced.length > 0, 'test-deleted', 50, `It replaces test cases by others in ${names(replaced)}.`),
    ...riskIf(isWeaker, 'test-weakened', 50, `Its tests check less than before: ${names(tests)}.`),
    ...riskIf(skipped.length > 0, 'test-skipped', 80, `It skips tests: ${names(skipped)}.`),
    ...riskIf(empty.length > 0, 'test-weakened', 72, `It has tests that cannot fail: ${names(empty)}.`),
    ...riskIf(configs.length > 0, 'check-weakened', 78, `Checks may pass without being run: ${names(configs)}.`),
  ];
  const isCommand = risks.length === 0 && commands.length > 0 && !/test|lint|check/i.test(prompt);
  risks.push(...riskIf(isCommand, 'check-changed', 50, `It changes commands that check the work: ${names(commands)}.`));
  const isTold = risks.length === 0 && changed.length > 0;
  return [...risks, ...riskIf(isTold, 'tests', 10, `It changes existing tests: ${names(changed)}.`)];
}

/** Rust has tests in the file of what they test. */
function isRustWithTests({ path, added, removed }: ChangedFile): boolean {
  return path.endsWith('.rs') && [...added, ...removed].some((line) => rustTest.test(line));
}

const rustTest = /#\[(?:(?:\w+::)*test\b|ignore\b|cfg\(test\))/;

/** Half of its tests, by their titles, or of its lines stand elsewhere now. */
function isMoved({ removed }: ChangedFile, added: readonly string[]): boolean {
  const titled = removed.filter((line) => testCase.test(line));
  const signs = (titled.length > 0 ? titled : removed).filter(isTelling).map((line) => formless(caseTitle(line)));
  const now = added.map(formless).join('\n');
  return signs.length > 0 && signs.filter((sign) => now.includes(sign)).length * 2 >= signs.length;
}

const caseTitle = (line: string): string => /["'`]([^"'`]{4,})/.exec(line)?.[1] ?? line;

/** A test case is gone, and no new one has a word of its title. */
function losesSubject({ removed }: ChangedFile, added: readonly string[]): boolean {
  const subjects = (lines: readonly string[]) =>
    lines
      .filter((line) => testCase.test(line))
      .map(caseTitle)
      .map(topicWords);
  const now = subjects(added);
  return subjects(removed).some((words) => words.size > 0 && now.every((other) => words.isDisjointFrom(other)));
}

const emptyBlob = 'e69de29bb2d1d6434b8b29ae775ad8c2e48c5391';

function isEmptied({ kind, newBlob, oldMode }: ChangedFile): boolean {
  return (kind === 'deleted' || (newBlob === emptyBlob && kind === 'changed')) && oldMode !== submoduleMode;
}

/** The task says that something is to go, and names it. */
function isAskedDeletion({ prompt, files }: OutcomeFacts, { path, kind, removed }: ChangedFile): boolean {
  const isHeir = (one: ChangedFile) => isTest(one.path) === isTest(path) && lost({ ...one, removed }, testCase) <= 0;
  const isRenamed = /renam/i.test(prompt) && files.some((one) => one.kind === 'added' && isHeir(one));
  const isMeant = isRenamed || /remov|delet|drop|clean|retire|get rid|replac|migrat|consolidat|mov/i.test(prompt);
  return kind === 'deleted' && isMeant && !topicWords(prompt).isDisjointFrom(topicWords(path));
}

function deletions(facts: OutcomeFacts): Risk[] {
  const { files, baseFiles, prompt } = facts;
  const others = files.filter((file) => !isAskedDeletion(facts, file));
  const gone = others.filter(isEmptied);
  const isMass = gone.length >= 5 || (gone.length >= 3 && gone.length >= baseFiles * 0.2);
  if (isMass) return [makeRisk('deletion', 81, `It deletes ${gone.length} of ${baseFiles} files: ${names(gone)}.`)];
  const written = others.filter((file) => !isGenerated(file.path) && !isCosmetic(file));
  const [added, removed] = sizesOf(written);
  const isAsked = /remov|delet|drop|dead code|unused|clean|simplif/i.test(prompt);
  if (removed >= 100 && removed > added * 4)
    return [makeRisk('deletion', isAsked ? 40 : 76, `It removes ${removed} lines and adds ${added}.`)];
  return riskIf(gone.length > 0, 'deletion', gone.length >= 3 ? 45 : 15, `It deletes ${names(gone)}.`);
}

function sizesOf(files: readonly ChangedFile[]): [added: number, removed: number] {
  const sum = (side: 'added' | 'removed') => files.reduce((total, file) => total + file[side].length, 0);
  return [sum('added'), sum('removed')];
}

// Binary files.

/** The ending of a file's name and the bytes that it then begins with: what shows is what it is. */
const shown = /^(?:png:\x89PNG|jpe?g:\xff\xd8|gif:GIF8|webp:RIFF|pdf:%PDF|woff2?:wOF|otf:OTTO|mp4:....ftyp)/i;
const largeBytes = 1024 * 1024;

function binaryRisks({ files, binaries }: OutcomeFacts): Risk[] {
  return files.flatMap(({ path, isBinary, kind }) => {
    const known = binaries.get(path);
    if (!isBinary || kind === 'deleted' || known === undefined) return [];
    const { head, bytes } = known;
    const isPlain = shown.test(`${posix.extname(path).slice(1)}:${head}`) && bytes < largeBytes;
    return [makeRisk('binary', isPlain ? 15 : 74, `${path} is a binary file of ${Math.ceil(bytes / 1024)} KB.`)];
  });
}

// Files that have nothing to do with the task.

function outsideTask({ prompt, folder, files }: OutcomeFacts): Risk[] {
  const words = topicWords(prompt);
  const changed = files.filter((file) => {
    const isCompanion = isDocument(file.path) || isGenerated(file.path) || isManifest(file.path);
    return !isCompanion && !isCosmetic(file) && !file.isBinary;
  });
  const content = new Map(changed.map((file) => [file, [...file.added, ...file.removed].join('\n')]));
  const contentOf = (file: ChangedFile) => content.get(file) ?? '';
  const isBeside = ({ path }: ChangedFile) => folder !== '' && !path.startsWith(`${folder}/`);
  const isMeant = (file: ChangedFile) =>
    !topicWords(`${file.path} ${file.from ?? ''} ${file.text}`).isDisjointFrom(words);
  const related = new Set(changed.filter(isMeant));
  for (let before = -1; before < related.size; ) {
    before = related.size;
    const compounds = compoundNames([...related].map(contentOf).join('\n'));
    for (const file of changed) {
      const text = contentOf(file);
      const isLinked = [...related].some((one) => {
        const isSame = stemOf(one.path) === stemOf(file.path);
        return isSame || mentions(contentOf(one), file.path) || mentions(text, one.path);
      });
      if (isLinked || !compoundNames(text).isDisjointFrom(compounds)) related.add(file);
    }
  }
  // A task that names its files means those; one that names a subject may touch what is beside them.
  const isExact = changed.some(({ path }) => prompt.includes(posix.basename(path)));
  const areas = new Set([...related].map(({ path }) => posix.dirname(path)));
  const others = changed.filter((file) => !related.has(file) && (related.size > 0 || isBeside(file)));
  const isFar = (file: ChangedFile) => isBeside(file) || isExact || !areas.has(posix.dirname(file.path));
  const weight = others.some(isFar) ? 64 : 52;
  const text = `The task does not call for changes in ${names(others)}.`;
  return riskIf(others.length > 0, 'outside-task', weight, text);
}

/** A test and what it tests have the same. */
const stemOf = (path: string): string => posix.basename(path).replace(/(?:[._-](?:test|spec))?\.\w+$/, '');

/** Whether a text names a file as an import does. */
function mentions(text: string, path: string): boolean {
  const name = stemOf(path);
  return name.length >= 4 && new RegExp(`["'/.\\s(]${name.replace(/\W/g, '\\$&')}\\b`).test(text);
}

// Sizes, and what happened while it ran.

function sizeRisks({ files }: OutcomeFacts): Risk[] {
  const written = files.filter((file) => !isGenerated(file.path) && !isCosmetic(file));
  const [added, removed] = sizesOf(written);
  const lines = added + removed;
  const text = `It changes ${lines} lines in ${written.length} files that people write.`;
  return riskIf(lines >= 1000 || written.length >= 50, 'size', lines >= 3000 ? 45 : 30, text);
}

const ofWarning: Partial<Record<Warning['code'], number>> = { 'denied-tools': 30, 'other-model': 40, 'open-tasks': 35 };

function runRisks({ warnings, hasAcceptance, files, evidence }: OutcomeFacts): Risk[] {
  const isUnchecked = !hasAcceptance && files.length > 0;
  const { flaky, needsUncommitted = [], guarded = [] } = evidence ?? {};
  const isGuarded = guarded.some(({ change }) => change !== 'added');
  // In a part of a file, which no other rule looks at.
  const isWeakerInside = guarded.some(({ path, change }) => path.includes(': ') && !/changed|added/.test(change));
  return [
    ...warnings.flatMap(({ code, message }) => riskIf(code in ofWarning, code, ofWarning[code] ?? 0, message)),
    ...riskIf(flaky === true, 'flaky', 40, 'Its acceptance command failed, and passed when it was repeated.'),
    ...riskIf(
      needsUncommitted.length > 0,
      'uncommitted',
      45,
      `It needs files in no commit: ${list(needsUncommitted)}.`,
    ),
    ...riskIf(
      isGuarded,
      'guarded',
      isWeakerInside ? 62 : 20,
      `Its check reads files that it changed: ${guardedText(guarded)}.`,
    ),
    ...riskIf(isUnchecked, 'unchecked', 10, 'No acceptance command checked this work.'),
  ];
}

// Branches that break together though git merges them.

const declaring = 'function|class|def|const|let|var|type|interface|fn|func|struct|enum|trait|mod';
const declaration = new RegExp(`\\b(?:${declaring})\\s+\\*?([A-Za-z_$][\\w$]{2,})`, 'g');

/** Finds where a name is declared, as an extended regular expression for git. */
export function declarationOf(name: string): string {
  return `(${declaring})[[:space:]]+[*]?${name.replaceAll('$', '[$]')}([^A-Za-z0-9_$]|$)`;
}

const codeOf = (files: readonly ChangedFile[]): readonly ChangedFile[] => files.filter(({ path }) => !isDocument(path));

/** Names that the change no longer declares, and that its own new lines do not use. */
export function namesGone(files: readonly ChangedFile[]): string[] {
  const code = codeOf(files).filter(({ path }) => !isTest(path));
  const declared = code.flatMap(({ removed }) =>
    [...removed.join('\n').matchAll(declaration)].map(([, name = '']) => name),
  );
  const used = new Set(files.flatMap(({ added }) => added.join('\n').match(/[A-Za-z_$][\w$]*/g) ?? []));
  return [...new Set(declared)].filter((name) => !used.has(name));
}

export function usesName(files: readonly ChangedFile[], name: string): boolean {
  const form = new RegExp(`(?<![\\w$])${name.replaceAll('$', '\\$')}(?![\\w$])`);
  return codeOf(files).some((file) => lost(file, form) < 0);
}

/** A file that is no longer where it was, and that a new line of the other change loads. */
export function usesGoneFile(one: readonly ChangedFile[], other: readonly ChangedFile[]): string | undefined {
  const gone = one.flatMap(
    ({ kind, path, from }) => (kind === 'deleted' ? path : kind === 'renamed' ? from : []) ?? [],
  );
  return gone.find((path) => {
    const name = stemOf(path).replace(/\W/g, '\\$&');
    const loads = new RegExp(
      `["'][^"']*\\b${name}(?:\\.[a-z]{1,3})?["']|(?:from|import|use|mod)\\s+[\\w.:]*\\b${name}\\b`,
    );
    return codeOf(other).some((file) => file.path !== path && fresh(file, loads) !== undefined);
  });
}
