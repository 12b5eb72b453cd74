/** `host add`: another machine joins, by ssh and in one command: checked, installed, given its login, and started. */

import { join } from 'node:path';
import { loginOf } from '../../claude/launch/user-claude.ts';
import { shellWord } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { plainNamePattern, plainNameRule } from '../../core/values.ts';
import { readAdded, ticketOf, writeAdded } from '../../fleet/fleet-files.ts';
import { joinLine } from '../../fleet/join-line.ts';
import { loginText, readLogin } from '../../fleet/login-files.ts';
import { ownCommand } from '../../system/own-program.ts';
import type { AppContext } from '../app-context.ts';
import { knownFleet } from './init.ts';
import { checkHostName, checkLabels, joinSteps } from './join.ts';
import { checkDestination, lastLine, SshTarget } from './ssh.ts';

export interface AddOptions {
  readonly name: string;
  readonly ssh: string;
  readonly slots?: number | undefined;
  readonly labels?: readonly string[] | undefined;
  readonly login?: string | undefined;
  readonly acceptClaude?: string | undefined;
}

const sendMs = 600_000;
const joinMs = 120_000;

/** What is there. Paths are those of that machine. */
interface Found {
  readonly system: string;
  readonly git: string;
  readonly bun: string;
  readonly claude: string;
  readonly data: string;
  readonly root: string;
}

/** `say` is told what is being done. Resolves with what `host join` said there. */
export async function addHost(
  place: AppContext,
  root: string,
  given: AddOptions,
  say: (step: string) => void,
): Promise<Result<readonly string[]>> {
  const checked = checkAsked(place, root, given);
  if (!checked.ok) return checked;
  const { line, login } = checked.value;
  const remote = new SshTarget(place, given.ssh);
  say(`Connecting to ${given.ssh} ...`);
  const found = await probe(remote);
  if (!found.ok) return found;
  const { system, git, bun } = found.value;
  say(`It is ${system} with ${git}, claude, and ${bun === '' ? 'no Bun' : `Bun ${bun}`}. Packing the program ...`);
  const program = `${found.value.data}/claude-code-agent/host`;
  const installed = await withOwnPackage(place, (own) =>
    install(place, remote, { own, found: found.value, program, say }),
  );
  if (!installed.ok) return installed;
  // From here on there is something that `host forget` has to undo.
  const noted = note(place, root, given, program);
  if (!noted.ok) return noted;
  if (login !== undefined) {
    say(`Sending the login ${login.name} ...`);
    const sent = await sendLogin(remote, found.value.root, login);
    if (!sent.ok) return sent;
  }
  const words = [
    'host',
    'join',
    '-',
    '--name',
    given.name,
    '--ssh',
    given.ssh,
    ...(given.labels ?? []).flatMap((label) => ['--label', label]),
  ];
  if (given.slots !== undefined) words.push('--slots', String(given.slots));
  if (given.login !== undefined) words.push('--login', given.login);
  if (given.acceptClaude !== undefined) words.push('--accept-claude', given.acceptClaude);
  const command = [`${program}/bin/claude-code-agent`, ...words].map(shellWord).join(' ');
  const steps: ReadonlySet<string> = new Set(Object.values(joinSteps));
  const sayStep = (line: string) => {
    if (steps.has(line)) say(line);
  };
  const joined = await remote.run(`exec ${command}`, Buffer.from(`${line}\n`), joinMs, sayStep);
  if (!joined.ok) return joined;
  const { code, stdout, stderr } = joined.value;
  if (code !== 0) return there(given.ssh, stderr, 'Cure that there, then add the machine again.');
  const said = `${stdout}${stderr}`.trim().split('\n');
  return ok(said.filter((line) => !steps.has(line)));
}

interface Asked {
  readonly line: string;
  readonly login: { readonly name: string; readonly text: string } | undefined;
}

function checkAsked(place: AppContext, root: string, given: AddOptions): Result<Asked> {
  const fleet = knownFleet(place, root);
  if (!fleet.ok) return fleet;
  const name = checkHostName(given.name);
  const labels = checkLabels(given.labels ?? []);
  const destination = checkDestination(given.ssh);
  for (const one of [name, labels, destination]) if (!one.ok) return one;
  const added = readAdded(place.world.files, root);
  if (!added.ok) return added;
  const before = added.value[given.name];
  if (before !== undefined && before.ssh !== given.ssh) {
    return fail('duplicate', `There is a machine ${given.name} already, at ${before.ssh}.`, {
      sentence: 'Choose another name, or take that one out with',
      commands: [['host', 'forget', given.name]],
    });
  }
  const login = loginToSend(place, root, given.login);
  if (!login.ok) return login;
  return ok({ line: joinLine(ticketOf(fleet.value)), login: login.value });
}

/** The login of that name here, else the one that runs here would use now. */
function loginToSend({ world, env }: AppContext, root: string, name: string | undefined): Result<Asked['login']> {
  if (name === undefined) return ok(undefined);
  if (!plainNamePattern.test(name)) {
    return fail('usage', `${JSON.stringify(name)} is no name of a login: ${plainNameRule}.`, 'Give another one.');
  }
  const kept = readLogin(world.files, root, name);
  if (!kept.ok) return kept;
  if (kept.value !== undefined) return ok({ name, text: loginText(kept.value) });
  const { caller, login } = loginOf(world, env);
  const { kind, source, variables } = login;
  const where = caller.ANTHROPIC_BASE_URL;
  if (kind === 'api-key' || kind === 'oauth-token') {
    return ok({ name, text: loginText({ ...variables, ...(where ? { ANTHROPIC_BASE_URL: where } : {}) }) });
  }
  const what = kind === 'store' ? 'is kept in your own store and cannot be copied' : `(${source}) is more than a key`;
  const path = `${root}/fleet/logins/${name}.env`;
  const next = `Put one into ${path} (chmod 600), such as CLAUDE_CODE_OAUTH_TOKEN=… from "claude setup-token".`;
  return fail('not-logged-in', `There is no login ${name} here, and the one that is in use ${what}.`, next);
}

const probeScript = `
say() { printf 'cca-%s=%s\\n' "$1" "$2"; }
say system "$(uname -s) $(uname -m)"
say git "$(git --version 2>/dev/null)"
say bun "$(bun --version 2>/dev/null)"
say claude "\${CLAUDE_CODE_AGENT_CLAUDE:-$(command -v claude)}"
say data "\${XDG_DATA_HOME:-$HOME/.local/share}"
say root "\${CLAUDE_CODE_AGENT_HOME:-$HOME/.local/claude-code-agent}"
`;

async function probe(remote: SshTarget): Promise<Result<Found>> {
  const ran = await remote.run(probeScript);
  if (!ran.ok) return ran;
  // A profile there may print what it likes.
  const said = new Map(
    [...ran.value.stdout.matchAll(/^cca-(\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value.trim()]),
  );
  const of = (name: string): string => said.get(name) ?? '';
  const { destination } = remote;
  if (of('system') === '') {
    return there(
      destination,
      ran.value.stderr,
      'It needs a shell: whoever logs in there must be able to run commands.',
    );
  }
  if (of('git') === '') return lacks(destination, 'git', 'Install git there.');
  if (of('claude') === '') {
    return lacks(
      destination,
      'claude',
      'Install Claude Code there, on the PATH of a command over ssh, or in ~/.local/bin.',
    );
  }
  const { system, git, bun, claude, data, root } = Object.fromEntries(
    ['system', 'git', 'bun', 'claude', 'data', 'root'].map((name) => [name, of(name)]),
  ) as unknown as Found;
  return ok({ system, git, bun, claude, data, root });
}

function lacks(destination: string, what: string, next: string) {
  return fail('usage', `There is no ${what} on ${destination}.`, next);
}

function there(destination: string, stderr: string, next: string) {
  const said = lastLine(stderr).replace(/^[\w.-]+: /, '');
  return fail('usage', `On ${destination}: ${said}.`, next);
}

interface Installing {
  readonly own: OwnPackage;
  readonly found: Found;
  readonly program: string;
  readonly say: (step: string) => void;
}

/** Beside earlier programs, because sessions that work there use their paths. A link names the current one. */
async function install(
  place: AppContext,
  remote: SshTarget,
  { own, found, program, say }: Installing,
): Promise<Result<void>> {
  const name = `${program}-${place.world.random.uuid().slice(0, 8)}`;
  const [target, fresh] = [shellWord(program), shellWord(name)];
  const here = await systemHere(place);
  if (own.isExecutable && here !== found.system) {
    const message = `This program (${here}) does not run on ${remote.destination} (${found.system}).`;
    return fail('usage', message, 'Install the npm package here, and add the machine with that one.');
  }
  say(`Sending the program, ${megabytes(own.program)} ...`);
  const unpack = `set -e; mkdir -p ${fresh}; chmod 700 ${fresh}; cd ${fresh}; tar -xzf -`;
  const sent = await remote.run(unpack, own.program, sendMs);
  if (!sent.ok) return sent;
  if (sent.value.code !== 0) return there(remote.destination, sent.value.stderr, 'Cure that, then add it again.');
  if (!own.isExecutable && !isNewEnough(found.bun)) {
    const bun = await bringBun(remote, here, { own, found, program: name, say });
    if (!bun.ok) return bun;
  }
  say('Trying whether it starts there ...');
  const tried = await remote.run(`fresh=${fresh}; target=${target}; ${switchScript}`);
  if (!tried.ok) return tried;
  if (tried.value.code === 0) return ok(undefined);
  return there(remote.destination, tried.value.stderr, 'The program does not start there; install Bun there by hand.');
}

/** Of earlier ones those are removed that nothing uses any more, neither by its command nor by its environment. */
const switchScript = `
"$fresh/bin/claude-code-agent" --version || { rm -rf "$fresh"; exit 1; }
set -e
if [ -e "$target" ] && [ ! -L "$target" ]; then mv "$target" "$target-before"; fi
ln -sfn "\${fresh##*/}" "$target"
{ used=$(cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ); } 2>/dev/null || true
for old in "$target"-*; do
  [ "$old" != "$fresh" ] || continue
  case "$used" in *"$old/"*) ;; *) rm -rf "$old" ;; esac
done
`;

/** Bun is a part of every installation by npm; here it is sent along to a machine that has none, or an old one. */
async function bringBun(
  remote: SshTarget,
  here: string,
  { own, found, program, say }: Installing,
): Promise<Result<void>> {
  const missing = (why: string) =>
    fail(
      'usage',
      `There is no Bun ${Bun.version} or later on ${remote.destination}, and ${why}.`,
      'Install Bun there: https://bun.sh',
    );
  if (here !== found.system) return missing(`the one of this machine (${here}) does not run on ${found.system}`);
  const bun = await own.bun();
  if (!bun.ok) return bun;
  if (bun.value === undefined) return missing('none was found here that could be sent');
  say(`Sending Bun, ${megabytes(bun.value)} ...`);
  const sent = await remote.run(`cd ${shellWord(program)} && tar -xzf -`, bun.value, sendMs);
  if (!sent.ok) return sent;
  return sent.value.code === 0
    ? ok(undefined)
    : there(remote.destination, sent.value.stderr, 'Free some disk space there.');
}

async function systemHere({ world, env }: AppContext): Promise<string> {
  const command = { program: 'uname', args: ['-sm'], cwd: '/', env: { PATH: env.PATH ?? '' }, timeoutMs: 10_000 };
  const ran = await world.processes.run(command);
  return ran.ok ? ran.value.stdout.trim() : '';
}

function megabytes({ length }: Uint8Array): string {
  return `${(length / 1024 / 1024).toFixed(1)} MB`;
}

const isNewEnough = (version: string): boolean => Bun.semver.satisfies(version, `>=${Bun.version}`);

/** Once, by ssh's input, into a file that is nobody else's from its first byte on. */
async function sendLogin(
  remote: SshTarget,
  root: string,
  { name, text }: NonNullable<Asked['login']>,
): Promise<Result<void>> {
  const folder = `${root}/fleet/logins`;
  const [at, path] = [shellWord(folder), shellWord(`${folder}/${name}.env`)];
  const script = `set -e; umask 077; mkdir -p ${at}; cat >${path}.new; chmod 600 ${path}.new; mv ${path}.new ${path}`;
  const sent = await remote.run(script, Buffer.from(text));
  if (!sent.ok) return sent;
  return sent.value.code === 0
    ? ok(undefined)
    : there(remote.destination, sent.value.stderr, 'Cure that, then add it again.');
}

function note({ world }: AppContext, root: string, { name, ssh, login }: AddOptions, program: string): Result<void> {
  const added = readAdded(world.files, root);
  if (!added.ok) return added;
  const sent = login ?? added.value[name]?.login;
  const host = { ssh, program, ...defined({ login: sent }) };
  return writeAdded(world.files, root, { ...added.value, [name]: host });
}

// This very program as one archive, to be unpacked on another machine.

const parts = ['bin', 'package.json', 'templates'];
const bundleMs = 120_000;
const archiveBytesMax = 300_000_000;

export interface OwnPackage {
  readonly program: Uint8Array;
  /** It is an executable, which starts on machines of this platform only and needs no Bun there. */
  readonly isExecutable: boolean;
  /** Bun itself, in the same form, for a machine of this platform; undefined when none is found here. */
  bun(): Promise<Result<Uint8Array | undefined>>;
}

export async function withOwnPackage<T>(
  place: AppContext,
  use: (own: OwnPackage) => Promise<Result<T>>,
): Promise<Result<T>> {
  const { world, packageRoot } = place;
  const folder = join(place.env.TMPDIR ?? '/tmp', `claude-code-agent-${world.random.uuid()}`);
  try {
    world.files.makeFolder(folder);
    const built = await bundled(place, folder);
    if (!built.ok) return built;
    const archive = join(folder, 'program.tgz');
    const { root, program } = built.value;
    // A released program is a symlink in its package (scripts/release/program.ts).
    const packed = await pack(place, archive, ['-h', '-C', packageRoot, ...parts, '-C', root, program]);
    if (!packed.ok) return packed;
    const isExecutable = program === released;
    return await use({ program: packed.value, isExecutable, bun: () => bunArchive(place, folder) });
  } finally {
    world.files.remove(folder);
  }
}

const [bundle, released] = ['dist/program', 'dist/claude-code-agent'];

async function bundled(place: AppContext, folder: string): Promise<Result<{ root: string; program: string }>> {
  const { world, packageRoot } = place;
  if (world.files.info(join(packageRoot, 'scripts', 'bundle.ts')) === null) {
    const isBundled = world.files.info(join(packageRoot, bundle)) !== null;
    return ok({ root: packageRoot, program: isBundled ? bundle : released });
  }
  const built = await run(place, 'sh', ['scripts/bun.sh', 'scripts/bundle.ts', join(folder, bundle)], bundleMs);
  return built.ok ? ok({ root: folder, program: bundle }) : built;
}

async function bunArchive(place: AppContext, folder: string): Promise<Result<Uint8Array | undefined>> {
  const script = '. "$1/bin/find-bun.sh"; find_bun "$1"; [ -n "$bun" ] && readlink -f "$bun"';
  const found = await run(place, 'sh', ['-c', script, 'sh', place.packageRoot], bundleMs);
  const { program } = ownCommand('main');
  const path = found.ok ? found.value.trim() : program;
  if (!/\/bun(?:\.exe)?$/.test(path)) return ok(undefined);
  const name = path.slice(path.lastIndexOf('/') + 1);
  const at = path.slice(0, path.lastIndexOf('/'));
  const archive = join(folder, 'bun.tgz');
  // Where the launcher looks for it.
  const rename = `--transform=s,^.*$,node_modules/@oven/bun-here/bin/bun,`;
  return pack(place, archive, ['-C', at, rename, name]);
}

async function pack(place: AppContext, archive: string, what: readonly string[]): Promise<Result<Uint8Array>> {
  // Most of it is Bun, which takes long to be made much smaller.
  const packed = await run(place, 'tar', ['--use-compress-program=gzip -1', '-cf', archive, ...what], bundleMs);
  return packed.ok ? ok(place.world.files.readBytes(archive, 0, archiveBytesMax)) : packed;
}

async function run(
  place: AppContext,
  program: string,
  args: readonly string[],
  timeoutMs: number,
): Promise<Result<string>> {
  const { world, env, packageRoot } = place;
  const given = { PATH: env.PATH ?? '', HOME: env.HOME ?? '', TMPDIR: env.TMPDIR ?? '/tmp' };
  const ran = await world.processes.run({ program, args, cwd: packageRoot, env: given, timeoutMs });
  if (!ran.ok) return ran;
  if (ran.value.exitCode === 0) return ok(ran.value.stdout);
  const message = `This program could not be packed for another machine: ${lastLine(ran.value.stderr)}.`;
  return fail('spawn-failed', message, 'Cure that, or install the npm package there by hand.');
}
