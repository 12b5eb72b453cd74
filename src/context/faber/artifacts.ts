/** Critical artifacts: which of them are due, their contents, and how they share the space. */
import { isAbsolute, join, relative, resolve } from 'node:path';
import { isObject, type JsonObject } from '../../store/json.ts';
import { type ContextFiles, codeOf, fitted, harmless, harmlessLine, readProjectText } from '../hook-call.ts';
import { type FaberProject, layouts, readGitHead, statePath } from './project.ts';
import { lastLoadMs, nonEmptyText, readJson } from './state.ts';
import { stateBytesMax } from './state-file.ts';
import { type ContextArtifact, shippedFaber, stateValue } from './workflow-config.ts';

/** An artifact loaded within this time is still in the conversation. */
export const cacheMs = 5 * 60_000;

export interface ArtifactOptions {
  readonly trigger: string;
  /** Only these, whatever their triggers are. */
  readonly only?: readonly string[];
  readonly force: boolean;
  readonly nowMs: number;
  readonly sessionId: string;
  /** The session is new, so its conversation contains nothing yet. */
  readonly isNew: boolean;
}

export type Due =
  | { readonly action: 'load' }
  /** `why` is for users. */
  | { readonly action: 'skip' | 'cached'; readonly why: string };

export function dueNow(artifact: ContextArtifact, state: JsonObject, options: ArtifactOptions): Due {
  const { trigger, only, force, nowMs } = options;
  if (only !== undefined && !only.includes(artifact.id)) return { action: 'skip', why: 'was not requested' };
  // Forced or named: everything that the user asks for is given.
  if (only === undefined && !force && !artifact.triggers.includes(trigger)) {
    return { action: 'skip', why: `is not loaded at ${trigger}` };
  }
  if (artifact.condition !== undefined && !artifact.condition(state))
    return { action: 'skip', why: 'its condition does not hold' };
  // After a start, a resume or a compaction earlier content may be gone.
  if (force || options.isNew || trigger === 'session_start') return { action: 'load' };
  const loadedMs = lastLoadMs(state, artifact.id, options.sessionId);
  const ageMs = loadedMs === null ? null : nowMs - loadedMs;
  if (ageMs === null || ageMs < 0 || ageMs >= cacheMs) return { action: 'load' };
  return { action: 'cached', why: `was loaded ${Math.round(ageMs / 1000)} seconds ago; --force loads it again` };
}

export type Content =
  | {
      readonly kind: 'text';
      readonly source: string;
      readonly path: string;
      readonly text: string;
      readonly sizeBytes: number;
    }
  | { readonly kind: 'instruction'; readonly source: string; readonly text: string }
  /** `trouble` completes a sentence that begins with `source`. */
  | { readonly kind: 'missing'; readonly source: string; readonly trouble: string };

export interface RunContext {
  readonly files: ContextFiles;
  readonly project: FaberProject;
  readonly runId: string;
  readonly state: JsonObject;
}

/** The present content of the artifact. Never throws because of a project's files. */
export function loadArtifact(artifact: ContextArtifact, ground: RunContext): Content {
  const { type, command } = artifact;
  if (type === 'git_info') return gitInfo(ground);
  if (type === 'skill' || type === 'work_plugin' || command !== undefined) return instruction(artifact, ground);
  const place = placeOf(artifact, ground);
  if (place.kind === 'missing') return place;
  if (type === 'directory') return listing(ground, place);
  const bytesMax = place.isState ? stateBytesMax : undefined;
  const read = readProjectText(ground.files, place.root, place.path, bytesMax);
  if (!read.ok) return { kind: 'missing', source: place.source, trouble: read.trouble };
  const text = type === 'json' ? arranged(read.text, place.isState) : read.text;
  return { kind: 'text', source: place.source, path: place.shown, text, sizeBytes: Buffer.byteLength(read.text) };
}

/** Long histories come last, because the session needs them least when the end is cut. */
function arranged(text: string, isState: boolean): string {
  const parsed = isState ? readJson(text) : null;
  if (parsed === null || !parsed.ok || !isObject(parsed.value)) return text;
  const { context_metadata, sessions, ...rest } = parsed.value;
  return JSON.stringify({ ...rest, sessions, context_metadata }, null, 2);
}

interface FoundPlace {
  readonly kind: 'place';
  readonly root: string;
  readonly path: string;
  readonly source: string;
  /** Where the rest of a cut text is. */
  readonly shown: string;
  readonly isState: boolean;
}

type Missing = Content & { readonly kind: 'missing' };

function placeOf(artifact: ContextArtifact, ground: RunContext): FoundPlace | Missing {
  const { project } = ground;
  const given = artifact.pathFromState === undefined ? artifact.path : stateValue(ground.state, artifact.pathFromState);
  const template = nonEmptyText(given);
  if (template === undefined) {
    const source = artifact.pathFromState?.join('.') ?? artifact.id;
    return { kind: 'missing', source, trouble: 'is not set in the state of the run' };
  }
  const filled = fillPlaceholders(template, ground);
  if (!filled.ok) return { kind: 'missing', source: harmlessLine(template), trouble: filled.trouble };
  // Only our own configuration can name shipped files: a state must stay within the project.
  const isShipped = template.startsWith('{faber_root}/') && artifact.pathFromState === undefined;
  const root = isShipped ? shippedFaber : project.top;
  const named = resolve(project.root, filled.text);
  const stateAt = (runs: FaberProject['runs']) => resolve(project.root, statePath({ runs }, ground.runId));
  // A workflow may use the path of the other layout.
  const isState = layouts.some((runs) => named === stateAt(runs));
  const path = isState ? stateAt(project.runs) : named;
  if (path !== root && !path.startsWith(`${root}/`)) {
    return { kind: 'missing', source: harmlessLine(template), trouble: 'leads out of the project' };
  }
  // Shipped files are elsewhere on every machine.
  const source = isShipped ? template : relative(project.root, path) || '.';
  return {
    kind: 'place',
    root,
    path,
    source: harmlessLine(source),
    shown: isShipped ? path : harmlessLine(source),
    isState,
  };
}

const plainValue = /^[A-Za-z0-9][\w.#-]{0,199}$/;

type Filled = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly trouble: string };

/** Fills in `{project_root}`, `{run_id}`, `{plan_id}`, `{work_id}` and `{faber_root}`. */
export function fillPlaceholders(template: string, { project, runId, state }: Omit<RunContext, 'files'>): Filled {
  let trouble: string | null = null;
  const value = (name: string): string => {
    if (name === 'project_root') return project.top;
    if (name === 'faber_root') return shippedFaber;
    if (name === 'run_id') return runId;
    const found = name === 'plan_id' || name === 'work_id' ? state[name] : undefined;
    const text = typeof found === 'number' ? String(found) : found;
    if (typeof text === 'string' && plainValue.test(text)) return text;
    trouble ??= `holds {${name}}, which ${found === undefined ? 'nothing gives a value' : 'has no plain value'}`;
    return '';
  };
  const text = template.replace(/\{([a-z_]+)\}/g, (_, name: string) => value(name));
  if (text.includes('\0')) trouble ??= 'holds a NUL character';
  return trouble === null ? { ok: true, text } : { ok: false, trouble };
}

/** The portable form of a path below the project, for state.json; null when it leads out of the project. */
export function portablePath(project: FaberProject, path: string): string | null {
  const inside = relative(project.top, path);
  if (inside === '' || inside.startsWith('..') || isAbsolute(inside)) return null;
  return `{project_root}/${inside}`;
}

function instruction(artifact: ContextArtifact, ground: RunContext): Content {
  const { type, command, path, id, description } = artifact;
  const filled = fillPlaceholders(command ?? path ?? id, ground);
  if (!filled.ok) return { kind: 'missing', source: id, trouble: filled.trouble };
  const name = harmlessLine(filled.text);
  const how =
    command === undefined
      ? type === 'skill'
        ? `use the skill ${name}`
        : `fetch the work item ${name} with the work plugin`
      : `run the slash command ${name}`;
  return { kind: 'instruction', source: name, text: `To load ${id} (${harmlessLine(description)}): ${how}.` };
}

function gitInfo({ files, project }: RunContext): Content {
  const head = readGitHead(files, project.top);
  if (head === null) return { kind: 'missing', source: 'git', trouble: 'cannot determine a branch or commit here' };
  const lines = [`branch: ${head.branch ?? '(none, a commit is checked out)'}`, `commit: ${head.commit ?? '(none)'}`];
  const text = lines.join('\n');
  return { kind: 'text', source: 'git', path: '.git', text, sizeBytes: text.length };
}

const namesMax = 200;

function listing({ files }: RunContext, { root, path, source }: FoundPlace): Content {
  const missing = (trouble: string): Content => ({ kind: 'missing', source, trouble });
  try {
    const [realRoot, real] = [files.realPath(root), files.realPath(path)];
    if (realRoot === null || real === null) return missing('does not exist');
    if (!`${real}/`.startsWith(`${realRoot}/`)) return missing('is a symlink out of the project');
    if (files.info(real)?.kind !== 'folder') return missing('is not a folder');
    const names = files.list(real);
    const kindOf = (name: string): string => (files.entryKind(join(real, name)) === 'folder' ? '/' : '');
    const shown = names.slice(0, namesMax).map((name) => `${harmlessLine(name)}${kindOf(name)}`);
    const text = [...shown, ...(names.length > namesMax ? [`and ${names.length - namesMax} more`] : [])].join('\n');
    return { kind: 'text', source, path: source, text, sizeBytes: Buffer.byteLength(text) };
  } catch (error) {
    return missing(`cannot be read (${codeOf(error)})`);
  }
}

export interface ArtifactContent {
  readonly artifact: ContextArtifact;
  readonly content: Content;
}

/** A file must not imitate the end of its quote. */
const marks = /^(?=--- (?:FABER ARTIFACT|END))/gm;

/**
 * All artifacts within `room` characters. Each gets an equal share, and unused parts go to the others, so a large file
 * never displaces a small one; the path of a cut one is named.
 */
export function renderArtifacts(shown: readonly ArtifactContent[], room: number): string {
  const lines = shown.flatMap(({ artifact, content }) => (content.kind === 'text' ? [] : [noteOf(artifact, content)]));
  const notes = fitted(lines.join('\n'), 'the workflow configuration', Math.max(0, Math.floor(room / 2)));
  const texts = shown.flatMap(({ artifact, content }) => {
    if (content.kind !== 'text') return [];
    const head = `--- FABER ARTIFACT ${artifact.id} (${artifact.type}) [${content.source}] ---\n`;
    return [{ head, path: content.path, text: harmless(content.text).replace(marks, ' ').trimEnd() }];
  });
  const frame = texts.reduce((sum, { head }) => sum + head.length + '\n--- END ---\n'.length, 0);
  const shares = sharesOf(
    texts.map(({ text }) => text.length),
    room - notes.length - 1 - frame,
  );
  const blocks = texts.map(({ head, path, text }, index) => {
    const share = shares[index] ?? 0;
    const body =
      share < 120 && text.length > share ? `(${text.length} characters, in ${path})` : fitted(text, path, share);
    return `${head}${body}\n--- END ---`;
  });
  return [...(notes === '' ? [] : [notes]), ...blocks].join('\n');
}

function noteOf({ id, required, description }: ContextArtifact, content: Exclude<Content, { kind: 'text' }>): string {
  if (content.kind === 'instruction') return `- ${content.text}`;
  const need = required ? 'MISSING, and the work cannot go on without it' : 'missing';
  return `- ${id} is ${need}: ${content.source} ${content.trouble}. It is: ${harmlessLine(description)}`;
}

/** Each size's share of `room`: the smallest are satisfied first. */
function sharesOf(sizes: readonly number[], room: number): number[] {
  const shares = sizes.map(() => 0);
  const order = sizes.map((size, index) => ({ size, index })).sort((a, b) => a.size - b.size);
  let left = Math.max(0, room);
  order.forEach(({ size, index }, place) => {
    const share = Math.min(size, Math.floor(left / (order.length - place)));
    shares[index] = share;
    left -= share;
  });
  return shares;
}
