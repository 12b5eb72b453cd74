/**
 * Runs the tests that say what we rely on in Claude Code (docs/claude-contract.md) with one version of it.
 */
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { claimVerdictsOf, type TableColumn } from './table.ts';
import { cacheFolder, programOf, releaseOf, root } from './versions.ts';

/** The document whose claims the tests are. */
export const contractDocument = join(root, 'docs', 'claude-contract.md');
/** Longer than all of them take on a busy machine, milliseconds. */
const patienceMs = 5_400_000;
const endings = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** A test that a claim of the document names. */
export interface NamedTest {
  /** Path below the package, of a file that may be missing. */
  readonly file: string;
  /** How the name of the test begins; `''` for the whole file. */
  readonly begin: string;
}

/** The tests that a line of the document names, in code marks: after an arrow at its end, or in its last cell. */
export function namedTests(text: string): NamedTest[] {
  const cell = text.startsWith('|') ? text.split(' | ').at(-1) : undefined;
  const names = cell ?? text.split(' → ').slice(1).join(' → ');
  return [...names.matchAll(/`([\w/-]+): ([^`]+)`/g)].map(([, file = '', begin = '']) => {
    const folders = ['system/claude', 'unit/claude', 'system', 'unit'];
    const paths = folders.map((folder) => `tests/${folder}/${file}.test.ts`);
    return { file: paths.find((path) => existsSync(join(root, path))) ?? `tests/${file}.test.ts`, begin };
  });
}

/**
 * The test files of the contract: those of tests/system/claude that run the real program, and others that the document
 * names.
 */
export function contractFiles(): string[] {
  const runsClaude = /\b(claudeBinary|pinnedClaude|ContextGround)\b/;
  const own = [...new Bun.Glob('tests/system/claude/*.test.ts').scanSync({ cwd: root })];
  const named = readFileSync(contractDocument, 'utf8').split('\n').flatMap(namedTests);
  return [...new Set([...own, ...named.map(({ file }) => file)])]
    .filter((path) => existsSync(join(root, path)) && runsClaude.test(readFileSync(join(root, path), 'utf8')))
    .toSorted();
}

export interface ContractRun extends TableColumn {
  /** Absolute path of what the tests printed. */
  readonly log: string;
}

/** Runs all of them, the long ones as well. Throws `NotAvailable` when the version cannot be had. */
export async function runContract(version: string): Promise<ContractRun> {
  const program = await programOf(version);
  const files = contractFiles();
  const folder = mkdtempSync(join(tmpdir(), 'cca-contract-'));
  const logs = join(cacheFolder(), 'contract-logs');
  mkdirSync(logs, { recursive: true });
  const log = join(logs, `${version}.log`);
  const output = openSync(log, 'w');
  try {
    const junit = join(folder, 'junit.xml');
    const words = ['--reporter=junit', `--reporter-outfile=${junit}`, ...files.map((path) => `./${path}`)];
    const child = Bun.spawn(['sh', 'scripts/test.sh', ...words], {
      cwd: root,
      env: { ...process.env, TEST_LONG: '1', TEST_CLAUDE: program },
      stdin: 'ignore',
      stdout: output,
      stderr: output,
      // A process group of its own, which can be ended as a whole.
      detached: true,
    });
    const end = () => void process.kill(-child.pid, 'SIGKILL');
    const timer = setTimeout(end, patienceMs);
    const leave = () => {
      end();
      rmSync(folder, { recursive: true, force: true });
      process.exit(130);
    };
    for (const signal of endings) process.on(signal, leave);
    await child.exited;
    clearTimeout(timer);
    for (const signal of endings) process.off(signal, leave);
    const text = existsSync(junit) ? readFileSync(junit, 'utf8') : '';
    const verdicts = claimVerdictsOf({ junit: text, files, exitCode: child.exitCode });
    // The program has not replaced itself meanwhile.
    const said = releaseOf(program);
    if (said !== version) throw new Error(`${program} was ${version} and says ${said} now`);
    return { version, verdicts, log };
  } finally {
    closeSync(output);
    rmSync(folder, { recursive: true, force: true });
  }
}
