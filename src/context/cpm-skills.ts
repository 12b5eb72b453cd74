/**
 * What a CPM skill has to hold: a front matter that claude lists it by, phases, a place for its output, and a section
 * about keeping state. Pure: text in, problems or a mended text out.
 */
import { type Problem, readYaml } from '../store/yaml-text.ts';

export interface SkillSource {
  /** Only used in problems. */
  readonly file: string;
  /** Name of the skill's folder, which claude takes for the skill's name. */
  readonly folder: string;
  readonly text: string;
}

export const sectionTitle = 'State Management';
/** Of its heading, at the least; a title of the whole text is no section. */
const sectionLevel = 2;
/** What the section has to say, in words of its own, and the item of the shared section that says it. */
const required = [
  {
    what: 'to use docs/plans/.cpm-progress-{session_id}.md with the CPM_SESSION_ID of the context',
    isIn: (text: string) => text.includes('CPM_SESSION_ID') && /\.cpm-progress-[{<$[]/.test(text),
    item: 'Where',
  },
  { what: 'to adopt the file of an older session id', isIn: (text: string) => /adopt/i.test(text), item: 'Adoption' },
  { what: 'to delete the file at the end', isIn: (text: string) => /delet|remov/i.test(text), item: 'End' },
];
const phasesMin = 3;
const descriptionMax = 1024;

interface Heading {
  readonly level: number;
  readonly title: string;
  /** Counts from 0. */
  readonly line: number;
}

/** A text by its lines; what stands in a fenced block is no heading. */
interface Outline {
  readonly lines: readonly string[];
  readonly headings: readonly Heading[];
  /** Line of a fence that is never closed, counted from 0. */
  readonly openFence: number | null;
  /** Lines of the front matter with both fences; 0 when there is none. */
  readonly frontLines: number;
}

/** Everything that is wrong with the skill. */
export function checkSkill({ file, folder, text }: SkillSource): Problem[] {
  const outline = outlineOf(unixText(text));
  const at = (line: number, message: string): Problem => ({ file, line: line + 1, column: 1, message });
  if (outline.openFence !== null) return [at(outline.openFence, 'begins a block of code that is never closed')];
  return [
    ...frontMatterProblems(file, folder, outline),
    ...phaseProblems(outline, at),
    ...outputProblems(outline, at),
    ...sectionProblems(outline, at),
  ];
}

/**
 * The text with the shared section at its end, or with those of its items that the skill's own section lacks; nothing
 * is taken away. Null when a block of code is never closed, because all that is added would be part of it.
 */
export function withSection(text: string, section: string): string | null {
  const outline = outlineOf(unixText(text));
  if (outline.openFence !== null) return null;
  const wanted = unixText(section).trim().split('\n');
  const [span] = spansOf(outline);
  const missing = missingIn(outline).map(({ item }) => item);
  if (span !== undefined && missing.length === 0) return text;
  const added =
    span === undefined ? wanted : wanted.filter((line) => missing.some((item) => line.startsWith(`- **${item}**`)));
  const end = text.includes('\r\n') ? '\r\n' : '\n';
  /** With their own ends of line. */
  const kept = text.split(/(?<=\n)/);
  let at = span?.to ?? kept.length;
  while (at > 0 && kept[at - 1]?.trim() === '') at -= 1;
  const before = kept.slice(0, at);
  const last = before.pop();
  if (last !== undefined) before.push(last.endsWith('\n') ? last : last + end, end);
  // Without a blank line the next paragraph would be part of the last item.
  const after = span === undefined ? [] : kept.slice(at);
  if (after.length > 0 && after[0]?.trim() !== '') after.unshift(end);
  return [...before, ...added.map((line) => line + end), ...after].join('');
}

function unixText(text: string): string {
  return text.replaceAll('\r\n', '\n');
}

function outlineOf(text: string): Outline {
  const lines = text.split('\n');
  const frontLines = frontLinesOf(lines);
  const headings: Heading[] = [];
  let fence: { readonly mark: string; readonly line: number } | null = null;
  for (const [line, content] of lines.entries()) {
    if (line < frontLines) continue;
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(content)?.[1];
    if (fence !== null) {
      const { mark: opened } = fence;
      if (mark?.startsWith(opened) && content.trim() === mark) fence = null;
      continue;
    }
    // Backticks behind the opening ones make it a piece of code within a line.
    if (mark !== undefined && !(mark.startsWith('`') && content.trim().slice(mark.length).includes('`'))) {
      fence = { mark, line };
      continue;
    }
    const heading = headingOf(lines, line, frontLines);
    if (heading !== null) headings.push(heading);
  }
  return { lines, headings, openFence: fence === null ? null : fence.line, frontLines };
}

/** Also a line of text with "===" or "---" under it. */
function headingOf(lines: readonly string[], line: number, frontLines: number): Heading | null {
  const marked = /^ {0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$/.exec(lines[line] ?? '');
  if (marked !== null) return { level: marked[1]?.length ?? 0, title: marked[2] ?? '', line };
  const above = line > frontLines ? (lines[line - 1] ?? '') : '';
  const under = /^ {0,3}(=+|-+)[ \t]*$/.exec(lines[line] ?? '')?.[1];
  if (under === undefined || above.trim() === '' || /^ {0,3}(?:#|`{3}|~{3})/.test(above)) return null;
  return { level: under.startsWith('=') ? 1 : 2, title: above.trim(), line: line - 1 };
}

function frontLinesOf(lines: readonly string[]): number {
  if (!/^---[ \t]*$/.test(lines[0] ?? '')) return 0;
  const end = lines.findIndex((line, index) => index > 0 && /^---[ \t]*$/.test(line));
  return end < 0 ? 0 : end + 1;
}

function frontMatterProblems(file: string, folder: string, { lines, frontLines }: Outline): Problem[] {
  const wrong = (message: string): Problem[] => [{ file, line: 1, column: 1, message }];
  if (frontLines === 0) return wrong('has no front matter: begin with "---", name, description, "---"');
  const yaml = readYaml({ text: lines.slice(1, frontLines - 1).join('\n'), file, linesBefore: 1 });
  if (!yaml.ok) return [...yaml.problems];
  const { value, problemAt } = yaml.value;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return wrong('the front matter has to be "name: …" and "description: …"');
  }
  const { name, description } = value as { name?: unknown; description?: unknown };
  const problems: Problem[] = [];
  if (typeof name !== 'string' || !/^[a-z0-9][a-z0-9-]{0,63}$/.test(name)) {
    problems.push(problemAt(['name'], 'name has to be small letters, digits and "-", at most 64'));
  } else if (name !== folder) {
    problems.push(
      problemAt(['name'], `name is "${name}", but the folder is "${folder}", and claude goes by the folder`),
    );
  }
  if (typeof description !== 'string' || description.trim() === '') {
    problems.push(problemAt(['description'], 'description is missing: claude chooses a skill by it'));
  } else if (description.length > descriptionMax) {
    problems.push(problemAt(['description'], `description has more than ${descriptionMax} characters`));
  }
  return problems;
}

type At = (line: number, message: string) => Problem;

/** A heading such as "## Phase 2: Build"; they count from 1 without gaps, because progress files name them so. */
function phaseProblems({ headings, frontLines }: Outline, at: At): Problem[] {
  const phases = headings.flatMap(({ level, title, line }) => {
    const number = level === 1 ? undefined : /^Phase (\d{1,3})(?!\w)/i.exec(title)?.[1];
    return number === undefined ? [] : [{ number: Number(number), line }];
  });
  if (phases.length < phasesMin) {
    const found = phases.length === 0 ? 'no phase' : phases.length === 1 ? '1 phase' : `${phases.length} phases`;
    return [at(frontLines, `has ${found}; ${phasesMin} are needed at least, as headings "## Phase 1: …"`)];
  }
  const wrong = phases.findIndex(({ number }, index) => number !== index + 1);
  const phase = phases[wrong];
  return phase === undefined ? [] : [at(phase.line, `is phase ${phase.number} where phase ${wrong + 1} has to come`)];
}

/** `docs/epics/{nn}.md` in backticks: relative, with a folder. */
const outputPath = /`(?!\/|~)[\w.{}<>*-]+(?:\/[\w.{}<>*-]+)+\/?`/g;

function outputProblems(outline: Outline, at: At): Problem[] {
  const advice = 'path within the project such as `docs/plans/{slug}.md`';
  const heading = outline.headings.find(({ title }) => /^outputs?$/i.test(title));
  if (heading === undefined) return [at(outline.frontLines, `has no heading "## Output" with a ${advice} below it`)];
  const text = outline.lines.slice(heading.line + 1, endOf(outline, heading)).join('\n');
  const paths = [...text.matchAll(outputPath)].map(([path]) => path.slice(1, -1));
  const isThere = paths.some((path) => !path.split('/').includes('..') && !path.includes('.cpm-progress'));
  return isThere ? [] : [at(heading.line, `"${heading.title}" names no ${advice}`)];
}

interface Span {
  readonly from: number;
  readonly to: number;
}

function sectionProblems(outline: Outline, at: At): Problem[] {
  const [first] = spansOf(outline);
  if (first === undefined) return [at(Math.max(0, outline.lines.length - 1), `has no section "## ${sectionTitle}"`)];
  return missingIn(outline).map(({ what }) => at(first.from, `the section "${sectionTitle}" does not say ${what}`));
}

function missingIn(outline: Outline): typeof required {
  const text = spansOf(outline)
    .flatMap(({ from, to }) => outline.lines.slice(from, to))
    .join('\n');
  return required.filter(({ isIn }) => !isIn(text));
}

/** The sections about state, whatever the case of their heading. A title of the whole text is none. */
function spansOf(outline: Outline): Span[] {
  const all = outline.headings
    .filter(({ level, title }) => level >= sectionLevel && /^state[ -]management$/i.test(title.trim()))
    .map((found) => ({ from: found.line, to: endOf(outline, found) }));
  // One within another goes with it.
  return all.filter(({ from }) => !all.some((other) => other.from < from && from < other.to));
}

/** The line of the next heading that is not below this one. */
function endOf({ headings, lines }: Outline, { level, line }: Heading): number {
  return headings.find((other) => other.line > line && other.level <= level)?.line ?? lines.length;
}
