/**
 * Requirements of a CPM skill: a front matter for claude's list and a section about keeping state. Pure: text in,
 * problems or a fixed text out.
 */
import { isObject } from '../store/json.ts';
import { type Problem, readYaml } from '../store/yaml-text.ts';

export interface SkillSource {
  readonly file: string;
  /** Name of the skill's folder, which claude uses as the skill's name. */
  readonly folder: string;
  readonly text: string;
  /** The shared procedures of a plugin's skills; empty = none. */
  readonly procedures: string;
}

export const sectionTitle = 'State Management';
/** What the section must cover in any words, and the item of the shared section about it. */
const required = [
  {
    what: 'to use docs/plans/.cpm-progress-{session_id}.md with the CPM_SESSION_ID of the context',
    isIn: (text: string) => text.includes('CPM_SESSION_ID') && /\.cpm-progress-[{<$[]/.test(text),
    item: 'Where',
  },
  { what: 'to adopt the file of an older session id', isIn: (text: string) => /adopt/i.test(text), item: 'Adoption' },
  { what: 'to delete the file at the end', isIn: (text: string) => /delet|remov/i.test(text), item: 'End' },
];
const descriptionMax = 1024;

interface Heading {
  readonly level: number;
  readonly title: string;
  readonly line: number;
}

/** A text by lines; headings in fenced blocks do not count. */
interface Outline {
  readonly lines: readonly string[];
  readonly headings: readonly Heading[];
  /** Line of an unclosed fence, counted from 0. */
  readonly openFence: number | null;
  /** Lines of the front matter with both fences; 0 without one. */
  readonly frontLines: number;
}

type At = (line: number, message: string) => Problem;

export function checkSkill({ file, folder, text, procedures }: SkillSource): Problem[] {
  const outline = outlineOf(text);
  const at: At = (line, message) => ({ file, line: line + 1, column: 1, message });
  if (outline.openFence !== null) return [at(outline.openFence, 'opens a code block that is never closed')];
  const section = sectionOf(outline, procedures);
  const problems = frontMatterProblems(file, folder, outline);
  if (isStateless(text)) return problems;
  return [
    ...problems,
    ...(section === null
      ? [at(outline.lines.length - 1, `has no section "## ${sectionTitle}"`)]
      : section.missing.map(({ what }) => at(section.from, `the section "${sectionTitle}" does not say ${what}`))),
  ];
}

/** A skill without a progress file says so. */
const isStateless = (text: string): boolean => /\bstateless\b/i.test(text);

/**
 * The text with the shared section appended, or with those of its items that the skill's own section lacks; nothing is
 * removed. Null for a text that cannot be extended safely: an unclosed code block, or a skill that keeps its state
 * without a progress file.
 */
export function withProcedures(
  { text, procedures }: Pick<SkillSource, 'text' | 'procedures'>,
  shared: string,
): string | null {
  const outline = outlineOf(text);
  const section = sectionOf(outline, procedures);
  if (outline.openFence !== null) return null;
  if (section?.missing.length === 0 || isStateless(text)) return text;
  if (section?.isForeign === true) return null;
  const wanted = shared.trim().split('\n');
  const added = wanted.filter((line) => section?.missing.some(({ item }) => line.startsWith(`- **${item}**`)) ?? true);
  const to = section?.to ?? outline.lines.length;
  const [before, after] = [outline.lines.slice(0, to), outline.lines.slice(to)].map((lines) => lines.join('\n'));
  const parts = [before?.trimEnd() ?? '', added.join('\n'), after?.trimEnd() ?? ''];
  const mended = `${parts.filter((part) => part !== '').join('\n\n')}\n`;
  return text.includes('\r\n') ? mended.replaceAll('\n', '\r\n') : mended;
}

function outlineOf(text: string): Outline {
  const lines = text.replaceAll('\r\n', '\n').split('\n');
  const end = lines.findIndex((line, index) => index > 0 && isRule(line));
  const frontLines = isRule(lines[0] ?? '') && end > 0 ? end + 1 : 0;
  const headings: Heading[] = [];
  let fence: { readonly mark: string; readonly line: number } | null = null;
  for (const [line, content] of lines.entries()) {
    if (line < frontLines) continue;
    const [, mark, rest = ''] = /^ {0,3}(`{3,}|~{3,})(.*)$/.exec(content) ?? [];
    const [, marks, title = ''] = /^ {0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$/.exec(content) ?? [];
    if (fence !== null) {
      if (mark?.startsWith(fence.mark) && rest.trim() === '') fence = null;
      // Backticks after the opening ones make it inline code.
    } else if (mark !== undefined && !(mark.startsWith('`') && rest.includes('`'))) fence = { mark, line };
    else if (marks !== undefined) headings.push({ level: marks.length, title, line });
  }
  return { lines, headings, openFence: fence === null ? null : fence.line, frontLines };
}

const isRule = (line: string): boolean => /^---[ \t]*$/.test(line);

function frontMatterProblems(file: string, folder: string, { lines, frontLines }: Outline): Problem[] {
  const wrong = (message: string): Problem[] => [{ file, line: 1, column: 1, message }];
  if (frontLines === 0) return wrong('has no front matter: start with "---", name, description, "---"');
  const yaml = readYaml({ text: lines.slice(1, frontLines - 1).join('\n'), file, linesBefore: 1 });
  if (!yaml.ok) return [...yaml.problems];
  const { value, problemAt } = yaml.value;
  if (!isObject(value)) return wrong('the front matter must be "name: …" and "description: …"');
  const { name, description } = value;
  const problems: Problem[] = [];
  if (typeof name !== 'string' || !/^[a-z0-9][a-z0-9-]{0,63}$/.test(name)) {
    problems.push(problemAt(['name'], 'name must be at most 64 lower-case letters, digits and "-"'));
  } else if (name !== folder) {
    const message = `name is "${name}", but the folder is "${folder}", which claude uses as the name`;
    problems.push(problemAt(['name'], message));
  }
  if (typeof description !== 'string' || description.trim() === '') {
    problems.push(problemAt(['description'], 'description is missing: claude chooses a skill by it'));
  } else if (description.length > descriptionMax) {
    problems.push(problemAt(['description'], `description has more than ${descriptionMax} characters`));
  }
  return problems;
}

interface Section {
  readonly from: number;
  readonly to: number;
  readonly missing: typeof required;
  /** It names no progress file. */
  readonly isForeign: boolean;
}

/** The first section about state, with a heading in any case; the title of the whole text does not count. */
function sectionOf(outline: Outline, procedures: string): Section | null {
  const found = outline.headings.find(({ level, title }) => level > 1 && /^state[ -]management$/i.test(title.trim()));
  if (found === undefined) return null;
  const [from, to] = [found.line, endOf(outline, found)];
  const own = outline.lines.slice(from, to).join('\n');
  const text = [
    own,
    ...[...own.matchAll(/\bshared \*\*(.+?)\*\*/gi)].map(([, name]) => procedure(procedures, name)),
  ].join();
  const missing = required.filter(({ isIn }) => !isIn(text));
  return { from, to, missing, isForeign: !text.includes('.cpm-progress') };
}

/** The section of a shared procedure, which a skill refers to as "the shared **Name** procedure". */
function procedure(procedures: string, name: string | undefined): string {
  const outline = outlineOf(procedures);
  const heading = outline.headings.find(({ title }) => title === name);
  return heading === undefined ? '' : outline.lines.slice(heading.line, endOf(outline, heading)).join('\n');
}

/** The line of the next heading at the same or a higher level. */
function endOf({ headings, lines }: Outline, { level, line }: Heading): number {
  return headings.find((other) => other.line > line && other.level <= level)?.line ?? lines.length;
}
