/**
 * Promises: claude versions are installed once, outside node_modules, from the registry of npm. An unavailable
 * version is an error in one sentence, or a warning when checking for a newer one. npm and registry are fake.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cacheFolder, pinnedVersion } from '../../../scripts/claude/versions.ts';
import { compareVersions, oldestClaude } from '../../../src/claude/launch/program.ts';
import { checkoutRoot } from '../../support/cli.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cca-versions-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const calls = () => (existsSync(join(folder, 'calls')) ? readFileSync(join(folder, 'calls'), 'utf8').split('\n') : []);
const cached = () => {
  const versions = join(folder, 'cache', 'claude-code-agent', 'claude');
  return existsSync(versions) ? readdirSync(versions).toSorted() : [];
};

/** An npm with this newest version that installs programs which report the requested version. */
function npm({
  newest = 'exit 1',
  says = '$version',
}: {
  readonly newest?: string;
  readonly says?: string;
} = {}): void {
  const bin = join(folder, 'bin');
  mkdirSync(bin, { recursive: true });
  writeFileSync(
    join(bin, 'npm'),
    `#!/bin/sh
echo "$*" >>'${folder}/calls'
case $1 in view) ${newest}; exit ;; esac
for last; do :; done
while [ "$1" != --prefix ]; do shift; done
last=$(printf %s "$*" | tr ' ' '\\n' | grep @anthropic-ai)
version=\${last##*@}
[ "$version" = 9.9.9 ] && { echo 'npm error code ETARGET' >&2; echo "npm error notarget No $last." >&2; exit 1; }
program=$2/node_modules/\${last%@*}
mkdir -p "$program"
printf '#!/bin/sh\\necho "%s (Claude Code)"\\n' "${says}" >"$program/claude"
chmod +x "$program/claude"
`,
  );
  chmodSync(join(bin, 'npm'), 0o755);
}

async function script(...args: string[]) {
  const child = Bun.spawn([process.execPath, ...args], {
    cwd: checkoutRoot,
    env: {
      PATH: `${join(folder, 'bin')}:${process.env.PATH}`,
      HOME: folder,
      XDG_CACHE_HOME: join(folder, 'cache'),
    },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { code: await child.exited, text: `${stdout}${stderr}` };
}
const tryVersions = (...args: string[]) => script('scripts/test-claude.ts', ...args);
const programOf = (version: string) =>
  script('--eval', `console.log(await (await import('./scripts/claude/versions.ts')).programOf('${version}'))`);

test('a claude version is installed once, in the user’s cache', async () => {
  npm();
  const first = await programOf('2.1.331');
  expect(first.text).toStartWith(join(folder, 'cache', 'claude-code-agent', 'claude', '2.1.331'));
  expect(await programOf('2.1.331')).toEqual(first);
  expect(calls().filter((line) => line.startsWith('install'))).toHaveLength(1);
  expect(Bun.spawnSync([first.text.trim()]).stdout.toString()).toBe('2.1.331 (Claude Code)\n');
  expect(cached()).toEqual(['2.1.331']);
});

test('the pinned version is the one installed here', async () => {
  npm();
  expect((await programOf(pinnedVersion())).text).toStartWith(join(checkoutRoot, 'node_modules'));
  expect(calls()).toEqual([]);
});

test('the four most recently used claude versions are kept', async () => {
  npm();
  for (const patch of [1, 2, 3, 4, 1, 5]) await programOf(`2.1.${patch}`);
  expect(cached()).toEqual(['2.1.1', '2.1.3', '2.1.4', '2.1.5']);
});

test('an unreachable registry is one sentence, and a warning when checking for newer versions', async () => {
  npm({ newest: `echo 'npm error code ENOTFOUND' >&2; echo 'npm error network is unreachable' >&2; exit 1` });
  const sentence = 'claude latest cannot be had: npm says "network is unreachable".\n';
  expect(await tryVersions('latest')).toEqual({ code: 2, text: sentence });
  expect(await tryVersions('--warn-newer', 'latest')).toEqual({ code: 0, text: `warning: ${sentence}` });
  expect(await script('scripts/update-claude.ts')).toEqual({ code: 2, text: sentence });
});

test('the newest version is not tested again if it is the pinned one', async () => {
  npm({ newest: `echo '"${pinnedVersion()}"'` });
  const { code, text } = await tryVersions('--warn-newer', 'latest');
  expect({ code, text }).toEqual({
    code: 0,
    text: `claude ${pinnedVersion()} is the pinned version, which was tried.\n`,
  });
  expect(await script('scripts/update-claude.ts')).toEqual({
    code: 0,
    text: `claude ${pinnedVersion()} is the pinned version already.\n`,
  });
});

test('claude versions are ordered by their numbers', () => {
  expect(['2.1.330', '2.1.9', '2.2.0', oldestClaude].toSorted(compareVersions)).toEqual([
    '2.1.9',
    oldestClaude,
    '2.1.330',
    '2.2.0',
  ]);
  expect(cacheFolder()).toEndWith('claude-code-agent');
});
