/** Tries one program: all scenes, a few at a time, and once more those in which something was wrong. */
import { fail, ok, type Result } from '../../core/failure.ts';
import { systemFailure } from '../../store/system-failure.ts';
import type { World } from '../../system/world.ts';
import { type ClaimId, claims, type Seen, untried } from './claims.ts';
import { Ground, TrialTrouble } from './ground.ts';
import { type Launch, launchOfRunner } from './launch.ts';
import { type Scene, scenes, trialScript } from './scenes.ts';

/** claudes that run at once: each takes a core for half a second and 300 MB. */
const atOnce = 3;
/** Whoever waits for a run is told after this that a trial is not possible here. */
const limitMs = 120_000;

export interface TrialOptions {
  /** Absolute path of a folder to be made; nothing of it is left. */
  readonly folder: string;
  readonly program: string;
  readonly caller: Readonly<Record<string, string | undefined>>;
  readonly launch?: Launch;
  /** Ends it at once. */
  readonly stop: AbortSignal;
}

/** What each scene has seen. */
type Played = ReadonlyMap<Scene, readonly Seen[]>;

/**
 * What was seen of every claim. Something that went wrong once is tried again, alone: a machine under load breaks no
 * promise. Fails with `write-failed` or `spawn-failed` when it could not be carried out.
 */
export async function tryClaude(world: World, given: TrialOptions): Promise<Result<readonly Seen[]>> {
  const limit = new AbortController();
  const cancel = world.clock.after(limitMs, () => limit.abort());
  try {
    return await tryTwice(world, { ...given, stop: AbortSignal.any([given.stop, limit.signal]) });
  } finally {
    cancel();
  }
}

async function tryTwice(world: World, options: TrialOptions): Promise<Result<readonly Seen[]>> {
  const all = await play(world, options, scenes, atOnce);
  if (!all.ok) return all;
  const wrong = scenes.filter((scene) => isWrong(scene, all.value));
  const again = wrong.length === 0 ? ok<Played>(new Map()) : await play(world, options, wrong, 1);
  if (!again.ok) return again;
  const played = new Map([...all.value, ...[...again.value].map(([scene, seen]) => joined(scene, seen, all.value))]);
  const about = (id: ClaimId) => scenes.filter((scene) => scene.claims.includes(id));
  return ok(claims.map(({ id }) => worst(about(id).map((scene) => summary(id, scene, played)))));
}

/** What was done once cannot be undone by doing better the second time. */
const onceIsEnough: ReadonlySet<ClaimId> = new Set(['deny', 'payer']);

function joined(scene: Scene, seen: readonly Seen[], before: Played): readonly [Scene, readonly Seen[]] {
  const kept = (before.get(scene) ?? []).filter(({ id, verdict }) => verdict === 'broken' && onceIsEnough.has(id));
  return [scene, [...kept, ...seen]];
}

function isWrong(scene: Scene, played: Played): boolean {
  return scene.claims.some((id) => summary(id, scene, played).verdict !== 'holds');
}

function summary(id: ClaimId, scene: Scene, played: Played): Seen {
  const seen = played.get(scene)?.find((one) => one.id === id);
  return seen ?? untried(id, 'something else was wrong before');
}

/** Several scenes may say something about one claim. One that could say nothing takes nothing from the others. */
function worst(seen: readonly Seen[]): Seen {
  const of = (wanted: Seen['verdict']) => seen.find(({ verdict }) => verdict === wanted);
  return of('broken') ?? of('holds') ?? (seen[0] as Seen);
}

async function play(
  world: World,
  { folder, launch = launchOfRunner, ...options }: TrialOptions,
  chosen: readonly Scene[],
  lanes: number,
): Promise<Result<Played>> {
  let ground: Ground | null = null;
  const trouble = new AbortController();
  const stop = AbortSignal.any([options.stop, trouble.signal]);
  try {
    world.files.remove(folder);
    world.files.makeFolder(folder);
    // A temporary folder may be reached by a link, and claude tells of paths without links.
    const real = world.files.realPath(folder) ?? folder;
    const opened = new Ground(world, { ...options, folder: real, launch, script: trialScript, stop });
    ground = opened;
    const waiting = [...chosen];
    const played = new Map<Scene, readonly Seen[]>();
    const lane = async (): Promise<void> => {
      for (let scene = waiting.shift(); scene !== undefined && !stop.aborted; scene = waiting.shift()) {
        const seen = await scene.play(opened);
        // What was cut off looks like a broken promise.
        if (!stop.aborted) played.set(scene, seen);
      }
    };
    // Nothing is started any more once one of them could not be.
    const carefully = () =>
      lane().catch((error) => {
        if (!stop.aborted) trouble.abort(error);
      });
    await Promise.all(Array.from({ length: lanes }, carefully));
    if (trouble.signal.aborted) throw trouble.signal.reason;
    return ok(played);
  } catch (error) {
    if (!(error instanceof TrialTrouble)) return { ok: false, failure: systemFailure(folder, error) };
    return fail('spawn-failed', error.message, '');
  } finally {
    await ground?.close();
    removeQuietly(world, folder);
  }
}

function removeQuietly({ files }: World, folder: string): void {
  try {
    files.remove(folder);
  } catch {
    // What was seen stands; the folder is among the temporary files.
  }
}
