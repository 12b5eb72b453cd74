/** `host add`: copies this program and a login to another host by ssh and joins it to the fleet. */

import { join } from 'node:path';
import { loginOf } from '../../claude/launch/user-claude.ts';
import { advise, shellWord } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { plainNamePattern, plainNameRule } from '../../core/setting-values.ts';
import { type AddedHost, joinLine, readAdded, ticketOf, writeAdded } from '../../fleet/fleet-files.ts';
import { loginText, readLogin } from '../../fleet/login-files.ts';
import type { AppContext } from '../app-context.ts';
import { knownFleet } from './init.ts';
import { checkLabels, checkNewHostName, joinSteps } from './join.ts';
import { checkDestination, lastLine, runBySsh } from './ssh.ts';

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
const again = 'Fix that on the host, then add it again.';

/** Facts about the host. `joined`: its name in a fleet; empty = it is not in one. */
type Found = Readonly<Record<'system' | 'git' | 'claude' | 'data' | 'root' | 'joined', string>>;

/** `say` receives each step. Returns the output of `host join`. */
export async function addHost(
  context: AppContext,
  root: string,
  given: AddOptions,
  say: (step: string) => void,
): Promise<Result<readonly string[]>> {
  const checked = checkOptions(context, root, given);
  if (!checked.ok) return checked;
  const { line, login } = checked.value;
  say(`Connecting to ${given.ssh} ...`);
  const found = await probe(context, given.ssh);
  if (!found.ok) return found;
  const { system, git, data, joined: earlier } = found.value;
  if (earlier !== '' && earlier !== given.name) {
    return fail('duplicate', `${given.ssh} is already the host ${earlier} of a fleet.`, {
      sentence: 'Use that name, or remove it first with',
      commands: [['host', 'forget', earlier]],
    });
  }
  say(`Found ${system}, ${git} and claude. Packing the program ...`);
  const program = `${data}/claude-code-agent/host`;
  const installed = await install(context, given.ssh, { system, program, say });
  if (!installed.ok) return installed;
  // From here on, `host forget` has something to undo.
  const noted = note(context, root, given, program);
  if (!noted.ok) return noted;
  const { login: old } = noted.value ?? {};
  if (login !== undefined) {
    say(`Sending the login ${login.name} ...`);
    const sent = await sendLogin(context, given.ssh, found.value, { ...login, old });
    if (!sent.ok) return sent;
  }
  const { name, ssh, labels = [], slots, login: loginName, acceptClaude } = given;
  const options = Object.entries(defined({ slots, login: loginName, 'accept-claude': acceptClaude }));
  const words = [
    ...[`${program}/bin/claude-code-agent`, 'host', 'join', '-', '--name', name, '--ssh', ssh],
    ...labels.flatMap((label) => ['--label', label]),
    ...options.flatMap(([option, value]) => [`--${option}`, String(value)]),
  ];
  const steps: ReadonlySet<string> = new Set(Object.values(joinSteps));
  const onStderrLine = (step: string) => {
    if (steps.has(step)) say(step);
  };
  const script = `exec ${words.map(shellWord).join(' ')}`;
  const how = { script, next: again, input: Buffer.from(`${line}\n`), timeoutMs: joinMs, onStderrLine };
  const joined = await runBySsh(context, ssh, how);
  if (!joined.ok) return joined;
  const lines = `${joined.value.stdout}${joined.value.stderr}`.trim().split('\n');
  return ok(lines.filter((step) => !steps.has(step)));
}

interface CheckedOptions {
  readonly line: string;
  readonly login: { readonly name: string; readonly text: string } | undefined;
}

function checkOptions(context: AppContext, root: string, given: AddOptions): Result<CheckedOptions> {
  const fleet = knownFleet(context, root);
  if (!fleet.ok) return fleet;
  const name = checkNewHostName(given.name);
  const labels = checkLabels(given.labels ?? []);
  const destination = checkDestination(given.ssh);
  for (const one of [name, labels, destination]) if (!one.ok) return one;
  const added = readAdded(context.world.files, root);
  if (!added.ok) return added;
  const before = added.value[given.name];
  if (before !== undefined && before.ssh !== given.ssh) {
    return fail('duplicate', `The host ${given.name} already exists, at ${before.ssh}.`, {
      sentence: 'Choose another name, or remove that host with',
      commands: [['host', 'forget', given.name]],
    });
  }
  const login = loginToSend(context, root, given.login);
  if (!login.ok) return login;
  return ok({ line: joinLine(ticketOf(fleet.value)), login: login.value });
}

/** The login with that name, else the login that local runs use. */
function loginToSend(
  { world, env }: AppContext,
  root: string,
  name: string | undefined,
): Result<CheckedOptions['login']> {
  if (name === undefined) return ok(undefined);
  if (!plainNamePattern.test(name)) {
    return fail('usage', `${JSON.stringify(name)} is not a valid login name: ${plainNameRule}.`, 'Give another one.');
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
  const what =
    kind === 'store'
      ? 'the environment has no key or token to send; a login of "claude auth login" stays on this machine'
      : `your current login (${source}) is not a single key`;
  const path = `${root}/fleet/logins/${name}.env`;
  const next = `Put one into ${path} (chmod 600), such as CLAUDE_CODE_OAUTH_TOKEN=… from "claude setup-token".`;
  return fail('not-logged-in', `There is no login ${name} here, and ${what}.`, next);
}

const probeScript = `
say() { printf 'cca-%s=%s\\n' "$1" "$2"; }
say system "$(uname -sm)"
say git "$(git --version 2>/dev/null)"
say claude "\${CLAUDE_CODE_AGENT_CLAUDE:-$(command -v claude)}"
say data "\${XDG_DATA_HOME:-$HOME/.local/share}"
root="\${CLAUDE_CODE_AGENT_HOME:-$HOME/.local/claude-code-agent}"
say root "$root"
say joined "$(sed -n 's/^ *"name": "\\(.*\\)",*$/\\1/p' "$root/fleet/host.json" 2>/dev/null)"
`;

async function probe(context: AppContext, ssh: string): Promise<Result<Found>> {
  const next = 'It needs an account that can run commands.';
  const ran = await runBySsh(context, ssh, { script: probeScript, next });
  if (!ran.ok) return ran;
  // The profile on the host may print other lines.
  const lines = [...ran.value.stdout.matchAll(/^cca-(\w+)=(.*)$/gm)];
  const found = Object.fromEntries(lines.map(([, name = '', value = '']) => [name, value.trim()])) as Partial<Found>;
  const { system, git, claude } = found;
  if (!system) return fail('usage', `On ${ssh}: no command could be run.`, next);
  if (!git) return fail('usage', `There is no git on ${ssh}.`, 'Install git there.');
  const where = 'Install Claude Code there, on the PATH of a command over ssh, or in ~/.local/bin.';
  return claude ? ok(found as Found) : fail('usage', `There is no claude on ${ssh}.`, where);
}

interface Installing {
  readonly system: string;
  readonly program: string;
  readonly say: (step: string) => void;
}

/** Keeps earlier versions, because running sessions use their paths. A symlink points to the current one. */
async function install(context: AppContext, ssh: string, { system, program, say }: Installing): Promise<Result<void>> {
  const packed = await ownProgram(context, ssh, system);
  if (!packed.ok) return packed;
  say(`Sending the program, ${(packed.value.length / 1024 / 1024).toFixed(1)} MB ...`);
  const fresh = shellWord(`${program}-${context.world.random.uuid().slice(0, 8)}`);
  const unpack = `set -e; mkdir -p ${fresh}; chmod 700 ${fresh}; cd ${fresh}; tar -xzf -`;
  const sent = await runBySsh(context, ssh, { script: unpack, next: again, input: packed.value, timeoutMs: sendMs });
  if (!sent.ok) return sent;
  say('Testing the program there ...');
  const script = `fresh=${fresh}; target=${shellWord(program)}; ${switchScript}`;
  const tried = await runBySsh(context, ssh, { script, next: 'The program does not start there.' });
  return tried.ok ? ok(undefined) : tried;
}

/** Switches the symlink and removes earlier versions that no process uses. */
const switchScript = `
"$fresh/bin/claude-code-agent" --version || { rm -rf "$fresh"; exit 1; }
set -e
ln -sfn "\${fresh##*/}" "$target"
{ used=$(cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ); } 2>/dev/null || true
for old in "$target"-*; do
  [ "$old" != "$fresh" ] || continue
  case "$used" in *"$old/"*) ;; *) rm -rf "$old" ;; esac
done
`;

/** Sends the login on standard input of ssh, into a file that is private from the start. */
async function sendLogin(
  context: AppContext,
  ssh: string,
  { root }: Found,
  { name, text, old = name }: NonNullable<CheckedOptions['login']> & { readonly old: string | undefined },
): Promise<Result<unknown>> {
  const folder = `${root}/fleet/logins`;
  const [at, path] = [shellWord(folder), shellWord(`${folder}/${name}.env`)];
  const write = `set -e; umask 077; mkdir -p ${at}; cat >${path}.new; chmod 600 ${path}.new; mv ${path}.new ${path}`;
  const script = old === name ? write : `${write}; rm -f ${shellWord(`${folder}/${old}.env`)}`;
  return runBySsh(context, ssh, { script, next: again, input: Buffer.from(text) });
}

/** Returns how the host was added before. */
function note(
  { world }: AppContext,
  root: string,
  { name, ssh, login }: AddOptions,
  program: string,
): Result<AddedHost | undefined> {
  const added = readAdded(world.files, root);
  if (!added.ok) return added;
  const sent = login ?? added.value[name]?.login;
  const host = { ssh, program, ...defined({ login: sent }) };
  const written = writeAdded(world.files, root, { ...added.value, [name]: host });
  return written.ok ? ok(added.value[name]) : written;
}

const packMs = 120_000;
const archiveBytesMax = 300_000_000;

/** Packs this program. $1: root of the package, $2: a new folder. A program that is not one executable gets its Bun. */
const packScript = `set -e
cd "$1"; mkdir -p "$2/dist"
if [ -e scripts/bundle.ts ]; then sh scripts/bun.sh scripts/bundle.ts "$2/dist/program" >&2
elif [ -e dist/program ]; then ln -s "$1/dist/program" "$2/dist/program"
else ln -s "$1/dist/claude-code-agent" "$2/dist/claude-code-agent"; fi
if [ -e "$2/dist/program" ]; then
  . bin/find-bun.sh; find_bun "$1"
  bin=$2/node_modules/@oven/bun-here/bin; mkdir -p "$bin"; ln -s "$(readlink -f "$bun")" "$bin/bun"
fi
cd "$2"; tar --use-compress-program='gzip -1' -chf "$2.tgz" -C "$1" bin package.json templates -C "$2" *
uname -sm`;

async function ownProgram({ world, env, packageRoot }: AppContext, ssh: string, system: string) {
  const folder = join(env.TMPDIR ?? '/tmp', `claude-code-agent-${world.random.uuid()}`);
  const given = { PATH: env.PATH ?? '', HOME: env.HOME ?? '', TMPDIR: env.TMPDIR ?? '/tmp' };
  const args = ['-c', packScript, 'sh', packageRoot, folder];
  try {
    const ran = await world.processes.run({ program: 'sh', args, cwd: '/', env: given, timeoutMs: packMs });
    if (!ran.ok) return ran;
    const { exitCode, stdout, stderr } = ran.value;
    const byHand = advise(`Install the npm package on ${ssh}, and join from there with the line of`, [
      'fleet',
      'join-line',
    ]);
    if (exitCode !== 0) return fail('spawn-failed', `This program cannot be packed: ${lastLine(stderr)}.`, byHand);
    const here = stdout.trim();
    if (here !== system) return fail('usage', `This program (${here}) does not run on ${ssh} (${system}).`, byHand);
    return ok(world.files.readBytes(`${folder}.tgz`, 0, archiveBytesMax));
  } finally {
    for (const made of [folder, `${folder}.tgz`]) world.files.remove(made);
  }
}
