/**
 * Promises: the checker of CPM skills names missing parts with their place, the fix only adds to the state section,
 * and the 14 shipped skills pass the check and differ from each other.
 */
import { describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { cpmRules, parseHeader } from '../../../src/context/cpm/state.ts';
import { checkSkill, withProcedures } from '../../../src/context/cpm-skills.ts';
import { fc } from '../../support/property.ts';

const templates = resolve(import.meta.dir, '../../../templates');
const section = readFileSync(join(templates, 'cpm', 'state-management.md'), 'utf8');

const front = '---\nname: bake\ndescription: Bakes bread. Use it when there is none.\n---\n';
const body = `
# Bake

## Phase 1: Mix

## Phase 2: Wait

### Phase 3 - Heat

## Output

\`docs/bread/{nn}-loaf.md\`, numbered.

## How to end

Eat.
`;
const whole = `${front}${body}\n${section}`;
const problemsOf = (text: string, folder = 'bake') =>
  checkSkill({ file: 'SKILL.md', folder, text, procedures: '' }).map(({ line, message }) => `${line}: ${message}`);

describe('checkSkill', () => {
  test('a complete skill has no problem, with any line ends and trailing blank lines', () => {
    expect(problemsOf(whole)).toEqual([]);
    expect(problemsOf(whole.replaceAll('\n', '\r\n'))).toEqual([]);
    expect(problemsOf(`${whole.trimEnd()}`)).toEqual([]);
    expect(problemsOf(`${whole}\n\n`)).toEqual([]);
    expect(problemsOf(`${front}\n${section}\n${body}`)).toEqual([]);
  });

  test.each([
    ['', 'has no front matter'],
    ['---\nname: bake\n', 'has no front matter'],
    ['---\n---\n', 'the front matter must be'],
    ['---\nname: [\n---\n', 'SKILL.md:'],
    ['---\nname: ../x\ndescription: x\n---\n', 'name must be at most 64 lower-case letters'],
    ['---\nname: cake\ndescription: x\n---\n', 'name is "cake", but the folder is "bake"'],
    ['---\nname: bake\n---\n', 'description is missing'],
    ['---\nname: bake\ndescription: "  "\n---\n', 'description is missing'],
    [`---\nname: bake\ndescription: ${'x'.repeat(1025)}\n---\n`, 'more than 1024 characters'],
  ])('the front matter %j of a skill is a problem', (head, message) => {
    const problems = checkSkill({
      file: 'SKILL.md',
      folder: 'bake',
      text: `${head}${body}\n${section}`,
      procedures: '',
    });
    expect(problems.length).toBeGreaterThan(0);
    expect(problems.map((one) => `${one.file}: ${one.message}`).join('\n')).toContain(
      message === 'SKILL.md:' ? 'SKILL.md: ' : message,
    );
  });

  test('a state section in other words is accepted, and its missing parts are named', () => {
    expect(problemsOf(`${front}${body}`)).toEqual(['21: has no section "## State Management"']);
    const own = (text: string) => problemsOf(`${front}${body}\n## State management\n\n${text}\n`);
    const file = 'Keep `docs/plans/.cpm-progress-{id}.md`, named by CPM_SESSION_ID, in a table.';
    expect(own(`${file} Adopt an older one. Remove it when done.`)).toEqual([]);
    const said = 'the section "State Management" does not say to';
    expect(own(`${file} Adopt an older one.`)).toEqual([`22: ${said} delete the file at the end`]);
    expect(own('Keep `docs/plans/.cpm-progress.md`, and delete it.')).toEqual([
      `22: ${said} use docs/plans/.cpm-progress-{session_id}.md with the CPM_SESSION_ID of the context`,
      `22: ${said} adopt the file of an older session id`,
    ]);
  });

  test('a shared procedure counts only for the section that names it', () => {
    const text = `${front}${body}\n## State Management\n\nFollow the shared **Keeping state** procedure.\n`;
    const state = '`.cpm-progress-{id}.md` by CPM_SESSION_ID. Adopt an older one. Delete it at the end.';
    const count = (procedures: string) => checkSkill({ file: 'x', folder: 'bake', text, procedures }).length;
    expect(count(`# All\n\n## Keeping state\n\n${state}\n`)).toBe(0);
    expect(count(`# All\n\n## Keeping state\n\n## More\n\n${state}\n`)).toBe(3);
    expect(count('')).toBe(3);
  });

  test('a skill that declares itself stateless needs no state section', () => {
    expect(problemsOf(`${front}${body}\nThis skill is **stateless**.\n`)).toEqual([]);
    expect(problemsOf(`---\n---\n${body}\nThis skill is **stateless**.\n`)).toHaveLength(1);
  });

  test('an unclosed code block is named with its first line, as the only problem', () => {
    expect(problemsOf(whole.replace('Eat.', '````\nEat.\n```'))).toEqual([
      '20: opens a code block that is never closed',
    ]);
  });
});

describe('withSection', () => {
  const mended = (text: string) => withProcedures({ text, procedures: '' }, section) ?? 'nothing';

  const item = (name: string) => section.split('\n').find((line) => line.startsWith(`- **${name}**`)) ?? '';

  test('withSection appends the state section, or its missing parts at its end', () => {
    expect(mended(`${front}${body}`)).toBe(whole);
    expect(mended(`${front}${body.trimEnd()}`)).toBe(whole);
    const own = `${front}\n## State Management\n\n| my | table |\n\n### Part\n\nDelete .cpm-progress.md.\n`;
    const added = `\n${item('Where')}\n${item('Adoption')}\n`;
    expect(mended(own)).toBe(own + added);
    expect(mended(`${own}## Next\n`)).toBe(`${own}${added}\n## Next\n`);
  });

  test('withSection leaves a section with another method or a missing procedure unchanged', () => {
    for (const words of ['State is in Redis.', 'Follow the shared **Keeping state** procedure.']) {
      expect(mended(`${front}${body}\n## State Management\n\n${words}\n`)).toBe('nothing');
    }
    const stateless = `${front}${body}\nStateless.\n`;
    expect(mended(stateless)).toBe(stateless);
  });

  test('withSection keeps the line ends', () => {
    const windows = `${front}${body}`.replaceAll('\n', '\r\n');
    expect(mended(windows)).toBe(whole.replaceAll('\n', '\r\n'));
  });

  test('text in code blocks is ignored, and an unclosed block is not changed', () => {
    const fenced = `${front}\n~~~\n## State Management\n~~~\n`;
    expect(mended(fenced)).toBe(`${fenced}\n${section}`);
    expect(mended(`${front}\n\`\`\`\n## State Management\n`)).toBe('nothing');
  });

  test('for any text withSection makes the section right, is idempotent, and loses no line', () => {
    const line = fc.constantFrom(
      ...['', '# A', '## State Management', '### state-management', '# State Management', '## B', '### C', 'text'],
      ...['---', '```', '~~~~', '```js', '- item', '  ## D  ##', 'Mine.', '\ttab', '`` ` ``', '## Phase 1: x', '\r'],
    );
    const eol = fc.constantFrom('\n', '\r\n');
    fc.assert(
      fc.property(fc.array(line, { maxLength: 30 }), eol, fc.boolean(), (lines, end, ends) => {
        const text = lines.join(end) + (ends ? end : '');
        const result = mended(text);
        if (result === 'nothing') {
          expect(problemsOf(text).join()).toMatch(/never closed|the section "State Management" does not say/);
          return;
        }
        expect(problemsOf(result).filter((problem) => problem.includes('section'))).toEqual([]);
        expect(mended(result)).toBe(result);
        // Nothing is removed: its lines are there in their order.
        const left = result.split('\n').values();
        for (const one of text.trimEnd().split('\n')) {
          expect(left.some((other) => other.trimEnd() === one.trimEnd())).toBe(true);
        }
      }),
      { numRuns: 500 },
    );
  });
});

const names = [
  ...['discover', 'brief', 'spec', 'architect', 'epics', 'do', 'review', 'retro', 'pivot', 'party', 'library'],
  ...['archive', 'present', 'quick'],
].sort();
const skills = join(templates, 'configs', 'cpm', 'skills');
const textOf = (name: string) => readFileSync(join(skills, name, 'SKILL.md'), 'utf8');
/** The text of a skill without the shared section. */
const bodyOf = (name: string) => textOf(name).replace(section.trim(), '');
const linesOf = (text: string) => text.split('\n').filter((line) => line.trim() !== '');

test('the package contains exactly the 14 skills', () => {
  expect(readdirSync(skills).sort()).toEqual(names);
  for (const name of names) expect(readdirSync(join(skills, name))).toEqual(['SKILL.md']);
});

describe.each(names)('skill %s', (name) => {
  test('a shipped skill passes the check and is short enough to be read', () => {
    expect(checkSkill({ file: name, folder: name, text: textOf(name), procedures: '' })).toEqual([]);
    expect(textOf(name)).toContain(section.trim());
    const { length } = textOf(name).trimEnd().split('\n');
    expect(length).toBeGreaterThanOrEqual(60);
    expect(length).toBeLessThanOrEqual(120);
  });

  test('a shipped skill states its input, its questions, the contents of its progress file and its end', () => {
    const text = bodyOf(name);
    for (const heading of ['Input', 'What to ask', 'Output', 'Progress file', 'How to end']) {
      expect(text).toContain(`\n## ${heading}\n`);
    }
    expect(text).toContain('$ARGUMENTS');
    expect(text).toContain('**Use it**');
    // A config template would have to declare variables.
    expect(text).not.toContain('{{');
    // Progress files count the phases. Every phase has steps.
    const phases = text.split(/\n## Phase /).slice(1);
    expect(phases.length).toBeGreaterThanOrEqual(3);
    expect(phases.map((phase) => Number.parseInt(phase, 10))).toEqual(phases.map((_, index) => index + 1));
    for (const phase of phases) expect(phase.split('\n## ')[0]).toContain('\n1. ');
    expect(text.split('\n## Output\n')[1]).toMatch(/^[^#]*`\w[\w.{}<>*-]*\//);
  });

  test('[manual] all 14 SKILL.md files reference CPM_SESSION_ID, and the path uses the session id pattern', () => {
    expect(textOf(name)).toContain('CPM_SESSION_ID');
    const paths = textOf(name).match(/[\w./]*\.cpm-progress[\w{}.-]*/g);
    expect(paths).toEqual(['docs/plans/.cpm-progress-{session_id}.md', 'docs/plans/.cpm-progress.md']);
  });

  test('skills name the events that change the session id: /clear, a fork and a resume', () => {
    const adoption =
      textOf(name)
        .split('\n')
        .find((line) => line.startsWith('- **Adoption**')) ?? '';
    for (const word of ['`/clear`', 'fork', 'resume']) expect(adoption).toContain(word);
    // The old file is removed last.
    expect(adoption).toContain('write its content to the file of your own id, read that back, and only then delete');
  });
  test('a shipped skill shares at most half of its lines with any other skill', () => {
    const own = linesOf(bodyOf(name));
    for (const other of names.filter((one) => one !== name)) {
      const others = new Set(linesOf(bodyOf(other)));
      const shared = own.filter((line) => others.has(line)).length;
      expect([other, shared / own.length <= 0.5]).toEqual([other, true]);
    }
  });

  test('the next skills that a shipped skill suggests exist', () => {
    const end = bodyOf(name).split('\n## How to end\n')[1] ?? '';
    for (const [, suggested] of end.matchAll(/`([a-z]+)`/g)) expect(names).toContain(suggested as string);
  });
});

describe('shared section', () => {
  test('instructions of group sessions name the same three events that change the session id', () => {
    expect(cpmRules).toMatch(/`\/clear`, a fork or a resume may change the id/);
  });
  test('the shared section does not refer to CLAUDE.md, which a session may lack', () => {
    expect(cpmRules).not.toContain('CLAUDE.md');
  });
  test('the shared section keeps state out of commits and removes compaction summaries', () => {
    expect(section).toContain('put `/docs/plans/.cpm-*` into `.gitignore`');
    expect(section).toMatch(
      /^- \*\*End\*\*: .* delete your progress file .*`docs\/plans\/\.cpm-compact-summary-\{session_id\}\.md`/m,
    );
    expect(cpmRules).toContain('No commit holds it.');
  });
  test('the shared section covers place, time, adoption, end, and sessions without a user', () => {
    for (const word of [
      'CPM_SESSION_ID',
      'CLAUDE_CODE_SESSION_ID',
      'Adoption',
      'delete',
      'Unattended',
      'Next Action',
      'all that later phases need',
      'write it before the first phase, after every phase',
    ]) {
      expect(section).toContain(word);
    }
  });

  test('the hooks can read progress files in the form of the shared section', () => {
    const form = /```markdown\n([\s\S]*?)```/.exec(section)?.[1] ?? '';
    for (const part of ['## Completed Phases\n### Phase', '## Next Action\n']) expect(form).toContain(part);
    expect(parseHeader(form)).toEqual({
      skill: 'cpm:{name of this skill}',
      phase: '{number} of {count} — {name}',
      artifact: '{path of the artifact}',
    });
  });
});
