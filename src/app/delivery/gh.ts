/** The GitHub command line, as the user has installed it and logged in. */
import { repositoryVariables } from '../../claude/launch/variables.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { foreignText } from '../../core/text/foreign-value.ts';
import type { RunOutput } from '../../system/world.ts';
import { safeLine } from '../../view/terminal-text.ts';
import type { Place } from '../place.ts';

const timeoutMs = 2 * 60_000;

/** Nobody can answer a question, and its output is read by us. */
const quiet = { GH_PROMPT_DISABLED: '1', GH_NO_UPDATE_NOTIFIER: '1', NO_COLOR: '1', GH_PAGER: 'cat' };

export interface FoundRequest {
  readonly url: string;
  readonly body: string;
}

/** How gh is told which repository is meant; without a slug it finds out by the folder. */
function repositoryArgs(slug: string | undefined): string[] {
  return slug === undefined ? [] : ['--repo', slug];
}

export interface NewRequest {
  readonly slug?: string;
  readonly base: string;
  readonly head: string;
  readonly title: string;
  readonly bodyFile: string;
  readonly draft: boolean;
}

export function createArgs({ slug, base, head, title, bodyFile, draft }: NewRequest): string[] {
  return [
    ...['pr', 'create', ...repositoryArgs(slug), `--base=${base}`, `--head=${head}`],
    ...[`--title=${title}`, '--body-file', bodyFile, ...(draft ? ['--draft'] : [])],
  ];
}

export function editArgs(url: string, bodyFile: string): string[] {
  return ['pr', 'edit', url, '--body-file', bodyFile];
}

/** Fails with `spawn-failed` when gh is not there and `not-logged-in` when it has no login. */
export async function checkGh(place: Place, cwd: string, slug: string | undefined): Promise<Result<void>> {
  const host = slug?.split('/')[0];
  const asked = await run(place, cwd, ['auth', 'status', ...(host === undefined ? [] : ['--hostname', host])]);
  if (!asked.ok) return asked;
  if (asked.value.exitCode === 0) return ok(undefined);
  const where = host === undefined ? '' : ` --hostname ${host}`;
  return fail('not-logged-in', 'The program gh is not logged in.', `Log in with "gh auth login${where}".`);
}

/** The open request for a branch; null when there is none. */
export async function findRequest(
  place: Place,
  cwd: string,
  slug: string | undefined,
  head: string,
): Promise<Result<FoundRequest | null>> {
  const args = ['pr', 'list', ...repositoryArgs(slug), '--head', head, '--state', 'open', '--json', 'url,body'];
  const printed = await text(place, cwd, args);
  if (!printed.ok) return printed;
  try {
    const [first] = JSON.parse(printed.value) as { url?: unknown; body?: unknown }[];
    if (first === undefined) return ok(null);
    if (typeof first.url === 'string') return ok({ url: first.url, body: foreignText(first.body ?? '') });
  } catch {}
  return fail('claude-error', 'The program gh printed something else than a list.', 'Update gh, then try again.');
}

/** What gh printed on standard output. Fails with `spawn-failed` and gh's reason. */
export async function text(place: Place, cwd: string, args: readonly string[]): Promise<Result<string>> {
  const asked = await run(place, cwd, args);
  if (!asked.ok) return asked;
  const { exitCode, stdout, stderr } = asked.value;
  if (exitCode === 0) return ok(stdout);
  const reason = safeLine(stderr.trim().split('\n').at(-1) ?? '', 400) || `exit ${exitCode}`;
  const message = `gh ${args.slice(0, 2).join(' ')} failed: ${reason.replace(/\.+$/, '')}.`;
  return fail('spawn-failed', message, 'Correct that, then run the command again: it goes on where it stopped.');
}

async function run(place: Place, cwd: string, args: readonly string[]): Promise<Result<RunOutput>> {
  const kept = Object.entries(place.env).flatMap(([name, value]) =>
    value === undefined || repositoryVariables.has(name) ? [] : [[name, value] as const],
  );
  const env = { ...Object.fromEntries(kept), ...quiet };
  const ran = await place.world.processes.run({ program: 'gh', args, cwd, env, timeoutMs });
  if (ran.ok || ran.failure.reason !== 'not-found') return ran;
  return fail('spawn-failed', 'The program gh was not found.', 'Install it from https://cli.github.com.');
}
