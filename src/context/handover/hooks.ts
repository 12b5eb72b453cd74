/**
 * context/handover/: projects that remember which session worked on them. This file: its hooks, which brief the model
 * and update the project.
 */

import { join, relative, resolve } from 'node:path';
import { describeFailure } from '../../core/failure.ts';
import {
  type ContextFiles,
  type ContextSystem,
  charactersMax,
  fitted,
  type HookAnswer,
  type HookCall,
  harmless,
  harmlessLine,
  readProjectText,
} from '../hook-call.ts';
import {
  type Discovery,
  type Found,
  findAssigned,
  findByFolder,
  findBySession,
  findByTranscript,
  findMostRecent,
  findProjects,
  type ProjectAssignment,
  readAssignment,
} from './projects.ts';

export const handover = {
  name: 'handover',
  async answer(call: HookCall): Promise<HookAnswer> {
    if (call.event === 'session-start') return sessionStart(call);
    return call.event === 'pre-compact' ? preCompact(call) : { text: '' };
  },
} satisfies ContextSystem;

function sessionStart(call: HookCall): HookAnswer {
  const discovery = findProjects(call.files, call.projectFolder);
  const { projects } = discovery;
  const belonging = readAssignment(call.files, call.sessionFolder);
  // The session's own copy first, because it is the most recent.
  const roots = belonging === null ? [call.projectFolder] : [...new Set([call.projectFolder, belonging.root])];
  const found =
    findAssigned(projects, call.projectFolder, belonging) ??
    (belonging === null ? null : atHome(call, belonging)) ??
    findBySession(projects, call.sessionId) ??
    (call.isWorker
      ? null
      : (inTranscript(call, discovery) ?? findByFolder(projects, call.projectFolder) ?? findMostRecent(projects)));
  if (found === null) return { text: '', notes: notesOf(discovery, null) };
  const { files, isWorker, nowMs } = call;
  const { text, loaded, named } = briefing({ files, roots, found, isWorker, nowMs });
  return { text, notes: { ...notesOf(discovery, found), loaded, named } };
}

/**
 * A user's session may have moved to another project, so its last work decides. In a worker the runner and the id
 * decide, and the original project is updated, never a copy.
 */
async function preCompact(call: HookCall): Promise<HookAnswer> {
  const discovery = findProjects(call.files, call.projectFolder);
  const belonging = readAssignment(call.files, call.sessionFolder);
  const byId =
    (belonging === null ? null : atHome(call, belonging)) ?? findBySession(discovery.projects, call.sessionId);
  const found = call.isWorker
    ? byId
    : (inTranscript(call, discovery) ?? byId ?? findByFolder(discovery.projects, call.projectFolder));
  const notes = notesOf(discovery, found);
  if (found === null || call.sessionId === undefined || call.sessionId === 'unknown') return { text: '', notes };
  // Only here, because every session waits for its start hooks, which write nothing.
  const { noteInProject } = await import('./note.ts');
  const noted = noteInProject(call.files, found.project, call.sessionId, call.nowMs);
  return { text: '', notes: { ...notes, ...(noted.ok ? {} : { trouble: describeFailure(noted.failure) }) } };
}

/** The project's own folder, whether or not the session works in a copy of it. */
function atHome({ files }: HookCall, belonging: ProjectAssignment): Found | null {
  return findAssigned(findProjects(files, belonging.root).projects, belonging.root, belonging);
}

function inTranscript({ files, projectFolder, transcriptPath }: HookCall, { projects }: Discovery): Found | null {
  return findByTranscript(files, projects, projectFolder, transcriptPath);
}

function notesOf({ projects, troubles }: Discovery, found: Found | null): Readonly<Record<string, unknown>> {
  return {
    projects: projects.length,
    ...(found === null ? {} : { project: found.project.id, foundBy: found.by }),
    ...(troubles.length === 0 ? {} : { troubles }),
  };
}

// The model's briefing about its project: the next action first, then the files the project wants loaded.

export interface BriefingInput {
  readonly files: ContextFiles;
  /** Absolute, in order of preference: nothing outside of them is read. */
  readonly roots: readonly string[];
  readonly found: Found;
  readonly isWorker: boolean;
  readonly nowMs: number;
}

export interface Briefing {
  readonly text: string;
  /** Paths as written in the resume file. */
  readonly loaded: readonly string[];
  readonly named: readonly string[];
}

/** Further files of a project are only named. */
const filesMax = 40;
const lineMax = 400;
const nextActionMax = 1_000;
/** For the list of named files. */
const namesMax = 2_000;
/** A smaller excerpt of a file is not worth the space. */
const excerptMin = 500;

const foundBy = {
  runner: 'this session belongs to it',
  session_ids: 'it lists this session',
  session_id: 'this session was its last one',
  transcript: 'the conversation worked on its files',
  folder: 'this folder is the project',
  'most recent': 'it was updated last; no project lists this session',
} as const;

/** At most `charactersMax` characters, the next action first. */
export function briefing(input: BriefingInput): Briefing {
  const { facts } = input.found.project;
  const wanted = [...new Set(facts.filesToLoad)];
  const head = headLines(input).join('\n');
  let room = charactersMax - head.length - namesMax;
  const blocks: string[] = [];
  const loaded: string[] = [];
  const named: { readonly name: string; readonly line: string }[] = [];
  for (const [index, name] of wanted.entries()) {
    const label = harmlessLine(name, lineMax);
    if (index >= filesMax) {
      named.push({ name, line: label });
      continue;
    }
    const file = loadFile(input, name);
    const path = harmlessLine(file.path, lineMax);
    if (!file.ok) {
      named.push({ name, line: `${label} (${file.trouble})` });
      continue;
    }
    const frame = `--- HANDOVER FILE ${label} ---\n\n--- END ---\n`.length;
    if (file.text.length + frame > room && room - frame < excerptMin) {
      named.push({ name, line: path });
      continue;
    }
    const text = fitted(file.text, path, room - frame);
    blocks.push(`--- HANDOVER FILE ${label} ---\n${text}\n--- END ---`);
    loaded.push(name);
    room -= text.length + frame;
  }
  const names = namesText(named.map(({ line }) => line));
  const text = [head, ...blocks, ...(names === '' ? [] : [names])].join('\n');
  return { text: fitted(text, input.found.project.file, charactersMax), loaded, named: named.map(({ name }) => name) };
}

function headLines({ found: { project, by }, isWorker, nowMs }: BriefingInput): string[] {
  const { facts } = project;
  const name =
    facts.projectName === '' || facts.projectName === project.id ? '' : ` "${harmlessLine(facts.projectName, 100)}"`;
  const phase = facts.currentPhase === '' ? '' : `, phase ${harmlessLine(facts.currentPhase, 100)}`;
  const next = facts.nextAction === '' ? '(none is recorded)' : harmlessLine(facts.nextAction, nextActionMax);
  const file = harmlessLine(project.file, lineMax);
  const guidance = isWorker
    ? 'Continue with the next action as far as your task asks for it.'
    : 'Tell the user in one line where the project stands, then continue with the next action or what they ask for.';
  const id = harmlessLine(project.id, 200);
  return [
    // claude drops a text that is already in the conversation. The time makes every text new.
    `HANDOVER: project ${id}${name}${phase} (${foundBy[by]}; ${new Date(nowMs).toISOString()}).`,
    `Next action: ${next}`,
    `Resume file: ${file}${facts.lastUpdated === '' ? '' : `, last updated ${harmlessLine(facts.lastUpdated, 40)}`}`,
    guidance,
    '',
  ];
}

type Loaded =
  | { readonly ok: true; readonly path: string; readonly text: string }
  | { readonly ok: false; readonly path: string; readonly trouble: string };

/**
 * Paths are relative to the project's folder; some people write them from the root. Untracked files exist in the
 * project only, not in a copy of it.
 */
function loadFile({ files, roots, found }: BriefingInput, name: string): Loaded {
  const { folder } = found.project;
  const home = roots.find((root) => `${folder}/`.startsWith(`${root}/`)) ?? folder;
  const path = resolve(folder, name);
  const candidates = roots.flatMap((root) => [
    { root, candidate: resolve(root, relative(home, folder), name) },
    { root, candidate: join(root, name) },
  ]);
  for (const { root, candidate } of candidates) {
    const read = readProjectText(files, root, candidate);
    if (!read.ok && read.trouble === 'does not exist') continue;
    if (!read.ok) return { ok: false, path: candidate, trouble: read.trouble };
    const cut = read.truncated ? `\n... (cut off; the rest is in ${candidate})` : '';
    return { ok: true, path: candidate, text: withoutOurMarks(`${harmless(read.text).trimEnd()}${cut}`) };
  }
  return { ok: false, path: relative(home, path), trouble: 'does not exist' };
}

/** A file must not imitate the end of its quote. */
function withoutOurMarks(text: string): string {
  return text.replace(/^---(?= (?:END|HANDOVER FILE)\b)/gm, '- --');
}

function namesText(lines: readonly string[]): string {
  if (lines.length === 0) return '';
  const title = 'Not shown here; read what you need:';
  const shown: string[] = [];
  let room = namesMax - title.length - 60;
  for (const line of lines) {
    if (line.length + 3 > room) break;
    shown.push(`- ${line}`);
    room -= line.length + 3;
  }
  const more = lines.length - shown.length;
  return [title, ...shown, ...(more === 0 ? [] : [`- and ${more} more, see files_to_load in the resume file`])].join(
    '\n',
  );
}
